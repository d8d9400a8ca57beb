"""Upcoming nodes, reserved for gangs that have quota and no place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from plimsoll_batch.domain.admission.decisions import Awaiting, GivenUp
from plimsoll_batch.domain.capacity import Capacity, Place, Placement, UpcomingNodes, UpcomingPlace
from plimsoll_batch.domain.jobs import Gang, NodeRequest, Turn, turn_of
from plimsoll_batch.domain.quota import Assignment

MOST_AWAITING: Final = 32
"""Gangs that await nodes at a time; each costs a bin packing in every plan."""


class UpcomingReservation(NamedTuple):
    """A place for a whole gang."""

    assignment: Assignment
    place: Place
    comes: bool
    """Whether some of it has still to come."""


class UpcomingReservations:
    """What one plan reserves of the nodes that are on their way."""

    def __init__(
        self,
        placement: Placement,
        capacity: Capacity | None,
        gangs: Iterable[Gang],
        now: datetime,
    ) -> None:
        """Begin without reservations, but for what gangs asked for before; without capacity nobody gets one."""
        self._placement, self._now = placement, now
        requests = {g.uid: g.request for g in gangs if g.request and g.request.awaited(now)}
        self._upcoming = None if capacity is None else UpcomingNodes(capacity, requests, now)
        self.awaiting: list[Awaiting] = []
        self.given_up: list[GivenUp] = []
        self.lacks_nodes = False
        """Whether anybody wanted one."""

    def reserve(self, gang: Gang, assignments: Iterable[Assignment]) -> UpcomingReservation | str:
        """Reserve a place for a gang in one of its flavors, in their order; or say why it gets none."""
        self.settle(gang)
        reasons: dict[str, None] = {}
        for assignment in assignments:
            self.lacks_nodes = True
            if self._upcoming is None:
                return ""
            if len(self.awaiting) >= MOST_AWAITING:
                return f"{MOST_AWAITING} gangs await nodes already"
            upcoming = self._upcoming.find(self._placement, gang, assignment.flavors)
            if isinstance(upcoming, str):
                reasons[upcoming] = None
                continue
            kept = self._keep(self._upcoming, gang, upcoming)
            if not isinstance(kept, str):
                return UpcomingReservation(assignment, kept, self._placement.comes(kept))
            reasons[kept] = None
        words = "; ".join(reasons)
        if self._upcoming is not None and gang.request is not None:
            request = gang.request
            unasked = not request.answered and request.awaited(self._now)
            if unasked or self._turn(self._upcoming, request, lacks=True) is Turn.GIVE_UP:
                why = self._upcoming.doubts_of(request) or words or "its quota is used by others"
                self.given_up.append(GivenUp(gang=gang, request=request.gave_up(why, self._now)))
        return words

    def settle(self, gang: Gang) -> None:
        """Keep nothing more for a gang than this plan reserves for it: its turn has come."""
        if self._upcoming is not None:
            self._upcoming.requests.pop(gang.uid, None)

    def withdraw(self, reservation: UpcomingReservation) -> None:
        """Free a place that exists already."""
        self._placement.remove(reservation.place)

    def _keep(self, nodes: UpcomingNodes, gang: Gang, upcoming: UpcomingPlace) -> Place | str:
        """Give a gang what was found for it, and ask for what is missing; or say why not now."""
        request = gang.request
        if not upcoming.nodes and not self._placement.comes(upcoming.place):
            return nodes.take(self._placement, gang, upcoming)
        turn = self._turn(nodes, request, lacks=bool(upcoming.growths))
        if request is not None and turn is Turn.NOT_YET:
            return request.in_words()
        unasked = request is not None and not (request.answered or request.given_up)
        if request is not None and unasked and not request.sizes <= Counter(upcoming.groups):
            turn = Turn.GIVE_UP  # it is not what this gang lacks, whoever wrote it
        if turn is Turn.GIVE_UP:
            return "its nodes did not come in time"
        ask = None
        if turn is Turn.ASK:
            ask = nodes.request(upcoming, len(self.awaiting))
            ask = replace(ask, attempts=0 if request is None else request.attempts)
        place = nodes.take(self._placement, gang, upcoming)
        told = ask or request
        reason = "waits for nodes that are on their way" if told is None else told.in_words()
        self.awaiting.append(Awaiting(gang=gang, place=place, request=ask, reason=reason))
        return place

    def _turn(self, nodes: UpcomingNodes, request: NodeRequest | None, *, lacks: bool) -> Turn:
        joining = request is not None and nodes.joining(request)
        return turn_of(request, self._now, lacks=lacks, joining=joining)
