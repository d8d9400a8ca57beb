"""Which nodes that were asked for can still be expected, and which a group owes.

A group keeps its desired capacity whatever EC2 says, so nodes that never come would be counted as on
their way for ever, and nothing would be asked elsewhere. A launch that failed is not expected any
more, nor one that takes much longer than those of its group did before. As the last resort both
count again: the group still tries, and to ask it for more would be to ask twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.nodes import Node
from plimsoll.domain.refusals import LaunchesThrottled

DOUBTED: Final = timedelta(minutes=3)
"""How long a group is doubted after it refused, as long as Karpenter remembers an offering without capacity."""
RETRY: Final = timedelta(seconds=15)
"""How soon it is asked again where no other group will do."""
USUAL: Final = timedelta(minutes=3)
"""From launch to Ready, where no launch of the group tells."""
LEAST: Final = timedelta(minutes=1)
PATIENCE: Final = 2
"""A launch may take so many times as long as the slowest known one of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one group has on the way."""

    upcoming: int = 0
    """Nodes that were asked for and are not Ready yet."""
    overdue: int = 0
    """How many of them are not to be counted on."""
    doubt: str | None = None
    """Why more of it should be asked only as the last resort."""


def expect(group: NodeGroup, nodes: Sequence[Node], now: datetime) -> Expectation:
    """Return what is to be expected of a group.

    What a group launches for an instance when that is gone comes too late for the pods on it. One
    whose interruption is finished with counts as gone.

    Args:
        group: as it was read last.
        nodes: those of the cluster.
        now: the time that launches are compared with.
    """
    here = {n.instance: n for n in nodes if n.instance and n.instance in group.instances}
    gone = {i for i, n in here.items() if _finished(n)}
    ready = {i for i, n in here.items() if n.ready} - gone
    upcoming = group.desired - len(ready)
    if upcoming <= 0:
        return Expectation()
    limit = _limit([here[i].created - at for i, at in group.launched.items() if i in ready])
    begun = {i: n.created for i, n in here.items() if n.interruption is None} | dict(group.launched)
    starting = group.instances - ready - {i for i, n in here.items() if n.interruption}
    late = [i for i in starting if i in begun and begun[i] + limit < now]
    owed, doubt = 0, f"{len(late)} of its nodes are not Ready after {limit}" if late else None
    told = [r for r in group.refusals if not isinstance(r, LaunchesThrottled)]
    if told and now < told[0].at + DOUBTED:
        owed = max(0, group.desired - len(group.instances - gone))
        doubt = f"its last launch failed: {told[0].why}"
    return Expectation(upcoming=upcoming, overdue=min(upcoming, owed + len(late)), doubt=doubt)


def _limit(launches: Sequence[timedelta]) -> timedelta:
    """Return how long a launch may take. What is known is when nodes joined, seconds before they were Ready."""
    return max(LEAST, PATIENCE * max(launches)) if launches else USUAL


def _finished(node: Node) -> bool:
    found = node.interruption
    return bool(found and found.phase == "closed" and found.deadline)
