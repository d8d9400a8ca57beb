"""Nodes that do not exist yet, as a node group's template promises them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from plimsoll.domain.kubernetes import Node, NodeTerm, Pod, Scheduling, names, why_never
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate
from plimsoll.domain.scheduling import ClusterSnapshot


def future_node(group: NodeGroup, template: NodeTemplate, zone: str, name: str) -> Node:
    """Return the node that a group would add in a zone, Ready and empty.

    It carries the zone labels that kubelet and volume drivers put on a node once it is there.
    """
    return Node(
        name=name,
        uid=name,
        resource_version="",
        labels={
            **template.labels,
            names.HOSTNAME: name,
            **dict.fromkeys(names.ZONE_LABELS, zone),
        },
        taints=template.taints,
        allocatable=template.allocatable,
        zone=zone,
        capacity=group.capacity,
        created=_NOT_YET,
    )


_NOT_YET: Final = datetime.max.replace(tzinfo=UTC)


class Daemons:
    """One pod of every DaemonSet, to be put on future nodes: they take headroom there too.

    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        """Take a sample of every DaemonSet whose pods are in the snapshot."""
        found: dict[str, Pod] = {}
        for name in snapshot.nodes:
            for pod in snapshot.on(name):
                if pod.of_daemon_set:
                    found.setdefault(str(pod.owner), pod)
        self._samples = tuple(
            replace(pod, scheduling=_anywhere(pod.scheduling), deleting=None)
            for _, pod in sorted(found.items())
        )

    def on(self, node: Node) -> Sequence[Pod]:
        """Return the daemon pods that a new node would get."""
        return [
            replace(pod, uid=f"{node.name}:{pod.owner}", node=node.name)
            for pod in self._samples
            if why_never(pod.scheduling, node) is None
        ]


def _anywhere(scheduling: Scheduling) -> Scheduling:
    """Take out the name of the node to which the DaemonSet controller bound a pod."""
    if scheduling.node_terms is None:
        return scheduling
    terms = tuple(
        NodeTerm(
            expressions=term.expressions,
            fields=tuple(f for f in term.fields if f.key != "metadata.name"),
        )
        for term in scheduling.node_terms
    )
    free = any(not term.expressions and not term.fields for term in terms)
    return replace(scheduling, node_terms=None if free else terms)
