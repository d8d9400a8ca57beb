"""The one place where plans of the queues become writes to a cluster.

A gang starts in two phases. First the plan is written on every role; as long as any of that fails, nothing
has happened. Then the roles are started one by one. Whoever dies in between leaves roles that say by which
plan they are to start, and the next cycle finishes it. A role that cannot be started any more takes the
whole gang back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, assert_never

from plimsoll.domain.errors import Conflict, NotFound, Permanent, PlimsollError, Refused
from plimsoll.domain.kubernetes import (
    LONGEST_MESSAGE_CHARACTERS,
    NAMESPACE,
    ClusterEvent,
    PodDeadline,
    Ref,
)
from plimsoll.services.cluster_events import MOST_EVENTS
from plimsoll.services.ports import Telemetry, Workers
from plimsoll_batch.domain.capacity import NodeLease
from plimsoll_batch.domain.jobs import (
    Admission,
    Begin,
    End,
    Finish,
    Gang,
    GangJobs,
    Job,
    JobAction,
    NodeRequest,
    Remember,
    RestartRole,
    Stop,
    Suspend,
    largest_first,
    pod_groups_of,
    taken_back,
    waits_for,
)
from plimsoll_batch.domain.names import CONFIGURATION, NOT_LEASED
from plimsoll_batch.services.ports import QueueCluster

ATTEMPTS: Final = 4
"""How often a Job is read again that changed meanwhile: its controller writes its status beside us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one step."""

    step: JobAction
    done: bool
    error: PlimsollError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Carries out steps on one cluster, gangs side by side."""

    cluster: QueueCluster
    workers: Workers
    telemetry: Telemetry
    held: Callable[[], bool]
    """Whether the Lease is still ours."""
    events: dict[str, ClusterEvent] = field(default_factory=dict)
    """To create at the end, by name."""

    def run(self, steps: Sequence[JobAction], now: datetime) -> Sequence[Outcome]:
        """Carry out steps, each about another gang, and say what came of each."""
        answers = self.workers.run([partial(self._attempt, step, now) for step in steps])
        outcomes = []
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            outcomes.append(answer)
            self._tell(answer)
        return outcomes

    def lease(self, writes: Sequence[NodeLease], gangs: Mapping[str, GangJobs]) -> bool:
        """Lease nodes and give them back; say whether any was written. Of the others the next cycle thinks anew.

        Args:
            writes: what is to be written.
            gangs: all of them by uid: whoever is refused a node is told.
        """
        answers = self.workers.run([partial(self._lease, each) for each in writes])
        for each, answer in zip(writes, answers, strict=True):
            if isinstance(answer, Refused) and each.gang is not None:
                words = f"node {each.node.name} cannot be leased to it: {answer}"
                cause = each.gang.since.isoformat()  # once for all its nodes
                self._tell_gang(gangs[each.gang.uid], NOT_LEASED, words, cause=cause, warning=True)
            elif isinstance(answer, Exception) and not isinstance(answer, PlimsollError):
                raise answer
        return any(answer is True for answer in answers)

    def tell_deadlines(self, tellings: Sequence[PodDeadline[Gang]]) -> None:
        """Tell pods until when their gangs run; whoever is not reached is told by the next cycle."""
        answers = self.workers.run([partial(self._tell_deadline, each) for each in tellings])
        refused: dict[str, str] = {}
        for each, answer in zip(tellings, answers, strict=True):
            if isinstance(answer, PlimsollError):
                if not isinstance(answer, NotFound):
                    refused.setdefault(str(each.gang), str(answer))
            elif isinstance(answer, Exception):
                raise answer
        for gang, error in refused.items():
            self.telemetry.warn("pods not told their deadline", gang=gang, error=error)
        told = {str(each.gang): each.deadline for each in tellings}
        for gang in told.keys() - refused.keys():
            self.telemetry.log("pods told their deadline", gang=gang, deadline=told[gang])

    def _tell_deadline(self, each: PodDeadline[Gang]) -> None:
        if self.held():
            self.cluster.tell_deadline(each.pod, each.deadline)

    def _lease(self, each: NodeLease) -> bool:
        if not self.held():
            return False
        facts = {"node": each.node.name, "gang": str(each.gang or "")}
        try:
            self.cluster.lease(each.node, each.gang)
        except (Conflict, NotFound):
            return False
        except PlimsollError as error:
            self.telemetry.warn("node not leased", error=str(error), **facts)
            raise
        self.telemetry.log("node leased" if each.gang else "node given back", **facts)
        return True

    def tell_problems(self, jobs: GangJobs) -> None:
        """Warn by Events of what is wrong with a gang."""
        for words in jobs.problems:
            self._tell_gang(jobs, "QueueProblem", words, cause=words, warning=True)

    def tell_request(self, jobs: GangJobs, request: NodeRequest) -> None:
        """Tell by Events what was asked for a gang."""
        self._tell_gang(jobs, "QueueNodes", request.in_words(), cause=request.asks[0].token)

    def tell_configuration(self, words: str) -> None:
        """Warn by an Event of a wrong configuration."""
        about = Ref("ConfigMap", NAMESPACE, CONFIGURATION)
        self._note(about, CONFIGURATION, "QueueProblem", words, cause=words, warning=True)

    def _tell_gang(
        self, jobs: GangJobs, reason: str, message: str, *, cause: str, warning: bool = False
    ) -> None:
        """Tell something by an Event of each role of a gang; a new cause is a new Event."""
        for role in jobs.roles:
            self._note(role.ref, role.uid, reason, message, cause=cause, warning=warning)

    def _note(  # noqa: PLR0913 - the fields of an Event
        self, about: Ref, uid: str, reason: str, message: str, *, cause: str, warning: bool
    ) -> None:
        """Keep an Event for the end, unless there are too many."""
        event = ClusterEvent(
            about=about,
            uid=uid,
            reason=reason,
            message=message[:LONGEST_MESSAGE_CHARACTERS],
            warning=warning,
            cause=cause[:LONGEST_MESSAGE_CHARACTERS],
        )
        if len(self.events) < MOST_EVENTS:
            self.events.setdefault(event.name, event)

    def _tell(self, outcome: Outcome) -> None:
        step = outcome.step
        facts: dict[str, object] = {"gang": str(step.jobs), "because": step.reason}
        if outcome.error is not None:
            facts["error"] = str(outcome.error)
        verb, reason = _TOLD[type(step)]
        message = f"gang {verb}" if outcome.done else f"gang not {verb}"
        (self.telemetry.log if outcome.done else self.telemetry.warn)(message, **facts)
        if outcome.done:
            self._tell_gang(step.jobs, reason, step.reason, cause=_cause(step))

    def _attempt(self, step: JobAction, now: datetime) -> Outcome:
        if not self.held():
            return Outcome(step=step, done=False)
        try:
            match step:
                case Begin():
                    return self._begin(step, now)
                case Finish():
                    return self._start(step, [*zip(step.roles, step.admissions, strict=True)], now)
                case Suspend():
                    self._suspend(step.jobs.started, step.stop)
                case Remember():
                    self._write_plan(step.role, step.admission)
                case RestartRole():
                    self.cluster.restart(step.role, step.admission)
                case End():
                    self._end(step.roles, complete=step.complete)
                case _:
                    assert_never(step)
        except PlimsollError as error:
            return Outcome(step=step, done=False, error=error)
        return Outcome(step=step, done=True)

    def _begin(self, step: Begin, now: datetime) -> Outcome:
        written, admissions = [], {}
        for role, admission in zip(step.jobs.roles, step.admissions, strict=True):
            if not self.held():
                return Outcome(step=step, done=False)
            # Written on every role before the first one starts: any planner can go on by it.
            written.append(self._write_plan(role, admission))
            admissions[role.ref] = admission
        # After all plans are written: a role that waits for another one starts in a later cycle, by the same plan.
        free = [role for role in written if waits_for(step.jobs, role) is None]
        # kube-scheduler places pods as they come, and the plan placed the largest first.
        return self._start(
            step, [(role, admissions[role.ref]) for role in largest_first(free)], now
        )

    def _write_plan(self, role: Job, admission: Admission) -> Job:
        """Write a plan on a role, unless it is another than the plan was made for.

        Raises:
            Conflict: its owner changed it meanwhile.
        """
        written = self._written(
            role,
            lambda current: self.cluster.write_plan(current, admission),
            lambda fresh: not _same(role, fresh),
        )
        if written is None:
            raise _changed(role)
        return written

    def _start(
        self, step: Begin | Finish, planned: Sequence[tuple[Job, Admission]], now: datetime
    ) -> Outcome:
        """Start roles; where one can never start, suspend those of the gang that did."""
        # Before the first role: without its PodGroup kube-scheduler places no pod that names one.
        for group in pod_groups_of(step.jobs, [role for role, _ in planned]):
            try:
                self.cluster.write_pod_group(group)
            except Refused as error:
                words = str(error)
                self._tell_gang(step.jobs, "QueueProblem", words, cause=words, warning=True)
                raise
        started: list[Job] = list(step.jobs.started)
        for role, admission in planned:
            try:
                self._start_one(role, admission)
            # A Temporary error ends the attempt and leaves the plan: the next
            # cycle goes on with it, or plans anew where no role has started.
            except Permanent as error:
                why = f"{role} could not be started: {error}"
                back = taken_back(step.jobs, admission.plan, why, now)
                # Read anew: starting them changed their resourceVersion.
                # A bare pod cannot be suspended once its gate is off.
                stops = [self.cluster.job(each) for each in started if not each.bare]
                self._suspend(stops, back.stop)
                return Outcome(step=step, done=False, error=error)
            started.append(role)
        return Outcome(step=step, done=True)

    def _start_one(self, role: Job, admission: Admission) -> None:
        def over(fresh: Job) -> bool:
            if fresh.suspended and (fresh.admission != role.admission or fresh.held):
                raise _changed(role)
            return not fresh.suspended

        self._written(role, lambda current: self.cluster.start(current, admission), over)

    def _suspend(self, roles: Sequence[Job], stop: Stop) -> None:
        for role in roles:
            with suppress(NotFound):
                self._written(
                    role,
                    lambda current: self.cluster.suspend(current, stop),
                    lambda fresh: fresh.finished or fresh.suspended,
                )

    def _end(self, roles: Sequence[Job], *, complete: bool) -> None:
        for role in roles:
            with suppress(NotFound):
                self._written(
                    role,
                    lambda current: self.cluster.end(current, complete=complete),
                    lambda fresh: fresh.finished,
                )

    def _written[T](
        self, role: Job, write: Callable[[Job], T], over: Callable[[Job], bool]
    ) -> T | None:
        """Write on a Job, however often it changes beside us; None where it is over before that.

        Args:
            role: the Job as it was read.
            write: writes on the Job as it was read last.
            over: whether nothing is to be written on the Job any more; it is asked after each conflict.

        Raises:
            Conflict: the Job changes all the time.
            NotFound: it is gone.
        """
        current = role
        for _ in range(ATTEMPTS):
            try:
                return write(current)
            except Conflict:
                current = self.cluster.job(current)
                # Checked after each Conflict: somebody else may have made the same change.
                if over(current):
                    return None
        raise Conflict(f"{role} changes all the time")


def _changed(role: Job) -> Conflict:
    return Conflict(f"{role} was changed meanwhile")


def _same(planned: Job, fresh: Job) -> bool:
    """Whether a Job is still what a plan was made for, whatever its controller wrote meanwhile."""
    return (
        replace(
            fresh,
            resource_version=planned.resource_version,
            active=planned.active,
            failed=planned.failed,
            made_pods=planned.made_pods,
            pod_labels=planned.pod_labels,
        )
        == planned
    )


def _cause(step: JobAction) -> str:
    match step:
        case Begin():
            return step.admissions[0].plan
        case Finish():
            return f"{step.admissions[0].plan} {step.roles[0]} {step.admissions[0].restarts}"
        case Suspend():
            return f"{step.stop.plan} {step.stop.at.isoformat()}"
        case Remember() | RestartRole():
            return f"{step.admission.to_record()} {step.role}"
        case End():
            return f"{step.reason} {step.roles[-1].uid}"
        case _:
            assert_never(step)


_TOLD: Final[dict[type[JobAction], tuple[str, str]]] = {
    Begin: ("started", "QueueAdmitted"),
    Finish: ("started to the end", "QueueAdmitted"),
    Suspend: ("suspended", "QueueSuspended"),
    Remember: ("watched", "QueuePolicy"),
    RestartRole: ("restarted in part", "QueuePolicy"),
    End: ("ended", "QueuePolicy"),
}
"""Each action in a word, and the reason of the Events that tell it."""
