"""The life of a recommendation: open, accepted, done, and then whether the cluster shows it.

open ── accepted ── done ── seen
│        └─────── refused ── open, once it is advised again
├── dismissed ── withdrawn, once its time has passed
└── withdrawn ── open, once it is advised again
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll_service.domain.analysis import Consolidation, View
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.advice import Kind, Recommendation
from plimsoll_service.wire.documents import MOST_TEXT_CHARACTERS, shortened
from plimsoll_service.wire.instructions import (
    Action,
    Instruction,
    Plan,
    Preconditions,
    Result,
    StandingWorkload,
    Target,
)

LIFE: Final = timedelta(minutes=30)
"""How long an executor may take until it begins: what an instruction says grows old."""
QUIET: Final = timedelta(hours=1)
"""After a refusal nothing is asked again for so long."""

_UNSEEN: Final = "the cluster does not show whether AWS still bills the volume: look for it in EC2"


def merged(
    known: Mapping[str, Recommendation],
    found: Iterable[Recommendation],
    view: View,
    unreached: Collection[Kind] = (),
) -> Iterator[Recommendation]:
    """Yield the recommendations that a new analysis makes or changes.

    Args:
        known: those that are kept, by id.
        found: what the analysis found, all open.
        view: the cluster that it was made of.
        unreached: kinds that the analysis had no time for: what is open of them stays so.
    """
    advised = {each.id: each for each in found}
    for each in advised.values():
        before = known.get(each.id)
        after = each if before is None else _advised_again(before, each, view.at)
        if after != before:
            yield after
    for before in known.values():
        stands = before.state == "open" and before.kind in unreached
        # Accepted and done recommendations are checked even if
        # they are advised again: the cluster shows their effect.
        if (before.id not in advised and not stands) or before.state in {"accepted", "done"}:
            after = _observed(before, view)
            if after != before:
                yield after


def _advised_again(before: Recommendation, each: Recommendation, now: datetime) -> Recommendation:
    match before.state:
        case "open":
            return replace(
                each, since=before.since, changed_at=before.changed_at, decided=before.decided
            )
        case "withdrawn":
            return each
        case "refused":
            return before if now - before.changed_at < QUIET else replace(each, note=before.note)
        case "accepted" | "done" | "dismissed":
            return before


def _observed(before: Recommendation, view: View) -> Recommendation:
    """Return what a kept recommendation has become by what the cluster shows now."""
    match before.state:
        case "open":
            lost = not before.measurable and _is_done(before, view)
            note = _UNSEEN if lost else "the cluster has changed"
            return replace(before, state="withdrawn", changed_at=view.at, note=note)
        case "accepted" if not before.executable and _is_done(before, view):
            note, seen_at = ("seen", view.at) if before.measurable else (_UNSEEN, None)
            return replace(before, state="done", changed_at=view.at, seen_at=seen_at, note=note)
        case "done" if before.measurable:
            shown = _is_done(before, view)
            seen_at = (before.seen_at or view.at) if shown else None
            # An older version left its forecast there.
            return replace(before, seen_at=seen_at, measured=None)
        case _:
            return before


def _is_done(each: Recommendation, view: View) -> bool:
    """Whether the cluster shows that what was advised came true."""
    seen, uid = view.seen, each.about.uid
    match each.kind:
        case "consolidate-node":
            return all(node.uid != uid for node in seen.nodes)
        case "right-size":
            workload = view.workloads.get(uid)
            return workload is not None and _is_resized(each, workload)
        case "allow-spot":
            workload = view.workloads.get(uid)
            return workload is not None and MIN_ON_DEMAND in workload.annotations
        case "orphan-volume":
            return all(volume.uid != uid for volume in seen.volumes)
        case "idle-load-balancer":
            return all(balancer.uid != uid for balancer in seen.load_balancers)
        case "instance-mix":
            return False  # what its owner makes of it shows in the spend, and in nothing else


def _is_resized(each: Recommendation, workload: wire.Workload) -> bool:
    if not each.containers:
        return (each.cpu_m, each.memory) == (workload.requests.cpu_m, workload.requests.memory)
    now = {container.name: container.requests for container in workload.template}
    return all(
        now.get(then.name) == wire.Amounts(cpu_m=then.cpu_m, memory=then.memory)
        for then in each.containers
    )


def awaits_instruction(each: Recommendation) -> bool:
    """Whether an instruction is still to be made of it."""
    return each.state == "accepted" and each.executable and not each.instruction


def resolved(each: Recommendation, result: Result, now: datetime) -> Recommendation:
    """Return a recommendation whose executor said what became of its instruction."""
    if each.state != "accepted" or each.instruction != result.number:
        return each
    state = "done" if result.outcome == "done" else "refused"
    return replace(each, state=state, changed_at=now, note=f"{result.outcome}: {result.reason}")


def refused(each: Recommendation, why: str, now: datetime) -> Recommendation:
    """Return an accepted recommendation of which no instruction can be made."""
    return replace(each, state="refused", changed_at=now, note=why)


def lapsed(each: Recommendation, now: datetime) -> Recommendation:
    """Return an accepted recommendation whose instruction nobody carried out in its time."""
    if each.state == "accepted" and each.instruction and now - each.changed_at > 2 * LIFE:
        return replace(
            each, state="refused", changed_at=now, note="its executor did not answer in time"
        )
    return each


def instruction_for(
    each: Recommendation, found: Consolidation, view: View, number: int, now: datetime
) -> Instruction:
    """Return the instruction that an accepted recommendation becomes, from the cluster as it is now."""
    node = found.node
    standing = {
        workload.uid: workload
        for pod in found.pods
        if (workload := view.workload_of(pod)) is not None
    }
    uids = {told.name: told.uid for told in view.seen.nodes}
    moves = zip(found.pods, found.destinations, strict=True)
    return Instruction(
        id=each.id,
        cluster_id=view.seen.cluster_id,
        number=number,
        issued_at=now,
        expires_at=now + LIFE,
        kind="consolidate-node",
        target=Target(name=node.name, uid=node.uid, provider_id=node.provider_id),
        preconditions=Preconditions(
            workloads=tuple(
                StandingWorkload(
                    kind=workload.kind,
                    namespace=workload.namespace,
                    name=workload.name,
                    uid=uid,
                    replicas=workload.replicas,
                )
                for uid, workload in sorted(standing.items())
            ),
            most_pods=len(found.pods),
            destinations=tuple(sorted({uids[name] for name in found.destinations})),
        ),
        plan=Plan(
            reason=each.reason,
            actions=(
                Action(verb="cordon", target=f"Node {node.name}", reason="it is consolidated"),
                *(
                    Action(
                        verb="evict",
                        target=shortened(f"Pod {pod.namespace}/{pod.name}", MOST_TEXT_CHARACTERS),
                        reason=f"it fits on {where}",
                    )
                    for pod, where in list(moves)[:1000]
                ),
            ),
        ),
    )
