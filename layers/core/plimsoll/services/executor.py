"""The one place where plans become calls.

It carries out what a plan says, wave after wave and side by side within a wave, and answers what
came of each action. It decides nothing: an action that did not work is decided anew, from a fresh
observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Final, assert_never

from plimsoll.domain.actions import (
    Action,
    CompleteLifecycle,
    Cordon,
    DoNotDisrupt,
    Evict,
    Exclude,
    ForceDelete,
    Grow,
    Guard,
    Heartbeat,
    InjectFloors,
    LabelNode,
    MarkMoved,
    OutOfService,
    Plan,
    Record,
    Release,
    SetDeletionCost,
    Step,
    TaintNode,
    TellDeadline,
    TerminateInstance,
    Uncordon,
    UndoRelease,
    Unguard,
)
from plimsoll.domain.drain import event_of_action
from plimsoll.domain.errors import (
    Conflict,
    NotFound,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.kubernetes import (
    DEADLINE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    EXCLUDED,
    EXCLUDED_BY_US,
    MOVED,
    ClusterEvent,
)
from plimsoll.domain.reports import Metric
from plimsoll.services.cluster_events import MOST_EVENTS, create_events
from plimsoll.services.ports import CapacityWriter, ClusterWriter, Span, Telemetry, Workers
from plimsoll.services.untraced import UNTRACED

ACTIONS_TOGETHER: Final = 48
"""How many of a wave are begun at least. Once the API has asked one of them for patience, no more of their wave
follow."""
ACTIONS_PER_ROUND: Final = 16
"""How many of a wave are begun however late it is: fewer than there are workers, so they last as long as one call. A
reconcile with no time left still gets something done, and an API server that takes seconds for a call does not hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """All that an action can write to."""

    cluster: ClusterWriter
    capacity: CapacityWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What came of one action."""

    action: Action
    done: bool = True
    """Also true for what was gone already: that is what was wanted."""
    gone: bool = False
    """Whether it was gone already."""
    error: PlimsollError | None = None
    overruled: str | None = None
    """How a budget had refused the pod that was deleted all the same."""
    promised: int = 0
    """How many nodes a group promised."""
    kept_up: bool = False
    """Whether heartbeats were accepted, recorded or not."""


def perform(action: Action, writers: Writers) -> ActionResult:
    """Make the calls of an action, and return what came of it.

    Raises:
        Exception: whatever no call is meant to raise.
    """
    try:
        return _performed(action, writers)
    # An object that is gone already is what the plan wanted.
    except NotFound:
        return ActionResult(action=action, gone=True)
    except PlimsollError as error:
        return ActionResult(action=action, done=False, error=error)


def _performed(action: Action, writers: Writers) -> ActionResult:  # noqa: C901, PLR0912, PLR0915 - a case for each action
    cluster, capacity = writers.cluster, writers.capacity
    match action:
        case Cordon():
            cluster.cordon(action.node, action.interruption)
        case Uncordon():
            cluster.uncordon(action.node)
        case LabelNode():
            cluster.label(action.node, action.labels)
        case Exclude():
            cluster.label(action.node, {EXCLUDED: EXCLUDED_BY_US if action.excluded else None})
        case TaintNode():
            cluster.taint(action.node, tainted=action.tainted)
        case Grow():
            promised = capacity.grow(action.group, action.add, action.zone, action.token)
            return ActionResult(action=action, promised=promised)
        case Release():
            _release(action, cluster)
        case UndoRelease():
            cluster.undo_release(action.pod, action.replica_set)
        case Evict():
            return ActionResult(action=action, overruled=_evict(action, cluster))
        case ForceDelete():
            cluster.delete(action.pod, 0)
        case OutOfService():
            cluster.out_of_service(action.node)
        case SetDeletionCost():
            cluster.annotate_pod(action.pod, DELETION_COST, action.cost)
        case MarkMoved():
            cluster.annotate_pod(action.pod, MOVED, action.moved)
        case DoNotDisrupt():
            cluster.do_not_disrupt(action.pod, action.duration)
        case TellDeadline():
            cluster.annotate_pod(action.pod, DEADLINE, action.deadline)
        case InjectFloors():
            cluster.inject_floors(action.namespace, action.entries)
        case Guard():
            with suppress(Conflict):  # what somebody else made of that name meanwhile stays
                cluster.guard(action.workload, action.name)
        case Unguard():
            with suppress(NotFound, Conflict):  # it is deleted if it is still the same
                cluster.unguard(action.budget)
        case Record():
            cluster.record(action.node, action.interruption)
        case TerminateInstance():
            # The record comes last: the other way round, a failure would leave the instance running.
            if action.node.instance is not None:
                capacity.terminate(action.node.instance, decrement=action.shrunk is not None)
            cluster.record(action.node, action.interruption)
        case Heartbeat():
            return _keep_up(action, writers)
        case CompleteLifecycle():
            # The record comes last: it says that nothing is left to do, and a hook that was not completed holds
            # the instance until its timeout.
            for hook in action.hooks:
                with suppress(NotFound):  # one that is already over counts as completed
                    capacity.complete_lifecycle(hook, action.node.instance or "")
            cluster.record(action.node, action.interruption)
        case _:
            assert_never(action)
    return ActionResult(action=action)


def _release(action: Release, cluster: ClusterWriter) -> None:
    """Release a pod; without its mark for Karpenter where admission policies of an older version refuse that."""
    pod, replica_set, mark = action.pod, action.replica_set, action.do_not_disrupt
    try:
        cluster.release(pod, replica_set, action.interruption, action.moved, mark)
    except Refused as refusal:
        if mark is None or DO_NOT_DISRUPT not in str(refusal):
            raise
        cluster.release(pod, replica_set, action.interruption, action.moved)


def _keep_up(action: Heartbeat, writers: Writers) -> ActionResult:
    """Send heartbeats. The record comes last: only a heartbeat that was sent postpones the deadline."""
    for hook in action.hooks:
        writers.capacity.heartbeat(hook, action.node.instance or "")
    try:
        writers.cluster.record(action.node, action.interruption)
    except PlimsollError as error:  # the next plan sends and records another
        return ActionResult(action=action, done=False, error=error, kept_up=True)
    return ActionResult(action=action, kept_up=True)


def _evict(action: Evict, cluster: ClusterWriter) -> str | None:
    """Evict a pod; delete it if that is refused and may be overruled, and return whose refusal it was."""
    try:
        cluster.evict(action.pod, action.grace_seconds)
    except PlimsollError as refusal:
        if not action.overrules(refusal):
            raise
        cluster.delete(action.pod, action.grace_seconds)
        return None if action.guarded else str(refusal)
    return None


def _kept_up(results: Sequence[ActionResult]) -> AbstractSet[str]:
    """Return the nodes whose instances wait longer since heartbeats were accepted."""
    return {
        result.action.node.name
        for result in results
        if isinstance(result.action, Heartbeat) and result.kept_up
    }


def _timed(step: Step, kept_up: AbstractSet[str]) -> Step:
    """Return a step as it is once heartbeats were accepted for these nodes.

    A pod that has all its time by that has no eviction deadline in this plan: its eviction overrules no budget.
    """
    match step.action:
        case Evict(pod=pod, kept_up_grace_seconds=grace) as action if pod.node in kept_up:
            # Not hurried: the deadline had shortened the grace period, and heartbeats gave all of it back.
            hurried = grace is not None or action.grace_seconds is None
            return replace(
                step,
                action=replace(action, grace_seconds=grace, overrule=action.overrule and hurried),
            )
        case _:
            return step


@dataclass(slots=True, kw_only=True)
class Executor:
    """Carries out plans on one cluster."""

    writers: Writers
    workers: Workers
    telemetry: Telemetry
    span: Span = UNTRACED
    """Of whoever carries plans out; each action is a span within."""
    noted: dict[str, ClusterEvent] = field(default_factory=dict)
    """Events to create, by name: so often repeated, so often the same."""
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Verb, target and why it was not done -> how often: a budget refuses a pod each second, in the same words."""

    def note(self, event: ClusterEvent | None) -> None:
        """Keep an Event for `create_events`, unless there are too many."""
        if event is not None and len(self.noted) < MOST_EVENTS:
            self.noted.setdefault(event.name, event)

    def create_events(self) -> None:
        """Create the Events of all that was done. For the end: nobody may wait for it."""
        create_events(self.writers.cluster, [*self.noted.values()], self.workers, self.telemetry)
        self.noted.clear()

    def tell_repeated_failures(self) -> None:
        """Log once how often each action failed again for the same reason. For the end."""
        for (verb, target, why), times in self.failures.items():
            if times > 1:
                self.telemetry.warn(
                    "action not done again",
                    action=verb,
                    target=target,
                    because=why,
                    times=times - 1,
                )

    def carry_out(
        self,
        plan: Plan,
        *,
        held: Callable[[], bool] = lambda: True,
        enough: Callable[[], bool] = lambda: False,
    ) -> Sequence[ActionResult]:
        """Carry out a plan and return what came of every action that was begun, in the plan's order.

        Where the API asks for patience, the rest of that wave is left for another plan.

        Args:
            plan: its steps are in the order of their waves.
            held: asked before each action. False leaves it and all that follow: we may not write any
                more, for example since the Lease is lost.
            enough: asked before each action of a wave, but for its first `ACTIONS_PER_ROUND`. True leaves the
                rest of it, and what follows, to be decided anew from another observation. However late it
                is, of every wave up to there something is done: where calls are slow, pods to be
                told now come after capacity.

        Raises:
            Exception: whatever no action is meant to raise, after those begun with it are done.
        """
        results: list[ActionResult] = []
        interruptions = {report.node: report.interruption for report in plan.reports}
        for _, wave in groupby(plan.steps, key=lambda step: step.action.wave):
            # Checked before each wave: heartbeats are in an earlier
            # wave than evictions and give these pods more time.
            kept_up = _kept_up(results)
            begun, over = self._carry_out(
                [_timed(step, kept_up) for step in wave], held, enough, interruptions
            )
            results += begun
            if over:
                break
        return results

    def _carry_out(
        self,
        steps: Sequence[Step],
        held: Callable[[], bool],
        enough: Callable[[], bool],
        interruptions: Mapping[str, str],
    ) -> tuple[Sequence[ActionResult], bool]:
        """Return what came of one wave, and whether nothing may follow it.

        No action waits for those beside it: were they begun by the dozen, each dozen would last as long as its
        slowest call.
        """
        over = throttled = False

        def attempt(place: int, step: Step) -> ActionResult | None:
            """Return what came of a step; None where it was not begun."""
            nonlocal over, throttled
            # Checked right before the call: the Lease may be lost while earlier actions wait for the API server.
            if not held() or (place >= ACTIONS_PER_ROUND and enough()):
                over = True
                return None
            if throttled and place >= ACTIONS_TOGETHER:
                return None
            with self.span.child(step.action.verb, **_facts(step, interruptions)) as span:
                result = perform(step.action, self.writers)
                if result.error is not None:
                    span.fail(result.error)
            if isinstance(result.error, Throttled):
                # Threads share both flags, and only ever set them: `throttled or …` would write an old False back.
                throttled = True
            return result

        results: list[ActionResult] = []
        answers = self.workers.run([partial(attempt, n, step) for n, step in enumerate(steps)])
        for step, answer in zip(steps, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            if answer is not None:
                self._tell(step, answer)
                results.append(answer)
        return results, over

    def _tell(self, step: Step, result: ActionResult) -> None:
        action, error, overruled = step.action, result.error, result.overruled
        facts = {"action": action.verb, "target": action.target}
        if error is not None:
            failure = (action.verb, action.target, str(error))
            self.failures[failure] += 1
            if self.failures[failure] == 1:
                name = type(error).__name__
                self.telemetry.warn("action not done", **facts, error=name, because=str(error))
        elif overruled is not None:
            self.telemetry.count(Metric.BUDGETS_OVERRULED)
            self.telemetry.warn("overruled", **facts, because=overruled)
        if result.done:
            message = "was gone already" if result.gone else "acted"
            nodes = sorted(step.nodes)
            self.telemetry.log(message, **facts, because=action.reason, nodes=nodes)
        if not result.gone:
            self.note(event_of_action(action, overruled=overruled, error=error))


def _facts(step: Step, interruptions: Mapping[str, str]) -> dict[str, str]:
    """Return what a span says of a step. One that serves several interruptions names none of them."""
    facts = {"target": step.action.target}
    served = [interruptions[node] for node in step.nodes if node in interruptions]
    return {**facts, "interruption": served[0]} if len(served) == 1 else facts


def requested_pause(results: Sequence[ActionResult]) -> float:
    """Return how long an API that protects itself wants to be left alone, in seconds."""
    errors = [r.error for r in results if isinstance(r.error, Temporary)]
    return max((error.retry_after or 0.0 for error in errors), default=0.0)
