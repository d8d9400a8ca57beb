"""The policies of a role, divided among the Job controller, which does what native fields say, and the planner.

A rule of a Job's podFailurePolicy stands for a policy on failed or evicted pods that restarts the pod or
terminates at once. What has a timeout, or counts, or is done to more than the Job, is the planner's: there
the Job controller counts the pod, and the limit is so high that it ends nothing before.

https://kubernetes.io/docs/tasks/job/pod-failure-policy/
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll_batch.domain.jobs import Action, Event, Lifecycle, Policy
from plimsoll_cli.batch.submission.job_file import NATIVE, JobFile, RoleEntry

FAILURES_A_RUN: Final = 10
"""Failures of each pod that the Job controller is given in each run, before the planner has acted."""
MOST_RULES: Final = 20
_ON_PODS: Final = (Event.POD_EVICTED, Event.POD_FAILED)
_ENDS_ALL: Final = Policy(event=Event.ROLE_FAILED, action=Action.TERMINATE_JOB)
_IGNORE_DISRUPTION: Final = Policy(event=Event.POD_EVICTED, action=Action.RESTART_POD)


def lifecycle_of(job: JobFile, role: RoleEntry) -> Lifecycle:
    """Return what the planner has to know of a role.

    A role that has failed for good ends the others, unless a policy says what becomes of them.
    """
    policies = _policies(job, role)
    if not any(each.fits(Event.ROLE_FAILED) for each in policies):
        policies.append(_ENDS_ALL)
    return Lifecycle(
        policies=tuple(policies), retries=job.restarts, after=role.after, after_gangs=job.after
    )


def limits(job: JobFile, role: RoleEntry) -> dict[str, Any]:
    """Return the fields of a Job that say when it fails."""
    policies = [*_policies(job, role), _IGNORE_DISRUPTION]
    rules = [
        rule
        for event in _ON_PODS  # a pod that was evicted ends with a code, too
        for policy in policies
        if policy.fits(event)
        for rule in [_rule(event, policy)]
    ]
    fields: dict[str, Any] = {"podFailurePolicy": {"rules": rules[:MOST_RULES]}}
    if role.retries is not None:
        return fields | {"backoffLimitPerIndex": role.retries, "maxFailedIndexes": 0}
    if any(each.fits(event) and not _native(each) for each in policies for event in _ON_PODS):
        fields["backoffLimit"] = role.pods * FAILURES_A_RUN * (job.restarts + 1)
    return fields


def _policies(job: JobFile, role: RoleEntry) -> list[Policy]:
    return [each.policy() for each in (*role.policies, *job.policies)]


def _native(policy: Policy) -> bool:
    return policy.action in NATIVE and policy.times == 1 and not policy.timeout


def _rule(event: Event, policy: Policy) -> dict[str, Any]:
    action = "Count"
    if _native(policy) and policy.action is Action.TERMINATE_JOB:
        action = "FailJob"
    elif _native(policy) and event is Event.POD_EVICTED:
        action = "Ignore"
    if event is Event.POD_EVICTED:
        return {
            "action": action,
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
    codes, operator = policy.exit_codes, "In"
    if not codes:
        codes, operator = policy.except_codes | {0}, "NotIn"
    return {"action": action, "onExitCodes": {"operator": operator, "values": sorted(codes)}}
