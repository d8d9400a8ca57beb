"""The swap: replacements stand beside the doomed pods until they are Ready, then exactly those go.

`replicas` is raised by the number of doomed pods and noted on the workload in the same patch. When
the new ones are Ready, the doomed are made the cheapest to delete and the count goes back: the
ReplicaSet takes them and nothing else, and no budget is asked. Deletion cost is only the fifth
thing that a ReplicaSet looks at on scale-in, after unassigned, Pending and not Ready: so the count
goes back only while every other pod is Ready; when one is not, the doomed are evicted instead.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from plimsoll.domain.actions import Action, Evict, GiveBack, Scale
from plimsoll.domain.actions.give_back import CHEAPEST
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.names import DELETION_COST
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.case import Case
from plimsoll.domain.replace.room import Room
from plimsoll.domain.replace.steps import Steps, Way
from plimsoll.domain.temporary import TemporaryReplicas

PATIENCE: Final = timedelta(minutes=5)
"""How long a replacement may take to become Ready before its surplus is given up."""


def _why(case: Case) -> str | None:
    if case.workload is not None and case.ref.kind in {"Deployment", "ReplicaSet"}:
        return "its replicas are ours to raise for a while"
    return None


def _steps(case: Case, room: Room) -> Steps:
    note = case.temporary
    if case.workload is None:
        return Steps()
    if note is not None and case.workload.replicas != note.set_to:
        return Steps(actions=(_let_go(case),))
    if case.staying_ready >= case.replicas:
        if case.dead:
            return Steps(waiting="pods that died with their instance are forgotten first")
        return _finish(case, room)
    if case.calm and (homeless := _homeless(case, room)):
        return _give_up(case, homeless)
    return _begin(case, room)


def _let_go(case: Case) -> Action:
    """Somebody set another count since: theirs stands, only our note goes."""
    workload = case.workload
    assert workload is not None  # noqa: S101 - _steps looked
    return Scale(
        workload=workload,
        replicas=workload.replicas,
        temporary=None,
        reason=f"somebody set {workload.replicas} replicas meanwhile, and theirs count",
    )


def _finish(case: Case, room: Room) -> Steps:
    """Enough Ready pods stay: the doomed may go."""
    workload, note = case.workload, case.temporary
    assert workload is not None  # noqa: S101 - _steps looked
    sick = [p for p in case.staying if not p.ready]
    surplus = workload.replicas - case.replicas
    if note is not None and not sick and surplus >= len(case.doomed):
        return Steps(
            actions=(
                GiveBack(
                    workload=workload,
                    replicas=note.restore,
                    doomed=tuple(d.pod for d in case.doomed),
                    reason=f"{case.staying_ready} of {case.replicas} are Ready elsewhere",
                ),
            )
        )
    if note is None and not sick and all(_cheapest(d.pod) for d in case.doomed):
        return Steps(waiting="its ReplicaSet is about to take the doomed pods")
    why = f"{sick[0].name} is not Ready and would go first" if sick else "its count is its own"
    if case.allowed == 0:
        return Steps(waiting=case.blocked)
    leaving = case.doomed[: case.allowed]
    for one in leaving:
        room.crowd.join(replacement_of(one.pod))
    return Steps(
        actions=tuple(
            Evict(pod=d.pod, reason=f"{case.staying_ready} are Ready elsewhere; {why}")
            for d in leaving
        )
    )


def _cheapest(pod: Pod) -> bool:
    return pod.annotations.get(DELETION_COST) == str(CHEAPEST)


def restore(case: Case) -> Action | None:
    """Put a raised count back once nothing of the workload stands on a node that is going.

    Not while replacements are still starting: a count put back takes those that are not Ready
    first, and among them not surely the youngest. After `PATIENCE` it goes back all the same.
    """
    if case.workload is None or case.temporary is None or case.doomed or case.dead:
        return None  # a pod that is dead but counted would stay, and a replacement go
    if case.workload.replicas != case.temporary.set_to:
        return _let_go(case)
    starting = [p for p in case.staying if not p.ready and case.now - p.created < PATIENCE]
    if case.staying_ready < case.replicas and starting:
        return None
    return Scale(
        workload=case.workload,
        replicas=case.temporary.restore,
        temporary=None,
        reason="none of its pods is on a node that is going any more",
    )


def _homeless(case: Case, room: Room) -> int:
    """Count the surplus pods that have waited in vain for a node, and still have no place."""
    assert case.workload is not None  # noqa: S101 - _steps looked
    waiting = [p for p in case.staying if p.pending and case.now - p.created >= PATIENCE]
    without = sum(room.board.where(p) is None for p in waiting)
    return 0 if case.temporary is None else min(without, case.workload.replicas - case.replicas)


def _give_up(case: Case, homeless: int) -> Steps:
    """Lower the count by pods that have no node: a ReplicaSet takes these before any other."""
    workload = case.workload
    assert workload is not None  # noqa: S101 - _steps looked
    left = workload.replicas - homeless
    note = None if left == case.replicas else TemporaryReplicas(restore=case.replicas, set_to=left)
    reason = f"{homeless} replacements found no room, and nothing says when the nodes go"
    return Steps(
        actions=(Scale(workload=workload, replicas=left, temporary=note, reason=reason),),
        waiting=f"{case.staying_ready} of {case.replicas} are Ready elsewhere",
    )


def _begin(case: Case, room: Room) -> Steps:
    """Raise the count by as many as are doomed, or by as many as have room for now."""
    workload = case.workload
    assert workload is not None  # noqa: S101 - _steps looked
    want = case.replicas + len(case.doomed)
    waiting = f"{case.staying_ready} of {case.replicas} are Ready elsewhere"
    fits = sum(room.add(d.pod) is not None for d in case.doomed[: case.missing])
    if (room.kept or case.calm) and fits < case.missing:
        want = max(workload.replicas, min(want, workload.replicas + fits))
        waiting += "; more are made as there is room for them"
    one = replacement_of(case.doomed[0].pod)
    spared = room.crowd.spares(one, max(0, want - workload.replicas))
    if workload.replicas + spared < want:
        want = workload.replicas + spared
        waiting += "; more are made when pods that left have the places they were promised"
    for _ in range(spared):
        room.crowd.join(one)
    if want <= workload.replicas:
        return Steps(waiting=waiting)
    return Steps(
        actions=(
            Scale(
                workload=workload,
                replicas=want,
                temporary=TemporaryReplicas(restore=case.replicas, set_to=want),
                reason=f"{len(case.doomed)} of its {case.replicas} pods stand on nodes that are "
                "going; their replacements come first",
            ),
        ),
        waiting=waiting,
    )


SWAP = Way(name="swap", surges=True, why=_why, steps=_steps)
