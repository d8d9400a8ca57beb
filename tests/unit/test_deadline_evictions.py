"""In a storm larger than an API server takes in time, some pods are told before their eviction deadline."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import Evict
from plimsoll.domain.drain import LEAST_REQUESTS, Throughput, plan_drain
from plimsoll.domain.drain.plan_builder import MOST_NAMED
from plimsoll.domain.drain.throughput import AT_ONCE, MOST_EVICTIONS, SUSTAINED
from plimsoll.domain.observation import Observation
from tests.support.builders import a_budget
from tests.support.many_nodes import PODS, storm
from tests.support.observations import actions, noon

SLOW = Throughput(2.0)
"""So few evictions a second that six hundred pods cannot be told in the 20 s until their eviction deadline."""
STOP = 10
"""The grace period of these pods: their eviction deadline comes at 12:01:48, 35 s after the first may be told early."""
FIRST = 88
"""Seconds from the notice: fifteen after the first may be told early."""


def scattered(seen: Observation) -> Observation:
    """Put the pods of each workload on nodes by chance, as many on each node as before."""
    chance, names = random.Random(5), [n.name for n in seen.nodes if n.interruption]
    others = [dict(zip(names, chance.sample(names, len(names)), strict=True)) for _ in range(PODS)]
    pods = [
        replace(pod, node=others[int(pod.name.rpartition("-")[2])][pod.node or ""])
        for pod in seen.pods
    ]
    return replace(seen, pods=pods)


def brief(nodes: int) -> Observation:
    """Return a storm of pods that stop soon."""
    return storm(nodes, grace_seconds=STOP)


def told(seen, *, after=FIRST, throughput=SLOW) -> list[Evict]:
    return actions(plan_drain(seen, noon(after), throughput=throughput), Evict)


def test_a_pod_is_told_early_if_the_api_server_would_not_take_all_evictions_in_time():
    early = told(brief(60))

    assert len(early) == 60 * PODS - AT_ONCE - 20 * 2
    assert "comes at 12:01:48" in early[0].reason
    assert not any(evict.overrule or evict.grace_seconds for evict in early)


def test_none_is_told_early_where_the_api_server_takes_all_in_time():
    assert told(brief(60), throughput=Throughput()) == []
    assert told(brief(AT_ONCE // PODS), after=107) == []


@pytest.mark.parametrize("pods", [brief(60), storm(60)], ids=["of a short stop", "of the default"])
def test_none_is_told_for_the_sake_of_others_long_before_the_deadline(pods):
    assert told(pods, after=FIRST - 16) == []
    assert told(pods, after=FIRST - 15)


def test_whoever_is_told_early_leaves_its_workload_its_ready_floor_as_long_as_others_can():
    fewer = told(brief(60), throughput=Throughput(20.0))

    left = Counter(evict.pod.owner.name for evict in fewer if evict.pod.owner)
    assert len(fewer) == 60 * PODS - AT_ONCE - 20 * 20
    assert max(left.values()) == 2  # of ten, a quarter may be unavailable


def test_the_last_pod_that_serves_is_not_told_before_its_last_call():
    early = told(brief(MOST_EVICTIONS // PODS + 20), throughput=Throughput(0.01))

    assert len(early) == MOST_EVICTIONS
    assert max(Counter(e.pod.owner.name for e in early if e.pod.owner).values()) < PODS


def test_those_of_lower_priority_and_on_nodes_whose_turn_comes_last_are_told_first():
    seen = brief(60)
    lowly = [replace(p, priority=-1) if p.name.startswith("app-3-") else p for p in seen.pods]
    first, second, *_, last = told(replace(seen, pods=lowly))

    assert {first.pod.priority, second.pod.priority} == {-1}
    assert last.pod.priority == 0
    equal = [evict.pod.node for evict in told(seen)[:PODS]]
    assert set(equal) == {"spot-059"}


def test_those_told_early_empty_as_many_nodes_as_ready_floors_allow():
    seen = scattered(brief(100))

    early = told(seen, throughput=Throughput(40.0))

    on = Counter(evict.pod.node for evict in early)
    of = Counter(evict.pod.owner.name for evict in early if evict.pod.owner)
    assert len(early) == 100 * PODS - AT_ONCE - 20 * 40
    assert sum(count == PODS for count in on.values()) == len(early) // PODS
    assert max(of.values()) == 2  # its ready floor leaves each workload two


def test_a_budget_is_not_overruled_before_the_last_call():
    seen = brief(60)
    none = a_budget("app-3", maxUnavailable=0)

    owners = {e.pod.owner.name for e in told(replace(seen, budgets=[none])) if e.pod.owner}
    assert "app-3-abc" not in owners
    assert "app-4-abc" in owners


def test_what_may_end_by_itself_is_not_told_before_its_last_call():
    seen = brief(60)
    jobs = [replace(p, restarts=False) if p.name.startswith("app-3-") else p for p in seen.pods]

    assert not any(e.pod.name.startswith("app-3-") for e in told(replace(seen, pods=jobs)))


@pytest.mark.parametrize(
    ("requests", "seconds", "planning", "taken"),
    [
        pytest.param(LEAST_REQUESTS, 1, 0, LEAST_REQUESTS, id="what it took in a second"),
        pytest.param(
            LEAST_REQUESTS,
            1,
            MOST_EVICTIONS / LEAST_REQUESTS,
            LEAST_REQUESTS / 2,
            id="half of the time for plans",
        ),
    ],
)
def test_the_throughput_follows_what_the_api_server_took(requests, seconds, planning, taken):
    measured = Throughput(30.0).measured(requests, seconds, planning)

    assert measured.per_second == pytest.approx((30 + SUSTAINED * taken) / 2)


@pytest.mark.parametrize(
    ("requests", "seconds"),
    [
        pytest.param(LEAST_REQUESTS - 1, 9, id="too few"),
        pytest.param(LEAST_REQUESTS, 0, id="in no time"),
    ],
)
def test_from_a_few_requests_no_throughput_is_learned(requests, seconds):
    assert Throughput(30.0).measured(requests, seconds, 9) == Throughput(30.0)


def test_each_last_call_is_kept_where_they_come_at_different_times():
    soon, later = noon(10), noon(20)
    calls = [soon] * (AT_ONCE + 30) + [later] * 40

    assert Throughput(2.0).overdue(calls, noon(0)) == 30 + 40 - 40
    assert Throughput(2.0).overdue(calls, soon - timedelta(seconds=1)) == 48
    assert Throughput(2.0).overdue(calls, soon) == AT_ONCE + 30


def test_each_node_is_told_of_some_pods_without_headroom_and_how_many_there_are():
    seen = brief(60)
    small = [replace(node, unschedulable=True) for node in seen.nodes]
    plan = plan_drain(replace(seen, nodes=small), noon(1))

    waiting = [w for w in plan.waiting["spot-000"] if "headroom" in w]
    assert len(waiting) == MOST_NAMED + 1
    assert waiting[-1] == "600 pods have no headroom"
