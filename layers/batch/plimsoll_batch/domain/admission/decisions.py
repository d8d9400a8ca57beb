"""What a plan of the queues decides, as data with reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll_batch.domain.capacity import Place
from plimsoll_batch.domain.jobs import FlavorResource, Gang, NodeRequest
from plimsoll_batch.domain.quota import RoleFlavors, Victim


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A gang starts now, all its roles."""

    gang: Gang
    flavors: Mapping[str, RoleFlavors]
    """Role -> a flavor for each group of resources."""
    usage: Mapping[FlavorResource, int]
    place: Place | None
    """Where it is expected to stand; None where the plan knows no nodes."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempting:
    """A gang waits for others to stop; those that do not yet are asked to."""

    gang: Gang
    flavors: Mapping[str, RoleFlavors]
    """As of `Admitted`."""
    victims: Sequence[Victim]
    usage: Mapping[FlavorResource, int]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A gang has quota and no place: what it needs is kept free of gangs that would delay it."""

    gang: Gang
    place: Place
    at: datetime | None
    """When that will be free at the latest; None where nobody says when gangs end."""
    after: Sequence[Gang]
    """What is to end before."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaiting:
    """A gang has quota, and waits for nodes that come: they are reserved for it."""

    gang: Gang
    place: Place
    request: NodeRequest | None
    """What has to be asked for first; None: nothing more."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """The nodes that were asked for a gang are not expected any more. It is in another decision too."""

    gang: Gang
    request: NodeRequest
    """What it remembers of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Gangs that are alike go on waiting."""

    queue: str
    gangs: Sequence[Gang]
    """The first in line first."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """What becomes of every gang that waits. Each is in one decision."""

    admitted: Sequence[Admitted]
    """In the order of admission."""
    preempting: Sequence[Preempting]
    reserved: Sequence[Reserved]
    waiting: Sequence[Waiting]
    awaiting: Sequence[Awaiting] = ()
    given_up: Sequence[GivenUp] = ()
    lacks_nodes: bool = False
    """Whether a gang with quota found no place: only then node groups matter."""

    @property
    def dedicated(self) -> Mapping[str, Gang]:
        """Node -> the gang that starts there, and has it for itself."""
        return {
            name: each.gang
            for each in self.admitted
            if each.gang.shape.leases and each.place is not None
            for counts in each.place.nodes.values()
            for name in counts
        }
