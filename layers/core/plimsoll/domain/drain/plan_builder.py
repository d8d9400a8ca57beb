"""A plan of a drain in the making."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

from plimsoll.domain.actions import (
    Action,
    DoNotDisrupt,
    Evict,
    Exclude,
    Guard,
    Step,
    TaintNode,
    TellDeadline,
    UndoRelease,
    Unguard,
)
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.observation import InterruptedNodes, Observation

MOST_NAMED: Final = 20
"""How many of the objects that could not be read, or have no headroom, the report of a node names."""


@dataclass(slots=True)
class PlanBuilder:
    """A plan in the making."""

    seen: Observation
    interrupted: InterruptedNodes
    refused: Mapping[str, str]
    now: datetime
    grace: Mapping[str, tuple[int, int | None]]
    """Uid of a pod -> the time that is left, where its own grace period would outlast its instance: before the heartbeats
    of this plan, and after them."""
    steps: list[Step] = field(default_factory=list)
    waiting: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(
        cls,
        seen: Observation,
        interrupted: InterruptedNodes,
        disruptions: Iterable[WorkloadDisruption],
        refused: Mapping[str, str],
        now: datetime,
    ) -> Self:
        """Return an empty plan."""
        grace = {
            one.pod.uid: (left, one.clamped_grace(now, kept_up=True))
            for disruption in disruptions
            for one in disruption.evictable
            if (left := one.clamped_grace(now)) is not None
        }
        return cls(seen=seen, interrupted=interrupted, refused=refused, now=now, grace=grace)

    def add(self, action: Action, nodes: Iterable[str]) -> None:
        """Add an action that serves these nodes, unless the API server has refused it already."""
        match action:
            case (
                UndoRelease()
                | Guard()
                | Unguard()
                | Exclude()
                | TaintNode()
                | DoNotDisrupt()
                | TellDeadline()
                | Evict(overrule=False)
            ) if why := self.refused.get(action.target):
                self.wait(why, nodes)
            case Evict(pod=pod) if pod.uid in self.grace:
                left, kept_up = self.grace[pod.uid]
                clamped = replace(action, grace_seconds=left, kept_up_grace_seconds=kept_up)
                self.steps.append(Step(action=clamped, nodes=frozenset(nodes)))
            case _:
                self.steps.append(Step(action=action, nodes=frozenset(nodes)))

    def wait(self, text: str, nodes: Iterable[str]) -> None:
        """Say what the drain of these nodes waits for."""
        for node in nodes:
            self.waiting[node].append(text)

    def note(self, text: str, nodes: Iterable[str]) -> None:
        """Say what the owner of a workload on these nodes should know."""
        for node in nodes:
            self.notes[node].append(text)

    def told(self, node: str) -> Iterator[str]:
        """Yield what the report of a node says of this plan."""
        yield from (str(step) for step in self.steps if node in step.nodes)
        yield from (f"wait: {words}" for words in self.waiting.get(node, ()))
        yield from (f"note: {words}" for words in named(self.notes.get(node, ()), "workloads"))
        for words in named(self.seen.left_out, "objects in all"):
            yield f"left out: {words}"


def named(texts: Sequence[str], what: str) -> Sequence[str]:
    """Return the first of them, and how many there are where these are not all: each node has them."""
    more = [f"{len(texts)} {what}"] if len(texts) > MOST_NAMED else []
    return [*texts[:MOST_NAMED], *more]
