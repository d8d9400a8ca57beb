"""Writes the notices of an instance onto its node: cordon, taint and record in one patch.

A node that somebody else writes to at the same time is read again, a few times; one that says
everything already is not written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from functools import partial
from typing import Final

from plimsoll.domain.errors import Conflict, NotFound, PlimsollError, Temporary
from plimsoll.domain.interruptions import Interruption, Response, marked, merge, of_former_life
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.notices import Decision, Effect, InstanceNotice
from plimsoll.domain.registry import Cluster, IndexEntry
from plimsoll.services.ports import Clock, ClusterApi, Workers

ATTEMPTS: Final = 5
"""How often a node is read when somebody else keeps writing to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedNotice:
    """A notice, what it leads to, and where its instance is."""

    notice: InstanceNotice
    decision: Decision
    entry: IndexEntry
    node: Node | None = None
    """The instance's node, where it has just been listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordoned:
    """What stands on a node now; on advice alone it is cordoned when its turn comes."""

    interruption: Interruption
    written: bool
    """False: all of it stood there before, or the node is gone."""


def by_instance(found: Sequence[LocatedNotice]) -> Sequence[Sequence[LocatedNotice]]:
    """Group notices by their instance, in the order of arrival."""
    batches: dict[str, list[LocatedNotice]] = {}
    for located in found:
        batches.setdefault(located.notice.instance, []).append(located)
    return list(batches.values())


def heeded(cluster: Cluster, found: Sequence[LocatedNotice]) -> Sequence[LocatedNotice]:
    """Leave out the notices that the policy of a cluster ignores."""
    return [
        located
        for located in found
        if located.decision.effect is not Effect.DRAIN
        or cluster.policy.of_kind(located.notice.kind) is not Response.IGNORE
    ]


def find_nodes(
    api: ClusterApi, batches: Sequence[Sequence[LocatedNotice]], workers: Workers
) -> Sequence[Node | Exception | None]:
    """Return, in order, the node of each instance, None where it has none, or why that is not known.

    One request each where the index is right, or where it names a Node that is no more and the
    notices say that the instance is gone. For all others together the nodes are listed once.
    """
    found = workers.run([partial(_by_index, api, batch) for batch in batches])
    if not any(node is _Unindexed.UNINDEXED for node in found):
        return [node for node in found if not isinstance(node, _Unindexed)]
    try:
        listed: Mapping[str | None, Node] = {node.instance: node for node in api.nodes()}
    except PlimsollError as error:
        return [error if isinstance(node, _Unindexed) else node for node in found]
    return [
        listed.get(batch[0].entry.instance) if isinstance(node, _Unindexed) else node
        for batch, node in zip(batches, found, strict=True)
    ]


class _Unindexed(Enum):
    """The index does not lead to a node."""

    UNINDEXED = auto()


def _by_index(api: ClusterApi, batch: Sequence[LocatedNotice]) -> Node | _Unindexed | None:
    entry = batch[0].entry
    found = batch[0].node or (api.node(entry.node) if entry.node else None)
    if found is not None and found.instance == entry.instance:
        return found
    if entry.node and found is None and all(o.decision.effect is Effect.GONE for o in batch):
        return None
    return _Unindexed.UNINDEXED


def cordon(
    api: ClusterApi, batch: Sequence[LocatedNotice], node: Node | Exception | None, clock: Clock
) -> Cordoned | str:
    """Write the notices of one instance onto its node; where nothing is to be written, say why.

    Args:
        api: the cluster.
        batch: the notices.
        node: what `find_nodes` found; an error is raised.
        clock: the time.

    Raises:
        Temporary: somebody else keeps writing to the node, or the cluster does not answer.
        PlimsollError: the cluster says no.
    """
    if isinstance(node, Exception):
        raise node
    for _ in range(ATTEMPTS):
        interruption = interruption_on(node, batch, clock.now())
        if node is None or isinstance(interruption, str):
            return str(interruption)
        waits = interruption.cordoned is None
        if node.interruption == interruption and (waits or node.unschedulable):
            return Cordoned(interruption=interruption, written=False)
        try:
            (api.record if waits else api.cordon)(node, interruption)
        except Conflict:
            node = api.node(node.name)
        except NotFound:
            return Cordoned(interruption=interruption, written=False)
        else:
            return Cordoned(interruption=interruption, written=True)
    entry = batch[0].entry
    raise Temporary(f"others keep writing to the node of {entry.instance} in {entry.cluster}")


def interruption_on(
    node: Node | None, batch: Sequence[LocatedNotice], now: datetime
) -> Interruption | str:
    """Return what stands on a node once these notices of its instance are merged in.

    Where nothing does, words say why.
    """
    entry = batch[0].entry
    if node is None or node.instance != entry.instance:
        return f"{entry.instance} has no node in {entry.cluster} (any more)"
    if node.newer_record:
        return f"{node.name} is left alone: {node.unreadable}"
    merged, why = _of_this_launch(node.interruption, entry.launched or now), "nothing to call off"
    for located in batch:
        notice, launched = located.notice, located.entry.launched
        former = of_former_life(notice.time, launched=launched)
        if former is not None:
            why = former
        elif merged is not None or located.decision.effect is not Effect.WITHDRAW:
            merged = merge(
                merged, notice, node=node.name, launched=launched, decision=located.decision
            )
    if merged is None:
        return why
    record = node.interruption
    if merged.cordoned is None and merged.on_advice(now):
        return merged  # it is cordoned when its turn comes
    before = node.unschedulable
    if record is not None and record.cordoned is not None:
        before = record.unschedulable_before
    return replace(marked(merged, cordoned=merged.cordoned or now), unschedulable_before=before)


def _of_this_launch(record: Interruption | None, latest: datetime) -> Interruption | None:
    """Drop a record that claims a later launch than can be: else it made a former life of each notice.

    The index has its launch times from EC2. One that lags behind costs a true record its past.
    """
    if record is None or record.launched is None or record.launched <= latest:
        return record
    return None
