"""Placement: on-demand floors, spread groups, and the labels and deletion costs that keep them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import Evict, LabelNode, Release, SetDeletionCost
from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import (
    DELETION_COST,
    DO_NOT_DISRUPT,
    MIN_ON_DEMAND,
    MOVED,
    SAFE_TO_EVICT,
    Node,
    Pod,
    Quota,
    Ref,
    Resources,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import Layout, floor_of, plan_placement
from plimsoll.domain.placement.rebalancing import HELD
from plimsoll.domain.placement.spread_groups import TOLERATED_FACTOR, family_of, groups_of
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import (
    NOON,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    pod_spec_json,
    pods_of,
)
from tests.support.floors import labelled, scheduled, spread_over
from tests.support.observations import interrupted, looked, released

KEY = "spread.plimsoll.dev/{}"
SLOW = StartWindow(start_seconds=240, node_seconds=70, stop_seconds=30)


def a_workload(replicas: int, floor: str, layout: Layout | int | None = None, **how) -> Workload:
    """Return a Deployment with an on-demand floor; `layout` puts the constraint into it."""
    template = pod_spec_json(**constraint(layout), **how.pop("spec", {}))
    return a_deployment(
        how.pop("name", "web"),
        replicas=replicas,
        annotations={MIN_ON_DEMAND: floor},
        template=template,
        **how,
    )


SOFT = {
    "topologySpreadConstraints": [
        spread_over(2)["topologySpreadConstraints"][0] | {"whenUnsatisfiable": "ScheduleAnyway"}
    ]
}


def constraint(layout: Layout | int | None) -> dict[str, Any]:
    return {} if layout is None else spread_over(layout)


def on_demand(count: int = 3, **how) -> list[Node]:
    return [a_node(f"od-{n}", capacity="on-demand", **how) for n in range(count)]


def spot(family: str, count: int = 2, labels: dict[str, str] | None = None, **how) -> list[Node]:
    named = {"node.kubernetes.io/instance-type": f"{family}.large", **(labels or {})}
    return [a_node(f"{family}-{n}", capacity="spot", labels=named, **how) for n in range(count)]


def standing(pods: list[Pod], nodes: list[Node]) -> Counter[str]:
    kind = {n.name: n.capacity or "unknown" for n in nodes}
    return Counter(kind[p.node] if p.node else "pending" for p in pods)


@pytest.mark.parametrize(
    ("replicas", "asked", "way", "layout"),
    [
        (9, "3", "spread", "1 + 2"),
        (9, "2", "spread", "1 + 3"),
        (12, "1", "spread", "1 + 3"),
        (4, "2", "spread", "1 + 1"),
        (10, "30%", "spread", "1 + 2"),
        (3, "2", "spread", "2 + 1"),
        (10, "6", "spread", "2 + 1"),
        (9, "66%", "spread", "2 + 1"),
        (5, "3", "spread", "3 + 1"),
        (4, "75%", "spread", "3 + 1"),
        (10, "7", "affinity", "on-demand"),
        (5, "4", "affinity", "on-demand"),
        (3, "3", "affinity", "on-demand"),
        (2, "5", "affinity", "on-demand"),
        (3, "100%", "affinity", "on-demand"),
        (3, "0", "free", "on-demand"),
        (3, "0%", "free", "on-demand"),
        (0, "2", "free", "on-demand"),
    ],
)
def test_the_floor_decides_how_its_pods_are_constrained(replicas, asked, way, layout):
    floor = floor_of(a_workload(replicas, asked))
    assert (floor.way, str(floor.layout)) == (way, layout)


@pytest.mark.parametrize(
    ("replicas", "way", "layout"),
    [
        (1, "affinity", "on-demand"),
        (2, "spread", "1 + 1"),
        (3, "spread", "1 + 2"),
        (4, "spread", "1 + 3"),
        (9, "spread", "1 + 3"),
    ],
)
def test_a_floor_that_is_left_to_plimsoll_spreads_slow_pods_over_the_most_groups(
    replicas, way, layout
):
    floor = floor_of(a_workload(replicas, "auto"), late=lambda _: SLOW)
    assert (floor.way, str(floor.layout)) == (way, layout)
    assert floor.reason.startswith(
        "a replacement is Ready 312 s after a spot notice (70 s for a node and 240 s to start), "
        "and the pod that it replaces serves for 88 s: "
    )
    assert floor_of(a_workload(replicas, "auto")).way == "free"
    assert floor_of(a_workload(replicas, "0"), default="auto", late=lambda _: SLOW).way == "free"


@given(replicas=st.integers(2, 24), families=st.integers(1, 5))
def test_such_a_floor_covers_the_loss_of_any_family_but_for_one_pod(replicas, families):
    floor = floor_of(a_workload(replicas, "auto"), late=lambda _: SLOW)
    nodes = on_demand(cpu="64") + [n for f in range(families) for n in spot(f"f{f}", cpu="64")]
    nodes = labelled(nodes, looked(nodes, [], [a_workload(replicas, str(floor.keep))]))
    pods = scheduled(nodes, replicas, floor.layout)
    family = {node.name: family_of(node) for node in nodes}
    stay = {node.name for node in nodes if node.capacity == "on-demand"}
    lost = Counter(family[pod.node] for pod in pods if pod.node and pod.node not in stay)
    assert sum(pod.node in stay for pod in pods) >= max(lost.values(), default=0) - 1


def test_the_arithmetic_counts_with_the_least_that_an_autoscaler_leaves():
    scaled = replace(a_workload(12, "2"), scaler="web", min_replicas=4)
    assert floor_of(scaled).layout == Layout(1, 1)


def test_a_workload_asks_before_its_namespace_and_that_before_the_cluster():
    plain = a_deployment(replicas=8)
    assert floor_of(plain, namespaces={"default": "4"}, default="1").keep == 4
    assert floor_of(plain, namespaces={"other": "4"}, default="1").keep == 1
    system = replace(plain, ref=Ref(plain.ref.kind, "kube-system", plain.ref.name))
    assert floor_of(system, default="1").keep == 0
    assert floor_of(a_workload(8, "2"), namespaces={"default": "4"}).keep == 2


def test_pods_with_volumes_of_their_own_are_not_spread():
    claims = [{"metadata": {"name": "data"}}]
    db = a_stateful_set(replicas=9, annotations={MIN_ON_DEMAND: "3"}, volumeClaimTemplates=claims)
    assert floor_of(db).way == "affinity"


@pytest.mark.parametrize("said", ["many", "-1", "1.5", "200 %", "", "9" * 5000, "٣"])
def test_an_annotation_without_sense_costs_its_own_workload_only(said):
    broken = a_deployment("broken", replicas=9, annotations={MIN_ON_DEMAND: said})
    nodes = on_demand() + spot("m5") + spot("c5")
    plan = plan_placement(looked(nodes, [], [broken, a_workload(9, "3")]), NOON)
    assert [standing.floor.workload.name for standing in plan.workloads][-1:] == ["web"]
    assert plan.steps
    if said:  # an empty annotation says nothing
        assert "Deployment default/broken" in plan.problems[0]
        with pytest.raises(BadInput, match="min-on-demand"):
            floor_of(broken)


@given(replicas=st.integers(1, 24), keep=st.integers(0, 24), families=st.integers(1, 5))
def test_the_floor_stands_after_all_spot_is_lost(replicas, keep, families):
    floor = floor_of(a_workload(replicas, str(min(keep, replicas))))
    nodes = on_demand(cpu="64") + [n for f in range(families) for n in spot(f"f{f}", cpu="64")]
    if floor.way == "spread":
        nodes = labelled(nodes, looked(nodes, [], [a_workload(replicas, str(floor.keep))]))
        pods = scheduled(nodes, replicas, floor.layout)
    elif floor.way == "affinity":
        pods = scheduled([n for n in nodes if n.capacity == "on-demand"], replicas, 0)
        pods = [replace(p, node="od-0") for p in pods]
    else:
        pods = []
    assert not [p for p in pods if p.node is None]
    assert standing(pods, nodes)["on-demand"] >= floor.keep


def test_families_are_shared_out_evenly_and_never_split():
    nodes = spot("m5", 4) + spot("c5", 3) + spot("r5", 2) + spot("t3", 1)
    group = groups_of(nodes, Layout(1, 2))
    sizes = Counter(group[n.name] for n in nodes)
    assert sizes == {"spot-1": 5, "spot-2": 5}


def test_the_family_that_leaves_the_fullest_group_is_the_one_that_evens_it_best():
    key = KEY.format(2)
    nodes = spot("m5", 8, {key: "spot-1"}) + spot("c5", 4, {key: "spot-1"})
    nodes += spot("r5", 2, {key: "spot-2"})
    group = groups_of(nodes, Layout(1, 2))
    of_family = {family_of(n): group[n.name] for n in nodes}
    assert of_family == {"m5": "spot-1", "c5": "spot-2", "r5": "spot-2"}


def test_families_whose_nodes_do_not_say_yet_what_they_have_are_shared_out_too():
    nodes = spot("m5", cpu="0", memory="0") + spot("c5", cpu="0", memory="0")
    assert groups_of(nodes, Layout(1, 2)).keys() == {node.name for node in nodes}


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), spot_groups=st.integers(1, 3))
def test_the_fullest_group_is_near_the_best_that_whole_families_allow(sizes, spot_groups):
    nodes = [n for f, count in enumerate(sizes) for n in spot(f"f{f}", count)]
    loads = Counter(groups_of(nodes, Layout(1, spot_groups)).values())
    best = min(
        max(
            sum(size for size, g in zip(sizes, chosen, strict=True) if g == group)
            for group in range(spot_groups)
        )
        for chosen in product(range(spot_groups), repeat=len(sizes))
    )
    assert max(loads.values()) <= (4 / 3 - 1 / (3 * spot_groups)) * best + 1e-9  # Graham, 1969


@given(
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=8),
    spot_groups=st.integers(1, 3),
)
def test_a_run_moves_at_most_one_labelled_family_and_settles(sizes, spot_groups):
    key = KEY.format(spot_groups)
    nodes = [
        n
        for f, (at, count) in enumerate(sizes)
        for n in spot(f"f{f}", count, {key: f"spot-{min(at, spot_groups)}"})
    ]
    for _ in range(len(sizes) + 1):
        group = groups_of(nodes, Layout(1, spot_groups))
        moved = {family_of(n) for n in nodes if n.labels[key] != group[n.name]}
        assert len(moved) <= 1
        nodes = [replace(n, labels={**n.labels, key: group[n.name]}) for n in nodes]
        if not moved:
            break
    else:
        pytest.fail("it never settles")
    loads = Counter(groups_of(nodes, Layout(1, spot_groups)).values())
    biggest = max(Counter(family_of(n) for n in nodes).values())
    even = len(nodes) / spot_groups
    assert max(loads.values()) <= max(TOLERATED_FACTOR * even, even + biggest)


def test_carrying_the_plan_out_leaves_nothing_to_do():
    web = a_workload(9, "3", 2)
    nodes = on_demand() + spot("m5") + spot("c5") + spot("r5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    pods = scheduled(nodes, 9, 2)
    assert standing(pods, nodes) == {"on-demand": 3, "spot": 6}
    kept = [
        replace(p, annotations={DELETION_COST: "1000"}) if (p.node or "").startswith("od") else p
        for p in pods
    ]
    assert not plan_placement(looked(nodes, kept, [web]), NOON).steps


def test_a_cluster_without_floors_is_left_alone():
    nodes = on_demand() + spot("m5")
    assert not plan_placement(looked(nodes, [], [a_deployment(replicas=9)]), NOON).steps


def test_a_group_whose_survivors_are_full_loses_its_label_and_takes_it_back_with_headroom():
    web = a_workload(9, "3", 2)
    nodes = on_demand() + spot("m5", 2) + spot("c5", 2, cpu="1")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    filler = a_pod("filler", node="c5-0", owner=None, labels={}, cpu="950m")
    lost = [n for n in nodes if n.name != "c5-1"]
    closed = labelled(lost, looked(lost, [filler], [web]))
    assert KEY.format(2) not in next(n for n in closed if n.name == "c5-0").labels
    smaller = replace(filler, scheduling=a_pod(cpu="700m").scheduling)
    still = labelled(closed, looked(closed, [smaller], [web]))
    assert KEY.format(2) not in next(n for n in still if n.name == "c5-0").labels
    again = labelled(closed, looked(closed, [], [web]))
    assert KEY.format(2) in next(n for n in again if n.name == "c5-0").labels


def test_a_survivor_with_places_for_its_old_share_only_is_closed_when_another_group_is_lost():
    """Nine pods over three groups are three each; over two they would be four and five."""
    web = a_workload(9, "3", 2)
    nodes = on_demand() + spot("m5") + spot("c5", 1)
    nodes = labelled(nodes, looked(nodes, [], [web]))
    filler = a_pod("filler", node="c5-0", owner=None, labels={}, cpu="7700m")  # leaves three places
    going = [replace(n, unschedulable=True) if n.name.startswith("m5") else n for n in nodes]
    assert all(KEY.format(2) in n.labels for n in labelled(nodes, looked(nodes, [filler], [web])))
    after = labelled(going, looked(going, [filler], [web]))
    assert [n.name for n in after if KEY.format(2) in n.labels] == ["od-0", "od-1", "od-2"]


def test_a_cordoned_family_closes_its_group_at_once():
    web = a_workload(6, "2", 2)
    nodes = on_demand() + spot("m5") + spot("c5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    going = [replace(n, unschedulable=True) if n.name.startswith("c5") else n for n in nodes]
    after = labelled(going, looked(going, [], [web]))
    assert all(KEY.format(2) not in n.labels for n in after if n.name.startswith("c5"))


def test_the_drain_closes_groups_that_an_interruption_takes_and_opens_none():
    web = a_workload(6, "2", 2)
    nodes = on_demand() + spot("m5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    key = KEY.format(2)
    lost = interrupted(
        "c5-0", labels={"node.kubernetes.io/instance-type": "c5.large", key: "spot-1"}
    )
    fresh = a_node("od-9", capacity="on-demand")
    steps = plan_drain(looked([*nodes, lost, fresh], [], [web]), NOON).steps
    labels = {s.action.node.name: s.action.labels for s in steps if isinstance(s.action, LabelNode)}
    assert labels == {"c5-0": {key: None}}


def test_amid_an_interruption_a_fresh_node_is_labelled_for_a_pod_that_waited():
    web = a_workload(3, "1", 2)
    nodes = on_demand(1) + spot("m5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    nodes += [interrupted("c5-0"), a_node("od-9", capacity="on-demand")]

    def fresh(*pods: Pod) -> bool:
        steps = plan_drain(looked(nodes, [*pods], [web]), NOON).steps
        return "od-9" in [s.action.node.name for s in steps if isinstance(s.action, LabelNode)]

    waiting = replace(a_pod("web-2", **spread_over(2)), created=NOON - timedelta(seconds=20))
    assert not fresh(waiting)
    assert fresh(replace(waiting, created=NOON - timedelta(seconds=40)))


def test_the_on_demand_group_closes_only_for_a_pod_that_waited_for_it_in_vain():
    web = a_workload(3, "1", 2)
    nodes = on_demand(1, cpu="1") + spot("m5") + spot("c5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    full = a_pod("filler", node="od-0", owner=None, labels={}, cpu="950m")
    waiting = replace(a_pod("web-2", **spread_over(2)), created=NOON - timedelta(seconds=20))

    def closed(pod: Pod) -> bool:
        after = labelled(nodes, looked(nodes, [full, pod], [web]))
        return KEY.format(2) not in after[0].labels

    assert not closed(waiting)
    assert closed(replace(waiting, created=NOON - timedelta(seconds=90)))


def test_a_pod_that_no_spot_node_takes_closes_the_on_demand_group_for_nobody():
    web = a_workload(3, "1", 2)
    nodes = on_demand(1, cpu="1") + spot("m5") + spot("c5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    for how in ({"cpu": "1000"}, {"nodeSelector": {"nowhere": "1"}}):
        stuck = replace(a_pod("web-2", **how), created=NOON - timedelta(hours=1))
        assert labelled(nodes, looked(nodes, [stuck], [web])) == nodes


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ({"replicas": 2**31 - 1}, 6),
        ({"replicas": 2**31 - 1, "spec": {"cpu": "1000"}}, None),
        ({"replicas": 2**31 - 1, "spec": {"nodeSelector": {"nowhere": "1"}}}, None),
        ({"replicas": 900, "spec": {"nodeSelector": {"kubernetes.io/hostname": "od-0"}}}, None),
    ],
    ids=["past its quota", "larger than any node", "for no node", "for one node"],
)
def test_a_count_that_a_workload_can_never_have_closes_no_group_for_others(how, left):
    web = a_workload(6, "2", 2)
    nodes = on_demand() + spot("m5") + spot("c5", 1)
    nodes = labelled(nodes, looked(nodes, [], [web]))
    replicas, spec = how["replicas"], how.get("spec", {})
    wish = a_workload(replicas, "1", 2, spec=spec, name="wish", namespace="tenant")
    quotas = () if left is None else (a_quota(pods=left),)
    seen = looked(nodes, [], [web, wish], quotas=quotas)
    assert labelled(nodes, seen) == nodes


def a_quota(pods: int) -> Quota:
    return Quota(ref=Ref("ResourceQuota", "tenant", "all"), left=Resources(pods=pods))


def test_a_count_that_fits_beside_a_full_survivor_still_closes_its_group():
    """Nine are declared, seven fit: with the survivor open only three of them would be placed."""
    web = a_workload(9, "3", 1)
    nodes = on_demand(1, cpu="650m") + spot("m5", 1)
    nodes = labelled(nodes, looked(nodes, [], [web]))
    full = a_pod("filler", node="m5-0", owner=None, labels={}, cpu="7900m")
    after = labelled(nodes, looked(nodes, [full], [web]))
    assert [n.name for n in after if KEY.format(1) in n.labels] == ["od-0"]


def test_scale_in_is_told_to_spare_pods_that_hold_a_floor():
    web = a_workload(3, "1", 2)
    nodes = on_demand(1) + spot("m5") + spot("c5")
    pods = [
        a_pod("web-0", node="od-0"),
        a_pod("web-1", node="m5-0", annotations={DELETION_COST: "1000"}),
        a_pod("web-2", node="od-0", annotations={DELETION_COST: "7"}),
    ]
    steps = plan_placement(looked(nodes, pods, [web]), NOON).steps
    costs = {
        s.action.pod.name: s.action.cost for s in steps if isinstance(s.action, SetDeletionCost)
    }
    assert costs == {"web-0": "1000", "web-1": None}


@pytest.mark.parametrize(
    ("workload", "lacks"),
    [
        (a_workload(9, "3"), "a spread constraint over spread.plimsoll.dev/2"),
        (a_workload(9, "3", 2), None),
        (a_workload(9, "3", 1), None),
        (a_workload(9, "3", spec=SOFT), "a spread constraint over spread.plimsoll.dev/2"),
        (
            a_workload(9, "3", 3),
            "a spread constraint over spread.plimsoll.dev/2 instead of spread.plimsoll.dev/3",
        ),
        (a_workload(3, "3"), "node affinity to on-demand nodes"),
        (
            a_workload(3, "3", spec={"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"}}),
            None,
        ),
    ],
)
def test_the_plan_says_what_a_template_lacks(workload, lacks):
    (standing,) = plan_placement(looked(on_demand(), [], [workload]), NOON).workloads
    assert standing.lacks == lacks


def after_a_storm(spread_over: int = 2) -> tuple[list[Node], list[Pod], Workload]:
    """Return a workload whose nine pods stand on on-demand, and empty spot nodes that are back."""
    web = a_workload(9, "3", spread_over)
    nodes = on_demand() + spot("m5") + spot("c5")
    nodes = labelled(nodes, looked(nodes, [], [web]))
    costs = {DELETION_COST: "1000"}
    pods = [
        a_pod(f"web-{n}", node=f"od-{n % 3}", annotations=costs, **constraint(spread_over))
        for n in range(9)
    ]
    return nodes, pods, web


def moves(seen: Observation) -> list[Release]:
    return [s.action for s in plan_placement(seen, NOON).steps if isinstance(s.action, Release)]


def test_pods_go_back_to_spot_one_by_one_until_the_spread_is_even():
    nodes, pods, web = after_a_storm()
    for moved in range(6):
        (move,) = moves(looked(nodes, pods, [web]))
        assert (move.pod.node or "").startswith("od-")
        snapshot = ClusterSnapshot(nodes, [p for p in pods if p.uid != move.pod.uid])
        new = a_pod(f"web-new-{moved}", **constraint(2))
        node = snapshot.choose(new)
        assert node is not None
        assert node.capacity == "spot"
        new = replace(new, node=node.name, phase="Running", ready=True)
        pods = [*(p for p in pods if p.uid != move.pod.uid), new]
    assert not moves(looked(nodes, pods, [web]))
    assert standing(pods, nodes) == {"on-demand": 3, "spot": 6}


@pytest.mark.parametrize("said", [DO_NOT_DISRUPT, SAFE_TO_EVICT])
def test_a_pod_that_its_owner_protects_is_not_moved_and_another_one_is(said):
    nodes, pods, web = after_a_storm()
    value = "true" if said == DO_NOT_DISRUPT else "false"
    pods[0] = replace(pods[0], annotations={**pods[0].annotations, said: value})
    assert [move.pod.name for move in moves(looked(nodes, pods, [web]))] == ["web-1"]
    nodes = [replace(n, annotations={DO_NOT_DISRUPT: "true"}) for n in nodes]
    assert moves(looked(nodes, pods, [web])) == []


def test_the_drain_takes_the_way_back_to_spot_on_where_it_has_nothing_else_to_do():
    nodes, pods, web = after_a_storm()

    def released_now(*more: Pod) -> list[str]:
        plan = plan_drain(looked(nodes, [*pods, *more], [web]), NOON)
        assert plan.busy is bool(plan.steps)
        return [a.pod.name for a in plan.actions if isinstance(a, Release)]

    assert released_now() == ["web-0"]
    refused = {str(web.ref): "its release was refused: no right"}
    assert not plan_drain(looked(nodes, pods, [web]), NOON, refused=refused).steps
    other = a_pod("other", labels={"app": "other"}, owner=None)
    assert not released_now(replace(other, created=NOON - HELD + timedelta(seconds=1)))
    assert released_now(replace(other, created=NOON - HELD)) == ["web-0"], "it may wait for ever"


def test_a_workload_without_its_constraint_makes_run_and_drain_write_no_labels_in_turns():
    web, large = a_workload(9, "3", 2), a_workload(60, "20", name="large")
    nodes = on_demand() + spot("m5") + spot("c5", 1, cpu="2")
    seen = looked(nodes, [], [web, replace(large, uid="large")])
    nodes = labelled(nodes, seen)
    seen = replace(seen, nodes=nodes)
    assert not [a for a in plan_drain(seen, NOON).actions if isinstance(a, LabelNode)]
    assert all(KEY.format(2) in node.labels for node in nodes)


def test_a_broken_floor_is_repaired_from_the_fullest_group():
    nodes, _, web = after_a_storm()
    where = ["m5-0"] * 4 + ["c5-0"] * 4 + ["od-0"]
    pods = [
        a_pod(
            f"web-{n}",
            node=node,
            **constraint(2),
            annotations={DELETION_COST: "1000"} if node == "od-0" else {},
        )
        for n, node in enumerate(where)
    ]
    (move,) = moves(looked(nodes, pods, [web]))
    assert move.pod.node in {"m5-0", "c5-0"}


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes, pods, web: (
            nodes,
            [*pods, replace(a_pod("other", labels={"app": "other"}, owner=None), created=NOON)],
            web,
        ),
        lambda nodes, pods, web: ([*nodes, interrupted("gone")], pods, web),
        lambda nodes, pods, web: (nodes, pods, replace(web, rolling_out=True)),
        lambda nodes, pods, web: (nodes, pods[1:], web),
        lambda nodes, pods, web: (nodes, [replace(pods[0], ready=False), *pods[1:]], web),
        lambda nodes, pods, web: (nodes, pods, replace(web, strategy="Recreate")),
        lambda nodes, pods, web: (
            nodes,
            [
                *pods,
                *(
                    a_pod(f"full-{n.name}", node=n.name, owner=None, labels={}, cpu="7950m")
                    for n in nodes
                    if n.capacity == "spot"
                ),
            ],
            web,
        ),
    ],
    ids=["pending", "interrupted", "rollout", "too-few", "not-ready", "recreate", "no-room"],
)
def test_nothing_moves_while_it_could_do_harm(change):
    nodes, pods, web = change(*after_a_storm())
    assert not moves(looked(nodes, pods, [web]))


@pytest.mark.parametrize(
    ("marks", "left"),
    [
        ([], 2),
        (["1 2026-01-02T11:30:00Z on-demand"], 1),
        (["1 2026-01-02T11:30:00Z on-demand"] * 2, 1),
        (["1 2026-01-02T11:30:00Z on-demand", "1 2026-01-02T11:31:00Z spot-1"], 0),
        (["1 2026-01-02T11:00:00Z on-demand"], 2),
        (["1 2026-01-02T13:00:00Z on-demand", "often", "1 2026-02-31T11:30:00Z spot-1"], 2),
    ],
    ids=[
        "none",
        "one",
        "and its replacement",
        "as many as may be",
        "an hour ago",
        "no marks of ours",
    ],
)
def test_a_cluster_has_a_budget_of_moves_per_hour(marks, left):
    nodes, _, _ = after_a_storm()
    names = ("cart", "search", "stock")
    several = [
        pod
        for name in names
        for n in range(3)
        for pod in pods_of(
            f"{name}",
            9,
            node=f"od-{n}",
            cpu="100m",
            annotations={DELETION_COST: "1000"},
            **spread_over(2, name),
        )[n::3]
    ]
    again = [a_workload(9, "3", name=name, spec=spread_over(2, name)) for name in names]
    others = [
        a_pod(f"api-{n}", owner=("ReplicaSet", "api-abc"), node="od-0", annotations={MOVED: mark})
        for n, mark in enumerate(marks)
    ]
    seen = looked(nodes, [*several, *others], again)
    seen = replace(seen, policy=Policy(moves_per_hour=2))
    assert len(moves(seen)) == left
    assert (plan_placement(seen, NOON).held is None) is bool(left)


def test_a_released_pod_is_not_counted_where_its_workload_stands_and_all_others_are():
    nodes, pods, web = after_a_storm()
    seen = looked(nodes, pods, [web])
    leaving = looked(nodes, [released(pods[0]), *pods[1:]], [web])
    (before,), (after,) = (plan_placement(s, NOON).workloads for s in (seen, leaving))
    assert (before.ready, after.ready) == ({"on-demand": 9}, {"on-demand": 8})


def test_a_pod_that_placement_released_leaves_once_its_replacement_is_available():
    nodes, pods, web = after_a_storm()
    moving = released(pods[0], interruption="placement")
    rest = [*pods[1:], moving]
    starting = a_pod("web-new", node="m5-0", ready=False)
    assert not plan_drain(looked(nodes, [*rest, starting], [web]), NOON).actions
    (evict,) = plan_drain(
        looked(nodes, [*rest, replace(starting, ready=True)], [web]), NOON
    ).actions
    assert isinstance(evict, Evict)
    assert evict.pod.uid == moving.uid


def test_the_replacement_of_a_moved_pod_inherits_its_mark_once():
    nodes, pods, web = after_a_storm()
    mark = f"2 {NOON:%Y-%m-%dT%H:%M:%SZ} on-demand"
    moving = released(pods[0], interruption="placement")
    moving = replace(moving, annotations={**moving.annotations, MOVED: mark})
    rest = [*pods[1:], moving]
    assert not plan_drain(looked(nodes, rest, [web]), NOON).actions, "all others are older"
    new = replace(a_pod("web-new", node="m5-0", ready=False), created=NOON)
    (marked,) = plan_drain(looked(nodes, [*rest, new], [web]), NOON).actions
    assert (marked.target, marked.verb) == ("Pod default/web-new", "mark-moved")
    new = replace(new, annotations={MOVED: mark})
    assert not plan_drain(looked(nodes, [*rest, new], [web]), NOON).actions
