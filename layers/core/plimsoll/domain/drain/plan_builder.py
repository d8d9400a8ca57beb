"""A plan of a drain in the making."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import Final, Self

from plimsoll.domain.actions import (
    AboutPod,
    Action,
    Evict,
    Step,
)
from plimsoll.domain.disruptions import EvictablePod, WorkloadDisruption
from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.reports import LEFT_OUT, NOTE, WAIT, Reason

MOST_NAMED: Final = 20
"""How many of the objects that could not be read, or workloads of Pending pods, the report of a node names."""


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
    said: dict[str, list[Reason]] = field(default_factory=lambda: defaultdict(list))
    """Node -> what its drain waits for, and what owners should know."""

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
            one.pod.uid: (left, clamped_grace(one, now, kept_up=True))
            for disruption in disruptions
            for one in disruption.evictable
            if (left := clamped_grace(one, now)) is not None
        }
        return cls(seen=seen, interrupted=interrupted, refused=refused, now=now, grace=grace)

    def add(self, action: Action, nodes: Iterable[str]) -> None:
        """Add an action that serves these nodes, unless the API server has refused it already."""
        overrules = isinstance(action, Evict) and action.overrule
        why = self.refused.get(action.target) if action.refusable and not overrules else None
        match action:
            case _ if why is not None:
                self.refuse(why, nodes)
            case Evict(pod=pod) if pod.uid in self.grace:
                left, kept_up = self.grace[pod.uid]
                clamped = replace(action, grace_seconds=left, kept_up_grace_seconds=kept_up)
                self._step(clamped, nodes)
            case _:
                self._step(action, nodes)

    def wait(self, words: str, nodes: Iterable[str], about: Ref | None = None) -> None:
        """Say what the drain of these nodes waits for."""
        self._say(self._words(WAIT, words, about), nodes)

    def refuse(self, words: str, nodes: Iterable[str]) -> None:
        """Say what the API server or AWS refuses to do for these nodes: somebody may have to act."""
        self._say(replace(self._words(WAIT, words), urgent=True), nodes)

    def lack(self, pods: Sequence[Pod], why: str, nodes: Iterable[str]) -> None:
        """Say that these pods of one workload have no headroom, on any node or in any group."""
        reason = replace(
            self._words("no headroom for", why, self.seen.workload_of(pods[0])),
            pods=tuple(sorted(map(str, pods))),
            urgent=True,
        )
        self._say(reason, nodes)

    def note(self, words: str, nodes: Iterable[str], about: Ref) -> None:
        """Say what the owner of a workload on these nodes should know."""
        self._say(self._words(NOTE, words, about), nodes)

    def waiting(self) -> Mapping[str, tuple[str, ...]]:
        """Return by node what its drain waits for, in words."""
        return {
            node: tuple(dict.fromkeys(str(one).removeprefix(f"{WAIT} ") for one in words))
            for node in sorted(self.said)
            if (words := [one for one in self.said[node] if one.verb != NOTE])
        }

    def notes(self) -> Mapping[str, tuple[str, ...]]:
        """Return by node what the owners of workloads on it should know, in words."""
        return {
            node: tuple(str(one).removeprefix(f"{NOTE} ") for one in words)
            for node in sorted(self.said)
            if (words := [one for one in self.said[node] if one.verb == NOTE])
        }

    def told(self) -> Mapping[str, Sequence[Reason]]:
        """Return by node what its report says of this plan."""
        found: dict[str, list[Reason]] = {node.name: [] for node in self.interrupted.nodes}
        for step in self.steps:
            reason = step.reason(self.now)
            for node in step.nodes & found.keys():
                found[node].append(reason)
        left_out = [
            replace(self._words(LEFT_OUT, words), last=None, first=None)
            for words in named(self.seen.left_out, "objects in all")
        ]
        return {
            node: (*reasons, *self.said.get(node, ()), *left_out) for node, reasons in found.items()
        }

    def _words(self, verb: str, why: str, about: Ref | None = None) -> Reason:
        subject = "" if about is None else str(about)
        return Reason(verb=verb, about=subject, why=why, first=self.now, last=self.now)

    def _say(self, reason: Reason, nodes: Iterable[str]) -> None:
        for node in nodes:
            self.said[node].append(reason)

    def _step(self, action: Action, nodes: Iterable[str]) -> None:
        workload = ""
        if isinstance(action, AboutPod):
            workload = str(self.seen.workload_of(action.pod))
        self.steps.append(Step(action=action, nodes=frozenset(nodes), workload=workload))


def clamped_grace(one: EvictablePod, now: datetime, *, kept_up: bool = False) -> int | None:
    """Return a shorter grace period for a pod where its own does not fit, never below a second.

    A second that has begun counts whole, since the margin before the instance goes is longer.
    Zero would delete the pod while it runs: two of a StatefulSet's name could then be alive.

    Args:
        one: the pod.
        now: the time.
        kept_up: whether the heartbeats of the same plan count as accepted.
    """
    end = one.deadline if one.departure.exact else None
    if kept_up:
        end = one.departure.kept_up_until
    if end is None:
        return None
    left = (end - now).total_seconds()
    return max(1, ceil(left)) if one.pod.grace_seconds > left + 1 else None


def named(texts: Sequence[str], what: str) -> Sequence[str]:
    """Return the first of them, and how many there are where these are not all: each node has them."""
    more = [f"{len(texts)} {what}"] if len(texts) > MOST_NAMED else []
    return [*texts[:MOST_NAMED], *more]
