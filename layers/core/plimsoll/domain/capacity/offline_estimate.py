"""A cluster as the node index remembers it: the input of a plan while its API server does not answer.

The index keeps one sum of requests for each node, so that the pods of an interrupted node are played
by as many equal shares of its sum. They may run wherever a pod of that node group may. What still
fits on the nodes that stay is not known, and nothing is counted on there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.kubernetes import Node, OwnerKind, Pod, Ref, Resources, Scheduling, Toleration
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate
from plimsoll.domain.observation import Observation
from plimsoll.domain.registry import IndexEntry

_ARCHITECTURE = "kubernetes.io/arch"


def estimated_node(entry: IndexEntry) -> Node:
    """Return the Node of an entry, cordoned."""
    return Node(
        name=entry.node,
        uid=entry.instance,
        resource_version="",
        labels={},
        unschedulable=True,
        allocatable=Resources(),
        instance=entry.instance,
        zone=entry.zone,
        created=entry.seen,
    )


def estimated_observation(
    cluster: str,
    entries: Iterable[IndexEntry],
    groups: Sequence[NodeGroup],
    interrupted: Mapping[str, Interruption],
) -> Observation:
    """Return the observation of a cluster that only the index knows; `interrupted` is by node name."""
    template = {i: group.template for group in groups for i in group.instances}
    known = list(entries)
    return Observation(
        cluster=cluster,
        nodes=[estimated_node(entry) for entry in known],
        pods=[
            pod
            for entry in known
            if entry.node in interrupted
            for pod in _shares(entry, template.get(entry.instance))
        ],
        workloads=(),
        groups=groups,
    ).with_interruptions(interrupted)


def _shares(entry: IndexEntry, template: NodeTemplate | None) -> Iterator[Pod]:
    labels, taints = (template.labels, template.taints) if template else ({}, ())
    for n in range(count := entry.requests.pods):
        yield Pod(
            namespace=entry.node,
            name=f"share-{n}",
            uid=f"{entry.instance}-{n}",
            resource_version="",
            labels={},
            owner=Ref(OwnerKind.REPLICA_SET, "", entry.node),
            node=entry.node,
            created=entry.seen,
            scheduling=Scheduling(
                requests=_share(entry.requests, n, count),
                node_selector={k: v for k, v in labels.items() if k == _ARCHITECTURE},
                tolerations=tuple(
                    Toleration(key=t.key, operator="Exists", effect=t.effect) for t in taints
                ),
            ),
        )


def _share(total: Resources, n: int, count: int) -> Resources:
    """Return the n-th of `count` shares; together they are the total to the last byte."""

    def part(amount: int) -> int:
        return amount * (n + 1) // count - amount * n // count

    return Resources(
        cpu=part(total.cpu),
        memory=part(total.memory),
        pods=1,
        extended=tuple((name, part(amount)) for name, amount in total.extended),
    )
