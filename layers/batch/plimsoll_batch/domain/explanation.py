"""Why a gang waits, in words: what holds it, what would have to end first, and when that is expected.

A plan tells it for all gangs at once. This asks for one of them, of the present state, without planning
for the others: so it says what is short now, and how many stand before it in its queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from plimsoll_batch.domain.admission import QueueSnapshot, QueueState, age_of
from plimsoll_batch.domain.capacity import NoPlace, Placement, earliest_place, never_fits
from plimsoll_batch.domain.jobs import Gang, RunningGang
from plimsoll_batch.domain.quota import (
    Amounts,
    Assignment,
    QueueConfiguration,
    QueueOrder,
    QuotaNode,
    RoleFlavors,
    Unassigned,
    assign,
    costs_in_words,
    queues_below,
)

MOST_NAMED: Final = 5
"""Gangs and queues that are named in one list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known about a gang that waits."""

    gang: Gang
    held: tuple[str, ...]
    """What holds it: quota, borrowers, nodes, gates. Empty: it fits now, and starts when its turn comes."""
    ahead: int
    """Gangs before it in its queue."""
    flavors: tuple[str, ...] = ()
    """Where it fits now."""
    after: tuple[Gang, ...] = ()
    """What would have to end first."""
    at: datetime | None = None
    """When the last of these ends at the latest; None where they do not say it."""
    costs: tuple[str, ...] = ()
    """What orders its flavors, where that is what an interruption costs."""
    notes: tuple[str, ...] = ()
    """What else of it counts otherwise than it asked for."""


def why(seen: QueueState, uid: str, now: datetime) -> Explanation | None:
    """Explain why a gang waits; None where no gang of this uid does.

    Raises:
        BadInput: the configuration has problems.
    """
    gang = next((each for each in seen.gangs if each.uid == uid), None)
    if gang is None:
        return None
    snapshot = QueueSnapshot(seen)
    mates = [each for each in seen.gangs if each.queue == gang.queue and not each.gates]
    ahead = sum(age_of(each) < age_of(gang) for each in mates)
    held, after, flavors = _held(seen, snapshot, gang, now)
    queue = snapshot.queues.get(gang.queue)
    if queue is not None and queue.order is QueueOrder.STRICT_FIFO and ahead:
        strict = f"queue {queue.name} is strictly first in, first out: {ahead} are before it"
        held = (strict, *held)
    ends = [each.ends for each in after if each.ends is not None]
    return Explanation(
        gang=gang,
        held=held,
        ahead=ahead,
        flavors=flavors,
        after=tuple(each.gang for each in after),
        at=max(ends) if ends and len(ends) == len(after) else None,
        costs=() if queue is None else costs_in_words(gang.shape, queue, snapshot.flavors),
        notes=_notes(gang),
    )


def hopeless(configuration: QueueConfiguration, gang: Gang) -> tuple[str, ...]:
    """Say why a gang could not start in its queue though nothing else ran or waited; empty where it might.

    Raises:
        BadInput: the configuration has problems.
    """
    # What rides on spot beside others may be more than what it does alone.
    queues = tuple(replace(queue, spot_share=None) for queue in configuration.queues)
    alone = replace(configuration, queues=queues)
    snapshot = QueueSnapshot(QueueState(configuration=alone, gangs=(gang,)))
    queue = snapshot.queues.get(gang.queue)
    if queue is None:
        return (f"there is no queue {gang.queue}",)
    options = snapshot.options(gang)
    if isinstance(options, Unassigned):
        return options.reasons
    found = assign(snapshot.quotas.queues[gang.queue], queue, options)
    return found.reasons if isinstance(found, Unassigned) else ()


def _held(
    seen: QueueState, snapshot: QueueSnapshot, gang: Gang, now: datetime
) -> tuple[tuple[str, ...], Sequence[RunningGang], tuple[str, ...]]:
    """Return what holds a gang, and what would have to end first; or the flavors in which it fits now."""
    excluded = snapshot.why_held(gang)
    if excluded is not None:
        return (excluded,), (), ()
    options = snapshot.options(gang)
    if isinstance(options, Unassigned):
        return options.reasons, (), ()
    node, queue = snapshot.quotas.queues[gang.queue], snapshot.queues[gang.queue]
    placement = seen.placement()
    reasons: list[str] = []
    after: Sequence[RunningGang] = ()
    refused: set[tuple[RoleFlavors, ...]] = set()
    while isinstance(found := assign(node, queue, options, refused), Assignment):
        reasons += [each for each in found.passed_over if each not in reasons]
        if found.preempts:
            reasons += _short(snapshot, node, found.amounts)
            after = after or _ends_for_quota(snapshot, node, found, now)
            break
        short = None if placement is None else _short_of_nodes(seen, placement, gang, found, now)
        if short is None:
            return (), (), _named(found)
        reasons.append(short[0])
        after = after or short[1]
        refused.add(found.flavors)
    if isinstance(found, Unassigned) and not refused:
        reasons += found.reasons
    return tuple(reasons), after, ()


def _short_of_nodes(
    seen: QueueState, placement: Placement, gang: Gang, found: Assignment, now: datetime
) -> tuple[str, Sequence[RunningGang]] | None:
    """Say why a gang has no place in its flavors, and what would have to end first; None where it has one."""
    place = placement.place(gang, found.flavors)
    if not isinstance(place, NoPlace):
        return None
    names = ", ".join(_named(found))
    reason = f"flavor {names}: {placement.explain(gang, found.flavors) or place.reason}"
    if gang.request is not None:
        reason = f"{gang.request.in_words()}; {reason}"
        if gang.request.awaited(now):
            return reason, ()
    earliest = earliest_place(placement, seen.running, gang, found.flavors)
    if earliest is None:
        if never_fits(placement, seen.running, gang, found.flavors):
            why = "it would not fit though all gangs ended: it needs other nodes"
        else:
            why = "no place was found for all of it though all gangs ended"
        return f"{reason}; {why}", ()
    return reason, earliest[1]


def _named(found: Assignment) -> tuple[str, ...]:
    """Return the flavors of all roles."""
    return tuple(dict.fromkeys(name for flavors in found.flavors for name in flavors))


def _notes(gang: Gang) -> tuple[str, ...]:
    found = [] if gang.preempted is None else [f"it was {gang.preempted.in_words()}"]
    if gang.asked_priority is not None:
        found.append(
            f"its priority {gang.asked_priority} counts as {gang.priority}: queue {gang.queue} allows no more"
        )
    return tuple(found)


def in_words(found: Explanation) -> str:
    """Say an explanation in a few lines."""
    lines = [f"{found.gang} waits in queue {found.gang.queue}; {found.ahead} are before it."]
    lines += [f"  {each}" for each in (*found.notes, *found.costs)]
    if not found.held:
        where = f" in flavor {', '.join(found.flavors)}" if found.flavors else ""
        lines.append(f"It fits now{where}: it starts when its turn comes.")
    lines += [f"  {reason}" for reason in found.held]
    if found.after:
        named = _listed([str(gang) for gang in found.after])
        when = "nobody says when" if found.at is None else f"{found.at:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"It starts once these ended: {named}. Expected by: {when}.")
    return "\n".join(lines)


def _short(snapshot: QueueSnapshot, node: QuotaNode, amounts: Amounts) -> Iterator[str]:
    """Say of each amount that does not fit where quota went."""
    *_, root = node.path()
    for i, amount in amounts:
        left = node.available(i)
        if amount <= left:
            continue
        flavor, resource = snapshot.quotas.frs[i]
        said = (
            f"{resource} in flavor {flavor}: it wants {node.amount_text(i, amount)},"
            f" {node.amount_text(i, max(0, left))} are left; queue {node.name} uses"
            f" {node.amount_text(i, node.usage[i])} of its {node.amount_text(i, node.subtree[i])}"
        )
        borrowed = {
            f"queue {each.name}": each.usage[i] - each.subtree[i]
            for each in queues_below(root)
            if each.borrows(i)
        }
        if borrowed:
            largest = sorted(borrowed, key=lambda name: (-borrowed[name], name))
            said += "; borrowed by " + _listed(
                [f"{name} ({node.amount_text(i, borrowed[name])})" for name in largest]
            )
        yield said


def _ends_for_quota(
    snapshot: QueueSnapshot, node: QuotaNode, found: Assignment, now: datetime
) -> Sequence[RunningGang]:
    """Return gangs after whose end quota is enough: in the order in which they end, as far as known."""
    *_, root = node.path()
    wanted = {i for i, _ in found.amounts}
    holders = [
        holder
        for queue in queues_below(root)
        for holder in snapshot.holders.get(queue, {}).values()
        if any(i in wanted for i, _ in holder.amounts)
    ]
    holders.sort(
        key=lambda h: (
            h.running.ends is None,
            max(h.running.ends or h.running.admitted, now),
            h.running.gang.uid,
        )
    )
    ended, kept = [], []
    for holder in holders:
        if node.holds(found.amounts):
            break
        holder.queue.remove_all(holder.amounts)
        ended.append(holder)
    if not node.holds(found.amounts):
        ended = []
    for holder in reversed(ended):
        holder.queue.add_all(holder.amounts)
        if not node.holds(found.amounts):
            holder.queue.remove_all(holder.amounts)
            kept.append(holder.running)
    return kept[::-1]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
