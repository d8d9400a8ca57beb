"""A cluster day by day: what it held, what that cost, and what was carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from plimsoll_service.domain.savings import history_of, priced_days
from plimsoll_service.domain.snapshots.billed import Billed
from plimsoll_service.domain.snapshots.rollups import Amount, Span, Totals
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.advice import About, Frees, Recommendation, Recommendations
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.savings import DayPrices, RealisedRecommendation, SavingsHistory

GIB = 2**30
FIRST = date(2026, 10, 1)
SAMPLES = 1440
MONTH = 730 / 24
"""Days of it, as AWS counts its hours."""
HOURLY = {"m5.large": (0.096, 0.04), "m5.xlarge": (0.192, 0.08), "c5.large": (0.085, 0.03)}


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def noon(number: int) -> datetime:
    return datetime.combine(day(number), time(12), UTC)


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a cluster holds for a whole day."""

    on_demand: Mapping[str, int] = field(default_factory=lambda: {"m5.large": 4})
    spot: Mapping[str, int] = field(default_factory=dict)
    volumes: Mapping[str, int] = field(default_factory=dict)
    """GiB."""
    load_balancers: int = 0
    pods: int = 20
    cpu_m: int = 5000
    memory: int = 16 * GIB

    def rolled_up(self, on: date, *, samples: int = SAMPLES) -> Totals:
        return Totals(
            start=datetime.combine(on, time(), UTC),
            last=datetime.combine(on, time(23, 59), UTC),
            samples=samples,
            nodes=samples * (sum(self.on_demand.values()) + sum(self.spot.values())),
            spot_nodes=samples * sum(self.spot.values()),
            pods=samples * self.pods,
            pending=0,
            allocatable=Amount(),
            requested=Amount(cpu_m=samples * self.cpu_m, memory=samples * self.memory),
            used=Amount(),
            billed=Billed(
                samples=samples,
                on_demand={name: samples * n for name, n in self.on_demand.items()},
                spot={name: samples * n for name, n in self.spot.items()},
                volumes={name: samples * 1024 * n for name, n in self.volumes.items()},
                load_balancers=samples * self.load_balancers,
            ),
        )


def prices(on: date, **changes: Any) -> DayPrices:
    facts: dict[str, Any] = {
        "day": on,
        "read_on": on,
        "source": f"us-east-1, by AWS's price list and spot prices of {on}",
        "nodes": HOURLY,
        "volumes": {"gp3": 0.08},
        "load_balancer": 0.0225,
    }
    return DayPrices(**facts | changes)


@dataclass
class Months:
    """Days of a cluster; change those of a range, and ask what was saved."""

    days: int = 40
    held: dict[int, Held] = field(default_factory=dict)
    prices: dict[int, DayPrices] = field(default_factory=dict)
    samples: dict[int, int] = field(default_factory=dict)
    done: list[Recommendation] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(self.days):
            self.held[number] = Held()
            self.prices[number] = prices(day(number))

    def since(self, number: int, **changes: Any) -> None:
        """Change what the cluster holds from a day on."""
        for each in range(number, self.days):
            self.held[each] = replace(self.held[each], **changes)

    def lose(self, *numbers: int) -> None:
        """Lose most snapshots of days."""
        self.samples |= dict.fromkeys(numbers, 100)

    def carry_out(
        self, kind: Any, number: int, frees: Frees | None, **changes: Any
    ) -> Recommendation:
        """Have advice carried out at noon of a day."""
        named = f"{kind}-{len(self.done)}"
        facts: dict[str, Any] = {
            "id": f"r-{named}",
            "kind": kind,
            "about": About(kind="Node", name=named, uid=f"uid-{named}"),
            "reason": "so",
            "monthly": 0.096 * 730,
            "state": "done",
            "frees": frees,
            "seen_at": noon(number),
            "since": noon(number - 1),
            "changed_at": noon(number),
        }
        made = Recommendation(**facts | changes)
        self.done.append(made)
        return made

    def history(self, *, until: int | None = None) -> SavingsHistory:
        last = day(self.days - 1 if until is None else until)
        rollups = [
            held.rolled_up(day(number), samples=self.samples.get(number, SAMPLES))
            for number, held in self.held.items()
        ]
        days = list(priced_days(rollups, list(self.prices.values()), until=last))
        return history_of("harbor", self.done, days, since=FIRST, until=last)

    def only(self, **options: Any) -> RealisedRecommendation:
        """Return what was saved by the one recommendation."""
        (found,) = self.history(**options).recommendations
        return found


def keep_months(data: TenantData, cluster: str, months: Months) -> None:
    """Write what some months hold into the data of a tenant, over what is there."""
    documents = {
        Span.DAY.key(datetime.combine(day(number), time(), UTC)): encode(
            held.rolled_up(day(number))
        )
        for number, held in months.held.items()
    }
    documents |= {f"prices#{each.day}": encode(each) for each in months.prices.values()}
    documents[RECOMMENDATIONS] = encode(Recommendations(recommendations=tuple(months.done)))
    for key, body in documents.items():
        before = data.get(cluster, key)
        version = 0 if before is None else before.version
        data.put(cluster, key, body, version=version, expires=noon(500))


LARGE = Frees(instance="m5.large")
