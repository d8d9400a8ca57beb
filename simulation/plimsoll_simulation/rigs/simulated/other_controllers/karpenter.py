"""Karpenter: taints and drains the nodes of its own that are interrupted, and makes new ones for Pending pods.

At a notice, once its queue has held that back for its delay, it deletes the NodeClaim, which taints the node and drains
it, also while the pods' replacements have no node; from then on the node counts against no limit of its NodePool. A pod that
says not to be disrupted holds the node until it has gone. An instance that is drained is terminated. Rebalance recommendations are
only told as Events. Its deadline is that of the NodePool (terminationGracePeriod), of which there is
none by default. Nodes are chosen as simply as a drill needs: of spot first, one instance type each.

Sources: aws/karpenter-provider-aws v1.14, pkg/controllers/interruption/utils.go; kubernetes-sigs/karpenter,
pkg/controllers/node/termination (controller.go, terminator/terminator.go, terminator/eviction.go), pkg/utils/pod/scheduling.go and
pkg/controllers/provisioning; https://karpenter.sh/docs/concepts/disruption/#interruption
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, override

from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.domain.kubernetes import MIRROR, Taint, left_by_karpenter, tolerated
from plimsoll.domain.node_groups import NodeGroup
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.fake_cluster.stamps import moment
from plimsoll_simulation.rigs.simulated.autoscaler import ClusterAutoscaler, in_process
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import (
    Drain,
    Drainer,
    annotations_of,
)
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import Json
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster

HANDLED: Final = frozenset(
    {
        "spot-interruption",
        "health-scheduled-change",
        "capacity-reservation-interruption",
        "state-change",
    }
)
DISRUPTED: Final = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
LEAST_DRAIN: Final = timedelta(seconds=5)
"""MinDrainTime: pods may still come that the scheduler bound before it saw the taint."""
FIRST_PAUSE: Final = timedelta(milliseconds=100)
LONGEST_PAUSE: Final = timedelta(seconds=10)
"""evictionQueueBaseDelay and evictionQueueMaxDelay; doubled with each refusal."""
IDLE: Final = timedelta(seconds=1)
LONGEST_BATCH: Final = timedelta(seconds=10)
"""--batch-idle-duration and --batch-max-duration."""
REMEMBERED: Final = timedelta(minutes=3)
"""How long an offering without capacity is left alone (UnavailableOfferingsTTL)."""
API_SECONDS: Final = 0.02
"""What a call takes, when it observes the cluster."""


def _is_spot(group: NodeGroup) -> bool:
    return group.kind == KARPENTER and group.capacity == "spot"


def _is_ours(group: NodeGroup) -> bool:
    return group.kind == KARPENTER


@dataclass(slots=True)
class Karpenter(Drainer[SimulatedRigCluster]):
    """Karpenter in one cluster, with an interruption queue."""

    provisioner: ClusterAutoscaler = field(init=False)

    def __post_init__(self) -> None:
        """Prepare to make nodes."""
        self.provisioner = in_process(self.rig_cluster, self.clock, API_SECONDS)
        self.provisioner.choices = (_is_spot, _is_ours)
        self.provisioner.backoff = REMEMBERED

    @override
    def act(self) -> None:
        super(Karpenter, self).act()
        now = self.clock.now()
        created = [
            moment(pod["metadata"]["creationTimestamp"])
            for pod in self.rig_cluster.all("pods")
            if not pod["spec"].get("nodeName")
        ]
        if created and (max(created) + IDLE <= now or min(created) + LONGEST_BATCH <= now):
            self.provisioner.scan()

    @property
    @override
    def delay(self) -> timedelta:
        return self.rig_cluster.spec.queue_delay

    @override
    def chosen(self) -> Iterator[Machine]:
        for machine in self.told(HANDLED):
            if machine.group.kind == KARPENTER:
                yield machine

    @override
    def mark(self, node: Json) -> Json | None:
        taints = look(node, "spec", "taints", default=()) or ()
        if any(taint["key"] == DISRUPTED.key for taint in taints):
            return None
        mark = {"key": DISRUPTED.key, "effect": DISRUPTED.effect}
        excluded = {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}
        return {"metadata": {"labels": excluded}, "spec": {"taints": [*taints, mark]}}

    @override
    def advance(self, drain: Drain) -> None:
        self.rig_cluster.fleet.disclaim(drain.machine)
        super(Karpenter, self).advance(drain)

    @override
    def pause(self, refused: int) -> timedelta:
        return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(refused - 1, 10)))

    @override
    def leaves(self, pod: Json) -> bool:
        return MIRROR not in annotations_of(pod) and not tolerated(
            DISRUPTED, parse_pod(pod).scheduling.tolerations
        )

    @override
    def evictable(self, pods: Collection[Json]) -> Iterable[Json]:
        """Return the first that are left of: others, of DaemonSets, critical ones, critical of DaemonSets."""

        def tier(pod: Json) -> tuple[bool, bool]:
            daemon = (controller_of(pod) or {}).get("kind") == "DaemonSet"
            return pod["spec"].get("priorityClassName") in CRITICAL, daemon

        first, now = min(map(tier, pods)), self.clock.now()
        return [p for p in pods if tier(p) == first and not left_by_karpenter(parse_pod(p), now)]

    @override
    def after(self, drain: Drain) -> None:
        now, machine = self.clock.now(), drain.machine
        detached = all(
            attachment["spec"]["nodeName"] != machine.node
            for attachment in self.rig_cluster.all("volumeattachments")
        )
        if drain.began + LEAST_DRAIN <= now and detached:
            machine.ended_by_owner = True
            self.rig_cluster.fleet.end(machine.id, now)
            self.clock.touch(self.rig_cluster.fleet)
            self.send("DELETE", f"/api/v1/nodes/{machine.node}")
