"""The half of the Cluster Autoscaler that removes nodes; `autoscaler` of a cluster is the half that adds them.

A node is unneeded while the pods on it request less than half of it and fit on other nodes, and
nothing keeps it: a bare pod, a pod of kube-system without a budget, or a budget that lets no pod
go. After ten minutes of that it is tainted, drained and terminated; all that are empty at once, of
others one after the other. Sources, with the flags' defaults:
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md and
cluster-autoscaler/core/scaledown/actuation/drain.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import KUBE_SYSTEM, SAFE_TO_EVICT, Node, Pod
from plimsoll.domain.observation import Observation
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.rigs.simulated.autoscaler import in_process
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drain, Drainer
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import Json
from plimsoll_simulation.rigs.simulated.other_controllers.scale_in import (
    budgets_of,
    fit_elsewhere,
    movable,
)
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster

TAINT: Final = "ToBeDeletedByClusterAutoscaler"
UNNEEDED: Final = timedelta(minutes=10)
"""--scale-down-unneeded-time and --scale-down-delay-after-add."""
USED: Final = 0.5
"""--scale-down-utilization-threshold."""
RETRY: Final = timedelta(seconds=10)
"""EvictionRetryTime."""
GIVES_UP: Final = timedelta(minutes=2)
"""--max-pod-eviction-time."""
API_SECONDS: Final = 0.02
GROWS: Final = frozenset({"asg", "eks-nodegroup"})


@dataclass(slots=True)
class ClusterAutoscaler(Drainer[SimulatedRigCluster]):
    """Removes nodes of Auto Scaling groups, never the last one of a group."""

    api: KubernetesCluster = field(init=False)
    since: dict[str, datetime] = field(default_factory=dict)
    """Name of an unneeded node -> since when."""

    def __post_init__(self) -> None:
        """Prepare to observe."""
        self.api = in_process(self.rig_cluster, self.clock, API_SECONDS).api

    @override
    def chosen(self) -> Iterator[Machine]:
        try:
            seen = self.api.observe()
        except Temporary:
            return
        now = self.clock.now()
        unneeded = {node.name: node for node in seen.nodes if self._unneeded(seen, node)}
        self.since = {name: self.since.get(name, now) for name in unneeded}
        added = max((m.ready for m in self.rig_cluster.fleet.alive() if m.joined), default=now)
        busy = any(d.machine.gone is None and d.emptied is None for d in self.drains.values())
        if any(pod.pending for pod in seen.pods) or now < added + UNNEEDED:
            return
        for name, since in self.since.items():
            machine = self.rig_cluster.fleet.on_node(name)
            if machine is None or now < since + UNNEEDED or self._last(machine):
                continue
            if movable(seen, unneeded[name]):
                if busy:
                    continue
                busy = True
            yield machine

    @override
    def mark(self, node: Json) -> Json | None:
        taints = look(node, "spec", "taints", default=()) or ()
        if any(taint["key"] == TAINT for taint in taints):
            return None
        value = f"{self.clock.now().timestamp():.0f}"
        mark = {"key": TAINT, "value": value, "effect": "NoSchedule"}
        return {"spec": {"taints": [*taints, mark]}}

    @override
    def pause(self, refused: int) -> timedelta:
        return RETRY

    @override
    def advance(self, drain: Drain) -> None:
        if drain.emptied is None and drain.began + GIVES_UP < self.clock.now():
            name = drain.machine.node
            node = self.rig_cluster.get("nodes", "", name)
            if any(map(drain.refused.get, drain.again)) and node is not None:
                taints = look(node, "spec", "taints", default=()) or ()
                kept = [taint for taint in taints if taint["key"] != TAINT]
                self.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": kept}})
                del self.drains[drain.machine.id, drain.machine.launches]
                self.since.pop(name, None)
                return
        super(ClusterAutoscaler, self).advance(drain)

    @override
    def after(self, drain: Drain) -> None:
        drain.machine.ended_by_owner = True
        self.rig_cluster.fleet.end(drain.machine.id, self.clock.now(), decrement=True)
        self.clock.touch(self.rig_cluster.fleet)

    def _last(self, machine: Machine) -> bool:
        return len(self.rig_cluster.fleet.group(machine.group.name).alive) <= 1

    def _unneeded(self, seen: Observation, node: Node) -> bool:
        machine = self.rig_cluster.fleet.on_node(node.name)
        if machine is None or machine.group.kind not in GROWS or not node.ready:
            return False
        pods = movable(seen, node)
        whole = node.allocatable
        used = sum(p.scheduling.requests.cpu for p in pods) / (whole.cpu or 1)
        used = max(used, sum(p.scheduling.requests.memory for p in pods) / (whole.memory or 1))
        if used >= USED or any(_keeps(seen, pod) for pod in pods):
            return False
        return fit_elsewhere(seen, node)


def _keeps(seen: Observation, pod: Pod) -> bool:
    """Whether a pod keeps its node from being removed."""
    budgets = budgets_of(seen, pod)
    return (
        pod.owner is None
        or pod.annotations.get(SAFE_TO_EVICT) == "false"
        or (pod.namespace == KUBE_SYSTEM and not budgets)
        or any(budget.disruptions_allowed <= 0 for budget in budgets)
    )
