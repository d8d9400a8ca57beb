"""What is done to the Jobs of gangs, as data with reasons. Each step is one gang's, and may come twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from plimsoll.domain.disruptions import evicts_from
from plimsoll.domain.kubernetes import Node
from plimsoll_batch.domain.jobs.gangs import Gang, largest_first
from plimsoll_batch.domain.jobs.job_annotations import Admission, Stop, pause_after
from plimsoll_batch.domain.jobs.jobs import GangJobs, Job
from plimsoll_batch.domain.jobs.lifecycle import Action
from plimsoll_batch.domain.jobs.policies import (
    Due,
    Wait,
    called_for,
    restarted,
    waits_for,
    with_baseline,
)
from plimsoll_batch.domain.names import LEASED_TO

SOON: Final = timedelta(minutes=10)
"""An instance that goes later than that does not concern a gang yet."""
LEAD: Final = timedelta(seconds=5)
"""So long before its first pod has to stop a gang that was told is suspended: the drain evicts that pod later."""
START_SECONDS: Final = 300
"""How long the pods of a gang may take until they run, where its Jobs do not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Write the plan on every role, and then start them."""

    jobs: GangJobs
    admissions: Sequence[Admission]
    """In the order of the roles."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Start the roles that a planner left suspended when it died: the others run already."""

    jobs: GangJobs
    roles: Sequence[Job]
    admissions: Sequence[Admission]
    """In the order of these roles."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """Suspend every role that runs."""

    jobs: GangJobs
    stop: Stop
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Write on a role what its policies have to know later."""

    jobs: GangJobs
    role: Job
    admission: Admission
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRole:
    """Suspend one role; once its pods are gone it is started again by the plan of its gang."""

    jobs: GangJobs
    role: Job
    admission: Admission
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Let roles end for good, one after the other."""

    jobs: GangJobs
    roles: Sequence[Job]
    """The one that it was decided by is the last: as long as it is there, the others are ended."""
    complete: bool
    reason: str


type Upkeep = Finish | Suspend | Remember | RestartRole | End
type JobAction = Begin | Upkeep


def upkeep(
    gangs: Sequence[GangJobs],
    now: datetime,
    ends: Mapping[str, datetime],
    nodes: Sequence[Node] = (),
    beyond_quota: Collection[str] = (),
) -> Sequence[Upkeep]:
    """Return what has to be carried on, or taken back, of what was begun before.

    Args:
        gangs: all of them.
        now: the present.
        ends: what `reclaimed_at` says.
        nodes: all of them, to know which take pods.
        beyond_quota: uids of gangs that have grown beyond the quota of their queues.
    """
    staying = frozenset(node.name for node in nodes if node.staying)
    found = (
        _beyond(jobs, beyond_quota, now) or _upkeep(jobs, now, ends, staying) for jobs in gangs
    )
    return [step for step in found if step is not None]


def make_way(jobs: GangJobs, plan: str, other: Gang, why: str, now: datetime) -> Suspend:
    """Return the end of a gang that makes way for another."""
    memory = jobs.gang.stopped_for(other).made_way_for
    reason = f"makes way for {other}: {why}"
    return Suspend(
        jobs=jobs,
        stop=replace(
            _kept(jobs, plan, reason, now), made_way=other.uid, by=str(other), made_way_for=memory
        ),
        reason=reason,
    )


def taken_back(jobs: GangJobs, plan: str, why: str, now: datetime) -> Suspend:
    """Return the end of a gang of which not every role could be started in time."""
    attempts = 1 + max((r.stop.attempts for r in jobs.roles if r.stop is not None), default=0)
    pause = pause_after(attempts)
    return Suspend(
        jobs=jobs,
        stop=replace(_kept(jobs, plan, why, now), attempts=attempts, not_before=now + pause),
        reason=f"{why}; it is tried again in {pause.total_seconds():.0f} s",
    )


def reclaimed_at(nodes: Iterable[Node], now: datetime) -> Mapping[str, datetime]:
    """Return by name when nodes go, within minutes; of what is only advised, or far ahead, a gang need not know."""
    return {
        node.name: known.deadline
        for node in nodes
        if (known := node.interruption) is not None
        and known.phase == "open"
        and not known.withdrawn
        and known.deadline is not None
        and known.deadline - now < SOON
    }


def _beyond(jobs: GangJobs, beyond_quota: Collection[str], now: datetime) -> Suspend | None:
    """Return the end of a gang that uses more than it was admitted with, and more than its queue has."""
    role, plan = jobs.grown, jobs.plan
    if role is None or plan is None or jobs.gang.uid not in beyond_quota:
        return None
    why = f"{role} was raised to parallelism {role.parallelism}, for which queue {role.queue} has no quota"
    return Suspend(jobs=jobs, stop=_kept(jobs, plan, why, now), reason=why)


def _upkeep(
    jobs: GangJobs, now: datetime, ends: Mapping[str, datetime], staying: frozenset[str]
) -> Upkeep | None:
    plan = jobs.plan
    mine = [
        role for role in jobs.roles if role.admission is not None and role.admission.plan == plan
    ]
    if plan is None or any(role.bare for role in mine):  # no bare pod can be suspended
        return _policy_step(jobs, plan, now) or _left(jobs, mine, now)
    ended = next((r.stop for r in mine if r.stop is not None and r.stop.plan == plan), None)
    # First: a gang that is half suspended is neither late nor broken. It is being stopped.
    if ended is not None:  # who suspended it died before the last role
        return Suspend(jobs=jobs, stop=ended, reason=f"goes on with: {ended.why}")
    held = next((role for role in jobs.roles if role.held), None)
    if held is not None or jobs.by_hand is not None:
        why = f"{held} is held" if held is not None else f"Job {jobs.by_hand} was suspended by hand"
        return Suspend(jobs=jobs, stop=_kept(jobs, plan, why, now), reason=why)
    if lost := _broken_by(jobs, mine, ends, now) or _lost_lease(jobs, mine, staying):
        stop = replace(_kept(jobs, plan, lost, now), first=True)
        return Suspend(jobs=jobs, stop=stop, reason=lost)
    # The owner's policies come before the start of the remaining roles, which they may forbid.
    if (step := _policy_step(jobs, plan, now) or _left(jobs, mine, now)) is not None:
        return step
    # Last: each of the reasons above explains why a pod does not run.
    late = _late(jobs, mine, now)
    return None if late is None else taken_back(jobs, plan, late, now)


def _kept(jobs: GangJobs, plan: str, why: str, now: datetime) -> Stop:
    memory = jobs.gang.made_way_for
    return Stop(plan=plan, at=now, why=why, made_way_for=memory, restarts=restarted(jobs))


def _left(jobs: GangJobs, mine: Sequence[Job], now: datetime) -> Finish | None:
    """Return the start of roles of a plan that are suspended still, as far as nothing holds them."""
    there = {pod.owner for pod in jobs.pods}
    left = largest_first(
        role
        for role in mine
        if role.suspended
        and not role.active
        and role.ref not in there
        and waits_for(jobs, role) is None
    )
    if not left:
        return None
    return Finish(
        jobs=jobs,
        roles=left,
        admissions=[
            with_baseline(replace(role.admission, at=now), jobs, role)
            for role in left
            if role.admission is not None
        ],
        reason="its other roles were started already",
    )


def _policy_step(jobs: GangJobs, plan: str | None, now: datetime) -> Upkeep | None:
    """Return what the policies of a gang call for."""
    match called_for(jobs, plan, now):
        case None:
            return None
        case Wait() as found:
            return Remember(
                jobs=jobs, role=found.role, admission=found.admission, reason=found.reason
            )
        case Due() as due:
            return _carried(jobs, plan, due, now)


def _carried(jobs: GangJobs, plan: str | None, due: Due, now: datetime) -> Upkeep | None:
    action, reason, times = due.action, due.reason, restarted(jobs)
    if action in {Action.RESTART_ROLE, Action.RESTART_JOB} and times >= due.retries:
        action, reason = Action.TERMINATE_JOB, f"{reason}, but it was restarted {times} times: ends"
    others = [role for role in jobs.roles if role is not due.role]
    if action is Action.RESTART_ROLE and all(role.suspended for role in others):
        action = Action.RESTART_JOB  # nothing of the gang would run meanwhile
    match action:
        case Action.RESTART_POD:
            return None
        case Action.COMPLETE_JOB | Action.TERMINATE_JOB:
            # The role that triggered the policy ends last: if the planner
            # dies in between, the next one finds the reason again.
            last = [role for role in jobs.roles if role is due.role]
            complete = action is Action.COMPLETE_JOB
            left = [role for role in (*others, *last) if not _ending(role)]
            return End(jobs=jobs, roles=left, complete=complete, reason=reason) if left else None
        case _ if plan is None:
            return None
        case Action.ABORT_JOB:
            stop = replace(_kept(jobs, plan, reason, now), aborted=True)
            return Suspend(jobs=jobs, stop=stop, reason=reason)
        case Action.RESTART_JOB:
            pause = pause_after(times) if times else None
            stop = replace(
                _kept(jobs, plan, reason, now),
                first=True,
                restarts=times + 1,
                not_before=None if pause is None else now + pause,
            )
            return Suspend(jobs=jobs, stop=stop, reason=reason)
        case Action.RESTART_ROLE:
            was = due.role.admission
            assert was is not None  # noqa: S101 - only roles of a plan are restarted
            again = replace(
                was,
                started=False,
                sets={n: replace(each, standing=each.steering) for n, each in was.sets.items()},
                noticed=None,
                restarts=was.restarts + 1,
            )
            return RestartRole(jobs=jobs, role=due.role, admission=again, reason=reason)
        case _:
            assert_never(action)


def _ending(role: Job) -> bool:
    """Whether it was told to end already."""
    return role.completions == 0 or role.limit == timedelta(seconds=1)


def _broken_by(
    jobs: GangJobs, mine: Sequence[Job], ends: Mapping[str, datetime], now: datetime
) -> str | None:
    """Say which reclaimed node ends a gang; None where none does, or all of it can still run.

    A gang that is told runs until the first of its pods has to stop. Then all of them stop together, a moment before
    the drain of the node would evict that one alone.
    """
    there = [pod for pod in jobs.pods if pod.node in ends]
    if not any(role.leaves_whole for role in mine):
        left = sum(
            pod.phase == "Running" and pod.deleting is None and pod.node not in ends
            for pod in jobs.pods
        )
        if not any(role.told for role in mine) or left >= jobs.needs:
            return None
        there = [pod for pod in there if evicts_from(pod, ends[pod.node or ""]) - LEAD <= now]
    gone = min((pod.node or "" for pod in there), default=None)
    return None if gone is None else f"node {gone} is reclaimed"


def _lost_lease(jobs: GangJobs, mine: Sequence[Job], staying: frozenset[str]) -> str | None:
    """Say which node of a gang takes no pods any more while one of its pods needs a place.

    Pods that run go on; but a pod that is missing finds none on other nodes, which are not leased to it.
    """
    leased = [
        each.nodes
        for role in mine
        if role.admission is not None
        for name, each in role.admission.sets.items()
        if LEASED_TO in role.admission.in_template(name).labels
    ]
    gone = sorted({name for nodes in leased for name in nodes} - staying)
    placed = sum(pod.node is not None for pod in jobs.pods)
    if not gone or placed >= jobs.needs:
        return None
    return f"node {gone[0]}, which was leased to it, takes no pods any more"


def _late(jobs: GangJobs, mine: Sequence[Job], now: datetime) -> str | None:
    """Say what of a gang does not run though it had time to; None where all does, or still may.

    A pod that waits since before counts, and a Job that never made one. A pod that is missing for any
    other reason does not: it may have ended a moment ago.
    """
    if jobs.does_without:
        return None
    said = [role.start_seconds for role in mine if role.start_seconds is not None]
    patience = timedelta(seconds=max(said, default=START_SECONDS))
    waiting = [p for p in jobs.pods if p.phase == "Pending" and p.created + patience < now]
    if waiting:
        return (
            f"{len(waiting)} of its pods do not run after {patience.total_seconds():.0f} s,"
            f" for example {waiting[0].name}"
        )
    there = {pod.owner for pod in jobs.pods}
    for role in mine:
        never = not (role.suspended or role.made_pods) and role.pods and role.ref not in there
        if never and role.admission is not None and role.admission.at + patience < now:
            return f"{role} has made no pods after {patience.total_seconds():.0f} s"
    return None
