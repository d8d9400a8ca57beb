"""The swap: replacements stand beside the old pods until they are Ready, then exactly those leave.

`replicas` is raised by the number of pods on interrupted nodes and noted on the workload in the same patch. When
the new ones are Ready, those on interrupted nodes are made the cheapest to delete and the count goes back: the
ReplicaSet takes them and nothing else, and no budget is asked. Deletion cost is only the fifth
thing that a ReplicaSet looks at on scale-in, after unassigned, Pending and not Ready: so the count
goes back only while every other pod is Ready; when one is not, those on interrupted nodes are evicted instead.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from plimsoll.domain.actions import CHEAPEST, Action, Evict, FinishSurge, Scale
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.names import DELETION_COST
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.disruption import WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.steps import Steps, Way
from plimsoll.domain.surge_replicas import SurgeReplicas

PATIENCE: Final = timedelta(minutes=5)
"""How long a replacement may take to become Ready before its surplus is given up."""


def _why(disruption: WorkloadDisruption) -> str | None:
    if disruption.workload is not None and disruption.ref.kind in {"Deployment", "ReplicaSet"}:
        return "its replicas are ours to raise for a while"
    return None


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    note = disruption.temporary
    if disruption.workload is None:
        return Steps()
    if note is not None and disruption.workload.replicas != note.set_to:
        return Steps(actions=(_let_go(disruption),))
    if disruption.staying_ready >= disruption.replicas:
        if disruption.dead:
            return Steps(waiting="pods that died with their instance are forgotten first")
        return _finish(disruption, headroom)
    if disruption.calm and (homeless := _homeless(disruption, headroom)):
        return _give_up(disruption, homeless)
    return _begin(disruption, headroom)


def _let_go(disruption: WorkloadDisruption) -> Action:
    """Somebody set another count since: theirs stands, only our note goes."""
    workload = disruption.workload
    assert workload is not None  # noqa: S101 - _steps looked
    return Scale(
        workload=workload,
        replicas=workload.replicas,
        temporary=None,
        reason=f"somebody set {workload.replicas} replicas meanwhile, and theirs count",
    )


def _finish(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    """Enough Ready pods stay: those on interrupted nodes may leave."""
    workload, note = disruption.workload, disruption.temporary
    assert workload is not None  # noqa: S101 - _steps looked
    sick = [p for p in disruption.staying if not p.ready]
    surplus = workload.replicas - disruption.replicas
    if note is not None and not sick and surplus >= len(disruption.evictable):
        return Steps(
            actions=(
                FinishSurge(
                    workload=workload,
                    replicas=note.restore,
                    evictable=tuple(d.pod for d in disruption.evictable),
                    reason=f"{disruption.staying_ready} of {disruption.replicas} are Ready elsewhere",
                ),
            )
        )
    if note is None and not sick and all(_cheapest(d.pod) for d in disruption.evictable):
        return Steps(waiting="its ReplicaSet is about to take the pods on interrupted nodes")
    why = f"{sick[0].name} is not Ready and would go first" if sick else "its count is its own"
    if disruption.allowed == 0:
        return Steps(waiting=disruption.blocked)
    leaving = disruption.evictable[: disruption.allowed]
    for one in leaving:
        headroom.contention.join(replacement_of(one.pod))
    return Steps(
        actions=tuple(
            Evict(pod=d.pod, reason=f"{disruption.staying_ready} are Ready elsewhere; {why}")
            for d in leaving
        )
    )


def _cheapest(pod: Pod) -> bool:
    return pod.annotations.get(DELETION_COST) == str(CHEAPEST)


def restore(disruption: WorkloadDisruption) -> Action | None:
    """Put a raised count back once nothing of the workload stands on an interrupted node.

    Not while replacements are still starting: a count put back takes those that are not Ready
    first, and among them not surely the youngest. After `PATIENCE` it goes back all the same.
    """
    if (
        disruption.workload is None
        or disruption.temporary is None
        or disruption.evictable
        or disruption.dead
    ):
        return None  # a pod that is dead but counted would stay, and a replacement go
    if disruption.workload.replicas != disruption.temporary.set_to:
        return _let_go(disruption)
    starting = [
        p for p in disruption.staying if not p.ready and disruption.now - p.created < PATIENCE
    ]
    if disruption.staying_ready < disruption.replicas and starting:
        return None
    return Scale(
        workload=disruption.workload,
        replicas=disruption.temporary.restore,
        temporary=None,
        reason="none of its pods is on an interrupted node any more",
    )


def _homeless(disruption: WorkloadDisruption, headroom: Headroom) -> int:
    """Count the surplus pods that have waited in vain for a node, and still have no place."""
    assert disruption.workload is not None  # noqa: S101 - _steps looked
    waiting = [
        p for p in disruption.staying if p.pending and disruption.now - p.created >= PATIENCE
    ]
    without = sum(headroom.snapshot.where(p) is None for p in waiting)
    return (
        0
        if disruption.temporary is None
        else min(without, disruption.workload.replicas - disruption.replicas)
    )


def _give_up(disruption: WorkloadDisruption, homeless: int) -> Steps:
    """Lower the count by pods that have no node: a ReplicaSet takes these before any other."""
    workload = disruption.workload
    assert workload is not None  # noqa: S101 - _steps looked
    left = workload.replicas - homeless
    note = (
        None
        if left == disruption.replicas
        else SurgeReplicas(restore=disruption.replicas, set_to=left)
    )
    reason = f"{homeless} replacements found no headroom, and nothing says when the nodes go"
    return Steps(
        actions=(Scale(workload=workload, replicas=left, temporary=note, reason=reason),),
        waiting=f"{disruption.staying_ready} of {disruption.replicas} are Ready elsewhere",
    )


def _begin(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    """Raise the count by the pods on interrupted nodes, or by as many as have headroom for now."""
    workload = disruption.workload
    assert workload is not None  # noqa: S101 - _steps looked
    want = disruption.replicas + len(disruption.evictable)
    waiting = f"{disruption.staying_ready} of {disruption.replicas} are Ready elsewhere"
    fits = sum(headroom.add(d.pod) is not None for d in disruption.evictable[: disruption.missing])
    if (headroom.kept or disruption.calm) and fits < disruption.missing:
        want = max(workload.replicas, min(want, workload.replicas + fits))
        waiting += "; more are made as there is headroom for them"
    one = replacement_of(disruption.evictable[0].pod)
    spared = headroom.contention.spares(one, max(0, want - workload.replicas))
    if workload.replicas + spared < want:
        want = workload.replicas + spared
        waiting += "; more are made when pods that left have the places they were promised"
    for _ in range(spared):
        headroom.contention.join(one)
    if want <= workload.replicas:
        return Steps(waiting=waiting)
    return Steps(
        actions=(
            Scale(
                workload=workload,
                replicas=want,
                temporary=SurgeReplicas(restore=disruption.replicas, set_to=want),
                reason=f"{len(disruption.evictable)} of its {disruption.replicas} pods stand on nodes that are "
                "going; their replacements come first",
            ),
        ),
        waiting=waiting,
    )


SWAP = Way(name="swap", surges=True, why=_why, steps=_steps)
