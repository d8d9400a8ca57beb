"""Whose turn it is: nodes that AWS only advises to leave are cordoned one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Cordon, Uncordon
from plimsoll.domain.capacity import kept_out
from plimsoll.domain.interruptions import (
    ADVICE,
    HOUR,
    NEAR,
    NEVER,
    SCALE_DOWN,
    Interruption,
    marked,
)
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.reports import Report
from plimsoll.domain.scheduling import ClusterSnapshot

GATHER_NOTICES: Final = timedelta(seconds=5)
"""For so long after its notice a node waits for others that AWS named in the same moment: their notices come one by
one, and whoever looks meanwhile would give the turn to another."""
GATHERING: Final = "waits for notices of the same moment"
PRESSED: Final = (
    "waits until no deadline is near: pods that leave other nodes may need a place on it"
)
MOST_REPORTS: Final = 500
"""How many of the newest reports are read for that."""


def waiting_for_turn(seen: Observation) -> list[Node]:
    """Return the nodes with a record that are not cordoned yet, the nearest deadline first."""
    found = [
        node
        for node in seen.nodes
        if (record := node.interruption) is not None
        and (record.cordoned, record.phase) == (None, "open")
        and seen.policy.response(record).writes
        and record.kind != SCALE_DOWN
    ]
    return sorted(found, key=_order)


def moved_lately(reports: Sequence[Report], now: datetime) -> frozenset[str]:
    """Return the interruptions whose nodes, gone perhaps, were cordoned on advice within the hour.

    One whose deadline was near by then did not wait for its turn.
    """
    return frozenset(
        r.interruption
        for r in reports
        if r.kind in ADVICE and r.cordoned is not None and r.cordoned > now - HOUR
        if r.deadline is None or r.deadline - r.cordoned >= NEAR
    )


def turns(seen: Observation, now: datetime) -> Iterator[tuple[Node, Cordon | str]]:
    """Yield, for each node that waits, its cordon if it is its turn; else what it waits for."""
    lately = moved_lately(seen.reports or (), now) | {
        found.identity
        for node in seen.nodes
        if (found := node.interruption)
        and found.on_advice(now)
        and found.kind != SCALE_DOWN
        and found.cordoned
        and found.cordoned > now - HOUR
    }
    pressed = any(
        found.phase == "open" and not found.on_advice(now)
        for node in seen.nodes
        if (found := node.interruption)
    )
    budget = seen.policy.budget(len(seen.nodes))
    left = 0 if seen.reports is None else budget - len(lately)
    for node in waiting_for_turn(seen):
        interruption = node.interruption
        assert interruption is not None  # noqa: S101 - those that wait have one
        # The budget is asked last: a node that waits for something else takes nobody's turn.
        if later := seen.policy.postpones(interruption, now):
            yield node, later
            continue
        if interruption.on_advice(now):
            if now < interruption.noticed + GATHER_NOTICES:
                yield node, GATHERING
                continue
            if pressed:
                yield node, PRESSED
                continue
            left -= 1
            if left < 0:
                yield node, f"waits for its turn: {budget} nodes per hour are cordoned on advice"
                continue
        yield (
            node,
            cordon(
                node,
                interruption,
                now,
                f"{interruption.kind}: it is its turn ({seen.policy})",
            ),
        )


def cordon(node: Node, found: Interruption, now: datetime, reason: str) -> Cordon:
    """Return the cordon of a node that waited for it; one of somebody else's stays after ours."""
    found = replace(marked(found, cordoned=now), unschedulable_before=node.unschedulable)
    return Cordon(node=node, interruption=found, reason=reason)


def given_back(
    seen: Observation,
    unplaceable: Collection[str],
    snapshot: ClusterSnapshot,
    now: datetime,
) -> Iterator[Uncordon]:
    """Yield the first node left on advice that a pod needs which nothing else can take.

    The pod is Pending, or has to leave its node: its controller may make no other before it has left. A pod of a
    negative priority only keeps headroom for others.

    Args:
        seen: the observation.
        unplaceable: uids of pods that no other node and no node group can take.
        snapshot: where pods stand.
        now: the time of the observation.
    """
    ending = {
        node.name
        for node in seen.nodes
        if node.interruption is not None and not node.interruption.on_advice(now)
    }
    waiting = (
        pod
        for pod in seen.pods
        if (pod.pending or pod.node in ending) and pod.uid in unplaceable and pod.priority >= 0
    )
    for pod, node in kept_out(seen, waiting, snapshot, now):
        kind = "" if node.interruption is None else node.interruption.kind
        yield Uncordon(node=node, reason=f"{pod} has no other place, and {kind} is only advice")
        return


def _order(node: Node) -> tuple[datetime, datetime, str]:
    # The name last, so that every plan gives the turn to the same node.
    found = node.interruption
    assert found is not None  # noqa: S101 - those that wait have one
    return found.deadline or NEVER, found.noticed, node.name
