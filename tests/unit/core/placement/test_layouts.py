"""Layouts of several on-demand groups, spot groups of zones, and workloads with volumes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import LabelNode, Release
from plimsoll.domain.kubernetes import MIN_ON_DEMAND, Node, Workload
from plimsoll.domain.placement import Layout, between_runs, plan_placement
from plimsoll.domain.placement.spread_groups import LAYOUTS, groups_of, label_key
from tests.support.builders import (
    NOON,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    a_claim,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
    pod_spec_json,
)
from tests.support.floors import labelled, scheduled, spread_over
from tests.support.observations import looked
from tests.support.properties import drawn

ZONES = (ZONE_A, ZONE_B, ZONE_C)
EVEN = Layout(3, 3)
HOLDS = {"controller.kubernetes.io/pod-deletion-cost": "1000"}
SPREAD = [layout for layout in LAYOUTS if layout.spot_groups]


def on_demand(count: int, **how: Any) -> list[Node]:
    return [a_node(f"od-{n}", zone=ZONES[n % 3], cpu="64", **how) for n in range(count)]


def spot(family: str, count: int = 3, **how: Any) -> list[Node]:
    labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
    how = {"cpu": "64"} | how
    return [
        a_node(f"{family}-{n}", capacity="spot", zone=ZONES[n % 3], labels=labels, **how)
        for n in range(count)
    ]


def spread_web(layout: Layout, replicas: int) -> Workload:
    template = pod_spec_json(**spread_over(layout))
    keep = {MIN_ON_DEMAND: str(max(1, layout.floor(replicas)))}
    return a_deployment(replicas=replicas, annotations=keep, template=template)


def after_a_run(nodes: list[Node], layout: Layout, replicas: int = 12) -> list[Node]:
    return labelled(nodes, looked(nodes, [], [spread_web(layout, replicas)]))


def group_of(nodes: Sequence[Node], layout: Layout) -> dict[str, str | None]:
    return {node.name: node.labels.get(label_key(layout)) for node in nodes}


@pytest.mark.parametrize(
    ("layout", "most"),
    [
        (Layout(1, 3), {1: 3}),
        (Layout(2, 1), {2: 1, 1: 0}),
        (Layout(3, 1), {3: 1, 2: 0, 1: 0}),
        (Layout(3, 3), {3: 3, 2: 1, 1: 1}),
    ],
)
def test_with_fewer_on_demand_groups_open_fewer_spot_groups_may_be(layout, most):
    assert {k: layout.most_spot_groups(k) for k in most} == most


@given(
    layout=st.sampled_from(SPREAD),
    replicas=st.integers(1, 500),
    lost=st.integers(0, 2),
    data=st.data(),
)
def test_whatever_groups_are_open_together_they_keep_the_floor(layout, replicas, lost, data):
    on_demand_groups = max(1, layout.on_demand_groups - lost)
    spot_groups = data.draw(st.integers(0, layout.most_spot_groups(on_demand_groups)))
    assert Layout(on_demand_groups, spot_groups).floor(replicas) >= layout.floor(replicas)


def test_on_demand_nodes_are_dealt_round_so_that_each_group_has_nodes_of_every_zone():
    nodes = after_a_run(on_demand(9) + spot("m5"), EVEN)
    zones = defaultdict(set)
    for node in nodes[:9]:
        zones[node.labels[label_key(EVEN)]].add(node.zone)
    assert zones == {f"on-demand-{n}": {*ZONES} for n in (1, 2, 3)}


def test_with_one_on_demand_group_the_labels_are_those_of_before():
    nodes = after_a_run(on_demand(3) + spot("m5") + spot("c5"), Layout(1, 2))
    assert {*group_of(nodes, Layout(1, 2)).values()} == {"on-demand", "spot-1", "spot-2"}
    assert {k for node in nodes for k in node.labels if "spread" in k} == {"spread.plimsoll.dev/2"}


@given(layout=st.sampled_from(SPREAD), present=st.integers(1, 9), families=st.integers(1, 4))
def test_a_second_run_changes_nothing_and_a_node_that_joins_changes_no_other(
    layout, present, families
):
    nodes = on_demand(present)
    for number in range(families):
        nodes += spot(f"f{number}")
    nodes = after_a_run(nodes, layout)
    assert after_a_run(nodes, layout) == nodes
    joined = after_a_run(on_demand(12)[-1:] + nodes, layout)
    before, after = group_of(nodes[:present], layout), group_of(joined[1:], layout)
    assert {name: after[name] for name in before} == before


def test_a_node_that_joins_goes_to_the_on_demand_group_that_lost_one():
    nodes = after_a_run(on_demand(6) + spot("m5"), EVEN)
    lost = nodes[1]
    nodes = after_a_run([n for n in nodes if n is not lost] + [replace(lost, labels={})], EVEN)
    assert group_of(nodes, EVEN)[lost.name] == lost.labels[label_key(EVEN)]


def test_an_empty_on_demand_group_takes_one_node_of_another():
    nodes = after_a_run(on_demand(4) + spot("m5"), EVEN)
    [lost] = [n for n in nodes if n.labels[label_key(EVEN)] == "on-demand-3"]
    left = [n for n in nodes if n is not lost]
    again = after_a_run(left, EVEN)
    changed = [n for n, m in zip(left, again, strict=True) if n.labels != m.labels]
    assert len(changed) == 1
    assert Counter(group_of(again[:3], EVEN).values()) == {f"on-demand-{n}": 1 for n in (1, 2, 3)}


def test_with_two_on_demand_nodes_only_one_of_three_spot_groups_stays_open():
    nodes = on_demand(2) + spot("m5") + spot("c5") + spot("r5")
    plan = plan_placement(looked(nodes, [], [spread_web(EVEN, 12)]), NOON)
    assert [group.name for group in plan.groups if group.opened] == [
        "on-demand-1",
        "on-demand-2",
        "spot-1",
    ]
    assert "would undercut the floor" in plan.groups[-1].reason


def test_without_an_on_demand_node_all_spot_groups_stay_open():
    nodes = spot("m5") + spot("c5") + spot("r5")
    plan = plan_placement(looked(nodes, [], [spread_web(EVEN, 12)]), NOON)
    assert [group.name for group in plan.groups if group.opened] == ["spot-1", "spot-2", "spot-3"]


@drawn(30, many=2_000)
@given(
    layout=st.sampled_from(SPREAD),
    replicas=st.integers(1, 40),
    present=st.integers(1, 5),
    cordoned=st.integers(0, 4),
    families=st.lists(st.sampled_from(["64", "1", "100m"]), min_size=1, max_size=4),
)
def test_an_even_spread_never_undercuts_the_floor_whatever_nodes_there_are(
    layout, replicas, present, cordoned, families
):
    nodes = on_demand(present)
    for number, cpu in enumerate(families):
        nodes += spot(f"f{number}", cpu=cpu)
    for _ in range(3):
        nodes = after_a_run(nodes, layout, replicas)
    gone = min(cordoned, present - 1)
    nodes = [replace(node, unschedulable=n < gone) for n, node in enumerate(nodes)]
    for _ in range(3):
        nodes = after_a_run(nodes, layout, replicas)
    pods = scheduled(nodes, replicas, layout)
    on_demand_nodes = {node.name for node in nodes if node.capacity == "on-demand"}
    assert all(pod.node for pod in pods)
    assert sum(pod.node in on_demand_nodes for pod in pods) >= layout.floor(replicas)


def test_one_family_over_three_zones_makes_three_spot_groups():
    nodes = after_a_run(on_demand(3) + spot("m5", 6), Layout(1, 3))
    zones = defaultdict(set)
    for node in nodes[3:]:
        zones[node.labels[label_key(Layout(1, 3))]].add(node.zone)
    assert sorted(zones) == ["spot-1", "spot-2", "spot-3"]
    assert all(len(there) == 1 for there in zones.values())


def test_a_family_that_was_one_group_gives_one_zone_a_run_to_the_others():
    key = label_key(Layout(1, 3))
    nodes = on_demand(3) + [replace(n, labels={**n.labels, key: "spot-1"}) for n in spot("m5", 9)]
    groups = []
    for _ in range(4):
        nodes = after_a_run(nodes, Layout(1, 3))
        groups.append(sorted(Counter(n.labels[key] for n in nodes[3:]).items()))
    assert groups[0] == [("spot-1", 6), ("spot-2", 3)]
    assert groups[1:] == [[("spot-1", 3), ("spot-2", 3), ("spot-3", 3)]] * 3


def test_with_as_many_families_as_groups_a_family_is_whole_again():
    nodes = after_a_run(on_demand(3) + spot("m5", 6), Layout(1, 3)) + spot("c5") + spot("r5")
    group = groups_of(nodes, Layout(1, 3))
    assert {
        len({group[n.name] for n in nodes if family in n.name}) for family in ("m5", "c5", "r5")
    } == {1}


@pytest.mark.parametrize(
    ("zones", "spot_nodes", "replicas", "asked", "layout"),
    [
        (ZONES, 3, 9, "3", "1 + 1"),
        (ZONES, 0, 9, "3", "1 + 1"),
        (ZONES, 2, 9, "3", "on-demand"),
        (ZONES[:2], 2, 9, "3", "1 + 1"),
        (ZONES, 3, 9, "5", "on-demand"),
        ((ZONE_A, "us-east-1f"), 3, 9, "3", "on-demand"),
        ((ZONE_A,), 3, 1, "1", "on-demand"),
    ],
)
def test_a_stateful_set_is_spread_where_both_capacities_have_nodes_in_the_zones_of_its_volumes(
    zones, spot_nodes, replicas, asked, layout
):
    db = a_stateful_set(
        "db",
        replicas=replicas,
        annotations={MIN_ON_DEMAND: asked},
        volumeClaimTemplates=[{"metadata": {"name": "data"}}],
    )
    pods, claims = [], {}
    for number, zone in enumerate(zones):
        claim = a_claim(f"data-db-{number}", zone=zone)
        claims[claim.namespace, claim.name] = claim
        mounted = mounting(claim.name)
        pods.append(
            a_pod(f"db-{number}", node="od-0", owner=("StatefulSet", "db"), volumes=mounted)
        )
    seen = looked(on_demand(3) + spot("m5", spot_nodes), pods, [db], claims=claims)
    [status] = plan_placement(seen, NOON).workloads
    assert str(status.floor.layout) == layout


def test_a_claim_that_was_not_read_keeps_a_stateful_set_on_on_demand():
    db = a_stateful_set("db", replicas=4, annotations={MIN_ON_DEMAND: "1"})
    db = replace(db, claim_templates=True)
    pod = a_pod("db-0", node="od-0", owner=("StatefulSet", "db"), volumes=mounting("data-db-0"))
    [status] = plan_placement(looked(on_demand(3) + spot("m5"), [pod], [db]), NOON).workloads
    assert status.floor.way == "affinity"


@pytest.mark.parametrize(
    ("standing", "moves"),
    [
        ({"od-0": 5, "od-1": 1, "m5-0": 3}, None),
        ({"od-0": 3, "od-1": 1, "m5-0": 5}, "5 of its pods stand on spot-1 and 1 on on-demand-2"),
        ({"od-0": 5, "od-1": 4}, "5 of its pods stand on on-demand-1 and 0 on spot-1"),
    ],
)
def test_pods_move_to_even_shares_but_not_from_one_on_demand_group_to_another(standing, moves):
    layout = Layout(2, 1)
    nodes = after_a_run(on_demand(2) + spot("m5", 1), layout, 9)
    pods = [
        a_pod(
            f"web-{node}-{n}",
            node=node,
            annotations=HOLDS if node.startswith("od") else {},
            **spread_over(layout),
        )
        for node, count in standing.items()
        for n in range(count)
    ]
    plan = plan_placement(looked(nodes, pods, [spread_web(layout, 9)]), NOON)
    released = [s.action.reason for s in plan.steps if isinstance(s.action, Release)]
    assert released == ([moves] if moves else [])


def test_pods_on_closed_spot_groups_move_while_the_floor_is_undercut():
    nodes = after_a_run(on_demand(3) + spot("m5") + spot("c5") + spot("r5"), EVEN)
    nodes = [replace(n, unschedulable=n.name == "od-2") for n in nodes]
    nodes = after_a_run(nodes, EVEN)
    where = ["od-0"] * 3 + ["od-1"] * 2 + ["c5-0"] * 3 + ["m5-0"] * 2 + ["r5-0"] * 2
    pods = [
        a_pod(f"web-{n}", node=node, annotations=HOLDS if "od" in node else {}, **spread_over(EVEN))
        for n, node in enumerate(where)
    ]
    plan = plan_placement(looked(nodes, pods, [spread_web(EVEN, 12)]), NOON)
    [move] = [step.action for step in plan.steps if isinstance(step.action, Release)]
    assert move.pod.node in {"m5-0", "r5-0"}
    assert "5 of its pods stand on on-demand" in move.reason


def test_no_pod_leaves_on_demand_for_spot_while_the_floor_is_just_kept():
    nodes = after_a_run(on_demand(1) + spot("m5") + spot("c5") + spot("r5"), Layout(1, 3))
    nodes = [replace(n, unschedulable=n.name.startswith(("m5", "r5"))) for n in nodes]
    nodes = after_a_run(nodes, Layout(1, 3))
    where = ["od-0"] * 3 + ["c5-0"] + ["m5-0"] * 4 + ["r5-0"] * 4
    pods = [
        a_pod(
            f"web-{n}",
            node=node,
            annotations=HOLDS if "od" in node else {},
            **spread_over(Layout(1, 3)),
        )
        for n, node in enumerate(where)
    ]
    plan = plan_placement(looked(nodes, pods, [spread_web(Layout(1, 3), 12)]), NOON)
    assert plan.held is None
    assert not [step for step in plan.steps if isinstance(step.action, Release)]


def test_between_runs_spot_groups_that_would_undercut_the_floor_close_at_once():
    nodes = after_a_run(on_demand(3) + spot("m5") + spot("c5") + spot("r5"), EVEN)
    nodes = [replace(n, unschedulable=n.name == "od-2") for n in nodes]
    seen = looked(nodes, [], [spread_web(EVEN, 12)])
    steps = between_runs(seen, NOON, idle=False, refused=())
    closed = [s.action.node.name for s in steps if isinstance(s.action, LabelNode)]
    assert sorted(closed) == ["m5-0", "m5-1", "m5-2", "od-2", "r5-0", "r5-1", "r5-2"]
