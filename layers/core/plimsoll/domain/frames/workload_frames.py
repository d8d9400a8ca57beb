"""The workloads of a frame: how many pods must move, what replaces them, and how many serve meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from plimsoll.domain.disruptions import EvictablePod, WorkloadDisruption, left_on
from plimsoll.domain.drain import ClusterPlan, strategy_of
from plimsoll.domain.frames.frame import LONGEST_WORDS, PodFrame, WorkloadFrame, thinned
from plimsoll.domain.kubernetes import OwnerKind, Pod, Ref
from plimsoll.domain.observation import InterruptedNodes, Observation, is_dead, is_gone

SOON: Final = timedelta(seconds=15)
"""A pod is at risk where its eviction deadline is nearer than this and no replacement has a node."""
_ENDS: Final = {OwnerKind.JOB, "Pod"}
"""Kinds whose pods end by themselves: none of them Ready is no outage."""


@dataclass(frozen=True)
class Scene:
    """What the parts of a frame are made from. Not slotted: look-ups are kept."""

    plan: ClusterPlan
    storm: datetime

    @property
    def now(self) -> datetime:
        """The time of the observation."""
        return self.plan.at

    @property
    def seen(self) -> Observation:
        """The observation of the plan."""
        return self.plan.seen

    @cached_property
    def interrupted(self) -> InterruptedNodes:
        """The nodes that go."""
        return InterruptedNodes.of(self.seen)

    @cached_property
    def left(self) -> Mapping[str, Sequence[Pod]]:
        """Pods that must leave and have not, by the name of their node."""
        return {node.name: left_on(self.seen, node) for node in self.interrupted.nodes}

    @cached_property
    def gone(self) -> Collection[str]:
        """Names of nodes whose instances are gone."""
        return {node.name for node in self.interrupted.nodes if is_gone(self.seen, node)}

    @cached_property
    def killed(self) -> Collection[str]:
        """Pods that still ran when their instance was gone, by namespace and name."""
        return {pod for report in self.plan.reports for pod in report.killed}

    @cached_property
    def disruption(self) -> Mapping[Ref, WorkloadDisruption]:
        """By workload."""
        return {one.ref: one for one in self.plan.disruptions}

    @cached_property
    def said(self) -> Mapping[str, str]:
        """By workload, in words: the first of what it waits for."""
        found: dict[str, str] = {}
        for words in self.plan.waiting.values():
            for line in words:
                about, colon, why = line.partition(": ")
                if colon:
                    found.setdefault(about, why)
        return found

    def seconds(self, time: datetime | None) -> float | None:
        """Return how long after the first notice a time is."""
        return None if time is None else round((time - self.storm).total_seconds(), 1)

    @property
    def second(self) -> float:
        """How long after the first notice it is now."""
        return round((self.now - self.storm).total_seconds(), 1)


def workload_frames(scene: Scene, before: Sequence[WorkloadFrame]) -> list[WorkloadFrame]:
    """Return the workloads that have, or had, pods to move: the worst first.

    Args:
        scene: what is so now.
        before: those of the frame before this one.
    """
    known = {frame.ref: frame for frame in before}
    refs = dict.fromkeys(scene.disruption)
    for pods in scene.left.values():
        refs |= dict.fromkeys(map(scene.seen.workload_of, pods))
    named = {str(ref) for ref in refs}
    refs |= dict.fromkeys(_ref(text) for text in known if text not in named)
    return sorted((_frame(scene, ref, known.get(str(ref))) for ref in refs), key=_order)


def pods_at_risk(scene: Scene, workloads: Sequence[WorkloadFrame]) -> Iterator[PodFrame]:
    """Yield the pods that were killed, and those at risk by their deadlines."""
    for node in scene.interrupted.nodes:
        for pod in scene.seen.on_node.get(node.name, ()):
            if node.name in scene.gone and str(pod) in scene.killed:
                ref = str(scene.seen.workload_of(pod))
                yield PodFrame(name=str(pod), workload=ref, node=node.name, killed=True)
    risky = {frame.ref: frame.at_risk for frame in workloads if frame.at_risk}
    due = [
        one
        for disruption in scene.plan.disruptions
        for one in _due(disruption, scene.now)[: risky.get(str(disruption.ref), 0)]
    ]
    for one in sorted(due, key=_deadline):
        yield PodFrame(
            name=str(one.pod),
            workload=str(scene.seen.workload_of(one.pod)),
            node=one.pod.node or "",
            deadline=scene.seconds(one.eviction_deadline),
        )


def _frame(scene: Scene, ref: Ref, before: WorkloadFrame | None) -> WorkloadFrame:
    seen, disruption = scene.seen, scene.disruption.get(ref)
    declared = seen.workload.get(ref)
    pods: Sequence[Pod] = seen.of_workload.get(ref, ())
    here = [pod for pod in pods if pod.node in scene.interrupted.names]
    away = [pod for pod in pods if pod.deleting is None and not _ends(scene, pod)]
    new = [pod for pod in away if pod.created >= scene.storm]
    replicas = _replicas(declared.replicas if declared else None, disruption, pods)
    # Counted from what stands now, so that a reconcile that remembers nothing says the same.
    of = max(len(here), replicas - (len(away) - len(new)))
    safe = min(of, sum(pod.ready for pod in new))
    starting = min(of - safe, sum(1 for pod in new if not pod.ready and pod.node))
    no_node = min(of - safe - starting, sum(1 for pod in new if not pod.ready and not pod.node))
    serving = [pod for pod in pods if pod.serving and not is_dead(seen, pod)]
    ready = len(serving)
    lowest = min(ready, before.lowest) if before else ready
    soon = len(_due(disruption, scene.now)) if disruption else 0
    deadlines = [one.eviction_deadline for one in (disruption.evictable if disruption else ())]
    first = min((at for at in deadlines if at is not None), default=None)
    killed = sum(str(pod) in scene.killed for pod in here)
    return WorkloadFrame(
        ref=str(ref),
        replicas=replicas,
        floor=disruption.floor if disruption else before.floor if before else 0,
        ready=ready,
        lowest=lowest,
        going=sum(pod.node in scene.interrupted.names for pod in serving),
        of=of,
        safe=safe,
        starting=starting,
        no_node=no_node,
        stopping=sum(pod.deleting is not None for pod in here),
        at_risk=min(of - safe - starting, soon),
        killed=max(killed, before.killed if before else 0),
        deadline=scene.seconds(first),
        way=_way(disruption) or (before.way if before else ""),
        says=scene.said.get(str(ref), "")[:LONGEST_WORDS],
        serves=ref.kind not in _ENDS,
        trace=_traced(before.trace if before else (), scene.second, ready),
    )


def _ends(scene: Scene, pod: Pod) -> bool:
    return pod.node in scene.interrupted.names or is_dead(scene.seen, pod)


def _replicas(
    declared: int | None, disruption: WorkloadDisruption | None, pods: Sequence[Pod]
) -> int:
    if declared is not None:
        return declared
    return disruption.replicas if disruption else len(pods)


def _way(disruption: WorkloadDisruption | None) -> str:
    return strategy_of(disruption)[0].name if disruption and disruption.evictable else ""


def _traced(
    before: tuple[tuple[float, int], ...], second: float, ready: int
) -> tuple[tuple[float, int], ...]:
    if before and before[-1][1] == ready:
        return before
    return thinned((*before, (second, ready)))


def _due(disruption: WorkloadDisruption, now: datetime) -> Sequence[EvictablePod]:
    """Return the pods whose eviction deadline is near, or has come: the next first."""
    found = [
        one
        for one in disruption.evictable
        if one.eviction_deadline is not None and one.eviction_deadline - now <= SOON
    ]
    return sorted(found, key=_deadline)


def _deadline(one: EvictablePod) -> datetime:
    return one.eviction_deadline or datetime.max.replace(tzinfo=one.pod.created.tzinfo)


def _order(frame: WorkloadFrame) -> tuple[object, ...]:
    return (
        frame.settled,
        not frame.killed,
        not frame.at_zero,
        not frame.below_floor,
        not frame.at_risk,
        not frame.no_node,
        frame.ready - frame.floor if frame.serves else 0,
        -(frame.of - frame.safe),
        frame.ref,
    )


def _ref(text: str) -> Ref:
    kind, _, path = text.partition(" ")
    namespace, _, name = path.partition("/")
    return Ref(kind, namespace, name)
