"""The ports of the services that are neither stores nor the cluster's API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import InstanceNotice, ZonalShift
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Metric


class GrownByKarpenter:
    """The port `NodeGroups`: the NodePools, which Karpenter alone grows."""

    def __init__(self, pools: NodePools) -> None:
        self._pools = pools

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the NodePools."""
        return self._pools.list(nodes)

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Refuse: Karpenter adds nodes for Pending pods."""
        return self._pools.grow(group, add, zone, token)

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Refuse: no instance has a hook."""
        raise AssertionError(f"{instance} has no hook {hook}")

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        """Refuse: no instance has a hook."""
        raise AssertionError(f"{instance} has no hook {hook}")

    def terminate(self, instance: str, *, decrement: bool) -> None:
        """Refuse: Karpenter ends instances."""
        raise AssertionError(f"{instance} is Karpenter's to end ({decrement=})")


class SilentAws:
    """The ports of EC2 and ARC, which know nothing beyond what events tell."""

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:  # noqa: ARG002 - it knows nothing
        """Return nothing."""
        return {}

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:  # noqa: ARG002 - it knows nothing
        """Return nothing."""
        return ()

    def zones(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    def active(self) -> Sequence[ZonalShift]:
        """Return nothing."""
        return ()


class Words:
    """The port `Telemetry`, for whoever looks at a run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def log(self, message: str, **facts: object) -> None:
        """Tell a message with its facts."""
        self._say(f"{message} {facts}")

    warn = log

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing."""


@dataclass(frozen=True, slots=True)
class OneCluster:
    """The port `Clusters`."""

    cluster: KubernetesCluster

    def open(self, cluster: Cluster) -> KubernetesCluster:  # noqa: ARG002 - there is no other
        """Return its API."""
        return self.cluster
