"""When a budget is overruled, and how pods leave before that if they may need all the time that is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, Release, Unguard
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import OVERRULE_BUDGETS, STOP_SECONDS, Pod
from plimsoll.domain.observation import Observation, ObservedTime, WorkloadTimes
from tests.support.builders import (
    a_budget,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
    pods_of,
)
from tests.support.observations import DB, actions, died, ec2, interrupted, looked, noon, sets_of

WEEK = 604_800


def members(count: int, **how) -> list[Pod]:
    """Return the members of a database on one interrupted node each."""
    nodes = [f"spot-{n}" for n in range(count)]
    return sets_of("db", [*nodes], **{"grace_seconds": WEEK, "volumes": mounting("data"), **how})


def database(pods: list[Pod], *, allowed: int | None = 1, cpu: str = "4", **how) -> Observation:
    """Return a database all of whose members are interrupted, with a place for each elsewhere."""
    spot = [interrupted(p.node or "") for p in pods]
    there = [a_node(f"od-{n}", cpu=cpu) for n in range(len(pods))]
    budgets = [] if allowed is None else [a_budget("db", allowed=allowed, maxUnavailable=allowed)]
    workload = a_stateful_set(replicas=len(pods))
    return looked([*spot, *there], pods, [workload], budgets=budgets, **how)


def evicted(seen: Observation, seconds: float) -> list[Evict]:
    return actions(plan_drain(seen, noon(seconds)), Evict)


def test_a_week_of_grace_overrules_no_budget_at_the_notice():
    (first,) = evicted(database(members(3)), 1)
    assert first.pod.name == "db-2"
    assert not first.overrule
    assert first.grace_seconds == 117


def test_without_a_budget_members_leave_one_at_a_time():
    seen = database(members(3), allowed=None)
    (first,) = evicted(seen, 1)
    gone = [replace(p, deleting=noon(118)) if p == first.pod else p for p in seen.pods]
    assert evicted(replace(seen, pods=gone), 2) == []


def test_an_assumption_overrules_a_budget_in_the_last_thirty_seconds():
    seen = database(members(3), allowed=0)
    assert evicted(seen, 86) == []
    assert [(e.overrule, e.grace_seconds) for e in evicted(seen, 88)] == [(True, 30)] * 3


@pytest.mark.parametrize(("stated", "latest"), [("60", 58), ("20", 98), ("2", 108)])
def test_what_is_stated_overrules_a_budget_when_the_time_has_come_and_ten_seconds_before_at_the_latest(
    stated, latest
):
    pods = members(1, annotations={STOP_SECONDS: stated})
    seen = database([*pods], allowed=0)
    seen = replace(seen, workloads=[a_stateful_set(replicas=3)])
    assert evicted(seen, latest - 2) == []
    (eviction,) = evicted(seen, latest)
    assert eviction.overrule


def test_a_time_that_is_longer_than_the_notice_overrules_a_budget_in_the_last_thirty_seconds():
    seen = database(members(3, annotations={STOP_SECONDS: "200"}), allowed=1)
    assert {e.overrule for e in evicted(seen, 1)} == {False}
    assert {e.overrule for e in evicted(seen, 86)} == {False}
    assert {e.overrule for e in evicted(seen, 88)} == {True}


@pytest.mark.parametrize(("sleeps", "latest"), [(45, 63), (5, 88), (200, 88)])
def test_what_a_hook_sleeps_and_ten_seconds_overrule_a_budget_unless_they_are_longer_than_the_notice(
    sleeps, latest
):
    pods = [replace(p, hook_seconds=sleeps) for p in members(3, grace_seconds=600)]
    seen = database(pods, allowed=0)
    assert evicted(seen, latest - 2) == []
    assert [e.overrule for e in evicted(seen, latest)] == [True] * 3
    assert f"of which its preStop hook takes {sleeps} s" in evicted(seen, latest)[0].reason


def test_what_was_observed_counts_as_what_is_stated():
    times = {DB: WorkloadTimes(stop=ObservedTime(pods=9, p95_seconds=25))}
    seen = database(members(3), allowed=0, times=times)
    assert evicted(seen, 66) == []
    assert {e.overrule for e in evicted(seen, 68)} == {True}
    assert "observed (9 pods, p95 25 s)" in evicted(seen, 68)[0].reason


@pytest.mark.parametrize(
    "mark",
    [
        lambda seen: replace(seen, policy=Policy(obeys_budgets=True)),
        lambda seen: replace(seen, obeying=frozenset({"default"})),
        lambda seen: replace(
            seen,
            workloads=[replace(w, annotations={OVERRULE_BUDGETS: "never"}) for w in seen.workloads],
        ),
        lambda seen: replace(
            seen, pods=[replace(p, annotations={OVERRULE_BUDGETS: "never"}) for p in seen.pods]
        ),
    ],
    ids=["cluster", "namespace", "workload", "pod"],
)
def test_an_owner_who_asks_first_has_no_budget_overruled(mark):
    plan = plan_drain(mark(database(members(3), allowed=0)), noon(110))
    assert {e.overrule for e in actions(plan, Evict)} == {False}
    assert any(
        "its owner lets nobody overrule" in str(r) for r in map(str, plan.reports[0].reasons)
    )


def test_as_many_leave_as_their_budget_lets_go_but_a_quorum_stays():
    assert len(evicted(database(members(5), allowed=2), 1)) == 2
    plan = plan_drain(database(members(5), allowed=4), noon(1))
    assert len(actions(plan, Evict)) == 2
    assert "a quorum of 3 stays" in actions(plan, Evict)[0].reason


@pytest.mark.parametrize(("allowed", "moved"), [(0, ["single"]), (3, [])])
def test_a_pod_that_its_budget_refuses_at_its_eviction_deadline_keeps_no_place_from_others(
    allowed: int, moved: list[str]
):
    seen = database(members(1, cpu="3", annotations={STOP_SECONDS: "200"}), allowed=allowed)
    single = a_pod("single", node="spot-1", cpu="3", owner=("ReplicaSet", "single"))
    seen = replace(seen, nodes=[*seen.nodes, interrupted("spot-1")], pods=[*seen.pods, single])
    assert [e.pod.name for e in evicted(seen, 1) if e.pod.name == "single"] == moved


@pytest.mark.parametrize(("allowed", "leave"), [(1, 0), (2, 1)])
def test_a_dead_member_that_the_api_server_counts_takes_its_part_of_the_budget(
    allowed: int, leave: int
):
    seen = database(members(5), allowed=allowed)
    dead = replace(died(seen.nodes[0]), ready=True)
    seen = replace(seen, nodes=[dead, *seen.nodes[1:]], instances=ec2(dead))
    assert len(evicted(seen, 1)) == leave


@pytest.mark.parametrize(("allowed", "leave"), [(1, []), (2, ["db-1"])])
def test_a_member_whose_eviction_deadline_has_come_takes_its_part_of_the_budget_first(
    allowed: int, leave: list[str]
):
    seen = database(members(2), allowed=allowed)
    seen = replace(seen, nodes=[interrupted("spot-0", ends=31), *seen.nodes[1:]])
    assert [e.pod.name for e in evicted(seen, 1) if e.overrule] == ["db-0"]
    assert [e.pod.name for e in evicted(seen, 1) if not e.overrule] == leave


def test_a_member_that_does_not_serve_keeps_the_quorum_from_going_lower():
    pods = members(3)
    pods[0] = replace(pods[0], ready=False)
    assert [e.pod.name for e in evicted(database(pods, allowed=1), 1)] == ["db-0"]


def test_each_budget_is_asked_for_its_own_pods():
    def member(n: int, role: str) -> Pod:
        return a_pod(
            f"pg-{n}",
            node=f"spot-{n}",
            owner=("Cluster", "pg"),
            labels={"role": role},
            grace_seconds=1800,
            volumes=mounting(f"pg-{n}"),
        )

    pods = [member(0, "primary"), member(1, "replica"), member(2, "replica")]
    budgets = [
        a_budget(role, selector={"matchLabels": {"role": role}}, allowed=allowed, minAvailable=1)
        for role, allowed in (("primary", 0), ("replica", 1))
    ]
    seen = looked(
        [*(interrupted(f"spot-{n}") for n in range(3)), a_node("od")], pods, budgets=budgets
    )
    for order in (pods, pods[::-1]):
        (eviction,) = evicted(replace(seen, pods=order), 20)
        assert eviction.pod.labels["role"] == "replica"


def test_a_pod_at_its_eviction_deadline_leaves_before_others_are_released():
    """Its successor is made then, and stands in line for a place before their replacements."""
    slow = pods_of("slow", 1, node="spot", annotations={STOP_SECONDS: "200"}, grace_seconds=600)
    web = pods_of("web", 2, node="spot")
    workloads = [a_deployment("slow", replicas=1), a_deployment(replicas=2)]
    seen = looked([interrupted("spot"), a_node("od")], [*web, *slow], workloads)

    plan = plan_drain(seen, noon(1))

    assert [type(a) for a in plan.actions if isinstance(a, Evict | Release)] == [
        Evict,
        Release,
        Release,
    ]


def test_a_guard_beside_a_budget_goes_before_the_pod_leaves_at_its_deadline():
    guard = replace(a_budget("guard", selector={}, maxUnavailable=0), guards=True)
    seen = database(members(1), allowed=1)
    plan = plan_drain(replace(seen, budgets=[*seen.budgets, guard]), noon(110))

    assert [type(a) for a in plan.actions if isinstance(a, Evict | Unguard)] == [Unguard, Evict]


def test_pods_of_a_deployment_that_may_need_long_leave_as_their_budget_allows_beside_releases():
    pods = pods_of("web", 6, node="spot", grace_seconds=120, volumes=mounting("shared"))
    nodes = [interrupted("spot"), a_node("od")]
    shared = a_deployment(replicas=6)
    budget = a_budget("web", allowed=1, maxUnavailable=1)
    plan = plan_drain(looked(nodes, pods, [shared], budgets=[budget]), noon(1))
    assert len(actions(plan, Evict)) == 1
    assert not actions(plan, Evict)[0].overrule
    assert len(actions(plan, Release)) <= 5


@pytest.mark.parametrize("owner", [("Job", "train"), None])
def test_a_job_and_a_bare_pod_have_their_whole_grace_period_within_the_deadline(owner):
    pod = a_pod("train-0", node="spot", owner=owner, labels={}, grace_seconds=80)
    seen = looked([interrupted("spot"), a_node("od")], [pod])
    assert evicted(seen, 36) == []
    (eviction,) = evicted(seen, 38)
    assert not eviction.overrule
    assert eviction.grace_seconds is None
    assert evicted(seen, 88)[0].overrule or owner is not None


def test_a_grace_period_that_outlasts_the_deadline_is_cut_on_every_eviction():
    pods = pods_of("web", 2, node="spot", grace_seconds=110)
    seen = looked(
        [interrupted("spot"), a_node("od")], pods, [a_deployment(strategy={"type": "Recreate"})]
    )
    assert {e.grace_seconds for e in evicted(seen, 30)} == {88}


@pytest.mark.parametrize("kind", ["health-scheduled-change"])
def test_a_deadline_that_may_be_postponed_cuts_no_grace_period(kind):
    pods = pods_of("web", 2, node="spot", grace_seconds=WEEK)
    nodes = [interrupted("spot", kind=kind), a_node("od")]
    seen = looked(nodes, pods, [a_deployment(strategy={"type": "Recreate"})])
    assert {e.grace_seconds for e in evicted(seen, 30)} == {None}


def test_a_long_grace_period_of_which_nobody_says_how_much_is_needed_is_named_with_the_cure():
    plan = plan_drain(database(members(3)), noon(1))
    (words,) = plan.notes["spot-0"]
    assert "StatefulSet default/db" in words
    assert STOP_SECONDS in words
    assert f"note: {words}" in map(str, plan.reports[0].reasons)

    hooked = [replace(p, hook_seconds=45) for p in members(3)]
    (words,) = plan_drain(database(hooked), noon(1)).notes["spot-0"]
    assert "its pods are evicted 55 s before the deadline" in words

    stated = members(3, annotations={STOP_SECONDS: "10"})
    assert not plan_drain(database(stated), noon(1)).notes


@pytest.mark.parametrize(
    ("allowed", "stated", "leave"), [(1, None, 1), (None, "30", 1), (None, None, 0)]
)
def test_the_first_of_several_leaves_without_a_place_if_not_all_would_be_replaced_in_turn(
    allowed, stated, leave
):
    marks = {} if stated is None else {STOP_SECONDS: stated}
    seen = database(members(3, grace_seconds=30, annotations=marks), allowed=allowed, cpu="10m")
    assert len(evicted(seen, 1)) == leave


def test_one_that_moves_alone_waits_for_its_place():
    assert evicted(database(members(1, grace_seconds=30), allowed=1, cpu="10m"), 1) == []


STATED = {STOP_SECONDS: "30"}


def test_none_leaves_early_without_a_place_where_its_replacement_would_not_serve_in_time():
    seen = database(members(3, grace_seconds=30, annotations=STATED), cpu="10m")
    slow = WorkloadTimes(start=ObservedTime(pods=5, p95_seconds=240))
    seen = replace(seen, times={DB: slow})
    assert evicted(seen, 1) == []
    assert len(evicted(seen, 89)) == 3


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("RayCluster", "plimsoll.dev/gang"),
        ("PyTorchJob", "training.kubeflow.org/job-name"),
        ("StatefulSet", "leaderworkerset.sigs.k8s.io/name"),
    ],
)
def test_no_pod_of_a_gang_leaves_before_its_eviction_deadline_though_there_is_a_place(kind, label):
    pods = [
        a_pod(f"train-{n}", node=node, owner=(kind, "train"), labels={label: "train"})
        for n, node in enumerate(("spot", "od"))
    ]
    workloads = [a_stateful_set("train", replicas=2)] if kind == "StatefulSet" else []
    seen = looked([interrupted("spot"), a_node("od")], pods, workloads)
    assert evicted(seen, 1) == []
    assert [evict.pod.name for evict in evicted(seen, 89)] == ["train-0"]
