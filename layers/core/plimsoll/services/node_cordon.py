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
from typing import Final, Protocol

from plimsoll.domain.errors import Conflict, NotFound, PlimsollError, Temporary
from plimsoll.domain.interruptions import Interruption, Response, marked, merge, urgency
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.notices import Effect
from plimsoll.domain.registry import Cluster
from plimsoll.services.instance_locator import LocatedNotice
from plimsoll.services.ports import Clock, Workers

ATTEMPTS: Final = 5
"""How often a node is read when somebody else keeps writing to it."""


type Batch = tuple[Sequence[LocatedNotice], Node | Exception | None]
"""The notices of one instance, and its node; None where it has none, or why that is not known."""


class NodeWriter(Protocol):
    """The Nodes of a cluster, and the writes of notices to them. A dry run has one that writes nothing."""

    def node(self, name: str) -> Node | None:
        """Return the Node of a name; None where there is none."""

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Cordon, taint and record in one patch, under the node's resourceVersion."""

    def record(self, node: Node, interruption: Interruption) -> None:
        """Replace the record only, under the node's resourceVersion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordoned:
    """What stands on a node now; on advice alone it is cordoned when its turn comes."""

    interruption: Interruption
    reason: str
    """That of the most urgent notice that leads to it."""
    written: bool
    """False: all of it stood there before, or the node is gone."""


def by_instance(found: Sequence[LocatedNotice]) -> Sequence[Sequence[LocatedNotice]]:
    """Group notices by their instance, in the order of arrival."""
    batches: dict[str, list[LocatedNotice]] = {}
    for located in found:
        batches.setdefault(located.notice.instance, []).append(located)
    return list(batches.values())


def heeded(cluster: Cluster, found: Sequence[LocatedNotice]) -> Sequence[LocatedNotice]:
    """Leave out the notices that the policy of a cluster ignores, or only observes."""
    return [
        located
        for located in found
        if located.decision.effect is not Effect.DRAIN
        or cluster.policy.of_kind(located.notice.kind).writes
    ]


def only_observed(cluster: Cluster, found: Sequence[LocatedNotice]) -> Sequence[LocatedNotice]:
    """Return the notices of which the policy of a cluster wants no more than a report."""
    return [
        located
        for located in found
        if located.decision.effect is Effect.DRAIN
        and cluster.policy.of_kind(located.notice.kind) is Response.OBSERVE
    ]


def find_nodes(
    api: NodeWriter, found: Sequence[LocatedNotice], workers: Workers
) -> Sequence[Batch]:
    """Return the notices of each instance with its node, None where it has none, or why that is not known.

    One request each where the index is right, or where it names a Node that is no more and the
    notices say that the instance is gone. For all others together the nodes are listed once.
    """
    batches = by_instance(found)
    nodes = workers.run([partial(_by_index, api, batch) for batch in batches])
    listed: Mapping[str | None, Node] | PlimsollError = {}
    # The nodes are listed once for all instances that the index does not resolve.
    if any(node is _Unindexed.UNINDEXED for node in nodes):
        try:
            listed = {node.instance: node for node in api.nodes()}
        except PlimsollError as error:
            listed = error
    return [
        (batch, _listed(batch, listed) if isinstance(node, _Unindexed) else node)
        for batch, node in zip(batches, nodes, strict=True)
    ]


def _listed(
    batch: Sequence[LocatedNotice], listed: Mapping[str | None, Node] | PlimsollError
) -> Node | PlimsollError | None:
    if isinstance(listed, PlimsollError):
        return listed
    return listed.get(batch[0].entry.instance)


class _Unindexed(Enum):
    """The index does not lead to a node."""

    UNINDEXED = auto()


def _by_index(api: NodeWriter, batch: Sequence[LocatedNotice]) -> Node | _Unindexed | None:
    entry = batch[0].entry
    found = batch[0].node or (api.node(entry.node) if entry.node else None)
    # A Node's name often derives from its private address, which a later instance may get.
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/hostname-types.html
    if found is not None and found.instance == entry.instance:
        return found
    if entry.node and found is None and all(o.decision.effect is Effect.GONE for o in batch):
        return None
    return _Unindexed.UNINDEXED


def cordon(api: NodeWriter, batch: Batch, clock: Clock) -> Cordoned | str:
    """Write the notices of one instance onto its node; where nothing is to be written, say why.

    Args:
        api: the cluster.
        batch: what `find_nodes` found; an error is raised.
        clock: the time.

    Raises:
        Temporary: somebody else keeps writing to the node, or the cluster does not answer.
        PlimsollError: the cluster says no.
    """
    notices, node = batch
    if isinstance(node, Exception):
        raise node
    # Each attempt merges into the latest version of the node, which keeps the writes of other handlers.
    for _ in range(ATTEMPTS):
        interruption = interruption_on(node, notices, clock.now())
        if node is None or isinstance(interruption, str):
            return str(interruption)
        waits = interruption.cordoned is None
        stands = Cordoned(interruption=interruption, reason=_reason(notices), written=False)
        # If somebody uncordoned the node since, it is cordoned again although its record is complete.
        if node.interruption == interruption and (waits or node.unschedulable):
            return stands
        write, verb = (api.record, "record") if waits else (api.cordon, "cordon")
        for located in notices:
            located.span.note(interruption=interruption.identity, node=node.name)
        try:
            with notices[0].span.child(verb, interruption=interruption.identity, node=node.name):
                write(node, interruption)
        except Conflict:
            node = api.node(node.name)
        except NotFound:
            return stands
        else:
            return replace(stands, written=True)
    entry = notices[0].entry
    raise Temporary(f"others keep writing to the node of {entry.instance} in {entry.cluster}")


def _reason(batch: Sequence[LocatedNotice]) -> str:
    """Return the reason of the most urgent notice that leads to something; else of the first.

    One that calls something off comes last.
    """
    foremost = min(
        (located for located in batch if located.decision.merges),
        key=lambda o: (o.decision.effect is Effect.WITHDRAW, urgency(o.notice.kind)),
        default=batch[0],
    )
    return foremost.decision.reason


def interruption_on(
    node: Node | None, batch: Sequence[LocatedNotice], now: datetime
) -> Interruption | str:
    """Return what stands on a node once these notices of its instance are merged in.

    Where nothing does, words say why.
    """
    entry = batch[0].entry
    # After a Conflict the name may belong to the Node of another instance.
    if node is None or node.instance != entry.instance:
        return f"{entry.instance} has no node in {entry.cluster} (any more)"
    if node.newer_record:
        return f"{node.name} is left alone: {node.unreadable}"
    merged, why = _of_this_launch(node.interruption, entry.launched or now), "nothing to call off"
    for located in batch:
        decision = located.decision
        if not decision.merges:
            why = decision.reason
        elif merged is not None or decision.effect is not Effect.WITHDRAW:
            merged = merge(
                merged,
                located.notice,
                node=node.name,
                launched=located.entry.launched,
                decision=decision,
                traceparent=located.span.traceparent,
            )
    if merged is None:
        return why
    record = node.interruption
    if merged.cordoned is None and merged.on_advice(now):
        return merged  # it is cordoned when its turn comes
    # Once Plimsoll has cordoned a node, only its record knows whether somebody else had done so before.
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
