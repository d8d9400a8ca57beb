"""What budgets let go: one allowance across workloads in a plan, and of a large set several members where time is short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, Plan
from plimsoll.domain.disruptions import disruptions_of, kept_of
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import IGNORE, Pod, Ref, Workload
from plimsoll.domain.observation import InterruptedNodes, Observation
from tests.support.builders import (
    a_budget,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    pods_of,
)
from tests.support.observations import (
    DB,
    actions,
    died,
    interrupted,
    looked,
    noon,
    released,
    sets_of,
)

HOT = Ref("StatefulSet", "default", "hot")
BOTH = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "hot", "web"]}]}


def shared(allowed: int = 1, **spec):
    """Return a budget over `db`, `hot` and `web`."""
    return a_budget("shared", selector=BOTH, allowed=allowed, **(spec or {"minAvailable": 5}))


def two_sets(budget, *, more: Sequence[Pod] = (), **how) -> Observation:
    """Return two sets of three, each with a member on a node that goes, under one budget."""
    return looked(
        how.pop("nodes", [interrupted("spot"), a_node("od")]),
        [*sets_of("db", ["spot", "od", "od"]), *sets_of("hot", ["spot", "od", "od"]), *more],
        [a_stateful_set("db", replicas=3), a_stateful_set("hot", replicas=3), *how.pop("of", [])],
        budgets=[budget],
        **how,
    )


def evicted(plan: Plan) -> list[str]:
    return [action.pod.name for action in actions(plan, Evict)]


def floors(seen: Observation) -> dict[str, int]:
    found = disruptions_of(seen, InterruptedNodes.of(seen), noon(1))
    return {each.ref.name: each.floor for each in found}


@pytest.mark.parametrize(
    ("spec", "allowed", "evicts"),
    [
        pytest.param({"minAvailable": 5}, 1, ["db-0"], id="all but one must serve"),
        pytest.param({"maxUnavailable": 1}, 1, ["db-0"], id="one may be missing"),
        pytest.param({"maxUnavailable": "10%"}, 1, ["db-0"], id="a share of all"),
        pytest.param({"minAvailable": 5}, 0, [], id="one is missing already"),
        pytest.param({"maxUnavailable": 2}, 2, ["db-0", "hot-0"], id="two may be missing"),
    ],
)
def test_a_budget_over_two_sets_lets_go_what_it_allows_of_whichever_set(spec, allowed, evicts):
    plan = plan_drain(two_sets(shared(allowed, **spec)), noon(1))

    assert evicted(plan) == evicts


def test_a_set_that_waits_for_a_budget_which_another_set_spends_says_so():
    plan = plan_drain(two_sets(shared()), noon(1))

    assert any("hot" in w and "shared allows no disruption" in w for w in plan.waiting["spot"])


def test_a_budget_over_two_sets_leaves_each_its_own_floor():
    assert floors(two_sets(shared(maxUnavailable=3))) == {"db": 2, "hot": 2}
    assert floors(two_sets(shared(minAvailable=5))) == {"db": 2, "hot": 2}
    assert floors(two_sets(shared(minAvailable=6))) == {"db": 3, "hot": 3}


def test_what_a_budget_expects_counts_all_pods_that_it_covers_those_that_opted_out_too():
    out = [
        a_pod(f"web-{n}", node="od", labels={"app": "web"}, annotations={IGNORE: "true"})
        for n in range(4)
    ]
    seen = two_sets(shared(maxUnavailable="20%"), more=out)

    assert kept_of(seen, DB, 3) == {shared().ref: 1}
    assert kept_of(two_sets(shared(maxUnavailable="20%")), DB, 3) == {shared().ref: 1}
    assert kept_of(two_sets(shared(maxUnavailable="10%"), more=out), DB, 3) == {shared().ref: 2}
    assert kept_of(seen, Ref("StatefulSet", "default", "other"), 3) == {}


def test_a_deployment_and_a_set_share_what_their_budget_allows():
    web = replace(a_deployment("web", replicas=3), max_surge=0, max_unavailable=1)
    pods = [replace(p, node="od") for p in pods_of("web", 3, node="spot")]
    pods[0] = replace(pods[0], node="spot")
    seen = two_sets(shared(minAvailable=8), more=pods, of=[web])

    assert len(evicted(plan_drain(seen, noon(1)))) == 1


def test_a_released_pod_that_is_replaced_spends_what_its_budget_allows():
    old = released(a_pod("web-old", node="spot", labels={"app": "web"}))
    pods = [old, *pods_of("web", 2, node="od")]
    web = a_deployment("web", replicas=2)
    seen = two_sets(shared(minAvailable=8), more=pods, of=[web])

    assert evicted(plan_drain(seen, noon(1))) == ["web-old"]


def test_a_dead_pod_that_counts_as_ready_spends_the_budget_of_other_workloads():
    pods = [*sets_of("web", ["dead"])]
    nodes = [died(interrupted("dead")), interrupted("spot"), a_node("od")]
    seen = two_sets(shared(maxUnavailable=1), more=pods, nodes=nodes)

    assert evicted(plan_drain(seen, noon(31))) == ["web-0"]


def test_a_pod_at_its_eviction_deadline_spends_the_budget_of_other_workloads():
    nodes = [interrupted("soon", ends=60), interrupted("spot"), a_node("od")]
    seen = two_sets(shared(), nodes=nodes)
    pods = [replace(p, node="soon") if p.name == "db-0" else p for p in seen.pods]

    assert evicted(plan_drain(replace(seen, pods=pods), noon(40))) == ["db-0"]


def large(
    budget, *, ends: float = 120, off: int = 0, room: str = "16", members: int = 11
) -> Observation:
    """Return a set of which all members but one stand on a node that goes; the last `off` of them are not Ready."""
    pods = sets_of("db", [*["spot"] * (members - 1), "od"], cpu="1")
    for n in range(members - 1 - off, members - 1):
        pods[n] = replace(pods[n], node="od", ready=False)
    return looked(
        [interrupted("spot", ends=ends, cpu="16"), a_node("od", cpu=room)],
        pods,
        [a_stateful_set("db", replicas=members)],
        budgets=[] if budget is None else [budget],
    )


@pytest.mark.parametrize(
    ("seen", "leave"),
    [
        pytest.param(large(a_budget("db", maxUnavailable=4, allowed=4)), 4, id="as many as it allows"),
        pytest.param(large(a_budget("db", minAvailable="60%", allowed=4)), 4, id="a share"),
        pytest.param(
            large(a_budget("db", maxUnavailable=4, allowed=2), off=2), 2, id="beside two that are missing"
        ),
        pytest.param(large(a_budget("db", maxUnavailable=8, allowed=8)), 5, id="a majority stays"),
        pytest.param(large(a_budget("db", maxUnavailable=4, allowed=4), room="3"), 2, id="as many as have places"),
        pytest.param(large(a_budget("db", maxUnavailable=4, allowed=0), off=2), 0, id="not past its budget"),
        pytest.param(large(None), 1, id="without a budget one"),
        pytest.param(large(a_budget("db", maxUnavailable=4, allowed=4), ends=3_600), 1, id="with time for all one"),
        pytest.param(
            large(a_budget("db", selector={}, maxUnavailable=4, allowed=4), members=3), 1, id="one of three"
        ),
    ],
)  # fmt: skip
def test_members_of_a_large_set_leave_together_where_time_is_short_and_its_budget_lets_them(
    seen: Observation, leave: int
):
    assert len(evicted(plan_drain(seen, noon(1)))) == leave


def fresh(since: float, workload: Workload, *, of: int = 2, ends: float = 120) -> Observation:
    """Return a set whose last member has been Ready since then, with `of` members still on a node that goes."""
    pods = [replace(p, ready_since=noon(-600)) for p in sets_of("db", ["spot"] * of + ["od"])]
    pods[-1] = replace(pods[-1], ready_since=noon(since))
    return looked([interrupted("spot", ends=ends), a_node("od")], pods, [workload])


@pytest.mark.parametrize(
    ("now", "least", "of", "leave"),
    [
        pytest.param(29, 10, 2, 0, id="Ready for nine seconds"),
        pytest.param(30, 10, 2, 1, id="Ready for ten seconds"),
        pytest.param(49, 30, 2, 0, id="it fits until the end of the wait, however late it is"),
        pytest.param(29, 10, 6, 1, id="too many to wait for it each time"),
        pytest.param(87, 100, 1, 0, id="one alone waits as long as it can"),
        pytest.param(88, 100, 1, 1, id="its eviction deadline has come"),
    ],
)
def test_the_next_member_leaves_when_the_last_has_been_ready_for_min_ready_seconds(
    now, least, of, leave
):
    workload = a_stateful_set("db", replicas=of + 1, minReadySeconds=least)
    plan = plan_drain(fresh(20, workload, of=of), noon(now))

    assert len(evicted(plan)) == leave
    assert leave or "minReadySeconds" in plan.waiting["spot"][0]


def test_a_plan_that_waits_for_min_ready_seconds_is_looked_at_again_within_seconds():
    workload = a_stateful_set("db", replicas=3, minReadySeconds=10)
    seen = fresh(20, workload, ends=3_600)
    pods = [replace(p, created=noon(10)) if p.node == "od" else p for p in seen.pods]

    assert plan_drain(replace(seen, pods=pods), noon(25)).busy


def test_a_pod_that_cannot_be_released_waits_for_min_ready_seconds_too():
    workload = replace(
        a_deployment("web", replicas=3, minReadySeconds=10), max_surge=0, max_unavailable=1
    )
    pods = [replace(p, ready_since=noon(-600)) for p in pods_of("web", 3, node="spot")]
    pods[2] = replace(pods[2], node="od", ready_since=noon(20))
    seen = looked([interrupted("spot"), a_node("od")], pods, [workload])

    assert evicted(plan_drain(seen, noon(29))) == []
    assert len(evicted(plan_drain(seen, noon(30)))) == 1
