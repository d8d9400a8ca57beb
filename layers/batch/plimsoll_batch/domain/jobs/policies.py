"""What the policies of a gang's roles call for: decided from what its Jobs count, and from their failed pods.

A plan writes on each role how many failures its Job had counted when the role was started; what it counts
beyond that has happened since. A failed pod that is still there says with which code; one that is gone
was deleted before it ended. So nothing depends on clocks, and an event that is seen twice is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll_batch.domain.jobs.job_annotations import Admission
from plimsoll_batch.domain.jobs.jobs import FailedPod, GangJobs, Job
from plimsoll_batch.domain.jobs.lifecycle import (
    COMPLETED,
    FINAL,
    READY,
    Action,
    Event,
    Lifecycle,
    Policy,
)

SETTLING: Final = timedelta(seconds=2)
"""A failure that no pod explains may be one whose pod was not read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An action that a policy demands now."""

    role: Job
    """The role that the event happened to."""
    action: Action
    retries: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What has to be remembered of a role, since its policy waits for something, or has waited."""

    role: Job
    admission: Admission
    reason: str


def called_for(jobs: GangJobs, plan: str | None, now: datetime) -> Due | Wait | None:
    """Return what the policies of a gang call for; None where they call for nothing yet.

    Args:
        jobs: the gang.
        plan: by which it runs; None where it does not.
        now: the present.
    """
    for role in jobs.roles:
        if plan is not None and role.plan == plan and role.lifecycle is not None:
            found = _of_pods(role, role.lifecycle, jobs, now)
            if found is not None:
                return found
    for role in jobs.finished:
        if role.lifecycle is not None and role.admission is not None and jobs.roles:
            due = _of_role(role, role.lifecycle)
            if due is not None:
                return due
    return None


def with_baseline(admission: Admission, jobs: GangJobs, role: Job) -> Admission:
    """Return an admission that says what has happened to a role so far: only what comes then counts."""
    return replace(admission, failed=role.failed, seen=len(_failed(jobs, role)), noticed=None)


def restarted(jobs: GangJobs) -> int:
    """Return how often its policies have restarted a gang, or a role of it in this run."""
    before = max((r.stop.restarts for r in jobs.roles if r.stop is not None), default=0)
    return before + sum(r.admission.restarts for r in jobs.roles if r.admission is not None)


def waits_for(jobs: GangJobs, role: Job) -> str | None:
    """Return the role of its gang that another is started after; None where it may be started."""
    after = role.lifecycle.after if role.lifecycle is not None else {}
    complete = {each.role for each in jobs.finished if not each.failure}
    for name, state in after.items():
        other = next((each for each in jobs.roles if each.role == name), None)
        ready = other is not None and state == READY and _whole(jobs, other, ready=True)
        if not ready and name not in complete:
            return name
    return None


def state_of(all_roles: Sequence[Job], jobs: GangJobs | None) -> str:
    """Return what others that wait for a gang have to know of it.

    Args:
        all_roles: its Jobs.
        jobs: the gang; None where all of them are finished.
    """
    if any(role.failure for role in all_roles):
        return "Failed"
    if jobs is None:
        return COMPLETED
    return READY if jobs.plan is not None and not jobs.starting else "Waiting"


def gates_of_gangs(jobs: GangJobs, states: Mapping[tuple[str, str], str]) -> list[str]:
    """Say which gangs another waits for, that are not yet as far."""
    found = []
    namespace = jobs.gang.namespace
    waits = {k: v for r in jobs.roles if r.lifecycle for k, v in r.lifecycle.after_gangs.items()}
    for name, wanted in waits.items():
        state = states.get((namespace, name))
        if state in {COMPLETED, wanted}:
            continue
        how = {None: "is not there", "Failed": "has failed"}.get(state, f"is not {wanted} yet")
        found.append(f"it waits for {namespace}/{name}, which {how}")
    return found


def contradictions(roles: Sequence[Job], finished: Sequence[Job]) -> list[str]:
    """Say what of a gang's policies cannot be carried out."""
    found = []
    names = {role.role for role in (*roles, *finished)}
    after = {r.role: r.lifecycle.after for r in roles if r.lifecycle is not None}
    for role, others in after.items():
        found += [
            f"role {role} waits for role {name}, which is not there"
            for name in others
            if name not in names
        ]
    if circle := _circle(after):
        found.append(f"roles wait for each other: {', '.join(circle)}")
    completes = any(
        policy.action is Action.COMPLETE_JOB
        for role in roles
        if role.lifecycle is not None
        for policy in role.lifecycle.policies
    )
    found += [
        f"{role}: CompleteJob needs completionMode Indexed"
        for role in roles
        if completes and not role.indexed
    ]
    return found


def _circle(after: Mapping[str, Iterable[str]]) -> list[str]:
    """Return roles that wait for each other, if any do."""
    left = {role: {*others} & after.keys() for role, others in after.items()}
    while free := {role for role, others in left.items() if not others}:
        left = {role: others - free for role, others in left.items() if role not in free}
    return sorted(left)


def _of_pods(role: Job, life: Lifecycle, jobs: GangJobs, now: datetime) -> Due | Wait | None:
    was = role.admission
    if was is None or role.failed <= was.failed:
        return None
    pods = _failed(jobs, role)[was.seen :]
    events = [_event(pod) for pod in pods]
    gone = role.failed - was.failed - len(pods)
    events += [(Event.POD_EVICTED, None)] * max(0, gone)
    matched: Counter[Policy] = Counter()
    for event, code in events:
        policy = next((p for p in life.policies if p.fits(event) and p.fits_code(code)), None)
        if policy is not None:
            matched[policy] += 1
    for policy in life.policies:
        if matched[policy] < policy.times or policy.action is Action.RESTART_POD:
            continue
        reason = f"{_told(role, policy, matched[policy], events)}: {policy.action}"
        patience = max(policy.timeout, SETTLING if gone > 0 else timedelta())
        if patience and was.noticed is None:
            again = f"{reason} in {patience.total_seconds():.0f} s, unless it is whole by then"
            return Wait(role=role, admission=replace(was, noticed=now), reason=again)
        if patience and was.noticed is not None and now < was.noticed + patience:
            return None
        if policy.timeout and _whole(jobs, role):
            return Wait(
                role=role, admission=with_baseline(was, jobs, role), reason=f"{role} is whole again"
            )
        return Due(role=role, action=policy.action, retries=life.retries, reason=reason)
    return None


def _of_role(role: Job, life: Lifecycle) -> Due | None:
    event = Event.ROLE_FAILED if role.failure else Event.ROLE_COMPLETED
    policy = next((each for each in life.policies if each.fits(event)), None)
    if policy is None or policy.action is Action.RESTART_POD:
        return None
    action = policy.action if policy.action in FINAL else Action.TERMINATE_JOB
    state = "has failed for good" if role.failure else "is complete"
    return Due(
        role=role, action=action, retries=life.retries, reason=f"role {role.role} {state}: {action}"
    )


def _failed(jobs: GangJobs, role: Job) -> Sequence[FailedPod]:
    """Return a role's failed pods, those that ended first before others."""
    mine = [pod for pod in jobs.failed if pod.owner == role.ref]
    return sorted(mine, key=lambda pod: (pod.ended, pod.name))


def _event(pod: FailedPod) -> tuple[Event, int | None]:
    return (Event.POD_EVICTED, None) if pod.disrupted else (Event.POD_FAILED, pod.code)


def _whole(jobs: GangJobs, role: Job, *, ready: bool = False) -> bool:
    runs = sum(
        pod.phase == "Running" and pod.deleting is None and (pod.ready or not ready)
        for pod in jobs.pods
        if pod.owner == role.ref
    )
    return not role.suspended and runs >= role.pods


def _told(role: Job, policy: Policy, count: int, events: Sequence[tuple[Event, int | None]]) -> str:
    codes = sorted({code for _, code in events if code is not None and policy.fits_code(code)})
    by_code = f" with exit code {', '.join(map(str, codes))}" if codes else ""
    what = "evicted" if policy.event is Event.POD_EVICTED else "lost"
    return f"{count} pods of role {role.role} {'failed' + by_code if codes else 'were ' + what}"
