"""What instances cost: a dated table, so that a plan can say what spot saves without asking AWS."""

from __future__ import annotations

from collections.abc import Mapping
from csv import reader
from functools import cache
from importlib.resources import files
from typing import Final

from plimsoll.adapters.nodegroups.templates import allocatable_of
from plimsoll_service.domain.analysis import Price, PriceTable, Size

VOLUMES: Final = {
    "gp3": 0.08,
    "gp2": 0.10,
    "io2": 0.125,
    "io1": 0.125,
    "st1": 0.045,
    "sc1": 0.015,
}
"""Dollars for a GiB and month in us-east-1, noted 2026-11. https://aws.amazon.com/ebs/pricing/"""
LOAD_BALANCER: Final = 0.0225
"""Dollars for an hour in us-east-1, noted 2026-11. https://aws.amazon.com/elasticloadbalancing/pricing/"""


@cache
def price_table() -> PriceTable:
    """Return the table that is shipped: other regions cost more, and their spot other shares of it."""
    lines = files(__name__).joinpath("us-east-1.csv").read_text().splitlines()
    prices: dict[str, Price] = {}
    sizes: dict[str, Size] = {}
    for name, hourly, cheaper, *size in reader(line for line in lines if not line.startswith("#")):
        on_demand = float(hourly)
        prices[name] = Price(on_demand=on_demand, spot=on_demand * (1 - int(cheaper) / 100))
        if all(size):
            sizes[name] = _size(*size)
    return PriceTable(
        region="us-east-1",
        dates="on-demand of 2026-07-20, spot of 2025-06-28",
        prices=prices,
        sizes=sizes,
        volumes=VOLUMES,
        load_balancer=LOAD_BALANCER,
    )


def _size(vcpus: str, mebibytes: str, arch: str, interfaces: str, addresses: str) -> Size:
    info: Mapping[str, object] = {
        "VCpuInfo": {"DefaultVCpus": vcpus},
        "MemoryInfo": {"SizeInMiB": int(mebibytes)},
        "NetworkInfo": {
            "MaximumNetworkInterfaces": interfaces,
            "Ipv4AddressesPerInterface": addresses,
        },
    }
    return Size(vcpus=int(vcpus), arch=arch, allocatable=allocatable_of(info))
