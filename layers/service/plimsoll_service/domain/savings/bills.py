"""The bill of a day: what a cluster held, at the prices of that day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Final

from plimsoll_service.domain.analysis import HOURS_PER_MONTH
from plimsoll_service.domain.snapshots import Billed, Totals
from plimsoll_service.wire.advice import Frees
from plimsoll_service.wire.savings import DayPrices, Means

type Item = tuple[str, str]
"""What is billed: `on-demand` or `spot` with an instance type, `volume` with its type, or `load-balancer`."""
type Holdings = Mapping[Item, float]
"""How much of each: nodes, GiB, load balancers."""

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
VOLUME: Final = "volume"
LOAD_BALANCER: Final = "load-balancer"
HOURS_PER_DAY: Final = 24
DAYS_PER_MONTH: Final = HOURS_PER_MONTH / HOURS_PER_DAY
LEAST_SAMPLES: Final = 720
"""Of a day whose mean is its bill: an agent sends one a minute."""
MIB_PER_GIB: Final = 1024
GIB: Final = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledDay:
    """A day of a cluster: means over its samples."""

    day: date
    holdings: Holdings
    pods: float
    cpu_m: float
    """Requested."""
    memory: float
    prices: DayPrices

    @property
    def is_assumed(self) -> bool:
        """Whether AWS did not tell the prices on this day."""
        return self.prices.read_on != self.day

    def cost(self, holdings: Holdings) -> float:
        """Return what holdings cost in dollars on this day; what has no price costs nothing."""
        return sum(count * (self._price(item) or 0.0) for item, count in holdings.items())

    def unpriced(self, holdings: Holdings) -> str | None:
        """Return the name of something in holdings that has no price on this day; None: all has."""
        names = (item[1] for item, n in holdings.items() if n and self._price(item) is None)
        return min(names, default=None)

    def _price(self, item: Item) -> float | None:
        kind, name = item
        match kind:
            case "volume":
                monthly = self.prices.volumes.get(name)
                return None if monthly is None else monthly / DAYS_PER_MONTH
            case "load-balancer":
                return self.prices.load_balancer * HOURS_PER_DAY
            case _:
                hourly = self.prices.nodes.get(name)
                return None if hourly is None else hourly[kind == SPOT] * HOURS_PER_DAY


def priced_days(
    rollups: Iterable[Totals], prices: Sequence[DayPrices], *, until: date
) -> Iterator[BilledDay]:
    """Yield the days that are known well enough to be compared.

    A day needs half of its snapshots, and prices. Where those of the day were not kept, the last ones before it
    stand in, or else the first ones after it.

    Args:
        rollups: days, in their order.
        prices: in the order of their days.
        until: the last day that is over.
    """
    for rollup in rollups:
        billed, day = rollup.billed, rollup.start.date()
        if billed is None or billed.left_out or billed.samples < LEAST_SAMPLES or day > until:
            continue
        earlier = [each for each in prices if each.day <= day]
        its = earlier[-1] if earlier else next(iter(prices), None)
        if its is None:
            continue
        yield BilledDay(
            day=day,
            holdings=_means(billed),
            pods=rollup.pods / rollup.samples,
            cpu_m=rollup.requested.cpu_m / rollup.samples,
            memory=rollup.requested.memory / rollup.samples,
            prices=its,
        )


def freed(frees: Frees) -> Holdings:
    """Return what a recommendation takes off the bill for certain."""
    found: dict[Item, float] = {}
    if frees.instance:
        found[SPOT if frees.spot else ON_DEMAND, frees.instance] = 1
    if frees.volume:
        found[VOLUME, frees.volume] = frees.volume_bytes / GIB
    if frees.load_balancers:
        found[LOAD_BALANCER, ""] = frees.load_balancers
    return found


def total(parts: Iterable[Holdings]) -> Holdings:
    """Return the sum of holdings."""
    found: defaultdict[Item, float] = defaultdict(float)
    for item, count in chain.from_iterable(part.items() for part in parts):
        found[item] += count
    return found


def mean(days: Sequence[BilledDay]) -> Holdings:
    """Return the mean holdings of days."""
    return {item: count / len(days) for item, count in total(d.holdings for d in days).items()}


def only(kinds: frozenset[str], holdings: Holdings) -> Holdings:
    """Return the holdings of some kinds."""
    return {item: count for item, count in holdings.items() if item[0] in kinds}


def difference(one: Holdings, other: Holdings) -> Holdings:
    """Return by how much one is above the other."""
    return {item: one.get(item, 0.0) - other.get(item, 0.0) for item in {*one, *other}}


def means_of(days: Sequence[BilledDay]) -> Means:
    """Return days as people read them."""
    holdings, count = mean(days), len(days)

    def amount(*kinds: str) -> float:
        return round(sum(only(frozenset(kinds), holdings).values()), 2)

    return Means(
        days=count,
        cost=round(sum(each.cost(each.holdings) for each in days) / count, 2),
        nodes=amount(ON_DEMAND, SPOT),
        pods=round(sum(each.pods for each in days) / count, 2),
        requested_cpu_m=round(sum(each.cpu_m for each in days) / count, 1),
        requested_memory=round(sum(each.memory for each in days) / count, 1),
        volume_gib=amount(VOLUME),
        load_balancers=amount(LOAD_BALANCER),
    )


def _means(billed: Billed) -> Holdings:
    found: dict[Item, float] = {(LOAD_BALANCER, ""): billed.load_balancers / billed.samples}
    for kind, counts in ((ON_DEMAND, billed.on_demand), (SPOT, billed.spot)):
        found |= {(kind, name): count / billed.samples for name, count in counts.items()}
    mib = {name: count / billed.samples for name, count in billed.volumes.items()}
    return found | {(VOLUME, name): count / MIB_PER_GIB for name, count in mib.items()}
