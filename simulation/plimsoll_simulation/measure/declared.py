"""What the owner has declared so far: workloads and their counts, budgets, and autoscalers.

It is declared by manifests at the start, and by `apply` and `scale` of the timeline. Nothing that
a responder does is ever declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll.adapters.kubernetes.objects import parse_budget, parse_selector
from plimsoll.domain.kubernetes import MIRROR, Budget, budget_keeps, matches
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.measure.workload_metrics import WorkloadId, WorkloadMetrics
from plimsoll_simulation.scenario.kinds import COUNTED, LISTED
from plimsoll_simulation.scenario.timeline import ScaleEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The count that a HorizontalPodAutoscaler holds a workload to, without any metrics.

    Source: k8s.io/kubernetes/pkg/controller/podautoscaler/horizontal.go: 0 switches it off.
    """

    workload: WorkloadId
    least: int
    most: int

    def clamp(self, replicas: int) -> int:
        """Return the count that a declared one comes to."""
        return max(self.least, min(replicas, self.most)) if replicas else 0


class Declared:
    """All that is declared in the clusters of a drill."""

    def __init__(self) -> None:
        self.workload_metrics: dict[WorkloadId, WorkloadMetrics] = {}
        self._budgets: dict[tuple[str, str, str], Budget] = {}
        self._autoscalers: dict[tuple[str, str, str], Held] = {}
        self._owned: defaultdict[WorkloadId, set[str]] = defaultdict(set)
        """By custom resource: the names of its Pods."""

    def declare(
        self, now: datetime, cluster: str, objects: Iterable[Mapping[str, Any]], *, measured: bool
    ) -> None:
        """Take in manifests; what declares nothing is passed over.

        Args:
            now: the time.
            cluster: where they are applied.
            objects: as plain JSON. A workload that is known and whose manifest says no `replicas`
                keeps its count, as `kubectl apply` leaves it alone.
            measured: whether time 0 has been: a new workload is measured from now on.
        """
        for body in objects:
            metadata = body["metadata"]
            key = (cluster, metadata.get("namespace", "default"), metadata["name"])
            if body["kind"] == "PodDisruptionBudget":
                self._budgets[key] = parse_budget(body)
            held = held_by(cluster, body)
            if held is not None:
                self._autoscalers[key] = held
            metrics = metrics_of(cluster, body)
            if metrics is None:
                continue
            owned = body["kind"] == "Pod" and metrics.counted
            if owned:
                self._owned[metrics.id].add(metadata["name"])
                metrics.declared = len(self._owned[metrics.id])
            known = self.workload_metrics.get(metrics.id)
            if known is None:
                self.workload_metrics[metrics.id] = metrics
                metrics.since = now if measured else None
                continue
            known.redeclare(now, metrics)
            if "replicas" in body["spec"] or owned or metrics.id[2] in LISTED:
                known.declared = metrics.declared
        self._settle(now)

    def scale(self, now: datetime, entry: ScaleEntry) -> None:
        """Take in that the owner declares another count."""
        scale = entry.scale
        workload = scale.cluster, scale.namespace, scale.kind, scale.name
        self.workload_metrics[workload].declared = scale.replicas
        self._settle(now)

    def _settle(self, now: datetime) -> None:
        """Work out counts and floors, which depend on autoscalers, budgets and all they cover."""
        held = {autoscaler.workload: autoscaler for autoscaler in self._autoscalers.values()}
        for metrics in self.workload_metrics.values():
            autoscaler = held.get(metrics.id)
            metrics.autoscaled = autoscaler is not None
            metrics.count(
                now, autoscaler.clamp(metrics.declared) if autoscaler else metrics.declared
            )
        for metrics in self.workload_metrics.values():
            covering = [b for (c, _, _), b in self._budgets.items() if covers(c, b, metrics)]
            covered = [[*self._covered(metrics.id[0], budget)] for budget in covering]
            kept = [
                budget_keeps(budget, metrics.replicas, expected=sum(one.replicas for one in all_of))
                for budget, all_of in zip(covering, covered, strict=True)
            ]
            metrics.set_floor(now, kept=max(kept, default=0), one_budget=len(covering) == 1)

    def _covered(self, cluster: str, budget: Budget) -> Iterator[WorkloadMetrics]:
        """Yield the workloads whose pods a budget of a cluster selects."""
        return (one for one in self.workload_metrics.values() if covers(cluster, budget, one))


def covers(cluster: str, budget: Budget, metrics: WorkloadMetrics) -> bool:
    """Whether a budget of a cluster selects the pods of a workload."""
    return (
        metrics.counted
        and metrics.id[:2] == (cluster, budget.ref.namespace)
        and matches(budget.selector, metrics.labels)
    )


def metrics_of(cluster: str, body: Mapping[str, Any]) -> WorkloadMetrics | None:
    """Return the account to keep of an object, or None where none is kept."""
    kind, metadata = body["kind"], body["metadata"]
    mirror = MIRROR in (metadata.get("annotations") or {})
    if kind not in COUNTED | LISTED or mirror:
        return None
    spec = body["spec"]
    rolling: Mapping[str, Any] = {}
    strategy = "RollingUpdate"
    if kind == "Deployment":
        strategy = spec.get("strategy", {}).get("type", strategy)
        rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    template = body if kind == "Pod" else spec.get("template", {})
    replicas = _parallel(spec) if kind == "Job" else spec.get("replicas", 1)
    owner = controller_of(dict(body)) if kind == "Pod" else None  # a custom resource
    kind, name = (kind, metadata["name"]) if owner is None else (owner["kind"], owner["name"])
    return WorkloadMetrics(
        id=(cluster, metadata.get("namespace", "default"), kind, name),
        selector=parse_selector(spec.get("selector", {})),
        labels=template.get("metadata", {}).get("labels", {}),
        declared=replicas,
        replicas=replicas,
        strategy=strategy,
        max_unavailable=rolling.get("maxUnavailable", "25%"),
        max_surge=rolling.get("maxSurge", "25%"),
    )


def _parallel(job: Mapping[str, Any]) -> int:
    """Return how many pods a Job runs side by side; nothing completes during a drill."""
    wanted: int = job.get("parallelism", 1)
    return 0 if job.get("suspend") else min(wanted, job.get("completions", wanted))


def held_by(cluster: str, body: Mapping[str, Any]) -> Held | None:
    """Return what a HorizontalPodAutoscaler holds, or None where the object is something else."""
    if body["kind"] != "HorizontalPodAutoscaler":
        return None
    spec = body["spec"]
    target = spec["scaleTargetRef"]
    namespace = body["metadata"].get("namespace", "default")
    return Held(
        workload=(cluster, namespace, target["kind"], target["name"]),
        least=spec.get("minReplicas", 1),
        most=spec["maxReplicas"],
    )
