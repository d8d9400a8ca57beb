"""Writes what notices say onto the nodes they are about: cordon, taint and record in one patch.

Nodes are read, decided on and written side by side. Whoever else writes to a node at the same time
makes us read it again, a few times; a node that says everything already is not written to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from plimsoll.domain.actions import Cordon
from plimsoll.domain.clusters import IndexEntry
from plimsoll.domain.errors import Conflict, PlimsollError, Temporary
from plimsoll.domain.interruptions import (
    Effect,
    Interruption,
    actionable,
    marked,
    merge,
    of_former_life,
)
from plimsoll.domain.nodes import Node
from plimsoll.domain.notices import InstanceNotice, Notice
from plimsoll.domain.plan import Plan, Step
from plimsoll.services.executor import Executor
from plimsoll.services.ports import Clock, ClusterApi

ATTEMPTS: Final = 5
"""How often a node is read again when somebody else writes to it at the same time."""

type Located = tuple[InstanceNotice, IndexEntry]
"""A notice, and where its instance is."""


@dataclass(slots=True)
class CordonResult:
    """What became of notices."""

    answers: dict[Notice, str | Exception] = field(default_factory=dict)
    """For each, what it led to in words, or its error."""
    interrupted: dict[str, Interruption] = field(default_factory=dict)
    """By node: what stands on it now, or would where nothing is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordons:
    """Marks the nodes of one cluster."""

    api: ClusterApi
    executor: Executor
    clock: Clock

    def write(self, cluster: str, found: Sequence[Located]) -> CordonResult:
        """Write notices onto their nodes and return what became of each."""
        marks = CordonResult()
        waiting: dict[str, list[Located]] = defaultdict(list)
        for notice, entry in found:
            waiting[notice.instance].append((notice, entry))
        for _ in range(ATTEMPTS):
            waiting = self._attempt(waiting, marks)
            if not waiting:
                break
        for instance, batch in waiting.items():
            error = Temporary(f"somebody else keeps writing to the node of {instance} in {cluster}")
            marks.answers |= dict.fromkeys((notice for notice, _ in batch), error)
        return marks

    def _attempt(
        self, waiting: Mapping[str, Sequence[Located]], marks: CordonResult
    ) -> dict[str, list[Located]]:
        """Try once for all, and return those that somebody else wrote to meanwhile."""
        batches = list(waiting.values())
        read = self.executor.workers.run([partial(self._read, batch) for batch in batches])
        steps: list[Step] = []
        written: list[tuple[Sequence[Located], Cordon]] = []
        for batch, found in zip(batches, read, strict=True):
            match found:
                case Cordon():
                    steps.append(Step(action=found, nodes=frozenset({found.node.name})))
                    written.append((batch, found))
                case Interruption():
                    _stand(marks, batch, found)
                case str() | PlimsollError():
                    marks.answers |= dict.fromkeys((notice for notice, _ in batch), found)
                case error:
                    raise error
        outcomes = self.executor.carry_out(Plan(steps=tuple(steps)), between=lambda: None)
        again: dict[str, list[Located]] = {}
        for (batch, cordon), outcome in zip(written, outcomes, strict=True):
            match outcome.error:
                case Conflict():
                    again[cordon.interruption.instance] = list(batch)
                case None:
                    _stand(marks, batch, cordon.interruption)
                    self._count_age(batch, written=outcome.done)
                case error:
                    marks.answers |= dict.fromkeys((notice for notice, _ in batch), error)
        return again

    def _read(self, batch: Sequence[Located]) -> Cordon | Interruption | str:
        """Return what to write, or what stands already, or why there is nothing to write."""
        node, merged = look(self.api, batch, self.clock.now())
        if node is None or isinstance(merged, str):
            if node is not None and node.unreadable is not None:
                self.executor.telemetry.warn("record not readable", because=merged)
            return merged
        if node.unschedulable and node.interruption == merged:
            return merged
        return Cordon(node=node, interruption=merged, reason=actionable(batch[0][0]).reason)

    def _count_age(self, batch: Sequence[Located], *, written: bool) -> None:
        if not written:
            return
        now = self.clock.now()
        for notice, _ in batch:
            age = (now - notice.time).total_seconds()
            self.executor.telemetry.count("NoticeAgeAtCordon", max(0.0, age), "Seconds")


def _stand(marks: CordonResult, batch: Sequence[Located], stands: Interruption) -> None:
    marks.interrupted[stands.node] = stands
    said = f"{stands.kind} on {stands.node}"
    marks.answers |= dict.fromkeys((notice for notice, _ in batch), said)


def look(
    api: ClusterApi, batch: Sequence[Located], now: datetime
) -> tuple[Node | None, Interruption | str]:
    """Return a node, and what would stand on it with these notices of its instance.

    Where nothing would, words say why. Reads only.
    """
    _, entry = batch[0]
    node = api.find_node(entry.instance, entry.node or None)
    if node is None:
        return None, f"{entry.instance} has no node in {entry.cluster} (any more)"
    if node.unreadable is not None:
        return node, f"{node.name} is left alone: {node.unreadable}"
    return node, _merged(node, batch, now)


def _merged(node: Node, batch: Sequence[Located], now: datetime) -> Interruption | str:
    """Merge notices of one instance into what its node says; say why where that is nothing."""
    merged = node.interruption
    for notice, entry in batch:
        if of_former_life(notice.time, launched=entry.launched) is not None:
            continue
        if merged is None and actionable(notice).effect is Effect.WITHDRAW:
            continue
        merged = merge(merged, notice, node=node.name, launched=entry.launched)
    if merged is None:
        notice, entry = batch[0]
        return of_former_life(notice.time, launched=entry.launched) or "nothing to call off"
    return marked(merged, cordoned=merged.cordoned or now)
