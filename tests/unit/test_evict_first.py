"""Pods that are evicted before their replacements exist, in a storm that releases cannot end in time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, Pace, Plan, Release
from plimsoll.domain.actions.pace import START
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.observation import Observation
from tests.support.builders import a_budget
from tests.support.many_nodes import PODS, gone, storm
from tests.support.observations import actions, interrupted, noon

NODES = 60
SPARE = PODS // 4
"""How many pods of a workload may be missing, by the settings of its rollouts."""
LATE = Pace(at=noon(1), rate=5.0)
"""At so many replacements a second some hundred pods are late."""


def planned(seen: Observation, pace: Pace = LATE) -> Plan:
    return plan_drain(seen, noon(1), pace=pace)


def evicted_of(plan: Plan) -> Counter[str]:
    """Return how many pods of each workload are evicted."""
    return Counter(evict.pod.name.rpartition("-")[0] for evict in actions(plan, Evict))


def test_as_many_pods_are_evicted_first_as_their_workload_can_spare_and_others_released():
    plan = planned(storm(NODES))

    assert evicted_of(plan) == {f"app-{n}": SPARE for n in range(NODES)}
    assert len(actions(plan, Release)) == START - NODES * SPARE
    assert not any(evict.overrule for evict in actions(plan, Evict))


@pytest.mark.parametrize("rate", [None, 50.0])
def test_nobody_is_evicted_first_where_all_may_be_replaced_in_time(rate):
    assert not actions(planned(storm(NODES), replace(LATE, rate=rate)), Evict)


def test_a_hundred_that_come_too_late_wait_for_their_last_call():
    assert not actions(planned(storm(30), replace(LATE, rate=4.0)), Evict)


def test_nobody_is_evicted_first_while_controllers_do_not_keep_up():
    seen = storm(NODES)
    begun = {p.name: gone(p) for p in seen.pods if p.name.endswith(("-0", "-1"))}

    plan = planned(storm(NODES, begun))
    assert plan.pace.queued == len(begun)
    assert not actions(plan, Evict)


def test_whoever_is_missing_already_is_not_spared_again():
    seen = storm(NODES)
    stopping = {
        p.name: replace(p, deleting=noon(0), ready=False)
        for p in seen.pods
        if p.name in {"app-0-0", "app-1-0", "app-1-1"}
    }

    evicted = evicted_of(planned(storm(NODES, stopping)))
    assert (evicted["app-0"], evicted["app-1"], evicted["app-2"]) == (1, 0, 2)


def test_a_workload_that_is_rolled_out_is_released():
    seen = storm(NODES)
    rolling = [replace(w, rolling_out=w.ref.name == "app-0") for w in seen.workloads]

    plan = planned(replace(seen, workloads=rolling))
    assert not evicted_of(plan)["app-0"]
    assert any(release.pod.name.startswith("app-0-") for release in actions(plan, Release))


def test_what_a_budget_keeps_is_not_evicted_first():
    seen = storm(NODES)
    budgets = [a_budget("app-0"), a_budget("app-1", allowed=1)]

    evicted = evicted_of(planned(replace(seen, budgets=budgets)))
    assert (evicted["app-0"], evicted["app-1"], evicted["app-2"]) == (0, 1, 2)


def test_whose_own_deadline_is_not_near_is_released():
    seen = storm(NODES)
    there = {p.name: replace(p, node="spot-000") for p in seen.pods if "app-0-" in p.name}
    seen = storm(NODES, there)
    in_an_hour = interrupted("spot-000", ends=3600)
    later = [in_an_hour if n.name == "spot-000" else n for n in seen.nodes]

    assert evicted_of(planned(seen))["app-0"] == SPARE
    plan = planned(replace(seen, nodes=later))
    assert not evicted_of(plan)["app-0"]
    assert any(release.pod.name in there for release in actions(plan, Release))


def test_without_sure_headroom_nobody_is_evicted_first():
    seen = storm(NODES)
    full = [replace(n, unschedulable=True) if n.name == "od" else n for n in seen.nodes]

    assert not actions(planned(replace(seen, nodes=full)), Evict)


def test_what_is_evicted_and_gone_takes_of_the_bound_until_it_is_made_anew():
    seen = storm(NODES)
    left = [p for p in seen.pods if p.name not in {"app-0-0", "app-0-1"}]

    assert plan_drain(replace(seen, pods=left), noon(1)).pace.queued == 2
