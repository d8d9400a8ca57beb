"""Which Jobs would fail because pods of theirs are ended, and how their owners prevent that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from plimsoll.domain.disruptions import why_opted_out
from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.observation import leaves
from plimsoll_simulation.fake_cluster.controllers.jobs import policy_on
from plimsoll_simulation.rehearsal.live import Json, LiveCluster
from plimsoll_simulation.rehearsal.obstacles import Obstacle

_RULE: Final = "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
_SIGTERM: Final = 128 + 15
_ENDED: Final = {
    "status": {
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
        "containerStatuses": [{"state": {"terminated": {"exitCode": _SIGTERM}}}],
    }
}
"""A pod that was evicted and ends as a process does that handles no SIGTERM."""
_CONTROLLER: Final = "kubernetes.io/job-controller"
_BACKOFF_LIMIT: Final = 6
"""Kubernetes' default."""


def failing_jobs(live: LiveCluster, lost: Collection[Node]) -> Iterator[Obstacle]:
    """Yield the Jobs that would fail if their pods on these nodes are ended by evictions or PodGC."""
    jobs = live.by_name("jobs")
    for ref, ended in sorted(_ended(live, lost).items()):
        job = jobs.get((ref.namespace, ref.name))
        if job is not None and (why := _why_failed(job, ended)):
            yield Obstacle(workload=str(ref), kind="job fails", why=why, change=_change(job))


def kept_of(job: Json | None) -> dict[str, Any]:
    """Return what decides over failures of a live Job, for a Job that goes on in its place."""
    if job is None:
        return {}
    spec = job["spec"]
    kept = {
        name: spec[name] for name in ("podFailurePolicy", "podReplacementPolicy") if name in spec
    }
    return kept | {"backoffLimit": max(0, _limit(spec) - _failed(job))}


def _ended(live: LiveCluster, lost: Collection[Node]) -> Mapping[Ref, int]:
    """Return how many pods each Job would lose."""
    return Counter(
        live.seen.workload_of(pod)
        for node in lost
        for pod in live.seen.on_node.get(node.name, ())
        if pod.of_job
        and pod.deleting is None
        and leaves(pod)
        and why_opted_out(live.seen, pod) is None
    )


def _why_failed(job: Json, ended: int) -> str | None:
    spec = job["spec"]
    if spec.get("managedBy", _CONTROLLER) != _CONTROLLER:
        return None
    action = policy_on(spec, _ENDED)
    if action == "FailJob":
        return f"{ended} of its pods would be ended, and its podFailurePolicy then fails it"
    if action == "Ignore":
        return None
    each = spec.get("backoffLimitPerIndex")
    if each is not None:
        return (
            f"{ended} of its pods would be ended, and an index fails with its first failure "
            "(backoffLimitPerIndex 0)"
            if action == "FailIndex" or not each
            else None
        )
    failed, limit = _failed(job), _limit(spec)
    if failed + ended <= limit:
        return None
    return (
        f"{ended} of its pods would be ended, each is a failure, and it fails after more than {limit} "
        f"(backoffLimit; {failed} so far)"
    )


def _change(job: Json) -> str:
    """Return the line for its manifest. Rules count in their order, and need pods that are not restarted."""
    spec = job["spec"]
    if "podFailurePolicy" in spec:
        return f"as the first rule of its podFailurePolicy: {_RULE}"
    cure = f"podFailurePolicy: {{rules: [{_RULE}]}}"
    never = spec["template"]["spec"].get("restartPolicy") == "Never"
    return cure if never else f"{cure}, with restartPolicy: Never"


def _failed(job: Json) -> int:
    return int((job.get("status") or {}).get("failed") or 0)


def _limit(spec: Json) -> int:
    limit = spec.get("backoffLimit")
    return _BACKOFF_LIMIT if limit is None else int(limit)
