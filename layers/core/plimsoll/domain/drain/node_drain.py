"""What `plimsoll drain` does now, as a plan: that of an interruption which exists in memory only.

`plan_drain` decides about everything that its controller makes anew. What it would leave to a
deadline (Jobs, bare pods, pods that are not restarted) is evicted as `kubectl drain` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from plimsoll.domain.actions import AboutPod, Evict, Plan, Release, Step, UndoRelease, Wave
from plimsoll.domain.disruptions import (
    DRAIN,
    NAME_TOLERATIONS,
    disruptions_of,
    has_returned,
    left_on,
    opted_out_on,
    released_by_drain,
)
from plimsoll.domain.drain.planner import plan_drain
from plimsoll.domain.drain.strategies import CONTENDED, releasable, releases, undo_for_good
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.kubernetes import Node, OwnerKind, Pod, gang_of, in_gang, matches
from plimsoll.domain.observation import InterruptedNodes, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """What was asked for."""

    nodes: frozenset[str]
    started: datetime
    until: datetime | None = None
    """When to stop; None: never."""
    overrule_budgets: bool = False
    """Evict at the eviction deadline before `until`, whatever a budget says."""
    allow_pending: bool = False
    """Release pods though there is no headroom now: an autoscaler adds nodes for Pending pods."""
    force: bool = False
    """Evict bare pods too."""
    grace_seconds: int | None = None
    """Instead of each pod's own grace period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """What to do now, and what stands on the nodes still."""

    plan: Plan
    left: tuple[Pod, ...]
    """Pods that must leave and have not."""
    blocked: Mapping[str, str]
    """Pods that this drain will never evict -> why, in words."""
    held: tuple[Pod, ...] = ()
    """Pods that nothing is done about, nor about others of their workload: the drain waits until somebody changes something."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for: all nodes are empty, or what stays, stays for good."""
        return all(str(pod) in self.blocked for pod in self.left)

    @property
    def stuck(self) -> bool:
        """Whether nothing is done now, and nothing is under way on these nodes."""
        return not (self.plan.steps or any(pod.released or pod.deleting for pod in self.left))


def plan_nodes(seen: Observation, request: DrainRequest, now: datetime) -> DrainPlan:
    """Decide what to do now about the pods of the nodes that are drained, and about no others."""
    deadline = request.until if request.overrule_budgets else None
    overlaid = seen.with_interruptions(
        {
            name: drain_interruption(name, started=request.started, deadline=deadline)
            for name in request.nodes
        }
    )
    nodes = [node for node in overlaid.nodes if node.name in request.nodes]
    left = tuple(pod for node in nodes for pod in left_on(overlaid, node))
    blocked = dict(_blocked(overlaid, nodes, left, force=request.force))
    steps = list(_at_once(overlaid, left, blocked))
    staying = [pod for pod in left if str(pod) not in blocked]
    unplanned = {pod.uid for pod in left if not pod.restarts or _unreplaced(overlaid, pod)}
    planned = plan_drain(
        replace(overlaid, pods=[pod for pod in overlaid.pods if pod.uid not in unplanned]), now
    )
    steps += [
        step
        for step in planned.steps
        if isinstance(step.action, Release | UndoRelease | Evict)
        and step.action.pod.node in request.nodes
    ]
    # Sorted anew, and stably: the evictions of `kubectl drain` stand before those of the plan in their wave.
    found = DrainPlan(
        plan=Plan(
            steps=tuple(_with_grace(step, request) for step in sorted(steps, key=_wave)),
            waiting={n: words for n, words in planned.waiting.items() if n in request.nodes},
        ),
        left=left,
        blocked=blocked,
        held=tuple(_held(overlaid, staying, steps, planned, overruled=deadline is not None)),
    )
    # Only where nothing else can be done: a replacement that is Pending serves nobody until a node comes.
    if request.allow_pending and found.stuck:
        pending = tuple(_pending_releases(overlaid, request, now))
        return replace(
            found,
            plan=replace(found.plan, steps=pending),
            held=tuple(_held(overlaid, staying, pending, planned)),
        )
    return found


def plan_undo(seen: Observation, nodes: AbstractSet[str], now: datetime) -> Plan:
    """Decide how to undo the releases of drains by hand on these nodes."""
    reason = "the drain is called off"
    steps = [
        Step(action=undo_for_good(seen, disruption, pod, reason), nodes=frozenset({pod.node or ""}))
        for disruption in disruptions_of(seen, InterruptedNodes.of(seen), now)
        for pod in disruption.released
        if pod.node in nodes and released_by_drain(pod)
    ]
    return Plan(steps=tuple(sorted(steps, key=_wave)))


def _wave(step: Step) -> Wave:
    return step.action.wave


def _pending_releases(seen: Observation, request: DrainRequest, now: datetime) -> Iterator[Step]:
    """Yield releases for which no node has headroom; the plan undoes them after five minutes.

    The pods of a workload with an autoscaler are released one by one: unready replacements keep it
    from growing.
    """
    for disruption in disruptions_of(seen, InterruptedNodes.of(seen), now):
        able = [one for one in releasable(disruption) if one.pod.node in request.nodes]
        scaled = disruption.workload is not None and disruption.workload.scaler is not None
        reason = "no node has headroom for its replacement, which may be Pending"
        for release in releases(able[:1] if scaled else able, reason):
            yield Step(action=release, nodes=frozenset({release.pod.node or ""}))


def _unreplaced(seen: Observation, pod: Pod) -> bool:
    """Whether nothing makes a replacement beside the pod that a plan could wait for."""
    owner = seen.owner(pod)
    return owner is None or owner.kind == OwnerKind.JOB or _of_unplanned_gang(seen, pod)


def _of_unplanned_gang(seen: Observation, pod: Pod) -> bool:
    """Whether a pod is of a gang whose controller nobody knows, or of a PodGroup, which leaves at deadlines alone."""
    if not in_gang(pod):
        return False
    return seen.owner(pod) not in seen.workload or (
        pod.group is not None and gang_of(pod) == pod.group.ref
    )


def _blocked(
    seen: Observation, nodes: Sequence[Node], left: Sequence[Pod], *, force: bool
) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for out in opted_out_on(seen, node):
            yield str(out.pod), out.why
    for pod in left:
        if pod.deleting is not None:
            continue
        if has_returned(pod, seen.node[pod.node or ""]):
            yield str(pod), f"it came although the node is cordoned: {NAME_TOLERATIONS}"
        elif seen.owner(pod) is None and not force:
            yield str(pod), "no controller replaces a bare pod: evict it too with --force"


def _held(
    seen: Observation,
    left: Sequence[Pod],
    steps: Sequence[Step],
    planned: Plan,
    *,
    overruled: bool = False,
) -> Iterator[Pod]:
    """Yield the pods that wait for something which this drain does not bring about, of those that nothing blocks.

    A workload of which one pod moves goes on when that pod is replaced. One that waits for others of this drain goes on
    after them.
    """
    moving = {seen.workload_of(pod) for pod in left if pod.released or pod.deleting}
    moving |= {
        seen.workload_of(step.action.pod)
        for step in steps
        if isinstance(step.action, AboutPod) and not _refused(seen, step.action.pod)
    }
    words = [words for texts in planned.waiting.values() for words in texts if CONTENDED in words]
    for pod in left:
        ref = seen.workload_of(pod)
        if ref in moving or any(f"{ref}:" in each for each in words):
            continue
        if not overruled or pod.of_job:
            yield pod


def _refused(seen: Observation, pod: Pod) -> bool:
    """Whether a budget refuses the eviction of a pod of a Job: those of others are in the plan already."""
    budgets = seen.budgets_in.get(pod.namespace, ())
    return pod.of_job and any(
        b.disruptions_allowed < 1 and matches(b.selector, pod.labels) for b in budgets
    )


def _at_once(seen: Observation, left: Sequence[Pod], blocked: Mapping[str, str]) -> Iterator[Step]:
    """Yield evictions of what is not replaced first, as `kubectl drain` evicts it."""
    for pod in left:
        if pod.deleting is not None or str(pod) in blocked:
            continue
        owner = seen.owner(pod)
        if owner is None:
            reason = "a bare pod, with --force: nobody makes it anew"
        elif owner.kind == OwnerKind.JOB:
            reason = "its Job makes another pod elsewhere"
        elif _of_unplanned_gang(seen, pod):
            reason = "the controller of its gang makes another pod elsewhere"
        elif not pod.restarts:
            reason = "it is not restarted (restartPolicy Never)"
        else:
            continue
        yield Step(action=Evict(pod=pod, reason=reason), nodes=frozenset({pod.node or ""}))


def _with_grace(step: Step, request: DrainRequest) -> Step:
    action = step.action
    if request.grace_seconds is None or not isinstance(action, Evict):
        return step
    shorter = min(request.grace_seconds, action.grace_seconds or request.grace_seconds)
    return replace(step, action=replace(action, grace_seconds=shorter))


def drain_interruption(
    node: str, *, started: datetime, deadline: datetime | None = None
) -> Interruption:
    """Return the interruption that a drain by hand overlays on a node.

    Args:
        node: the name of the node.
        started: when the drain began; part of the identity.
        deadline: when pods are evicted against their budgets; None: never.
    """
    notice = NoticeRecord(kind=DRAIN, time=started, id=node, ends=deadline)
    return Interruption(
        instance=DRAIN,
        launched=started.replace(microsecond=0),
        node=node,
        notices=(notice,),
        cordoned=started,
    )
