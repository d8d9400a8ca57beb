"""What a person wants to see of a running drill at one instant, as plain data.

Whoever takes a snapshot must keep the clusters from changing meanwhile: on a rig that runs by the
wall clock, under its lock. A snapshot never changes, so another thread may draw it later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from plimsoll.domain.kubernetes import MIRROR
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_cluster.conditions import (
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
)
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.node_metrics import NodeMetrics

type NodeState = Literal["starting", "standing", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsSnapshot:
    """The pods of one workload on one node."""

    workload: str
    ready: int
    starting: int
    stopping: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """One instance of the fleet: not a node yet, a node, or gone."""

    cluster: str
    name: str
    group: str
    zone: str
    capacity: str
    """`on-demand` or `spot`."""
    state: NodeState
    notice: str | None
    """The kind of its most urgent notice; `none` where it goes without notice."""
    seconds_left: float | None
    """Until it goes, or until it is a node; None where that is not decided, or over."""
    seconds_given: float | None
    """What `seconds_left` was at first: from the notice, or from the launch."""
    cordoned: bool
    pods: tuple[PodsSnapshot, ...]
    """What stands on it but for daemons, in the order of names."""
    killed: int
    """Pods that were still running when it went."""

    @property
    def interrupted(self) -> bool:
        """Whether it is still there and will not be for long."""
        return self.state != "gone" and self.notice is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSnapshot:
    """One workload: what serves, and how low it went."""

    cluster: str
    namespace: str
    kind: str
    name: str
    ready: int
    replicas: int
    """As declared; a responder's temporary changes do not show here."""
    floor: int
    lowest: int
    """The fewest Ready since time 0."""
    killed: int
    lost: float
    """Ready-replica-seconds lost so far."""
    at_zero: float
    """Seconds with none Ready so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A drill at one instant."""

    seconds: float
    """Since time 0."""
    phase: str
    """In words, what is going on."""
    nodes: tuple[NodeSnapshot, ...]
    """In the order of the scenario, the oldest of a group first."""
    workloads: tuple[WorkloadSnapshot, ...]
    """Those whose Ready pods are measured, in the order of the manifests."""
    waiting: int
    """Pods that no node was found for."""


class ShownCluster(Protocol):
    """What a snapshot reads of one cluster."""

    @property
    def name(self) -> str:
        """Its name in the scenario."""

    @property
    def fleet(self) -> Fleet:
        """Its instances."""

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object, or None."""

    def all(self, resource: str) -> Iterable[dict[str, Any]]:
        """Return all objects of a kind, named as in a path: `pods`."""

    def on_node(self, node: str) -> Iterable[dict[str, Any]]:
        """Return the pods that are bound to a node."""


def snapshot_of(
    clusters: Mapping[str, ShownCluster], measurement: Measurement, now: datetime, zero: datetime
) -> Snapshot:
    """Take a picture. The caller sees to it that nothing moves meanwhile.

    Args:
        clusters: the clusters, by name.
        measurement: what watches them.
        now: the instant; what is due by then has happened.
        zero: time 0.
    """
    nodes = tuple(
        node for cluster in clusters.values() for node in _nodes(cluster, measurement, now)
    )
    workloads = tuple(_workloads(measurement, now))
    return Snapshot(
        seconds=(now - zero).total_seconds(),
        phase=_phase(nodes, workloads),
        nodes=nodes,
        workloads=workloads,
        waiting=sum(_waiting(cluster) for cluster in clusters.values()),
    )


def _nodes(
    cluster: ShownCluster, measurement: Measurement, now: datetime
) -> Iterator[NodeSnapshot]:
    for group in cluster.fleet.groups.values():
        for machine in group.machines:
            metrics = measurement.nodes[machine.id]
            state = _state(machine)
            span = _span(machine, metrics)
            yield NodeSnapshot(
                cluster=cluster.name,
                name=machine.node,
                group=group.spec.name,
                zone=machine.zone,
                capacity=group.spec.capacity,
                state=state,
                notice=metrics.kind,
                seconds_left=span and max(0.0, (span[1] - now).total_seconds()),
                seconds_given=span and (span[1] - span[0]).total_seconds(),
                cordoned=state == "standing" and _cordoned(cluster, machine),
                pods=_pods(cluster, machine) if state == "standing" else (),
                killed=metrics.killed,
            )


def _state(machine: Machine) -> NodeState:
    if machine.gone is not None:
        return "gone"
    return "standing" if machine.joined else "starting"


def _span(machine: Machine, metrics: NodeMetrics) -> tuple[datetime, datetime] | None:
    """Return from when to when it is on its way to something: to its end, or to being a node."""
    if machine.gone is not None:
        return None
    if metrics.deadline is not None:
        return metrics.noticed or machine.launched, metrics.deadline
    return None if machine.joined else (machine.launched, machine.ready)


def _cordoned(cluster: ShownCluster, machine: Machine) -> bool:
    node = cluster.get("nodes", "", machine.node)
    return node is not None and bool(node["spec"].get("unschedulable"))


def _pods(cluster: ShownCluster, machine: Machine) -> tuple[PodsSnapshot, ...]:
    ready: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    stopping: Counter[str] = Counter()
    for pod in cluster.on_node(machine.node):
        workload = _workload_of(cluster, pod)
        if workload is None or is_finished(pod):
            continue
        if is_deleting(pod):
            stopping[workload] += 1
        elif is_ready(pod):
            ready[workload] += 1
        else:
            starting[workload] += 1
    return tuple(
        PodsSnapshot(
            workload=name, ready=ready[name], starting=starting[name], stopping=stopping[name]
        )
        for name in sorted({*ready, *starting, *stopping})
    )


def _workload_of(cluster: ShownCluster, pod: Mapping[str, Any]) -> str | None:
    """Return the name of what a pod belongs to; None for what belongs to its node."""
    metadata = pod["metadata"]
    if MIRROR in (metadata.get("annotations") or {}):
        return None
    owner = controller_of(dict(pod))
    if owner is None:
        return str(metadata["name"])
    if owner["kind"] == "DaemonSet":
        return None
    if owner["kind"] == "ReplicaSet":
        found = cluster.get("replicasets", metadata["namespace"], owner["name"])
        above = None if found is None else controller_of(found)
        owner = above or owner
    return str(owner["name"])


def _workloads(measurement: Measurement, now: datetime) -> Iterator[WorkloadSnapshot]:
    for metrics in measurement.workload_metrics.values():
        if not metrics.counted:
            continue
        cluster, namespace, kind, name = metrics.id
        ready = len(metrics.ready)
        # Added here and not by `WorkloadMetrics.advance`: a snapshot changes no metrics.
        since = timedelta(0) if metrics.since is None else now - metrics.since
        short = max(0, metrics.bound - ready)
        dark = since if short and not ready else timedelta(0)
        yield WorkloadSnapshot(
            cluster=cluster,
            namespace=namespace,
            kind=kind,
            name=name,
            ready=ready,
            replicas=metrics.replicas,
            floor=metrics.floor,
            lowest=ready if metrics.min_ready is None else min(ready, metrics.min_ready),
            killed=metrics.killed,
            lost=(metrics.lost + since * short).total_seconds(),
            at_zero=(metrics.at_zero + dark).total_seconds(),
        )


def _waiting(cluster: ShownCluster) -> int:
    return sum(
        1
        for pod in cluster.all("pods")
        if not pod["spec"].get("nodeName") and not is_deleting(pod) and not is_finished(pod)
    )


def _phase(nodes: Sequence[NodeSnapshot], workloads: Sequence[WorkloadSnapshot]) -> str:
    interrupted = [node for node in nodes if node.interrupted]
    gone = sum(node.state == "gone" for node in nodes)
    short = sum(workload.ready < workload.replicas for workload in workloads)
    serving = (
        "every workload has all its replicas"
        if not short
        else f"{_several(short, 'workload')} short of replicas"
    )
    if interrupted:
        told = f"{_several(len(interrupted), 'node')} interrupted"
        ends = [node.seconds_left for node in interrupted if node.seconds_left is not None]
        when = f", the first in {min(ends):.0f} s" if ends else ""
        return f"{told}{when}; {serving}"
    if gone:
        return f"{_several(gone, 'node')} gone; {serving}"
    return f"no node has notice yet; {serving}"


def _several(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"
