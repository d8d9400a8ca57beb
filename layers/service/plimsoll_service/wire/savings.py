"""What accepted recommendations were foreseen to save, and what the days after them show."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

from plimsoll_service.wire.advice import About, Kind

type Verdict = Literal["realised", "not yet", "cannot be told apart"]


class Part(Struct, frozen=True, kw_only=True):
    """Part of the history."""


class DayPrices(Part, frozen=True, kw_only=True):
    """What a cluster's nodes, volumes and load balancers cost on a day, in dollars; kept with its days."""

    day: date
    read_on: date | None = None
    """The day on which AWS told them; None: the table that is shipped."""
    source: str
    """Whose prices, and of when."""
    nodes: dict[str, tuple[float, float]]
    """By instance type: an hour on on-demand, and on spot."""
    volumes: dict[str, float]
    """A GiB and month, by type."""
    load_balancer: float
    """An hour."""


class Means(Part, frozen=True, kw_only=True):
    """A cluster over some days: means."""

    days: int
    cost: float
    """Dollars a day, at the prices of each day."""
    nodes: float
    pods: float
    requested_cpu_m: float
    requested_memory: float
    volume_gib: float
    load_balancers: float


class Changed(Part, frozen=True, kw_only=True):
    """Other changes between the days before and the days after."""

    before: Means
    after: Means
    prices: float
    """Dollars a day that the same nodes, volumes and load balancers cost more or less by price alone."""
    others: float | None = None
    """Dollars a day by which other nodes, volumes or load balancers raised the cost; below 0 where others
    went as well. None: nothing tells them from what was advised."""


class RealisedRecommendation(Part, frozen=True, kw_only=True):
    """A recommendation that was accepted, and what it saved."""

    id: str
    kind: Kind
    about: About
    seen_at: datetime | None
    """When the cluster first showed that it was carried out; of an instance mix, when it was accepted."""
    foreseen: float
    """Dollars a month."""
    verdict: Verdict
    realised: float | None = None
    """Dollars a month, by the days after it; below 0 where the cluster costs more. None: the verdict says why."""
    days: int = 0
    """Days after it that were compared."""
    why: str = ""
    changed: Changed | None = None


class SavingsDay(Part, frozen=True, kw_only=True):
    """A day of a cluster whose snapshots and prices are known."""

    day: date
    cost: float
    """Dollars, of the nodes, volumes and load balancers that snapshots show."""
    prices: str
    """Whose, and of when."""
    assumed: bool = False
    """Whether those of another day, or the shipped table, stand in for the day's own."""
    foreseen: float = 0.0
    """Dollars of this day, by recommendations that were carried out in the thirty days before it."""
    untold: float = 0.0
    """Of that, what cannot be compared with the days before."""
    realised: float | None = None
    """Dollars of this day, against the days before the changes; None: there is nothing to compare, or it cannot be."""
    why: str = ""
    """Why something cannot be compared."""


class SavingsMonth(Part, frozen=True, kw_only=True):
    """A month of a cluster, as far as it lies in the range that was asked for."""

    month: str
    """Such as 2026-11."""
    days: int
    """Days that are known."""
    gaps: int
    """Days that are not: half of their snapshots or their prices are missing."""
    assumed: int
    """Known days with prices that are assumed."""
    cost: float
    foreseen: float
    untold: float
    realised: float | None
    why: tuple[str, ...] = ()
    """Each reason for which something cannot be compared, once."""
    changed: Changed | None = None
    """Of nodes, between the days before the month's first change in force and the days after it."""


class SavingsHistory(Part, frozen=True, kw_only=True):
    """Foreseen and realised savings. `realised` of a month is not the sum over its recommendations."""

    cluster_id: str
    since: date
    until: date
    """The last day that may be in it: today is never whole."""
    months: tuple[SavingsMonth, ...]
    days: tuple[SavingsDay, ...]
    recommendations: tuple[RealisedRecommendation, ...]
