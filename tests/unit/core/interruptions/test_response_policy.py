"""What each kind of notice leads to, and whose turn it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Cordon, Evict, ForceDelete, Grow, Release, Uncordon
from plimsoll.domain.drain import GATHER_NOTICES, plan_drain
from plimsoll.domain.interruptions import Interruption, MaintenanceWindow, Policy, Response
from plimsoll.domain.interruptions.model import join
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.reports import Report
from tests.support.builders import (
    NOON,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    pods_of,
)
from tests.support.observations import (
    actions,
    died,
    ec2,
    interrupted,
    looked,
    noon,
    sets_of,
    sole_action,
)

ADVICE = "rebalance-recommendation"
HEALTH = "health-scheduled-change"
DAY = 24 * 3600
TURN = NOON + GATHER_NOTICES


def waits(name: str, *, kind: str = ADVICE, ends: float | None = None) -> Node:
    """Return a node with a notice that is recorded, and not cordoned."""
    node = interrupted(name, kind=kind, ends=ends)
    assert node.interruption is not None
    return replace(
        node, interruption=replace(node.interruption, cordoned=None), unschedulable=False
    )


def told_of(interruption: str) -> Report:
    """Return the report of a node that is gone, and was cordoned on advice a moment ago."""
    return Report(
        interruption=interruption,
        cluster="harbor",
        node="gone",
        kind=ADVICE,
        noticed=noon(-20),
        cordoned=noon(-10),
    )


def under(response: str, kind: str = ADVICE) -> Policy:
    return Policy(on=((kind, Response(response)),))


@pytest.mark.parametrize(
    ("nodes", "hourly", "cordoned", "told", "turns"),
    [
        (5, None, (), (), 1),  # a tenth, at least one
        (30, None, (), (), 3),
        (5, 2, (), (), 2),
        (5, 0, (), (), 0),
        (5, 2, (-10,), (), 1),
        (5, 2, (-3601,), (), 2),  # more than an hour ago
        (5, 2, (), ("i-gone@noon",), 1),  # its Node is gone, its report is not
        (5, 2, (-10,), ("i-gone@noon",), 0),
        (5, 2, (), None, 0),  # the reports cannot be read
    ],
)
def test_on_advice_so_many_nodes_are_cordoned_in_an_hour(nodes, hourly, cordoned, told, turns):
    moved = [interrupted(f"moved-{n}", kind=ADVICE, ends=None) for n, _ in enumerate(cordoned)]
    moved = [
        replace(n, interruption=replace(n.interruption, cordoned=noon(when)))
        for n, when in zip(moved, cordoned, strict=True)
        if n.interruption
    ]
    advised = [waits(f"spot-{n}") for n in range(4)]
    others = [a_node(f"od-{n}") for n in range(nodes - len(moved) - len(advised))]
    seen = replace(
        looked([*moved, *advised, *others], []),
        policy=Policy(nodes_per_hour=hourly),
        reports=None if told is None else [told_of(interruption) for interruption in told],
    )

    plan = plan_drain(seen, TURN)

    taken = actions(plan, Cordon)
    assert [c.node.name for c in taken] == [f"spot-{n}" for n in range(turns)]
    assert all(c.interruption.cordoned == TURN for c in taken)
    words = [w for node in advised[turns:] for w in plan.waiting[node.name]]
    assert len(words) == 4 - turns
    assert all("waits for its turn" in w for w in words)


@pytest.mark.parametrize(("ends", "turns"), [(60, 1), (3600, 0)])
def test_a_node_whose_deadline_was_near_when_it_was_cordoned_took_nobody_s_turn(ends, turns):
    told = replace(told_of("i-gone@noon"), kind=HEALTH, deadline=noon(ends))
    seen = replace(looked([waits("spot")], []), reports=[told])

    assert len(actions(plan_drain(seen, TURN), Cordon)) == turns


@pytest.mark.parametrize("before", [True, False])
def test_a_node_that_somebody_else_cordoned_meanwhile_stays_cordoned_after_us(before):
    node = replace(waits("spot"), unschedulable=before)

    (cordon,) = actions(plan_drain(looked([node], []), TURN), Cordon)
    assert cordon.interruption.unschedulable_before is before


def test_nodes_that_are_named_in_one_moment_wait_for_each_other_whoever_is_recorded_first():
    first, later = waits("spot-1"), waits("spot-2")
    nodes = [first, later, a_node("od")]

    before = plan_drain(looked([later, a_node("od")], []), noon(1))
    assert actions(before, Cordon) == []
    assert before.busy  # the reconcile that saw the first of them looks again
    plan = plan_drain(looked(nodes, []), TURN)
    assert [cordon.node.name for cordon in actions(plan, Cordon)] == ["spot-1"]


@pytest.mark.parametrize(("ends", "turn"), [(599, True), (601, False), (DAY, False)])
def test_a_deadline_that_comes_near_does_not_wait_for_a_turn(ends, turn):
    seen = replace(looked([waits("spot", kind=HEALTH, ends=ends + 2)], []), reports=None)

    assert bool(actions(plan_drain(seen, noon(0)), Cordon)) is turn


def moving(node: Node, policy: Policy | None = None, now: float = 1, **how):
    """Plan for a node with a web that can be released, and much that cannot."""
    pods = [
        *pods_of("web", 1, node="spot"),
        *pods_of("once", 1, node="spot"),
        *sets_of("db", ["spot"]),
        a_pod("sum", node="spot", owner=("Job", "sum")),
    ]
    workloads = [
        a_deployment(replicas=1),
        replace(a_deployment("once", replicas=1), strategy="Recreate"),
        a_stateful_set(replicas=1),
    ]
    seen = looked([node, a_node("od")], pods, workloads, **how)
    return plan_drain(replace(seen, policy=policy or Policy()), noon(now))


@pytest.mark.parametrize(
    ("kind", "ends", "all_of_them"),
    [
        (ADVICE, None, False),
        (HEALTH, DAY, False),
        (HEALTH, 500, True),
        ("spot-interruption", 120, True),
    ],
)
def test_on_advice_only_what_can_be_released_moves(kind, ends, all_of_them):
    plan = moving(interrupted("spot", kind=kind, ends=ends))

    assert [r.pod.name for r in actions(plan, Release)] == ["web-0"]
    assert sorted(e.pod.name for e in actions(plan, Evict)) == (
        ["db-0", "once-0"] if all_of_them else []
    )
    held = [words for words in plan.waiting["spot"] if "until there is a deadline" in words]
    named = "default/once-0, default/db-0, default/sum"
    assert [words.partition("): ")[2] for words in held] == ([] if all_of_them else [named])


def test_what_stays_on_advice_asks_for_no_capacity():
    node = interrupted("spot", kind=ADVICE, ends=None)
    pods = sets_of("db", ["spot"], cpu="4")
    seen = looked([node], pods, [a_stateful_set(replicas=1)], groups=[a_group(desired=0)])

    assert actions(plan_drain(seen, noon(1)), Grow) == []


@pytest.mark.parametrize(
    ("cpu", "before", "given_back"), [("2", False, True), ("16", False, False), ("2", True, False)]
)
def test_a_node_that_was_left_on_advice_is_given_back_to_a_pod_with_no_other_place(
    cpu, before, given_back
):
    node = interrupted("advised", kind=ADVICE, ends=None)
    assert node.interruption is not None
    left = replace(node.interruption, unschedulable_before=before)
    lonely = a_pod("lonely", cpu=cpu, phase="Pending")
    seen = looked([replace(node, interruption=left)], [lonely])

    plan = plan_drain(seen, noon(1))
    assert [a.node.name for a in actions(plan, Uncordon)] == ["advised"] * given_back

    group = a_group("base", cpu="64")
    assert actions(plan_drain(seen.among(groups=[group], instances={}), noon(1)), Uncordon) == []


@pytest.mark.parametrize(
    ("kind", "ends", "given_back"), [("spot-interruption", 120, 1), (ADVICE, None, 0)]
)
def test_a_node_that_was_left_on_advice_is_given_back_to_a_pod_that_has_to_leave_its_own(
    kind, ends, given_back
):
    advised = interrupted("advised", kind=ADVICE, ends=None)
    pod = a_pod("web-0", node="spot", cpu="2", owner=("ReplicaSet", "web-abc"))
    workload = replace(a_deployment(replicas=1), max_surge=0)
    seen = looked([advised, interrupted("spot", kind=kind, ends=ends)], [pod], [workload])

    plan = plan_drain(seen, noon(1))

    assert [a.node.name for a in actions(plan, Uncordon)] == ["advised"] * given_back


@pytest.mark.parametrize(
    ("cpu", "groups", "uncordons", "grows"),
    [("2", [], 1, 0), ("16", [], 0, 0), ("2", ["base"], 0, 1), ("16", ["base"], 0, 0)],
)
def test_a_node_that_was_emptied_on_advice_keeps_no_pod_waiting(cpu, groups, uncordons, grows):
    node = interrupted("advised", kind=ADVICE, ends=None)
    assert node.interruption is not None
    empty = replace(node, interruption=replace(node.interruption, closed=noon(1)))
    lonely = a_pod("lonely", cpu=cpu, phase="Pending")
    seen = looked([empty], [lonely], groups=[a_group(name, cpu="64") for name in groups])

    plan = plan_drain(seen, noon(2))

    assert len(actions(plan, Uncordon)) == uncordons
    assert len(actions(plan, Grow)) == grows


@pytest.mark.parametrize("kind", [ADVICE, "spot-interruption"])
def test_where_the_response_is_to_cordon_no_pod_moves_whatever_the_deadline(kind):
    node = interrupted("spot", kind=kind, ends=None if kind == ADVICE else 120)

    plan = moving(node, under("cordon", kind), now=119)

    assert plan.actions == ()
    assert any("default/web-0" in words for words in plan.waiting["spot"])


def test_what_stands_on_an_instance_that_is_gone_waits_for_nobody():
    node = died(interrupted("spot"))

    plan = moving(node, under("cordon", "spot-interruption"), now=40, instances=ec2(node))

    assert {deleted.pod.name for deleted in actions(plan, ForceDelete)} == {
        "web-0",
        "once-0",
        "db-0",
    }
    assert {evicted.pod.name for evicted in actions(plan, Evict)} == {"sum"}, "a pod of a Job"
    assert not any("these stay" in words for words in plan.waiting.get("spot", ()))


@pytest.mark.parametrize("node", [waits("spot"), interrupted("spot", kind=ADVICE, ends=None)])
def test_a_kind_that_is_ignored_from_now_on_gives_its_nodes_back(node):
    assert "ignores" in sole_action(moving(node, under("ignore")), Uncordon).reason


def test_of_several_notices_the_strongest_response_counts():
    advised = waits("spot").interruption
    reclaimed = interrupted("spot").interruption
    assert isinstance(advised, Interruption)
    assert isinstance(reclaimed, Interruption)
    both = join(advised, reclaimed)

    for response in Response:
        assert under(response).response(both) is Response.MOVE
        assert under(response).response(advised) is response


@pytest.mark.parametrize(
    ("hourly", "pods", "moves"), [(None, 199, 20), (None, 1000, 100), (0, 1000, 0)]
)
def test_so_many_pods_are_moved_in_an_hour_for_placement(hourly, pods, moves):
    assert Policy(moves_per_hour=hourly).moves(pods) == moves


@pytest.mark.parametrize("days", ["sat 22:00-04:00", None])
def test_a_policy_says_when_scheduled_changes_are_made_where_its_owner_did(days):
    window = days and MaintenanceWindow.parse(days)
    assert ("scheduled changes on sat" in str(Policy(window=window))) is bool(days)


@pytest.mark.parametrize(("hourly", "told"), [(None, False), (0, True), (5, True)])
def test_a_policy_says_how_many_pods_may_be_moved_where_its_owner_did(hourly, told):
    assert ("pods per hour for placement" in str(Policy(moves_per_hour=hourly))) is told
