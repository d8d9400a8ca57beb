"""Whether a replacement is Ready before the pod that it replaces stops, of the two minutes of a spot notice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.capacity import StartWindow, StartWindows
from plimsoll.domain.kubernetes import Node, Pod, Ref
from plimsoll.domain.placement import Layout, label_key
from tests.support.builders import NOON, a_group, a_node, a_pod
from tests.support.observations import looked

WEB = Ref("Deployment", "default", "web")


def spot(name: str, kind: str = "m5.large", **how) -> Node:
    labels = {"node.kubernetes.io/instance-type": kind}
    return a_node(name, capacity="spot", labels=labels, **how)


def serving(*nodes: str, took: int, stop: int | None = 10, **how) -> list[Pod]:
    pods = [a_pod(f"web-{n}", node=node, cpu="2", **how) for n, node in enumerate(nodes)]
    return [
        replace(p, start_seconds=took, ready_since=NOON, stated_stop_seconds=stop) for p in pods
    ]


def window(nodes: list[Node], pods: list[Pod], **how) -> StartWindow:
    found = StartWindows(seen=looked(nodes, pods, **how), now=NOON).of(WEB)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("start", "node", "stop", "missing"),
    [
        (15, 0, 10, 0),
        (15, 70, 10, 0),
        (45, 70, 10, 9),
        (45, 70, 30, 29),
        (170, 0, 10, 64),
        (170, 70, 10, 134),
        (600, 70, 10, 564),
        (36, 70, 3, 0),  # a pod is never left until later than 10 s before its deadline
        (37, 70, 3, 1),
    ],
)
def test_what_is_left_of_a_notice_is_compared_with_node_and_start(start, node, stop, missing):
    found = StartWindow(start_seconds=start, node_seconds=node, stop_seconds=stop)
    assert found.missing == missing


def test_without_a_running_pod_that_tells_nothing_is_known():
    pods = [replace(pod, start_seconds=None) for pod in serving("a", took=1)]
    windows = StartWindows(seen=looked([spot("a")], pods), now=NOON)
    assert windows.of(WEB) is None
    assert windows.late(WEB) is None


def test_an_assumed_stop_time_is_the_time_that_the_product_keeps_for_it():
    assert window([spot("a")], serving("a", took=45, stop=None)).stop_seconds == 30


def test_a_node_takes_as_long_as_those_of_the_slowest_group_of_its_pods():
    families = {"a0": "m5", "a1": "m5", "a2": "m5", "b": "c5", "c": "r5"}
    nodes = [spot(name, f"{family}.large", cpu="1") for name, family in families.items()]
    took = dict(zip([n.instance or "" for n in nodes], (40, 50, 4000, 90, 300), strict=True))
    nodes = [replace(node, ready_since=NOON) for node in nodes]
    launched = {i: NOON - timedelta(seconds=s) for i, s in took.items()}
    groups = [
        replace(a_group(name, instances=[*some]), launched={i: launched[i] for i in some})
        for name, some in {
            "a": [*took][:3],  # 4,000 s: it lost and regained readiness
            "b": [*took][3:4],
            "others": [*took][4:],
        }.items()
    ]
    pods = serving("a0", "b", took=45)
    assert window(nodes, pods, groups=groups).node_seconds == 90
    assert window(nodes, pods[:1], groups=groups).node_seconds == 45
    assert window(nodes, pods).node_seconds == 70
    silent = [replace(group, launched={}) for group in groups]
    assert window(nodes, pods, groups=silent).node_seconds == 70
    assert window(nodes, pods, groups=silent, launched=launched).node_seconds == 90


def test_nodes_with_places_for_what_one_pool_runs_leave_nothing_to_wait_for():
    nodes = [spot("a", cpu="4"), spot("b", "c5.large", cpu="4")]
    pods = serving("a", "a", "b", took=45)
    assert window(nodes, pods).node_seconds == 70  # one place on b, two pods on a
    assert window([*nodes, spot("more", cpu="8")], pods).node_seconds == 70  # it goes with a
    assert window([*nodes, a_node("od", cpu="2")], pods).node_seconds == 0
    cordoned = a_node("od", cpu="2", unschedulable=True)
    assert window([*nodes, cordoned], pods).node_seconds == 70


def test_pods_of_a_negative_priority_make_way():
    nodes = [spot("a", cpu="2"), a_node("od", cpu="2")]
    pods = serving("a", took=45)
    for priority, seconds in ((-1, 0), (0, 70)):
        balloon = a_pod("balloon", node="od", cpu="2", owner=None, priority=priority)
        assert window(nodes, [*pods, balloon]).node_seconds == seconds


def test_the_floor_that_stands_for_want_of_headroom_does_not_argue_itself_away():
    nodes = [spot("a", cpu="4"), spot("b", "c5.large", cpu="4"), a_node("od", cpu="6")]
    pods = serving("a", "a", "b", "b", "od", took=45)
    assert window(nodes, pods).node_seconds == 0
    constraint = [
        {
            "topologyKey": label_key(Layout(1, 2)),
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    spread = serving("a", "a", "b", "b", "od", took=45, topologySpreadConstraints=constraint)
    assert window(nodes, spread).node_seconds == 70  # two places for four pods on spot


def test_a_workload_that_stands_on_on_demand_alone_still_waits_for_a_node():
    assert window([a_node("od", cpu="64")], serving("od", took=45)).node_seconds == 70


@pytest.mark.parametrize(
    ("start", "node", "stop", "words"),
    [
        (45, 70, 10, "keep places for its pods free, or set"),
        (25, 70, 30, "keep places for its pods free, or state a shorter stop time"),
        (170, 70, 10, "shorten the start of its pods, or set"),
    ],
)
def test_the_cure_is_what_alone_makes_the_replacement_ready_in_time(start, node, stop, words):
    found = StartWindow(start_seconds=start, node_seconds=node, stop_seconds=stop)
    assert found.cure.startswith(words)
