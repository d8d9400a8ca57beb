"""Recorded spot capacity, and the stretches of it that are replayed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from pathlib import Path
from typing import Final

CALM: Final = timedelta(minutes=5)
"""A stretch ends when every pool has had all of its capacity for so long."""
LONGEST: Final = timedelta(minutes=20)
"""It ends then at the latest: in a long outage nothing more happens."""


class BadTraceError(ValueError):
    """A file is no trace; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """How many instances of one type EC2 had in one zone, tick by tick."""

    zone: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The pools of one region that were recorded together: what one cluster can use."""

    name: str
    """The folder, the zones and the hardware."""
    gap: timedelta
    """Between two ticks."""
    pools: tuple[Pool, ...]

    @property
    def whole(self) -> tuple[int, ...]:
        """The most that each pool ever had."""
        return tuple(max(pool.counts) for pool in self.pools)

    def readings(self) -> Sequence[tuple[int, ...]]:
        """Return the counts of all pools, tick by tick."""
        return [*zip(*(pool.counts for pool in self.pools), strict=True)]


def read_regions(folder: Path) -> Sequence[Region]:
    """Return the regions of all traces in a folder and below.

    A file `ZONE_HARDWARE.json` holds `{"metadata": {"gap_seconds": 300}, "data": [4, 4, 3]}`. Files of one folder,
    region, hardware, gap and length count as recorded together; all others are on their own.

    Raises:
        BadTraceError: a file is no trace.
    """
    found: dict[tuple[str, str, str, timedelta, int], list[Pool]] = defaultdict(list)
    for file in sorted(folder.rglob("*.json")):
        zone, _, hardware = file.stem.partition("_")
        gap, pool = _read(file, zone)
        inside = str(file.parent.relative_to(folder))
        found[inside, zone[:-1], hardware, gap, len(pool.counts)].append(pool)
    return [
        Region(name=f"{inside} {_zones(pools)} {hardware}", gap=gap, pools=tuple(pools))
        for (inside, _, hardware, gap, _), pools in found.items()
    ]


def stretches(region: Region) -> Sequence[Sequence[tuple[int, ...]]]:
    """Return the counts of each stretch: from the tick on in which a pool first lost of its whole capacity.

    A stretch begins where all pools were whole, and lasts until they are again; see `CALM` and `LONGEST`. Losses
    that follow before belong to it. Losses between stretches, of pools that were not whole, are left out.
    """
    ticks, whole = region.readings(), region.whole
    calm, longest = ceil(CALM / region.gap), ceil(LONGEST / region.gap)
    found, at = [], 1
    while at < len(ticks):
        if ticks[at - 1] != whole or ticks[at] == whole:
            at += 1
            continue
        end = at + 1
        while end < min(at + longest, len(ticks)) and {*ticks[end - calm : end]} != {whole}:
            end += 1
        found.append(ticks[at:end])
        at = end
    return found


def spread_over[T](items: Sequence[T], count: int) -> Sequence[T]:
    """Return so many items at even distances, beginning with the first; all where there are no more."""
    count = min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _read(file: Path, zone: str) -> tuple[timedelta, Pool]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        gap = timedelta(seconds=found["metadata"]["gap_seconds"])
        counts = tuple(int(count) for count in found["data"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadTraceError(f"{file} is no trace of spot capacity: {error!r}") from error
    if gap <= timedelta(0) or not counts or min(counts) < 0:
        raise BadTraceError(f"{file}: the gap, and at least one count, must be more than nothing")
    return gap, Pool(zone=zone, counts=counts)


def _zones(pools: Sequence[Pool]) -> str:
    return "+".join(pool.zone for pool in pools)
