"""Which gangs start now: the drain loop over all queues.

One plan admits as many gangs as fit, one after the other in the order of their trees, each on what the
ones before left. Gangs of one kind are checked once where they are hopeless. All of it is a forecast by
one snapshot: whoever carries it out checks again, and the next plan begins anew.

What a plan frees by preemption is not there yet: whoever makes way still runs. So every admission has to
fit twice, beside those that are to stop, and beside those that wait for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from plimsoll_batch.domain.admission.decisions import (
    Admitted,
    Preempting,
    QueuePlan,
    Reserved,
    Waiting,
)
from plimsoll_batch.domain.admission.fair_sharing_order import Candidate, FairSharingOrder
from plimsoll_batch.domain.admission.pending_queues import PendingQueue
from plimsoll_batch.domain.admission.preemption_trial import Trials
from plimsoll_batch.domain.admission.queue_state import QueueSnapshot, QueueState
from plimsoll_batch.domain.admission.upcoming_reservations import UpcomingReservations
from plimsoll_batch.domain.capacity import NoPlace, Place, earliest_place
from plimsoll_batch.domain.jobs import Gang, RunningGang, Shape
from plimsoll_batch.domain.quota import (
    Assignment,
    Attempt,
    QueueOrder,
    QuotaNode,
    QuotaTrees,
    Reclaim,
    RoleFlavors,
    Unassigned,
    Victim,
    assign,
    assignments,
    victims_of,
)

MOST_TRIALS: Final = 200
"""So often an attempt to preempt looks for a place before it is given up; where that was needed, the next
attempts of the plan have what is left of it."""
MOST_RESERVATIONS: Final = 8
"""Heads of trees for which nodes are kept free; each costs a forecast of its own."""
_ENDING: Final = "waits until gangs that were asked to stop have ended"


def plan_queues(seen: QueueState, now: datetime, *, most_pods: int | None = None) -> QueuePlan:
    """Decide what becomes of every gang that waits.

    Args:
        seen: configuration, gangs and nodes.
        now: the present.
        most_pods: no more are started, because the control plane would not keep up.

    Raises:
        BadInput: the configuration has problems.
    """
    return _Planner(seen, now, most_pods).run()


class _Planner:
    """One plan in the making."""

    def __init__(self, seen: QueueState, now: datetime, most_pods: int | None) -> None:
        """Line up all gangs."""
        self._seen, self._now, self._pods_left = seen, now, most_pods
        self._snapshot = QueueSnapshot(seen)
        self._placement = seen.placement()
        self._waiting: list[Waiting] = []
        self._pending = {
            self._snapshot.quotas.queues[name]: PendingQueue(self._snapshot.queues[name], gangs)
            for name, gangs in self._sorted_out()
        }
        self._blocked: set[QuotaNode] = set()
        self._shares = self._snapshot.shares(self._blocked)
        self._order = FairSharingOrder(self._shares)
        self._present: QuotaTrees | None = None
        """Use as it is until victims have stopped; made with the first of them."""
        self._no_place: dict[tuple[Shape, bool], dict[tuple[RoleFlavors, ...], str]] = {}
        """Shape, and whether it may stand on reserved nodes -> flavors in which it has no place, and why."""
        asked = [g for g in seen.gangs if g.request and self._snapshot.why_held(g) is None]
        self._reservations = (
            None
            if self._placement is None
            else UpcomingReservations(self._placement, seen.capacity, asked, now)
        )
        self._trials = MOST_TRIALS
        self._reserved_in: set[QuotaNode] = set()
        self._admitted: list[Admitted] = []
        self._preempting: list[Preempting] = []
        self._reserved: list[Reserved] = []

    def run(self) -> QueuePlan:
        """Admit as long as anything can be."""
        for queue in self._pending:
            self._enter(queue)
        while (candidate := self._order.first()) is not None:
            # Asked again: gangs that were admitted meanwhile may have taken its flavors.
            fresh = self._candidate(candidate.queue)
            if fresh is None or _changed(fresh, candidate):
                self._enter(candidate.queue, fresh)
                continue
            pods = sum(role.pods for role in candidate.gang.shape.roles)
            # Smaller gangs do not start either: they would overtake a large one for ever.
            if self._pods_left is not None and pods > self._pods_left:
                break
            self._decide(candidate)
            self._enter(candidate.queue)
        for line in self._pending.values():
            self._waiting += line.rest("this plan starts no more pods than the control plane takes")
        reservations = self._reservations
        return QueuePlan(
            admitted=tuple(self._admitted),
            preempting=tuple(self._preempting),
            reserved=tuple(self._reserved),
            waiting=tuple(self._waiting),
            awaiting=() if reservations is None else tuple(reservations.awaiting),
            given_up=() if reservations is None else tuple(reservations.given_up),
            lacks_nodes=reservations is not None and reservations.lacks_nodes,
        )

    def _sorted_out(self) -> Iterator[tuple[str, list[Gang]]]:
        """Yield each queue's gangs; those that cannot be considered wait, each kind with its reason."""
        by_queue: dict[str, list[Gang]] = defaultdict(list)
        others: dict[tuple[str, str], list[Gang]] = defaultdict(list)
        open_queues = {name for name, queue in self._snapshot.queues.items() if not queue.stopped}
        for gang in self._seen.gangs:
            if not gang.gates and gang.queue in open_queues:  # as nearly all are
                by_queue[gang.queue].append(gang)
                continue
            why = self._snapshot.why_held(gang)
            (by_queue[gang.queue] if why is None else others[gang.queue, why]).append(gang)
        for (name, why), gangs in others.items():
            self._waiting.append(Waiting(queue=name, gangs=tuple(gangs), reason=why))
        yield from sorted(by_queue.items())

    def _enter(self, queue: QuotaNode, candidate: Candidate | None = None) -> None:
        candidate = candidate or self._candidate(queue)
        if candidate is None:
            self._blocked.add(queue)
        else:
            self._blocked.discard(queue)
        self._order.enter(queue, candidate)

    def _candidate(self, node: QuotaNode) -> Candidate | None:
        """Return the head of a queue with flavors; what can have none waits."""
        line = self._pending.get(node)
        while line is not None and (gang := line.head()) is not None:
            options = self._snapshot.options(gang)
            if isinstance(options, Unassigned):
                line.park("; ".join(options.reasons))
                continue
            queue = self._snapshot.queues[gang.queue]
            refused = self._no_place.get((gang.shape, self._is_short(gang)), {})
            found = assign(node, queue, options, refused)
            if isinstance(found, Unassigned) and refused:
                found = assign(node, queue, options)  # others may make way on its nodes
            if isinstance(found, Unassigned):
                line.park("; ".join(found.reasons))
                continue
            return Candidate(node, gang, found)
        return None

    def _decide(self, candidate: Candidate) -> None:
        """Decide about a head: the line goes on without it, or without all that are alike."""
        if candidate.assignment.preempts:
            self._preempt_or_wait(candidate)
        elif not self._fits_at_present(candidate):
            self._park(candidate, _ENDING)
        else:
            self._start(candidate)

    def _start(self, candidate: Candidate) -> None:
        """Admit a gang that has quota, if it has a place too."""
        gang, flavors = candidate.gang, candidate.assignment.flavors
        refused = self._no_place.setdefault((gang.shape, self._is_short(gang)), {})
        if flavors not in refused:
            place = self._place(candidate)
            if not isinstance(place, NoPlace):
                self._admit(candidate, place)
                return
            refused[flavors] = place.reason
            fresh = self._candidate(candidate.queue)
            if fresh is None or _changed(fresh, candidate):
                return  # it may get other flavors
        why = self._await(candidate)
        if why is not None and not (self._preempt(candidate) or self._reserve(candidate)):
            self._park(candidate, "; ".join(filter(None, (f"no place: {refused[flavors]}", why))))

    def _preempt_or_wait(self, candidate: Candidate) -> None:
        """Let others make way for a gang without quota, or keep nodes for it where it has quota elsewhere."""
        preempts_first = self._snapshot.queues[candidate.gang.queue].preempt_first
        if not preempts_first and self._await(candidate) is None:
            return
        if self._preempt(candidate) or (preempts_first and self._await(candidate) is None):
            return
        for each in self._choices(candidate):
            if not each.assignment.preempts and self._reserve(each):
                return
        self._park(candidate, self._short_of(candidate))

    def _choices(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield a head with all flavors that it may get, in the order in which they are tried."""
        gang, node = candidate.gang, candidate.queue
        options = self._snapshot.options(gang)
        if not isinstance(options, Unassigned):
            for found in assignments(node, self._snapshot.queues[gang.queue], options):
                yield Candidate(node, gang, found)

    def _admit(self, candidate: Candidate, place: Place | None) -> None:
        gang, assignment = candidate.gang, candidate.assignment
        self._count(candidate)
        if self._pods_left is not None:
            self._pods_left -= sum(role.pods for role in gang.shape.roles)
        borrows = any(candidate.queue.borrows(i) for i, _ in assignment.amounts)
        self._admitted.append(
            Admitted(
                gang=gang,
                flavors=_by_role(gang, assignment),
                usage=self._snapshot.usage(assignment),
                place=place,
                reason="borrows from its cohort" if borrows else "within the quota of its queue",
            )
        )
        self._pending[candidate.queue].pop()
        if self._reservations is not None:
            self._reservations.settle(gang)

    def _count(self, candidate: Candidate) -> None:
        """Count what a gang uses, now and once victims have stopped."""
        candidate.queue.add_all(candidate.assignment.amounts)
        if self._present is not None:
            present = self._present.queues[candidate.queue.name]
            present.add_all(candidate.assignment.amounts)

    def _fits_at_present(self, candidate: Candidate) -> bool:
        if self._present is None:
            return True
        return self._present.queues[candidate.queue.name].holds(candidate.assignment.amounts)

    def _is_short(self, gang: Gang) -> bool:
        """Whether it ends before anything is needed of what is reserved."""
        return gang.limit is not None and all(
            each.at is not None and self._now + gang.limit <= each.at for each in self._reserved
        )

    def _place(self, candidate: Candidate) -> Place | NoPlace | None:
        """Place a gang; one that ends early enough stands on reserved nodes too."""
        gang, placement = candidate.gang, self._placement
        if placement is None:
            return None
        lifted = self._reserved if self._is_short(gang) else ()
        for each in lifted:
            placement.remove(each.place)
        found = placement.place(gang, candidate.assignment.flavors)
        for each in lifted:
            placement.put(each.place)
        return found

    def _preempt(self, candidate: Candidate) -> bool:
        """Let others make way for a gang, if the configuration allows it in any flavor.

        Where it may choose, it rather takes back what others borrow than stops gangs of its own queue. A queue
        that would preempt before it tries the next flavor does that only where it can.
        """
        preempts_first = self._snapshot.queues[candidate.gang.queue].preempt_first
        no_place = self._no_place.get((candidate.gang.shape, self._is_short(candidate.gang)), {})
        best: tuple[Candidate, Attempt, Sequence[Victim]] | None = None
        for each in self._choices(candidate):
            if not each.assignment.preempts and each.assignment.flavors not in no_place:
                self._decide(each)
                return True
            if self._trials <= 0:
                break
            trials = Trials(self._placement, each.gang, each.assignment.flavors, self._trials)
            attempt = self._attempt(each, trials)
            victims = victims_of(attempt)
            self._trials -= trials.failed
            if not victims:
                continue
            reclaims = all(victim.holder.queue is not each.queue for victim in victims)
            if best is None or reclaims:
                best = each, attempt, victims
            if preempts_first or reclaims:
                break
        return best is not None and self._make_way(*best)

    def _attempt(self, candidate: Candidate, trials: Trials) -> Attempt:
        return Attempt(
            queue=candidate.queue,
            gang=candidate.gang,
            amounts=candidate.assignment.amounts,
            holders={node: held.values() for node, held in self._snapshot.holders.items()},
            shares=self._shares,
            now=self._now,
            has_nodes=trials.has_nodes,
            took=trials.took,
            put_back=trials.put_back,
        )

    def _make_way(self, candidate: Candidate, attempt: Attempt, victims: Sequence[Victim]) -> bool:
        """Let others make way for a gang; False where it would find no place all the same."""
        gang, assignment = candidate.gang, candidate.assignment
        if self._present is None:
            self._present = self._as_it_is()
        for victim in victims:
            attempt.take(victim.holder)
        if self._placement is not None:
            place = self._placement.place(gang, assignment.flavors)
            if isinstance(place, NoPlace):
                attempt.restore_all(victims)
                return False
            self._placement.hold([v.holder.running for v in victims], place)
        candidate.queue.add_all(assignment.amounts)
        for victim in victims:
            del self._snapshot.holders[victim.holder.queue][victim.holder.running.gang.uid]
        self._preempting.append(
            Preempting(
                gang=gang,
                flavors=_by_role(gang, assignment),
                victims=victims,
                usage=self._snapshot.usage(assignment),
                reason=_waits_for(victims),
            )
        )
        self._pending[candidate.queue].pop()
        # Their queues use less quota now, which may change the rank of their heads.
        for queue in {victim.holder.queue for victim in victims} - {candidate.queue}:
            self._enter(queue)
        return True

    def _as_it_is(self) -> QuotaTrees:
        """Return what is used at present: what runs, and what this plan admitted or reserved."""
        present = QuotaTrees(self._seen.configuration)
        for name, node in present.queues.items():
            mine = self._snapshot.quotas.queues[name]
            node.add_all([(i, used) for i, used in enumerate(mine.usage) if used])
        return present

    def _await(self, candidate: Candidate) -> str | None:
        """Let a gang that has quota wait for nodes that come; or say why it does not."""
        gang = candidate.gang
        if self._reservations is None:
            return ""
        free = (each.assignment for each in self._choices(candidate))
        found = self._reservations.reserve(gang, (each for each in free if not each.preempts))
        if isinstance(found, str):
            return found
        reserved = Candidate(candidate.queue, gang, found.assignment)
        if found.comes:
            self._count(reserved)
            self._keep_for(reserved, "nodes come for it")
        elif self._fits_at_present(reserved):
            self._admit(reserved, found.place)
        else:
            self._reservations.withdraw(found)
            self._park(reserved, _ENDING)
        return None

    def _reserve(self, candidate: Candidate) -> bool:
        """Keep nodes free for the first of a tree that has quota and no place."""
        *_, root = candidate.queue.path()
        full = len(self._reserved) >= MOST_RESERVATIONS or root in self._reserved_in
        if self._placement is None or full:
            return False
        self._reserved_in.add(root)
        gang = candidate.gang
        running = [h.running for held in self._snapshot.holders.values() for h in held.values()]
        found = earliest_place(self._placement, running, gang, candidate.assignment.flavors)
        if found is None:
            return False
        place, after, at = found
        self._placement.put(place)
        self._count(candidate)
        when = "nobody says when" if at is None else f"by {at:%Y-%m-%d %H:%M:%S} UTC"
        self._reserved.append(
            Reserved(
                gang=gang,
                place=place,
                at=at,
                after=tuple(each.gang for each in after),
                reason=f"has quota; its nodes are free once {_named(after)} ended, {when}",
            )
        )
        self._keep_for(candidate, "nodes are kept free for it")
        return True

    def _keep_for(self, candidate: Candidate, how: str) -> None:
        """Go on without a gang that something is kept for; in strict order nobody overtakes it."""
        line = self._pending[candidate.queue]
        line.pop()
        if self._snapshot.queues[candidate.gang.queue].order is QueueOrder.STRICT_FIFO:
            line.block(f"{candidate.gang} is first, and {how}")

    def _park(self, candidate: Candidate, reason: str) -> None:
        """Let a kind of gang wait; a strict queue keeps what its head needs from those who would borrow it."""
        node, queue = candidate.queue, self._snapshot.queues[candidate.gang.queue]
        self._pending[node].park(reason)
        if queue.order is QueueOrder.STRICT_FIFO and node.may_preempt.reclaim is not Reclaim.ANY:
            for i, amount in candidate.assignment.amounts:
                node.add(i, max(0, min(amount, node.available(i))))

    def _short_of(self, candidate: Candidate) -> str:
        short = [
            f"{self._snapshot.quotas.frs[i][1]} of {self._snapshot.quotas.frs[i][0]}"
            for i, amount in candidate.assignment.amounts
            if amount > candidate.queue.available(i)
        ]
        return (
            f"no quota left for {', '.join(short)}, and nothing that may be preempted frees enough"
        )


def _changed(fresh: Candidate, candidate: Candidate) -> bool:
    return fresh.gang is not candidate.gang or fresh.assignment != candidate.assignment


def _by_role(gang: Gang, assignment: Assignment) -> dict[str, RoleFlavors]:
    names = (role.name for role in gang.shape.roles)
    return dict(zip(names, assignment.flavors, strict=True))


def _waits_for(victims: Sequence[Victim]) -> str:
    stopping = sum(victim.holder.running.stopping for victim in victims)
    named = _named([victim.holder.running for victim in victims])
    if stopping == len(victims):
        return f"waits until {named} stopped"
    return f"{named} make way: {victims[0].reason}"


def _named(running: Sequence[RunningGang]) -> str:
    """Name the first few."""
    names = [str(each.gang) for each in running[:3]]
    more = len(running) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
