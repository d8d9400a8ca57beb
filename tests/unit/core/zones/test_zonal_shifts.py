"""Zonal shifts: which stand, what is frozen for them, and what leaves the zone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations

import pytest

from plimsoll.domain.actions import Cordon, Evict, Grow, Release, TaintNode, UndoRelease
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import FOREIGN_CORDON, Policy, Response
from plimsoll.domain.kubernetes import NODE_POOL, RELEASED, ZONAL_SHIFT, ZONE, Node, Pod
from plimsoll.domain.observation import Observation, ShiftedZone
from plimsoll.domain.zones import LEAVING, LONGEST_SHIFT, ShiftEvent, shifted_zones
from tests.support.builders import (
    NOON,
    ZONE_A,
    ZONE_B,
    a_budget,
    a_claim,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    mounting,
)
from tests.support.observations import actions, interrupted, looked, noon, released, sets_of

TAINT = {"key": ZONAL_SHIFT, "effect": "PreferNoSchedule"}
SHIFT = {ZONE_A: ShiftedZone(since=NOON)}
LATER = noon(60)
PRACTICE = {ZONE_A: ShiftedZone(since=NOON, practice=True)}


def told(*, active: bool, minutes: float = 0, **how) -> ShiftEvent:
    return ShiftEvent(
        zone=ZONE_A,
        active=active,
        at=NOON + timedelta(minutes=minutes),
        **{"cause": "autoshift", **how},
    )


def there(name: str, **how) -> Node:
    """Return a node of the shifted zone, with the taint."""
    return a_node(name, zone=ZONE_A, taints=[TAINT], **how)


def webs(*nodes: str, **how) -> list[Pod]:
    return [a_pod(f"web-{n}", node=node, **how) for n, node in enumerate(nodes)]


def seen_with(nodes: list[Node], pods: list[Pod], **how) -> Observation:
    replicas = sum(not pod.released for pod in pods)
    return looked(
        nodes,
        pods,
        how.pop("workloads", [a_deployment(replicas=replicas)]),
        **{"shifts": SHIFT, **how},
    )


def left(seen: Observation, at: datetime = LATER, **how) -> list[str]:
    """Return the pods that are released to leave the zone; nothing is cordoned or evicted for it."""
    plan = plan_drain(seen, at, **how)
    assert not actions(plan, Cordon) + actions(plan, Evict)
    found = actions(plan, Release)
    assert {action.interruption for action in found} <= {LEAVING}
    return sorted(action.pod.name for action in found)


# Which shifts stand.


@pytest.mark.parametrize(
    "order",
    [*permutations([told(active=True), told(active=False, minutes=5)])],
    ids=["sent", "late"],
)
def test_the_newest_event_says_whether_a_shift_stands_in_whatever_order_they_came(order):
    assert shifted_zones(order, "harbor", noon(600)) == {}


def test_what_is_told_twice_is_one_shift():
    assert shifted_zones([told(active=True)] * 2, "harbor", noon(60)) == SHIFT


def test_of_two_events_of_the_same_second_the_end_counts():
    both = [told(active=False), told(active=True)]
    assert shifted_zones(both, "harbor", noon(60)) == {}


def test_a_shift_that_is_updated_stands_since_its_beginning():
    events = [told(active=True, minutes=m, cause="manual") for m in (0, 50, 20)]
    assert shifted_zones(events, "harbor", noon(3600)) == SHIFT


def test_a_shift_that_begins_again_stands_since_then():
    events = [told(active=True), told(active=False, minutes=5), told(active=True, minutes=9)]
    assert shifted_zones(events, "harbor", noon(3600))[ZONE_A].since == noon(9 * 60)


@pytest.mark.parametrize("cause", LONGEST_SHIFT)
def test_a_shift_whose_end_is_never_told_ends_by_itself(cause):
    events = [told(active=True, cause=cause)]
    assert shifted_zones(events, "harbor", NOON + LONGEST_SHIFT[cause] - timedelta(seconds=1))
    assert not shifted_zones(events, "harbor", NOON + LONGEST_SHIFT[cause])


def test_the_end_of_one_shift_leaves_another_away_from_the_same_zone():
    events = [
        told(active=True, cause="manual", cluster="harbor"),
        told(active=True),
        told(active=False, minutes=5),
    ]
    assert shifted_zones(events, "harbor", noon(600)) == SHIFT


def test_a_shift_of_one_cluster_is_none_of_another():
    events = [told(active=True, cause="manual", cluster="quay")]
    assert shifted_zones(events, "harbor", noon(60)) == {}
    assert shifted_zones(events, "quay", noon(60)) == SHIFT


# New pods and new nodes.


def test_new_pods_are_kept_out_of_the_zone_by_a_taint_that_forces_none():
    seen = seen_with([a_node("a", zone=ZONE_A), a_node("b", zone=ZONE_B)], [])
    (taint,) = actions(plan_drain(seen, noon(1)), TaintNode)
    assert (taint.node.name, taint.tainted) == ("a", True)


@pytest.mark.parametrize(
    "how",
    [{"shifts": {}}, {"policy": Policy(on=((LEAVING, Response.IGNORE),))}],
    ids=["over", "ignored"],
)
def test_the_taint_goes_with_the_shift(how):
    (taint,) = actions(plan_drain(seen_with([there("a")], [], **how), noon(1)), TaintNode)
    assert (taint.node.name, taint.tainted) == ("a", False)


def test_where_nobody_knows_which_shifts_stand_nothing_changes():
    seen = seen_with([there("a"), a_node("a2"), a_node("b", zone=ZONE_B)], webs("a"), shifts=None)
    assert plan_drain(seen, noon(60)).steps == ()


@pytest.mark.parametrize("shifts", [SHIFT, PRACTICE], ids=["shift", "practice run"])
def test_capacity_is_asked_in_another_zone(shifts):
    nodes = [interrupted("spot", zone=ZONE_B), there("full", cpu="1")]
    groups = [a_group("first", zones=(ZONE_A,)), a_group("second", zones=(ZONE_B,))]
    seen = seen_with(nodes, webs("spot", cpu="3"), groups=groups, shifts=shifts)
    assert [g.group.name for g in actions(plan_drain(seen, noon(1)), Grow)] == ["second"]


def test_the_zone_is_asked_as_last_resort():
    nodes = [interrupted("spot", zone=ZONE_B), there("full", cpu="1")]
    groups = [a_group("first", zones=(ZONE_A,)), a_group("second", zones=(ZONE_B,), max_size=0)]
    seen = seen_with(nodes, webs("spot", cpu="3"), groups=groups)
    assert [g.group.name for g in actions(plan_drain(seen, noon(1)), Grow)] == ["first"]


def test_a_volume_in_the_zone_is_followed_there():
    db = sets_of("db", ["spot"], cpu="3", volumes=mounting("v"))
    nodes = [interrupted("spot", zone=ZONE_A), a_node("b", zone=ZONE_B)]
    groups = [a_group("first", zones=(ZONE_A,)), a_group("second", zones=(ZONE_B,))]
    claim = a_claim("v", zone=ZONE_A)
    seen = looked(nodes, db, groups=groups, claims={("default", "v"): claim}, shifts=SHIFT)
    assert [g.group.name for g in actions(plan_drain(seen, noon(1)), Grow)] == ["first"]


# What leaves.


def test_what_can_be_released_leaves_the_zone_without_a_cordon():
    seen = seen_with([there("a"), a_node("b", zone=ZONE_B)], webs("a", "b"))
    assert left(seen) == ["web-0"]


def test_nothing_is_released_where_its_replacement_has_no_place_in_another_zone():
    seen = seen_with(
        [there("a"), there("a2"), a_node("b", zone=ZONE_B, cpu="1")], webs("a", cpu="2")
    )
    assert left(seen) == []


def test_capacity_is_asked_in_another_zone_for_what_leaves():
    nodes = [there("a"), there("a2"), a_node("b", zone=ZONE_B, cpu="1")]
    groups = [a_group("first", zones=(ZONE_A,)), a_group("second", zones=(ZONE_B,))]
    seen = seen_with(nodes, webs("a", cpu="2"), groups=groups)
    assert [g.group.name for g in actions(plan_drain(seen, noon(60)), Grow)] == ["second"]


@pytest.mark.parametrize(
    ("pods", "how"),
    [
        (sets_of("db", ["a"]), {"workloads": []}),
        ([a_pod("daemon", node="a", owner=("DaemonSet", "daemon"))], {}),
        ([a_pod("job", node="a", owner=("Job", "job"), restartPolicy="Never")], {}),
        ([a_pod("bare", node="a", owner=None)], {}),
        (webs("a"), {"workloads": [a_deployment(replicas=1, strategy={"type": "Recreate"})]}),
        (webs("a", nodeSelector={ZONE: ZONE_A}), {}),
        (webs("a", ready=False), {}),
        (webs("a", annotations={"plimsoll.dev/ignore": "true"}), {}),
        (webs("a", created="2026-01-02T12:00:30Z"), {}),
    ],
    ids=[
        "of a StatefulSet",
        "of a DaemonSet",
        "of a Job",
        "bare",
        "never twice",
        "bound to the zone",
        "not serving",
        "opted out",
        "came since",
    ],
)
def test_what_cannot_be_released_or_placed_elsewhere_stays(pods, how):
    assert left(seen_with([there("a"), a_node("b", zone=ZONE_B)], pods, **how)) == []


def test_what_a_spread_by_zone_holds_in_the_zone_stays():
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = webs("a", "b", "b", labels={"app": "web"}, topologySpreadConstraints=[spread])
    assert left(seen_with([there("a"), a_node("b", zone=ZONE_B)], pods)) == []


def test_a_budget_without_a_spare_pod_is_not_overruled():
    pods = [released(a_pod("web-0", node="a"), interruption=LEAVING), a_pod("web-1", node="b")]
    budget = a_budget(maxUnavailable=0)
    seen = seen_with(
        [there("a"), a_node("b", zone=ZONE_B)],
        pods,
        workloads=[a_deployment(replicas=1)],
        budgets=[budget],
    )
    assert not actions(plan_drain(seen, noon(60)), Evict)


def test_a_released_pod_leaves_when_its_replacement_is_available():
    pods = [released(a_pod("web-0", node="a"), interruption=LEAVING), a_pod("web-1", node="b")]
    seen = seen_with(
        [there("a"), a_node("b", zone=ZONE_B)], pods, workloads=[a_deployment(replicas=1)]
    )
    (evict,) = actions(plan_drain(seen, noon(60)), Evict)
    assert (evict.pod.name, evict.overrule) == ("web-0", False)


def test_a_guarded_pod_that_was_released_counts_once_where_another_program_empties_its_node():
    pods = [released(a_pod("web-0", node="a"), interruption=LEAVING), *webs("b", "a")[1:]]
    karpenter = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    seen = seen_with(
        [a_node("a", zone=ZONE_A, taints=[TAINT, karpenter]), a_node("b", zone=ZONE_B)],
        pods,
        workloads=[a_deployment(replicas=2)],
        budgets=[replace(a_budget(maxUnavailable=0), guards=True)],
    )
    (release,) = actions(plan_drain(seen, noon(60)), Release)
    assert release.reason.startswith("2 of its 2 pods stand ")


def test_a_released_pod_goes_back_when_traffic_does():
    pods = [released(a_pod("web-0", node="a"), interruption=LEAVING), a_pod("web-1")]
    nodes = [there("a"), a_node("b", zone=ZONE_B)]
    seen = seen_with(nodes, pods, workloads=[a_deployment(replicas=1)], shifts={})
    (undone,) = actions(plan_drain(seen, noon(60)), UndoRelease)
    assert undone.pod.annotations[RELEASED] == LEAVING


def test_as_many_nodes_are_emptied_in_an_hour_as_on_advice():
    nodes = [there(f"a{n}") for n in range(3)] + [a_node("b", zone=ZONE_B)]
    seen = seen_with(nodes, webs("a0", "a1", "a2"))
    assert left(seen) == ["web-0"]
    assert left(seen, noon(3600)) == ["web-0", "web-1"]
    assert left(replace(seen, policy=Policy(nodes_per_hour=3))) == ["web-0", "web-1", "web-2"]
    assert left(replace(seen, policy=Policy(nodes_per_hour=0)), noon(7200)) == []


def test_nothing_leaves_before_the_taint_stands_on_every_node_of_the_zone():
    nodes = [there("a"), a_node("new", zone=ZONE_A), a_node("b", zone=ZONE_B)]
    assert left(seen_with(nodes, webs("a"))) == []


def test_nothing_leaves_in_a_practice_run_and_the_taint_stays():
    nodes = [there("a"), a_node("b", zone=ZONE_B)]
    assert left(seen_with(nodes, webs("a"), shifts=PRACTICE)) == []
    assert actions(plan_drain(seen_with(nodes, [], shifts=PRACTICE), noon(1)), TaintNode) == []


def test_with_the_response_cordon_nothing_leaves_and_the_taint_stays():
    policy = Policy(on=((LEAVING, Response.CORDON),))
    seen = seen_with([there("a"), a_node("b", zone=ZONE_B)], webs("a"), policy=policy)
    assert plan_drain(seen, noon(60)).steps == ()


def test_nothing_leaves_for_a_shift_while_a_node_has_a_deadline():
    nodes = [there("a"), interrupted("spot", zone=ZONE_B), a_node("b", zone=ZONE_B)]
    seen = seen_with(nodes, webs("a", "spot"))
    moved = {a.pod.name for a in actions(plan_drain(seen, noon(1)), Release)}
    assert moved == {"web-1"}


def test_a_node_that_somebody_else_empties_is_left_to_them():
    policy = Policy(on=((FOREIGN_CORDON, Response.MOVE),))
    nodes = [there("a", unschedulable=True), a_node("b", zone=ZONE_B)]
    assert left(seen_with(nodes, webs("a"), policy=policy)) == []


def test_what_eks_cordoned_for_the_shift_is_emptied():
    nodes = [there("a", unschedulable=True), a_node("b", zone=ZONE_B)]
    assert left(seen_with(nodes, webs("a"))) == ["web-0"]


def test_where_karpenter_makes_nodes_for_pending_pods_a_release_waits_for_none():
    nodes = [there("a", labels={NODE_POOL: "spot"}), a_node("b", zone=ZONE_B, cpu="1")]
    assert left(seen_with(nodes, webs("a", cpu="2"))) == ["web-0"]


def test_a_taint_that_was_refused_is_not_tried_again_and_nothing_leaves():
    seen = seen_with([a_node("a", zone=ZONE_A), a_node("b", zone=ZONE_B)], webs("a"))
    refused = {"Node a as one of a shifted zone": "denied by the admission policy"}
    plan = plan_drain(seen, noon(60), refused=refused)
    assert plan.steps == ()
    assert plan.waiting["a"] == ("denied by the admission policy",)
