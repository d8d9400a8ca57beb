"""Which of the pods that died with their instance are not freed yet.

To free a pod is to delete what the API server still has of it. Its endpoint goes, and its controller
makes a successor, which stands in line for a place. Where places are short, the line decides who serves: kube-scheduler
gives a place to the pod that has waited for the longest, of those of the same priority.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.disruptions import PATIENCE
from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import InterruptedNodes, Observation, is_dead
from plimsoll.domain.scheduling import Headroom

HEAD_START: Final = timedelta(seconds=5)
"""How long the others leave the line to the first of each workload. A plan takes a second, and
what the API server refuses for one workload may not hold up the others."""


def kept(
    seen: Observation,
    interrupted: InterruptedNodes,
    dead: Sequence[Pod],
    headroom: Headroom,
    now: datetime,
) -> Mapping[str, str]:
    """Return the uids of the dead that are not freed in this plan, each with the reason.

    None is kept for longer than `PATIENCE`, after which Kubernetes itself deletes the pods of a node
    that does not answer.
    """
    lately = [pod for pod in dead if now < _died(interrupted, pod, now) + PATIENCE]
    short = {pod.uid for pod in headroom.short}
    lining_up = [pod for pod in lately if pod.deleting is None and pod.uid in short]
    serving = {ref for ref in map(seen.workload_of, lining_up) if _serves(seen, ref)}
    found = {
        pod.uid: "another of its workload waits for a place, and its instance may be started again"
        for pod in lining_up
        if (ref := seen.workload_of(pod)) not in serving
        and _may_start_again(seen, pod)
        and any(mate.pending and mate.uid in short for mate in seen.of_workload[ref])
    }
    # Turns are given only to those that are freed at all: others would hold the line up.
    line = [pod for pod in lining_up if pod.uid not in found]
    turn = dict(_turns(seen, line, serving))
    foremost = min(turn.values(), default=0)
    found |= {
        pod.uid: "the first of each workload stands in line before it"
        for pod in line
        if turn[pod.uid] > foremost and now < _died(interrupted, pod, now) + HEAD_START
    }
    found |= {
        pod.uid: "pods that serve have their places first"
        for pod in lately
        if headroom.gives_way(pod)
    }
    return found


def _turns(
    seen: Observation, line: Sequence[Pod], serving: Collection[Ref]
) -> Iterator[tuple[str, int]]:
    """Yield by uid when a pod is freed: the first of each workload that serves nowhere, of each other, then all."""
    begun = {*map(seen.workload_of, seen.pending)}
    for pod in line:
        ref = seen.workload_of(pod)
        yield pod.uid, 2 if ref in begun else int(ref in serving)
        begun.add(ref)


def _died(interrupted: InterruptedNodes, pod: Pod, now: datetime) -> datetime:
    """Return when the instance of a pod was found to be gone: now, if the record does not say it yet."""
    return interrupted.interruption[pod.node or ""].gone or now


def _serves(seen: Observation, workload: Ref) -> bool:
    pods = seen.of_workload.get(workload, ())
    return any(pod.serving and not is_dead(seen, pod) for pod in pods)


def _may_start_again(seen: Observation, pod: Pod) -> bool:
    """Whether its instance is only stopped or hibernated: then it runs on there once that is started."""
    node = seen.node.get(pod.node or "")
    said = None if node is None else seen.instances.get(node.instance or "")
    return said is not None and said.stopped
