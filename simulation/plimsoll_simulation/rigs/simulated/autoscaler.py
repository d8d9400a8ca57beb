"""A plain cluster autoscaler: every scan it grows groups, those on-demand, for pods that fit nowhere.

It stands for what runs in most clusters, so every responder has it beside it. It sees what the
cluster shows, counts nodes on their way, and after a refusal leaves a group alone for a while.

Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.errors import Refused, Temporary
from plimsoll.domain.node_groups import Asked, NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import GreenletWorkers, VirtualClock
from plimsoll_simulation.rigs.simulated.transport import SimulatedTransport

NAME: Final = "cluster-autoscaler"
BACKOFF: Final = timedelta(minutes=5)
"""--initial-node-group-backoff-duration."""


def is_on_demand(group: NodeGroup) -> bool:
    """Whether it is an on-demand group that an autoscaler grows."""
    return group.capacity == "on-demand" and group.kind != KARPENTER


@dataclass(slots=True)
class ClusterAutoscaler:
    """Scans one cluster."""

    rig_cluster: RigCluster
    clock: VirtualClock
    """Of the fleet."""
    api: KubernetesCluster
    """The cluster as the autoscaler sees it."""
    still: AbstractContextManager[Any] = field(default_factory=nullcontext)
    """Held while the cluster and its fleet are to be kept from changing."""
    choices: Sequence[Callable[[NodeGroup], bool]] = (is_on_demand,)
    """Which groups it grows: each choice only for pods that those before can take nowhere."""
    backoff: timedelta = BACKOFF
    """How long a group is left alone after a refusal."""
    _backing_off: dict[str, datetime] = field(init=False, default_factory=dict)

    def scan(self) -> None:
        """Look once, and ask for what is missing. An API server that is down is for the next."""
        with self.still:
            pods = self.rig_cluster.all("pods")
            if all(pod["spec"].get("nodeName") for pod in pods):
                return
        try:
            seen = self.api.observe()
        except Temporary:
            return
        with self.still:
            self._grow(seen)

    def _grow(self, seen: Observation) -> None:
        waiting = [pod for pod in seen.pods if pod.pending]
        now, fleet = self.clock.now(), self.rig_cluster.fleet
        for chosen in self.choices:
            if not waiting:
                break
            plan = plan_growth(
                ClusterSnapshot(seen.nodes, seen.pods, seen.claims),
                waiting,
                [
                    group
                    for group in map(group_of, fleet.groups.values())
                    if chosen(group) and self._backing_off.get(group.name, now) <= now
                ],
                upcoming=_upcoming(fleet),
                now=now,
            )
            for growth in plan.growths:
                try:
                    for _ in range(growth.add):  # as many as EC2 has
                        fleet.launch(growth.group.name, 1, growth.zone, now)
                except Refused:
                    self._backing_off[growth.group.name] = now + self.backoff
            waiting = [pod for pod in waiting if pod.uid in plan.unplaceable]
        self.clock.touch(fleet)


def in_process(
    rig_cluster: SimulatedRigCluster, clock: VirtualClock, api_seconds: float
) -> ClusterAutoscaler:
    """Return the autoscaler of a fake cluster, in the drill's own time."""
    network = SimulatedNetwork(clock, api_seconds)
    transport = SimulatedTransport(rig_cluster, clock, network, NAME)
    api = KubernetesCluster(transport, rig_cluster.name, clock, workers=GreenletWorkers(clock))
    return ClusterAutoscaler(rig_cluster, clock, api)


def _upcoming(fleet: Fleet) -> Counter[Asked]:
    """Return the machines that start, by group and zone."""
    key = {name: group_of(group).key for name, group in fleet.groups.items()}
    return Counter((key[m.group.name], m.zone) for m in fleet.alive() if not m.joined)
