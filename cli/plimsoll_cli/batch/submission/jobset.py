"""A JobSet read as a job of several roles: each of its Jobs is a role, under the host name that JobSet gives it.

Nothing that it asks for is dropped in silence: what has no counterpart is refused by name, labels and annotations
among it. JobSet's own labels are not written on pods.

https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.documents import Strict, did_you_mean, told, validated
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import MOST_ROLES

KIND: Final = "JobSet"
_LABELS: Final = {names.QUEUE}
_ANNOTATIONS: Final = {
    names.PRIORITY,
    names.TOPOLOGY,
    names.START_SECONDS,
    names.ON_INTERRUPTION,
    "kubectl.kubernetes.io/last-applied-configuration",
}
_CURES: Final = {
    "alpha.jobset.sigs.k8s.io/exclusive-topology": (
        f"no rule keeps other gangs out of a domain: {names.TOPOLOGY}: required=LABEL keeps the gang in one, and"
        f" {names.LEASE_NODES} on Jobs takes whole nodes"
    ),
    "kueue.x-k8s.io/queue-name": f"write the label {names.QUEUE}",
    "kueue.x-k8s.io/priority-class": f"write the annotation {names.PRIORITY}",
}
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_STATES: Final = {"Ready": "Ready", "Complete": "Completed"}


class _Metadata(Strict):
    """What the API server added is not read."""

    model_config = ConfigDict(extra="ignore")
    name: str = ""
    generate_name: str = ""
    namespace: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class _Nothing(Strict):
    """An object that says nothing."""

    creation_timestamp: None = None


class _Network(Strict):
    enable_dns_hostnames: Annotated[Literal[True], Field(alias="enableDNSHostnames")] = True
    publish_not_ready_addresses: Literal[True] = True


class _JobSpec(Strict):
    parallelism: int = 1
    completions: int | None = None
    completion_mode: Literal["Indexed"] = "Indexed"
    backoff_limit: Annotated[int, Field(ge=0)] = 6
    backoff_limit_per_index: int | None = None
    active_deadline_seconds: int | None = None
    template: dict[str, Any]


class _JobTemplate(Strict):
    spec: _JobSpec
    metadata: _Nothing = _Nothing()


class _DependsOn(Strict):
    name: str
    status: Literal["Ready", "Complete"]


class _ReplicatedJob(Strict):
    name: str
    replicas: Annotated[int, Field(ge=1, le=MOST_ROLES)] = 1
    template: _JobTemplate
    depends_on: list[_DependsOn] = Field(default_factory=list)

    def roles(self) -> list[str]:
        """Return the names of its Jobs, as roles."""
        return [f"{self.name}-{index}" for index in range(self.replicas)]


class _SuccessPolicy(Strict):
    operator: Literal["All", "Any"]
    target_replicated_jobs: list[str] = Field(default_factory=list)


class _FailurePolicy(Strict):
    max_restarts: Annotated[int, Field(ge=0)] = 0


class _StartupPolicy(Strict):
    startup_policy_order: Literal["AnyOrder", "InOrder"] = "AnyOrder"


class _Spec(Strict):
    replicated_jobs: Annotated[list[_ReplicatedJob], Field(min_length=1, max_length=MOST_ROLES)]
    network: _Network = _Network()
    success_policy: _SuccessPolicy = _SuccessPolicy(operator="All")
    failure_policy: _FailurePolicy = _FailurePolicy()
    startup_policy: _StartupPolicy = _StartupPolicy()
    suspend: bool = False
    ttl_seconds_after_finished: int | None = None


class _JobSet(Strict):
    api_version: Literal["jobset.x-k8s.io/v1alpha2"]
    kind: Literal["JobSet"]
    metadata: _Metadata
    spec: _Spec


def job_of(document: Any) -> dict[str, Any]:
    """Return what a JobSet says as a file of ours says it.

    Raises:
        BadInput: it is wrong, or asks for what has no counterpart; every field is named.
    """
    found = validated(_JobSet, document)
    spec, meta = found.spec, found.metadata
    problems = [*_unread(meta)]
    if problems:
        raise BadInput(told(problems))
    limits = {each.template.spec.active_deadline_seconds for each in spec.replicated_jobs}
    if len(limits) > 1:
        raise BadInput("activeDeadlineSeconds must be the same in all replicatedJobs")
    notes = meta.annotations
    return {
        "name": meta.name or meta.generate_name + _suffix(),
        "namespace": meta.namespace,
        "queue": meta.labels.get(names.QUEUE),
        "priority": notes.get(names.PRIORITY),
        "topology": notes.get(names.TOPOLOGY),
        "startSeconds": notes.get(names.START_SECONDS),
        "onInterruption": notes.get(names.ON_INTERRUPTION),
        "timeLimitSeconds": limits.pop(),
        "ttlSeconds": spec.ttl_seconds_after_finished,
        "restarts": spec.failure_policy.max_restarts,
        "roles": [
            role for number in range(len(spec.replicated_jobs)) for role in _roles(spec, number)
        ],
    }


def _unread(meta: _Metadata) -> Iterator[str]:
    """Say what of the metadata would be dropped, and what to write instead."""
    if not (meta.name or meta.generate_name):
        yield "metadata.name: is missing"
    read = {"labels": (meta.labels, _LABELS), "annotations": (meta.annotations, _ANNOTATIONS)}
    for kind, (said, known) in read.items():
        for key in said:
            if key in known:
                continue
            cure = _CURES.get(key) or (
                f"is not carried over{did_you_mean(key, sorted(known))}; leave it out, or write it on the pod templates"
            )
            yield f"metadata.{kind}: {key}: {cure}"


def _suffix() -> str:
    """Return what makes a generated name unique, as the API server does."""
    return "".join(secrets.choice(_LETTERS) for _ in range(5))


def _roles(spec: _Spec, number: int) -> list[dict[str, Any]]:
    each = spec.replicated_jobs[number]
    job = each.template.spec
    if job.completions not in {None, job.parallelism}:
        raise BadInput(f"{each.name}: completions must be as many as parallelism")
    policies = _on_failure(spec, job) + _on_success(spec, each)
    said = {
        "pods": job.parallelism,
        "template": job.template,
        "retries": job.backoff_limit_per_index,
        "policies": policies,
        "after": _after(spec, number),
    }
    return [{"name": name, **said} for name in each.roles()]


def _on_failure(spec: _Spec, job: _JobSpec) -> list[dict[str, Any]]:
    """A Job that fails restarts the JobSet as often as it may be, and fails it then."""
    if job.backoff_limit_per_index is not None:
        if spec.failure_policy.max_restarts:
            raise BadInput(
                "backoffLimitPerIndex with maxRestarts: a Job that has failed is not created anew here;"
                " use backoffLimit"
            )
        return []
    action = "RestartJob" if spec.failure_policy.max_restarts else "TerminateJob"
    return [{"event": "Any", "action": action, "times": job.backoff_limit + 1}]


def _on_success(spec: _Spec, each: _ReplicatedJob) -> list[dict[str, Any]]:
    policy = spec.success_policy
    targets = policy.target_replicated_jobs
    complete = [{"event": "RoleCompleted", "action": "CompleteJob"}]
    if policy.operator == "Any":
        return complete if not targets or each.name in targets else []
    if not targets or {*targets} == {job.name for job in spec.replicated_jobs}:
        return []
    if len(targets) > 1 or any(j.name in targets and j.replicas > 1 for j in spec.replicated_jobs):
        raise BadInput("successPolicy: All of several Jobs, but not of all, has no counterpart")
    return complete if each.name in targets else []


def _after(spec: _Spec, number: int) -> dict[str, str]:
    by_name = {job.name: job for job in spec.replicated_jobs}
    each = spec.replicated_jobs[number]
    found: dict[str, str] = {}
    if spec.startup_policy.startup_policy_order == "InOrder" and number:
        found = dict.fromkeys(spec.replicated_jobs[number - 1].roles(), "Ready")
    for other in each.depends_on:
        if other.name not in by_name:
            raise BadInput(f"{each.name}: dependsOn: there is no replicatedJob {other.name}")
        found |= dict.fromkeys(by_name[other.name].roles(), _STATES[other.status])
    return found
