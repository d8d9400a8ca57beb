"""What the node index says of a cluster: the node of each instance, and what its pods request.

It saves a storm the question to EC2 which cluster an instance belongs to. Each full resync writes the
entry of the oldest node, so that entry also tells when the last one ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node, Resources
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.observation.interrupted_nodes import leaves
from plimsoll.domain.observation.observation import Observation
from plimsoll.domain.registry import IndexEntry

INDEX_REFRESH: Final = timedelta(minutes=30)
"""How often an entry that says the same is written again: it expires after days."""
LONGEST_LULL: Final = timedelta(minutes=6)
"""How old the last full resync of a calm cluster may be: placement runs every five minutes."""

type Known = Mapping[str, IndexEntry]
"""By instance: what the index says."""


@dataclass(frozen=True, slots=True)
class ForeignClaim:
    """A Node that claims an instance of another cluster."""

    node: str
    instance: str
    of: str
    """The other cluster."""


def by_instance(nodes: Sequence[Node]) -> Mapping[str, Node]:
    """Return the nodes that name their instance, by it."""
    return {node.instance: node for node in nodes if node.instance}


def witnesses(ours: Mapping[str, Node], now: datetime) -> Sequence[str]:
    """Return the instances whose entries tell whether a full resync ran lately.

    A young node may have no entry yet.
    """
    return sorted(
        {i for i, node in ours.items() if now - node.created < LONGEST_LULL} | {_oldest(ours)}
    )


def resynced_lately(asked: Sequence[str], known: Known, cluster: str, now: datetime) -> bool:
    """Return what the entries of the witnesses tell."""
    mine = {i: entry for i, entry in known.items() if entry.cluster == cluster}
    return all(i in mine and now - mine[i].seen < LONGEST_LULL for i in asked)


def to_describe(seen: Observation, known: Known, now: datetime) -> Sequence[str]:
    """Return the instances to ask EC2 about: those that the index does not know, and at times all.

    Those with a record are asked about each time: an instance that was stopped is launched again under
    its id.
    """
    return [
        i
        for i, node in by_instance(seen.nodes).items()
        if node.interruption or not _learned(known.get(i), seen.cluster, now)
    ]


def entries_of(
    seen: Observation, known: Known, said: Mapping[str, Instance], now: datetime
) -> tuple[Sequence[IndexEntry], Sequence[ForeignClaim]]:
    """Return what the index should say of all nodes, and which are left out.

    A Node may claim any instance: one that EC2's tags name as another cluster's is left out, and
    one that the index knows in another cluster comes to this one only if they name this one.

    Args:
        seen: the cluster.
        known: what the index says of its instances.
        said: what EC2 said just now of those of `to_describe`.
        now: the time of the observation.
    """
    entries: list[IndexEntry] = []
    claims: list[ForeignClaim] = []
    for instance, node in by_instance(seen.nodes).items():
        old, told = known.get(instance), said.get(instance)
        tagged = None if told is None else told.cluster_name()
        of = tagged or (old.cluster if old else seen.cluster)
        if of != seen.cluster:
            claims.append(ForeignClaim(node.name, instance, of))
            continue
        launched = told.launched if told else None
        if launched is None and old is not None:
            launched = old.launched
        pods = seen.on_node.get(node.name, ())
        entries.append(
            IndexEntry(
                instance=instance,
                cluster=seen.cluster,
                node=node.name,
                launched=launched,
                zone=node.zone,
                instance_type=node.labels.get(INSTANCE_TYPE),
                requests=sum((p.scheduling.requests for p in pods if leaves(p)), Resources()),
                seen=now,
            )
        )
    return entries, claims


def to_write(
    entries: Sequence[IndexEntry], known: Known, ours: Mapping[str, Node]
) -> Sequence[IndexEntry]:
    """Return the entries that are news, and that of the oldest node."""
    oldest = _oldest(ours) if ours else None
    return [e for e in entries if e.instance == oldest or not _fresh(known, e)]


def _oldest(ours: Mapping[str, Node]) -> str:
    return min(ours, key=lambda i: (ours[i].created, i))


def _learned(entry: IndexEntry | None, cluster: str, now: datetime) -> bool:
    if entry is None or entry.launched is None or entry.cluster != cluster:
        return False
    return now - entry.seen < INDEX_REFRESH


def _fresh(known: Known, entry: IndexEntry) -> bool:
    """Whether the index says the same, or more of the requests, and not long ago."""
    old = known.get(entry.instance)
    return (
        old is not None
        and entry.seen - old.seen < INDEX_REFRESH
        and replace(old, seen=entry.seen, requests=entry.requests) == entry
        and entry.requests.within(old.requests)
    )
