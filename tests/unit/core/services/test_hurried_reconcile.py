"""A reconcile that has many pods to tell or to move works on beyond its usual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import override

import pytest

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain.deadline_evictions import AT_ONCE, MOST_EVICTIONS
from plimsoll.services.executor import ACTIONS_PER_ROUND
from tests.support.workload_sets import WiredServices, deployment, handled


def evicted(replicas: int) -> int:
    """Return how many pods leave by a reconcile whose usual time is over when it begins.

    Their eviction deadline has come, and nothing can take them.
    """
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot", cpu="500", pods=500)
    rig.apply(deployment("web", replicas=replicas))
    handled(rig, rig.spot_event(instance))
    rig.sleep(108)
    before = {pod.uid for pod in rig.api.observe().pods}

    rig.drains.reconcile("harbor", "me", seconds=0)

    staying = {pod.uid for pod in rig.api.observe().pods if pod.deleting is None}
    return len(before - staying)


def test_who_has_few_pods_to_tell_leaves_them_to_the_next_reconcile():
    assert evicted(AT_ONCE // 2) == ACTIONS_PER_ROUND


@pytest.mark.parametrize("pods", [AT_ONCE + 1, 3 * AT_ONCE])
def test_who_has_many_to_tell_tells_them_all(pods: int):
    assert evicted(pods) == pods


@pytest.mark.parametrize(
    ("pods", "released"),
    [(MOST_EVICTIONS, ACTIONS_PER_ROUND), (MOST_EVICTIONS + 1, MOST_EVICTIONS + 1)],
    ids=["few", "many"],
)
def test_who_has_more_pods_to_move_than_one_plan_tells_leaves_none_to_the_next_reconcile(
    pods: int, released: int
):
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot", cpu="500", pods=2 * MOST_EVICTIONS)
    rig.apply(deployment("web", replicas=pods, cpu="100m"))
    rig.join("od", cpu="500", pods=2 * MOST_EVICTIONS)
    handled(rig, rig.spot_event(instance))

    rig.drains.reconcile("harbor", "me", seconds=0, hurried=1)

    assert sum(pod.released for pod in rig.api.observe().pods) == released


class SlowWorkers(SerialWorkers):
    """An API server that takes a second for each write."""

    def __init__(self, rig: WiredServices) -> None:
        self._rig = rig

    @override
    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        def slowly(task: Callable[[], T]) -> T:
            before = self._rig.version()
            try:
                return task()
            finally:
                if self._rig.version() != before:
                    self._rig.sleep(1)

        return super().run([lambda task=task: slowly(task) for task in tasks])  # type: ignore[misc]  # mypy cannot infer a lambda with a default


def test_releases_that_are_not_begun_when_many_last_calls_come_are_left():
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot", cpu="500", pods=500)
    rig.apply(deployment("web", replicas=3 * AT_ONCE))
    rig.join("od", cpu="500", pods=500)
    handled(rig, rig.spot_event(instance))
    rig.sleep(70)
    before = {pod.uid for pod in rig.api.observe().pods}

    replace(rig.drains, workers=SlowWorkers(rig)).reconcile("harbor", "me", seconds=50, hurried=50)

    pods = rig.api.observe().pods
    released = {pod.uid for pod in pods if pod.released}
    assert 0 < len(released) < 40  # of 50 calls
    assert before - {pod.uid for pod in pods if pod.deleting is None}
