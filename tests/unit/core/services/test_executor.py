"""Carrying out plans: in waves, and only for as long as we are the ones to do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any, override

import pytest

from plimsoll.adapters.workers import SerialWorkers, ThreadWorkers
from plimsoll.domain.actions import (
    Action,
    Evict,
    ForceDelete,
    Grow,
    Heartbeat,
    Plan,
    Release,
    Step,
)
from plimsoll.domain.errors import Blocked, Conflict, NotFound, Refused, Throttled
from plimsoll.domain.interruptions import Interruption, LifecycleHook
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, Node, Pod, Ref, ReplicaSet
from plimsoll.services.executor import (
    ACTIONS_PER_ROUND,
    ACTIONS_TOGETHER,
    ActionResult,
    Executor,
    Writers,
    perform,
)
from tests.support.builders import a_group, pods_of
from tests.support.observations import interrupted
from tests.support.workload_sets import Aws, Telemetry


@dataclass
class Evictions:
    """A cluster that only notes who was evicted, or deleted within which grace period."""

    names: list[str] = field(default_factory=list)
    deleted: list[tuple[str, int | None]] = field(default_factory=list)

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        self.names.append(pod.name)

    def delete(self, pod: Pod, grace_seconds: int | None = None) -> None:
        self.deleted.append((pod.name, grace_seconds))


@pytest.fixture
def cluster() -> Any:
    return Evictions()


def carried_out(
    cluster: Any,
    count: int,
    held: Callable[[], bool] = lambda: True,
    enough: Callable[[], bool] = lambda: False,
    *,
    first: bool = False,
) -> Sequence[ActionResult]:
    """Evict so many pods, after another wave if there is to be a first."""
    executor = Executor(
        writers=Writers(cluster=cluster, capacity=Aws()),
        workers=SerialWorkers(),
        telemetry=Telemetry(),
    )
    grow = Grow(group=a_group(), add=1, zone=None, token="grow", reason="a test")
    leave: list[Action] = [Evict(pod=pod, reason="a test") for pod in pods_of("web", count)]
    steps = [
        Step(action=action, nodes=frozenset()) for action in (*([grow] if first else []), *leave)
    ]
    return executor.carry_out(Plan(steps=tuple(steps)), held=held, enough=enough)


def test_who_lost_the_lease_begins_nothing_more_not_even_of_the_actions_that_are_done_together(
    cluster,
):
    outcomes = carried_out(cluster, ACTIONS_TOGETHER, lambda: len(cluster.names) < 3)

    assert len(cluster.names) == len(outcomes) == 3


def test_who_never_had_the_lease_does_nothing(cluster):
    assert carried_out(cluster, 1, lambda: False, first=True) == []
    assert cluster.names == []


def test_when_time_is_over_the_rest_is_left_to_another_look(cluster):
    outcomes = carried_out(
        cluster,
        3 * ACTIONS_TOGETHER,
        lambda: True,
        lambda: len(cluster.names) >= 2 * ACTIONS_TOGETHER,
    )

    assert len(cluster.names) == 2 * ACTIONS_TOGETHER
    assert [outcome.done for outcome in outcomes] == [True] * (2 * ACTIONS_TOGETHER)


def test_something_is_done_however_late_it_is(cluster):
    outcomes = carried_out(cluster, 2 * ACTIONS_TOGETHER, lambda: True, lambda: True)

    assert len(cluster.names) == len(outcomes) == ACTIONS_PER_ROUND


def test_where_calls_are_slow_no_action_begins_after_the_time(cluster):
    outcomes = carried_out(
        cluster, ACTIONS_TOGETHER, lambda: True, lambda: len(cluster.names) >= ACTIONS_PER_ROUND + 3
    )

    assert len(cluster.names) == len(outcomes) == ACTIONS_PER_ROUND + 3


def test_pods_are_told_to_go_however_long_the_waves_before_them_took(cluster):
    carried_out(cluster, 2, lambda: True, lambda: True, first=True)

    assert len(cluster.names) == 2


def test_an_api_that_asks_for_patience_gets_no_more_of_that_wave_but_something_of_the_next(cluster):
    class Groups(Aws):
        def grow(self, *_: object, **__: object) -> int:
            raise Throttled("later", retry_after=1)

    executor = Executor(
        writers=Writers(cluster=cluster, capacity=Groups()),
        workers=SerialWorkers(),
        telemetry=Telemetry(),
    )
    grow = Grow(group=a_group(), add=1, zone=None, token="grow", reason="a test")
    steps = [Step(action=grow, nodes=frozenset())] * (ACTIONS_TOGETHER + 1)
    steps += [
        Step(action=Evict(pod=p, reason="a test"), nodes=frozenset()) for p in pods_of("web", 2)
    ]
    outcomes = executor.carry_out(Plan(steps=tuple(steps)))

    assert [outcome.done for outcome in outcomes] == [False] * ACTIONS_TOGETHER + [True] * 2


def test_no_action_waits_for_a_slow_one_beside_it():
    class OneIsSlow(Evictions):
        others = Event()

        @override
        def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
            if pod.name == "web-0":
                assert self.others.wait(10), "the last is not begun before the first has ended"
            super().evict(pod, grace_seconds)
            if len(self.names) == 2 * ACTIONS_TOGETHER - 1:
                self.others.set()

    cluster: Any = OneIsSlow()
    executor = Executor(
        writers=Writers(cluster=cluster, capacity=Aws()),
        workers=ThreadWorkers(2),
        telemetry=Telemetry(),
    )
    leave = [Evict(pod=pod, reason="a test") for pod in pods_of("web", 2 * ACTIONS_TOGETHER)]

    executor.carry_out(Plan(steps=tuple(Step(action=one, nodes=frozenset()) for one in leave)))

    assert cluster.names[-1] == "web-0"


@dataclass
class Hooked(Evictions):
    """A cluster that also notes within which grace period pods were evicted, and which nodes were recorded."""

    modified: bool = False
    """Whether somebody else writes to its nodes at the same moment."""
    graces: list[int | None] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)

    @override
    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        self.graces.append(grace_seconds)

    def record(self, node: Node, interruption: Interruption) -> None:
        if self.modified:
            raise Conflict("the object has been modified")
        self.recorded.append(node.name)


@pytest.mark.parametrize(
    ("answer", "modified", "graces", "recorded"),
    [
        (None, False, [200, 48], ["spot"]),
        (None, True, [200, 48], []),
        (Throttled("later"), False, [48, 48], []),
        (NotFound("it waits no longer"), False, [48, 48], []),
    ],
)
def test_an_eviction_has_the_time_that_a_heartbeat_gains_only_once_that_was_accepted(
    answer, modified, graces, recorded
):
    class Hooks(Aws):
        @override
        def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
            if answer is not None:
                raise answer

    cluster: Any = Hooked(modified=modified)
    executor = Executor(
        writers=Writers(cluster=cluster, capacity=Hooks()),
        workers=SerialWorkers(),
        telemetry=Telemetry(),
    )
    node = interrupted("spot", kind="lifecycle-terminate")
    assert node.interruption is not None
    hook = LifecycleHook(
        group="g", name="h", timeout=timedelta(minutes=2), longest=timedelta(hours=3), ours=True
    )
    beat = Heartbeat(node=node, interruption=node.interruption, hooks=(hook,), reason="a test")
    leave = [
        Evict(pod=pod, grace_seconds=48, kept_up_grace_seconds=200, reason="a test")
        for pod in (*pods_of("web", 1, node="spot"), *pods_of("db", 1, node="another"))
    ]

    steps: list[Action] = [beat, *leave]

    executor.carry_out(Plan(steps=tuple(Step(action=one, nodes=frozenset()) for one in steps)))

    assert (cluster.graces, cluster.recorded) == (graces, recorded)


@pytest.mark.parametrize(("gained", "deleted"), [(None, []), (200, [("web-0", 200)])])
def test_no_budget_is_overruled_for_a_pod_that_has_all_its_time_once_its_hook_is_kept_up(
    gained: int | None, deleted: list[tuple[str, int]]
):
    class Guarded(Hooked):
        @override
        def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
            raise Blocked("Cannot evict pod as it would violate the pod's disruption budget.")

    cluster: Any = Guarded()
    node = interrupted("spot", kind="lifecycle-terminate")
    assert node.interruption is not None
    hook = LifecycleHook(
        group="g", name="h", timeout=timedelta(minutes=2), longest=timedelta(hours=3), ours=True
    )
    [pod] = pods_of("web", 1, node="spot")
    leaves = Evict(
        pod=pod, grace_seconds=48, kept_up_grace_seconds=gained, overrule=True, reason="a test"
    )
    steps: list[Action] = [
        Heartbeat(node=node, interruption=node.interruption, hooks=(hook,), reason="a test"),
        leaves,
    ]

    Executor(
        writers=Writers(cluster=cluster, capacity=Aws()),
        workers=SerialWorkers(),
        telemetry=Telemetry(),
    ).carry_out(Plan(steps=tuple(Step(action=one, nodes=frozenset()) for one in steps)))

    assert cluster.deleted == deleted


def test_a_pod_of_a_dead_instance_is_deleted_without_a_grace_period(cluster):
    [pod] = pods_of("db", 1)

    perform(ForceDelete(pod=pod, reason="a test"), Writers(cluster=cluster, capacity=Aws()))

    assert cluster.deleted == [("db-0", 0)]


@dataclass
class OlderPolicies:
    """A cluster whose admission policies know no mark for Karpenter, or refuse releases altogether."""

    refuses: str
    marks: list[str | None] = field(default_factory=list)

    def release(self, *of: Any) -> None:
        mark = of[4] if len(of) > 4 else None
        self.marks.append(mark)
        if mark is not None or self.refuses != DO_NOT_DISRUPT:
            raise Refused(f"this changes the annotation {self.refuses}")


@pytest.mark.parametrize(
    ("refuses", "marks", "done"),
    [(DO_NOT_DISRUPT, ["90s", None], True), ("theirs", ["90s"], False)],
)
def test_a_release_goes_without_the_mark_that_older_policies_refuse(refuses, marks, done):
    (pod,) = pods_of("web", 1)
    made = ReplicaSet(
        ref=Ref("ReplicaSet", "default", "web-abc"),
        uid="1",
        hash="abc",
        controller=Ref("Deployment", "default", "web"),
        controller_uid="2",
        revision=1,
    )
    release = Release(
        pod=pod, replica_set=made, interruption="i-1", reason="a test", do_not_disrupt="90s"
    )
    cluster: Any = OlderPolicies(refuses)
    result = perform(release, Writers(cluster=cluster, capacity=Aws()))
    assert (result.done, cluster.marks) == (done, marks)
