"""A job of several roles as objects of Kubernetes: a Job for each role, and the Service that names their pods.

What a native field says is said there: retries are limits of the Job by index, the time limit is its
deadline, success its success policy; a pod that is evicted or preempted does not count as a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from plimsoll_batch.domain import names
from plimsoll_cli.batch.submission import frameworks
from plimsoll_cli.batch.submission.frameworks import Json
from plimsoll_cli.batch.submission.job_file import JobFile, RoleEntry
from plimsoll_cli.batch.submission.policies import lifecycle_of, limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What is created for one job."""

    jobs: Sequence[Json]
    others: Sequence[Json]
    """They are to be owned by the Jobs, and go with them."""


def manifests(job: JobFile) -> Manifests:
    """Return what is created for a job.

    Raises:
        BadInput: what it asks for does not fit into objects of Kubernetes.
    """
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.name, "labels": {names.GANG: job.name}},
        "spec": {
            "clusterIP": "None",
            "selector": {names.GANG: job.name},
            "publishNotReadyAddresses": True,  # roles find each other before they are ready
        },
    }
    others = [service]
    if job.framework.mpi is not None:
        text = frameworks.host_file(job, job.framework.mpi)
        others.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _hosts(job), "labels": {names.GANG: job.name}},
                "data": {"hostfile": text},
            }
        )
    return Manifests(jobs=[_job(job, role) for role in job.roles], others=others)


def _job(job: JobFile, role: RoleEntry) -> Json:
    spec: Json = {
        "completionMode": "Indexed",
        "completions": role.pods,
        "parallelism": role.pods,
        "podReplacementPolicy": "Failed",  # two pods of one index would have one host name
        **limits(job, role),
        "template": _template(job, role),
    }
    if role.succeeds_with is not None:
        spec["successPolicy"] = {"rules": [{"succeededCount": role.succeeds_with}]}
    if job.time_limit_seconds is not None:
        spec["activeDeadlineSeconds"] = job.time_limit_seconds
    if job.ttl_seconds is not None:
        spec["ttlSecondsAfterFinished"] = job.ttl_seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{job.name}-{role.name}",
            "labels": {names.ROLE: role.name},
            "annotations": _annotations(job, role),
        },
        "spec": spec,
    }


def _annotations(job: JobFile, role: RoleEntry) -> Mapping[str, str]:
    said = {
        names.TOPOLOGY: job.topology,
        names.START_SECONDS: job.start_seconds,
        names.ON_INTERRUPTION: job.on_interruption,
        names.LIFECYCLE: lifecycle_of(job, role).to_record(),
    }
    return {name: str(value) for name, value in said.items() if value is not None}


def _template(job: JobFile, role: RoleEntry) -> Json:
    template = deepcopy(role.template)
    metadata = template.setdefault("metadata", {})
    marks = {names.GANG: job.name, names.ROLE: role.name}
    metadata["labels"] = {**(metadata.get("labels") or {}), **marks}
    spec = template["spec"]
    spec |= {"restartPolicy": "Never", "subdomain": job.name}
    more = frameworks.environment(job, role)
    for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
        own = container.get("env") or []
        theirs = {each.get("name") for each in own}
        container["env"] = [*(each for each in more if each["name"] not in theirs), *own]
    mpi = job.framework.mpi
    if mpi is not None and role.name == mpi.launcher:
        volume = {"name": "plimsoll-hosts", "configMap": {"name": _hosts(job)}}
        spec["volumes"] = [*(spec.get("volumes") or ()), volume]
        mount = {"name": "plimsoll-hosts", "mountPath": frameworks.HOSTS, "readOnly": True}
        for container in spec["containers"]:
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    return template


def _hosts(job: JobFile) -> str:
    return f"{job.name}-hosts"
