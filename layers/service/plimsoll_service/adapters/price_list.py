"""Prices by AWS's own word: its price list for on-demand, and for spot what it costs now.

A region is asked once in half a day. Where AWS does not answer, or may not be asked, the table that is
shipped stands in, and the advice says so by its dates.
https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/price-changes.html
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import mean
from typing import Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll_service.domain.analysis import Price, PriceTable
from plimsoll_service.services.ports import Clock

PRICES_KEPT: Final = timedelta(hours=12)
RETRIED: Final = timedelta(minutes=15)
"""After a refusal the shipped table stands in for so long."""
_LINUX: Final[Mapping[str, str]] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
_LEAST: Final = 50
"""A region with fewer types than this did not answer whole."""


@dataclass(slots=True, kw_only=True)
class AwsPrices:
    """Prices of regions, each read on first use."""

    pricing: Callable[[], Any]
    """Returns the client of the price list, which few regions have."""
    ec2: Callable[[str], Any]
    """Returns the client of EC2 in a region."""
    shipped: PriceTable
    clock: Clock
    warn: Callable[[str, PlimsollError], None]
    """Is told of a region that could not be read, and why."""
    _known: dict[str, tuple[PriceTable, datetime]] = field(default_factory=dict)

    def of(self, region: str | None) -> PriceTable:
        """Return the prices of a region; None: nobody knows where the nodes are."""
        if region is None:
            return self.shipped
        now = self.clock.now()
        known = self._known.get(region)
        if known is None or known[1] <= now:
            try:
                known = self._read(region, now), now + PRICES_KEPT
            except PlimsollError as error:
                self.warn(region, error)
                known = known[0] if known else self.shipped, now + RETRIED
            self._known[region] = known
        return known[0]

    def _read(self, region: str, now: datetime) -> PriceTable:
        on_demand = dict(self._on_demand(region))
        if len(on_demand) < _LEAST:
            raise Temporary(f"the price list of {region} names {len(on_demand)} types only")
        spot = self._spot(region, now)
        return replace(
            self.shipped,
            region=region,
            dates=f"by AWS's price list and spot prices of {now:%Y-%m-%d}; volumes and load balancers "
            f"as in {self.shipped.region}",
            read_on=now.date(),
            prices={
                name: Price(on_demand=hourly, spot=min(hourly, spot.get(name, hourly)))
                for name, hourly in on_demand.items()
            },
        )

    def _on_demand(self, region: str) -> Iterator[tuple[str, float]]:
        wanted = {**_LINUX, "regionCode": region}
        with translated(f"read the price list of {region}"):
            pages = (
                self.pricing()
                .get_paginator("get_products")
                .paginate(
                    ServiceCode="AmazonEC2",
                    Filters=[
                        {"Type": "TERM_MATCH", "Field": name, "Value": value}
                        for name, value in wanted.items()
                    ],
                )
            )
            for page in pages:
                for product in page.get("PriceList", ()):
                    # PriceList holds each product as a JSON string.
                    # https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
                    yield from _hourly(json.loads(product))

    def _spot(self, region: str, now: datetime) -> Mapping[str, float]:
        """Return the mean over zones. A type that is not told of is not to be had."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        with translated(f"read the spot prices of {region}"):
            pages = (
                self.ec2(region)
                .get_paginator("describe_spot_price_history")
                # A range of one moment: EC2 answers with the last change before it, which is the present price.
                # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
                .paginate(StartTime=now, EndTime=now, ProductDescriptions=["Linux/UNIX"])
            )
            for page in pages:
                for each in page.get("SpotPriceHistory", ()):
                    zones = found[each["InstanceType"]]
                    zones[each["AvailabilityZone"]] = float(each["SpotPrice"])
        return {name: mean(zones.values()) for name, zones in found.items()}


def _hourly(product: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the type of an offer and its price, where it has one by the hour."""
    name = product["product"]["attributes"].get("instanceType")
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            price = float(dimension["pricePerUnit"].get("USD", 0))
            if name and price > 0 and dimension["unit"] == "Hrs":
                yield name, price
