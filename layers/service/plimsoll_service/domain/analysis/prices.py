"""What instances cost, and what they leave to pods."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from plimsoll.domain.kubernetes import Resources

HOURS_PER_MONTH: Final = 730
"""Of a month, as AWS counts them."""
_USUAL: Final = re.compile(r"[cmr][5-9][a-z]*\.(?!metal)[a-z0-9]+")
"""Instances for pods that ask for nothing special: no accelerators, no burst credits, no metal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an instance of one type costs, in dollars per hour."""

    on_demand: float
    spot: float

    @property
    def saved_monthly(self) -> float:
        """What a month of it on spot saves."""
        return (self.on_demand - self.spot) * HOURS_PER_MONTH

    def monthly(self, capacity: str | None) -> float:
        """Return what a month costs; of a node that does not tell its capacity, on on-demand."""
        return (self.spot if capacity == "spot" else self.on_demand) * HOURS_PER_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What an instance of one type is."""

    vcpus: int
    arch: str
    """`amd64` or `arm64`."""
    allocatable: Resources
    """What it leaves to pods on an EKS image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices of one region, and when they were read."""

    region: str
    dates: str
    """When the prices were read, in words."""
    read_on: date | None = None
    """The day on which AWS told them; None: the table is shipped."""
    prices: Mapping[str, Price]
    """By instance type."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """By instance type; of those that are known."""
    volumes: Mapping[str, float] = field(default_factory=dict)
    """Dollars for a GiB and month, by the type of the EBS volume; without provisioned IOPS."""
    load_balancer: float = 0.0
    """Dollars for an hour, without what is charged by use."""

    def usual(self, architectures: Collection[str]) -> Mapping[str, Size]:
        """Return the types of which a cheaper mix may be made."""
        return {
            name: size
            for name, size in self.sizes.items()
            if size.arch in architectures and name in self.prices and _USUAL.fullmatch(name)
        }
