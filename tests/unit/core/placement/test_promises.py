"""Promises of availability, and what the Deployments of a cluster keep of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import KEEP_READY, MIN_ON_DEMAND, Node, Pod, Workload
from plimsoll.domain.placement import (
    Promise,
    PromisedWorkload,
    asked_promises,
    promised_workloads,
    standing_groups,
    understood_promise,
)
from plimsoll.domain.placement.load_line import LoadLine
from plimsoll.domain.placement.promises import stated_promise
from plimsoll.domain.spot import NEVER_SEEN, CapacityPool, PoolRate
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_deployment, a_node, a_pod, a_stateful_set
from tests.support.observations import looked

FAMILIES = ("c6i", "m6i", "r6i")


def rate(per_hour: float, stood: float = 240) -> PoolRate:
    return PoolRate(per_hour=per_hour, stood_hours=stood, reclaims=0, held_hours=0)


def spot(name: str, kind: str, zone: str = ZONE_A) -> Node:
    labels = {"node.kubernetes.io/instance-type": kind}
    return a_node(name, capacity="spot", zone=zone, labels=labels, cpu="2")


NODES = [spot(family, f"{family}.large") for family in FAMILIES]
ROUGH = {
    CapacityPool(f"{family}.large", ZONE_A, "spot"): rate(per_hour)
    for family, per_hour in zip(FAMILIES, (0.025, 0.08, 0.08), strict=True)
}


def serving(took: int, workload: str = "web") -> list[Pod]:
    pods = [
        a_pod(f"{workload}-{n}", node=node, cpu="2", owner=("ReplicaSet", f"{workload}-abc"))
        for n, node in enumerate(FAMILIES)
    ]
    return [replace(p, start_seconds=took, ready_since=NOON, stated_stop_seconds=10) for p in pods]


def promised(text: str, took: int = 170, **how) -> list[PromisedWorkload]:
    workloads = how.pop("workloads", [a_deployment("web", replicas=10)])
    seen = replace(looked(NODES, serving(took), workloads), **how)
    windows = StartWindows(seen=seen, now=NOON)
    groups = standing_groups(seen, ROUGH)
    return [*promised_workloads(lambda _: Promise.parse(text), windows, groups, {})]


@pytest.mark.parametrize(
    ("text", "wanted", "broken"),
    [
        ("60%", 6, 0.001),
        ("6", 6, 0.001),
        ("55%, 99%", 6, 0.01),
        (" 100%,99.97% ", 10, 0.0003),
        ("12", 12, 0.001),
        ("0%, 100%", 0, 0.0),
    ],
)
def test_a_promise_names_replicas_and_if_it_likes_a_share_of_the_time(text, wanted, broken):
    promise = Promise.parse(text)
    assert promise.wanted(10) == wanted
    assert promise.broken == pytest.approx(broken)


@pytest.mark.parametrize(
    "text", ["", "most", "-1", "101%", "60%,", "60%, 101%", "60%, often", "6.5", "60% 99%", "٦%"]
)
def test_what_is_no_promise_is_refused_with_a_form_that_is(text):
    with pytest.raises(BadInput, match="is no promise"):
        Promise.parse(text)


@given(text=st.text(max_size=30))
def test_any_text_is_a_promise_or_refused(text):
    try:
        promise = Promise.parse(text)
    except BadInput:
        return
    assert promise.wanted(10) >= 0
    assert 0 <= promise.broken <= 1


def asking(promise: str | None, **how) -> Workload:
    return a_deployment("web", annotations={} if promise is None else {KEEP_READY: promise}, **how)


def test_a_workload_promises_before_its_namespace_and_that_before_its_cluster():
    namespaces, default = {"default": "70%"}, "80%, 99%"
    assert stated_promise(asking("60%"), namespaces, default) == Promise(ready="60%")
    assert stated_promise(asking(None), namespaces, default) == Promise(ready="70%")
    assert stated_promise(asking(None), {}, default) == Promise(ready="80%", percent=99)
    assert stated_promise(asking(None)) is None
    assert stated_promise(asking(None, namespace="kube-system"), {}, default) is None
    named = {"kube-system": "70%"}
    assert stated_promise(asking(None, namespace="kube-system"), named, default) is not None


@pytest.mark.parametrize("nothing", ["0", "0%", "00%", "0, 99%"])
def test_a_promise_of_nothing_is_none_whatever_others_promise(nothing):
    assert stated_promise(asking(nothing), {"default": "70%"}, "80%") is None


def test_a_bad_promise_is_the_workloads_own_even_where_others_promise():
    with pytest.raises(
        BadInput, match=r"Deployment default/web: .*keep-ready: 'most' is no promise"
    ):
        stated_promise(asking("most"), {"default": "70%"}, "80%")


def test_nothing_is_promised_of_a_stateful_set():
    db = a_stateful_set(replicas=3, annotations={KEEP_READY: "60%"})
    assert stated_promise(db, {"default": "70%"}, "80%") is None


def test_a_group_has_the_mean_rate_of_its_nodes_pools_and_is_as_old_as_the_youngest():
    nodes = [*NODES[:1], spot("b", "c6i.large", ZONE_B), *NODES[1:]]
    known = {
        CapacityPool("c6i.large", ZONE_A, "spot"): rate(0.01, stood=100),
        CapacityPool("c6i.large", ZONE_B, "spot"): rate(0.03, stood=7),
    }
    c6i, m6i, _ = standing_groups(looked(nodes, []), known)
    assert (c6i.group.name, c6i.group.per_hour, c6i.stood_hours) == ("c6i", 0.02, 7)
    assert (m6i.group.name, m6i.group.per_hour, m6i.stood_hours) == ("m6i", NEVER_SEEN, None)
    assert "not seen before" in str(m6i)


def test_where_families_are_few_zones_make_groups_that_share_their_family():
    nodes = [spot(zone, "c6i.large", zone) for zone in (ZONE_A, ZONE_B)]
    a, b = standing_groups(looked(nodes, []), {})
    assert {a.group.name, b.group.name} == {f"c6i in {ZONE_A}", f"c6i in {ZONE_B}"}
    assert a.group.family == b.group.family == "c6i"


def test_many_families_make_three_groups_and_none_makes_none():
    nodes = [spot(f"n{n}", f"m{n}.large") for n in range(7)]
    assert len(standing_groups(looked(nodes, []), {})) == 3
    assert standing_groups(looked([a_node("od")], []), {}) == ()


def test_the_line_of_a_slow_deployment_in_a_rough_market_by_what_is_promised():
    found = {text: promised(text)[0].line for text in ("60%", "80%", "100%")}
    assert {text: str(line.layout) for text, line in found.items()} == {
        "60%": "no floor",
        "80%": "3 + 3",
        "100%": "on-demand",
    }
    assert found["60%"].minutes_a_month == pytest.approx(5.8, rel=0.03)


def test_a_fast_deployment_needs_no_floor():
    (web,) = promised("90%", took=20)
    assert (web.window.missing, str(web.line.layout)) == (0, "no floor")


def test_the_floor_that_an_owner_states_is_kept_beneath_the_line():
    stated = a_deployment("web", replicas=10, annotations={MIN_ON_DEMAND: "3"})
    (web,) = promised("60%", workloads=[stated])
    assert (str(web.line.layout), web.line.floor) == ("1 + 2", 3)
    assert {str(line.layout) for line in web.layouts} >= {"no floor", "1 + 3", "3 + 3", "on-demand"}
    (by_policy,) = promised("60%", policy=Policy(min_on_demand="30%"))
    assert by_policy.line == web.line
    broken = a_deployment("web", replicas=10, annotations={MIN_ON_DEMAND: "some"})
    assert str(promised("60%", workloads=[broken])[0].line.layout) == "no floor"


def test_more_than_all_replicas_cannot_be_kept():
    (web,) = promised("11")
    assert not web.kept
    assert str(web.line.layout) == "on-demand"


def test_workloads_that_tell_nothing_or_are_not_moved_by_release_have_no_line():
    silent = [a_deployment("web", replicas=0), a_deployment("cart", replicas=3)]
    assert promised("60%", workloads=silent) == []


def test_only_those_of_which_something_is_promised_have_a_line():
    seen = looked(NODES, serving(170), [a_deployment("web", replicas=3)])
    windows = StartWindows(seen=seen, now=NOON)
    assert [*promised_workloads(lambda _: None, windows, standing_groups(seen, {}), {})] == []


def test_what_it_keeps_follows_from_where_its_pods_stand_now():
    spread, crowded = serving(170), [replace(pod, node="c6i") for pod in serving(170)]
    web = a_deployment("web", replicas=3)

    def stands(pods: list[Pod]) -> LoadLine:
        windows = StartWindows(seen=looked(NODES, pods, [web]), now=NOON)
        groups = standing_groups(windows.seen, ROUGH)
        (found,) = promised_workloads(lambda _: Promise.parse("2"), windows, groups, {})
        assert found.layouts[0].layout.spot_groups == 3
        assert (found.stands == found.layouts[0]) == (pods is spread)
        return found.stands

    assert stands(crowded).below > 1.5 * stands(spread).below
    elsewhere = [replace(pod, node=None) for pod in crowded[:2]]
    assert stands([*elsewhere, *crowded[2:]]).floor == 2


def test_a_promise_that_cannot_be_read_is_none_here():
    bad = a_deployment("web", annotations={KEEP_READY: "often"})
    assert understood_promise(bad, {}, "0") is None
    assert understood_promise(a_deployment("web"), {}, "60%") == Promise.parse("60%")


def test_zones_of_one_family_are_groups_that_share_the_losses_of_the_family():
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    nodes = [spot(f"n{zone}", "m6i.large", zone=zone) for zone in zones]
    groups = [standing.group for standing in standing_groups(looked(nodes, []), {})]
    assert [group.name for group in groups] == [f"m6i in {zone}" for zone in zones]
    assert {group.family for group in groups} == {"m6i"}


def test_a_promise_on_a_stateful_set_is_answered_and_changes_nothing():
    db = a_stateful_set("db", annotations={KEEP_READY: "60%"})
    asked = asked_promises(looked([], [], [db]), {}, {})
    assert asked.workloads == set()
    [told] = asked.ignored
    assert told.reason == "KeepReadyNotSupported"
    assert told.message.startswith(
        "StatefulSet default/db: plimsoll.dev/keep-ready is for Deployments"
    )
