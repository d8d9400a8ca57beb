"""Observes a drill and produces its figures; it decides nothing and reads no clock.

It is fed with what an API server would show (pods and nodes as Kubernetes JSON) and with what only
the rig knows (instances that appear and vanish, requests for capacity, notices sent). So the same
code measures a cluster in process, by a call on each change, and one behind HTTP, by a watch. The
order of calls within one instant does not matter: only states that last count.

Nothing is measured before `begin`: that call is time 0. `workload_metrics.py` has the metrics of a
workload, `node_metrics.py` those of nodes and groups, `figures.py` the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from plimsoll.domain.interruptions import MARGIN
from plimsoll.domain.kubernetes import matches, names, parse_duration
from plimsoll_simulation.fake_cluster.pod_annotations import STOP
from plimsoll_simulation.measure.declared import Declared
from plimsoll_simulation.measure.figures import Figures, figures
from plimsoll_simulation.measure.history import History, Level
from plimsoll_simulation.measure.node_metrics import GroupMetrics, NodeMetrics
from plimsoll_simulation.measure.workload_metrics import (
    PodMetrics,
    WorkloadId,
    WorkloadMetrics,
    left_by_eviction,
)
from plimsoll_simulation.scenario.timeline import ScaleEntry

JITTER = timedelta(milliseconds=250)
"""On wall-clock rigs a stop is seen this much early or late; no grace period is that short."""
FORESEEN = timedelta(seconds=15)
"""Who is told less time ahead that an instance goes can save no pod of it, however soon that stops."""


@dataclass(slots=True)
class _Pods:
    """The pods of one cluster that exist, by uid."""

    known: dict[str, PodMetrics] = field(default_factory=dict)
    on_node: dict[str, set[str]] = field(default_factory=dict)


class Measurement:
    """The observer of one drill; it tells a history what it sees."""

    def __init__(self, history: History | None = None) -> None:
        self._history = history or History()
        self.started: datetime | None = None
        self._declared = Declared()
        self.nodes: dict[str, NodeMetrics] = {}
        """By instance id: a node name may come back."""
        self.groups: dict[tuple[str, str], GroupMetrics] = {}
        self.kubernetes_calls: Counter[str] = Counter()
        self.aws_calls: Counter[str] = Counter()
        self.reports: dict[str, tuple[str, ...]] = {}
        self._pods: dict[str, _Pods] = {}
        self._instance_at: dict[tuple[str, str], str] = {}
        self._stop: dict[str, timedelta] = {}

    @property
    def workload_metrics(self) -> Mapping[WorkloadId, WorkloadMetrics]:
        """The metrics of each workload."""
        return self._declared.workload_metrics

    @property
    def levels(self) -> Mapping[WorkloadId, Sequence[Level]]:
        """How each workload that is counted stood over time."""
        return self._history.levels

    # What the scenario declares.

    def add_group(
        self, cluster: str, group: str, *, capacity: str, price: float, stop: timedelta
    ) -> None:
        """Declare a node group, and how long pods of its cluster take to stop by default."""
        self.groups[cluster, group] = GroupMetrics(
            cluster=cluster, group=group, capacity=capacity, price=price
        )
        self._stop[cluster] = stop

    def declare(self, now: datetime, cluster: str, objects: Iterable[Mapping[str, Any]]) -> None:
        """Take in what manifests declare: workloads, budgets, autoscalers; the rest is passed over.

        Call it for the manifests at the start, and again for each `apply` of the timeline. A
        responder's changes are never declared.
        """
        self._declared.declare(now, cluster, objects, measured=self.started is not None)
        self._record(now)

    def scale(self, now: datetime, entry: ScaleEntry) -> None:
        """Take in that the owner declares another count."""
        self._declared.scale(now, entry)
        self._record(now)

    def begin(self, now: datetime) -> None:
        """Start to measure: every workload is fully Ready, this is time 0."""
        self.started = now
        for metrics in self.workload_metrics.values():
            metrics.begin(now)
        for group in self.groups.values():
            group.begin(now)
        self._history.begin(now, self.workload_metrics.values())

    def _record(self, now: datetime) -> None:
        for metrics in self.workload_metrics.values():
            self._history.counts(now, metrics)

    # What the API server shows.

    def observe_pod(self, now: datetime, cluster: str, pod: Mapping[str, Any]) -> None:
        """Take in a pod that was added or changed."""
        pods = self._pods.setdefault(cluster, _Pods())
        uid = pod["metadata"]["uid"]
        seen = pods.known.get(uid)
        if seen is None:
            seen = pods.known[uid] = self._meet(cluster, pod)
        if "deletionTimestamp" in pod["metadata"] and seen.leaving_since is None:
            self._leave(now, cluster, seen, pod)
        was_on, was_there = seen.node, seen.occupies
        seen.update(now, pod)
        node = self._node(cluster, seen.node)
        if node is not None and node.gone is not None:
            seen.die()  # a watch tells of it late
            if was_on is None and node.noticed is None and seen.metrics is not None:
                seen.metrics.surprised += 1  # nobody had told that it is gone
        if (was_on, was_there) != (seen.node, seen.occupies):
            self._move(now, cluster, seen, was_on if was_there else None)
        if seen.metrics is not None:
            seen.metrics.set_ready(
                now, uid, ready=seen.ready, on_demand=self._is_on_demand(cluster, seen.node)
            )
            self._history.counts(now, seen.metrics)

    def pod_removed(self, now: datetime, cluster: str, pod: Mapping[str, Any]) -> None:
        """Take in that a pod is no longer in the API; `pod` is its last state."""
        pods = self._pods.setdefault(cluster, _Pods())
        uid = pod["metadata"]["uid"]
        seen = pods.known.pop(uid, None)
        if seen is None:
            return
        if seen.leaving_since is None:
            self._leave(now, cluster, seen, pod, at_once=True)
        self._count_cut(now, cluster, seen)
        if seen.metrics is not None:
            seen.metrics.set_ready(now, uid, ready=False)
            self._history.counts(now, seen.metrics)
        if seen.occupies:
            self._move(now, cluster, seen, seen.node, removed=True)

    def observe_node(self, now: datetime, cluster: str, node: Mapping[str, Any]) -> None:
        """Take in a node that was added or changed: it may have been cordoned."""
        metrics = self._node(cluster, node["metadata"]["name"])
        if metrics is not None:
            self._history.joined(now, metrics.instance)
            if node.get("spec", {}).get("unschedulable"):
                metrics.cordon(now)

    def observe_workload(self, now: datetime, cluster: str, workload: Mapping[str, Any]) -> None:
        """Take in a workload that was added or changed: its autoscaler may have set its count."""
        metadata = workload["metadata"]
        id_ = cluster, metadata["namespace"], workload["kind"], metadata["name"]
        metrics = self.workload_metrics.get(id_)
        if metrics is not None:
            metrics.scaled = workload["spec"].get("replicas")
            self._history.counts(now, metrics)

    def _meet(self, cluster: str, pod: Mapping[str, Any]) -> PodMetrics:
        metadata, spec = pod["metadata"], pod["spec"]
        owner = next((o for o in metadata.get("ownerReferences", ()) if o.get("controller")), None)
        stop = (metadata.get("annotations") or {}).get(STOP)
        default = self._stop.get(cluster, timedelta(seconds=3))
        metrics = self._workload(cluster, metadata, owner)
        self._history.pod(metadata["uid"], metadata["name"], metrics)
        return PodMetrics(
            uid=metadata["uid"],
            metrics=metrics,
            ignored=(owner or {}).get("kind") == "DaemonSet"
            or names.MIRROR in (metadata.get("annotations") or {}),
            own_grace=timedelta(seconds=spec.get("terminationGracePeriodSeconds", 30)),
            stop=parse_duration(stop) if stop else default,
        )

    def _workload(
        self, cluster: str, metadata: Mapping[str, Any], owner: Mapping[str, Any] | None
    ) -> WorkloadMetrics | None:
        """Return the workload of a pod; for a ReplicaSet's pod, the Deployment that selects it."""
        namespace = metadata.get("namespace", "default")
        kind, name = ("Pod", metadata["name"]) if owner is None else (owner["kind"], owner["name"])
        direct = self.workload_metrics.get((cluster, namespace, kind, name))
        if direct is not None or kind != "ReplicaSet":
            return direct
        return next(
            (
                metrics
                for metrics in self.workload_metrics.values()
                if metrics.id[:3] == (cluster, namespace, "Deployment")
                and matches(metrics.selector, metadata.get("labels") or {})
            ),
            None,
        )

    def _leave(
        self,
        now: datetime,
        cluster: str,
        seen: PodMetrics,
        pod: Mapping[str, Any],
        *,
        at_once: bool = False,
    ) -> None:
        """Record when a pod's deletion began, before it counts as not Ready."""
        seen.leaving_since = now
        seen.ran = pod.get("status", {}).get("phase") == "Running"
        if at_once:
            seen.granted = timedelta(0)
        if seen.metrics is None or self.started is None or seen.killed:
            return
        metrics = self._node(cluster, pod["spec"].get("nodeName"))
        noticed = metrics is not None and metrics.noticed is not None
        seen.evicted = left_by_eviction(pod)
        seen.replaced = noticed and seen.metrics.replaced_without(seen.uid)
        seen.metrics.evicted += seen.evicted
        seen.metrics.replaced_first += seen.replaced
        if seen.evicted:
            self._history.fate(now, "evicted", seen.uid, metrics.instance if metrics else None)

    def _count_cut(self, now: datetime, cluster: str, seen: PodMetrics) -> None:
        """Count a pod that was stopped before its own grace period, and itself, were done.

        One that succeeded meanwhile was not stopped at all.
        """
        if self.started is None or not seen.ran or seen.killed or seen.ignored:
            return
        served = now - (seen.leaving_since or now)
        shortened = seen.granted is not None and seen.granted < seen.own_grace
        succeeded = seen.phase == "Succeeded"
        if shortened and not succeeded and served + JITTER < min(seen.stop, seen.own_grace):
            metrics = self._node(cluster, seen.node)
            ends = None if metrics is None else metrics.deadline
            if seen.metrics is not None:
                seen.metrics.cut_short += 1
                if metrics is not None and ends is not None:
                    seen.metrics.unforeseen_cut += not metrics.foreseen(ends, _ahead(seen))
            if metrics is not None:
                metrics.cut_short += 1
            self._history.fate(now, "cut short", seen.uid, metrics.instance if metrics else None)

    def _move(
        self,
        now: datetime,
        cluster: str,
        seen: PodMetrics,
        was_on: str | None,
        *,
        removed: bool = False,
    ) -> None:
        """Record which pods are on which node, and when a node became empty."""
        on_node = self._pods[cluster].on_node
        if seen.ignored:
            return
        if was_on is not None:
            on_node.get(was_on, set()).discard(seen.uid)
        here = seen.node if seen.occupies and not removed else None
        if here is not None:
            on_node.setdefault(here, set()).add(seen.uid)
        for name in {was_on, here} - {None}:
            metrics = self._node(cluster, name)
            if metrics is not None:
                pods = len(on_node.get(str(name), ()))
                metrics.occupy(now, pods)
                self._history.load(now, metrics.instance, pods)

    def _is_on_demand(self, cluster: str, name: str | None) -> bool:
        node = self._node(cluster, name)
        return node is not None and self.groups[cluster, node.group].capacity == "on-demand"

    def _node(self, cluster: str, name: str | None) -> NodeMetrics | None:
        if name is None:
            return None
        instance = self._instance_at.get((cluster, name))
        return self.nodes.get(instance) if instance is not None else None

    # What only the rig knows.

    def instance_started(  # noqa: PLR0913 - the names of one instance
        self, now: datetime, cluster: str, group: str, instance: str, *, node: str, zone: str
    ) -> None:
        """Take in that an instance runs, from its launch on; `node` is the name it will have."""
        if instance in self.nodes:  # it is launched again, and is measured anew
            former = self.nodes.pop(instance)
            self.nodes[f"{instance}, {former.gone}"] = former
            for uid in self._pods[cluster].on_node.get(node, ()):
                seen = self._pods[cluster].known[uid]
                if seen.leaving_since is None:  # no kubelet starts a stopping pod again
                    seen.killed = False
        self.nodes[instance] = NodeMetrics(
            cluster=cluster, name=node, instance=instance, group=group, zone=zone
        )
        self._instance_at[cluster, node] = instance
        self._history.launched(now, cluster, group, instance, node)
        self.groups[cluster, group].start(now, instance)

    def capacity_asked(self, now: datetime, cluster: str, group: str) -> None:
        """Take in that somebody asked for more nodes of a group, whether or not it was granted."""
        self.groups[cluster, group].ask(now)

    def noticed(
        self, now: datetime, instance: str, notice: str, *, deadline: datetime | None
    ) -> None:
        """Take in that a notice about an instance was sent, and when the instance will go."""
        metrics = self.nodes[instance]
        pods = self._pods.get(metrics.cluster, _Pods())
        if notice != "none":
            self._surprise(metrics, pods)
        metrics.notice(now, notice, deadline, pods=len(pods.on_node.get(metrics.name, ())))

    def notice_lost(self, instance: str) -> None:
        """Take in that the last notice about an instance never arrives."""
        self.nodes[instance].said.pop()

    def gone(self, now: datetime, instance: str) -> None:
        """Take in that an instance vanished, before its pods or node are removed from the API."""
        metrics = self.nodes[instance]
        if metrics.gone is not None:
            return
        pods = self._pods.get(metrics.cluster, _Pods())
        self._surprise(metrics, pods)
        for uid in sorted(pods.on_node.get(metrics.name, ())):
            seen = pods.known[uid]
            seen.die()
            if seen.metrics is not None:
                seen.metrics.set_ready(now, uid, ready=False)
                self._history.counts(now, seen.metrics)
            if seen.running and not seen.killed and not seen.stopped_by(now):
                seen.killed = True
                if self.started is not None:
                    metrics.killed += 1
                    self._history.fate(now, "killed", uid, instance)
                    if seen.metrics is not None:
                        seen.metrics.kill(seen)
                        seen.metrics.unforeseen_killed += not metrics.foreseen(now, _ahead(seen))
        metrics.gone = now
        self.groups[metrics.cluster, metrics.group].stop(now, instance)

    def _surprise(self, node: NodeMetrics, pods: _Pods) -> None:
        """Count the pods that came to a node before anybody could know that it goes."""
        if node.noticed is not None or self.started is None:
            return
        for uid in pods.on_node.get(node.name, ()):
            seen = pods.known[uid]
            if seen.metrics is not None and seen.bound is not None:
                seen.metrics.surprised += seen.bound > self.started

    def kubernetes_call(self, verb: str) -> None:
        """Count one call to the Kubernetes API by the responder."""
        if self.started is not None:
            self.kubernetes_calls[verb] += 1

    def aws_call(self, operation: str) -> None:
        """Count one call to AWS by the responder, for example `autoscaling:LaunchInstances`."""
        if self.started is not None:
            self.aws_calls[operation] += 1

    def report(self, interruption: str, reasons: Iterable[str]) -> None:
        """Keep what the responder reported of an interruption; the last report counts."""
        self.reports[interruption] = tuple(reasons)

    # What comes out.

    def not_ready(self) -> list[str]:
        """Return in words which workloads are not fully Ready at their declared count.

        Jobs and bare Pods are waited for before time 0, and not any more after it.
        """
        waited_for = (
            t for t in self.workload_metrics.values() if t.counted or self.started is None
        )
        return [text for metrics in waited_for if (text := metrics.lacking())]

    def restless(self) -> list[str]:
        """Return in words what is not settled: pods, and interruptions that have a deadline."""
        words = self.not_ready()
        for cluster, pods in self._pods.items():
            known = [pod for pod in pods.known.values() if not pod.ignored]
            pending = sum(pod.pending for pod in known)
            # One that has ended and is still there waits for a finalizer.
            leaving = sum(pod.leaving_since is not None and pod.occupies for pod in known)
            words += [f"{pending} pods of {cluster} are Pending"] if pending else []
            words += [f"{leaving} pods of {cluster} are Terminating"] if leaving else []
        words += [
            f"{node.name} has notice to go and is still there"
            for node in self.nodes.values()
            if node.deadline is not None and node.gone is None
        ]
        return words

    def figures(self, now: datetime, *, settled: bool, spot_price: float) -> Figures:
        """Return the figures of the drill up to now. It may go on and be asked again."""
        if self.started is None:
            raise ValueError("a drill that has not begun has no figures")
        for metrics in self.workload_metrics.values():
            metrics.advance(now)
            metrics.look()
        return figures(
            now - self.started,
            settled=settled,
            zero=self.started,
            end=now,
            workload_metrics=self.workload_metrics.values(),
            nodes=self.nodes.values(),
            groups=self.groups.values(),
            spot_price=spot_price,
        )


def _ahead(pod: PodMetrics) -> timedelta:
    """Return how long ahead an end has to be told, for this pod to stop in time if it is told at once."""
    return max(FORESEEN, min(pod.stop, pod.own_grace) + MARGIN)
