"""What instances cost: a dated table, so that a plan can say what spot saves without asking AWS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

HOURS: Final = 730
"""Of a month, as AWS counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an instance of one type costs, in dollars per hour."""

    on_demand: float
    spot: float

    @property
    def saved_monthly(self) -> float:
        """What a month of it on spot saves."""
        return (self.on_demand - self.spot) * HOURS


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices of one region, and when they were read."""

    region: str
    dates: str
    """When the prices were read, in words."""
    prices: Mapping[str, Price]
    """By instance type."""


@cache
def price_table() -> PriceTable:
    """Return the table that is shipped: other regions cost more, and their spot other shares of it."""
    lines = files(__name__).joinpath("us-east-1.csv").read_text().splitlines()
    return PriceTable(
        region="us-east-1",
        dates="on-demand of 2026-07-20, spot of 2025-06-28",
        prices=dict(_read(line for line in lines if not line.startswith("#"))),
    )


def _read(lines: Iterable[str]) -> Iterable[tuple[str, Price]]:
    for line in lines:
        name, hourly, cheaper = line.split(",")
        on_demand = float(hourly)
        yield name, Price(on_demand=on_demand, spot=on_demand * (1 - int(cheaper) / 100))
