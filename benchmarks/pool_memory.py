"""How well the memory of capacity pools chooses: `python -m benchmarks.pool_memory FOLDER`.

FOLDER holds recordings of spot capacity, one folder for each set and one JSON file for each pool,
`<zone>_<type>.json`: `{"metadata": {"gap_seconds": 300}, "data": [0, 0, 4]}`. They are no part of this project:
their origin states no licence. Whenever a pool is lost, the pool of least remembered risk is chosen among those of
its region that can be had. Counted is how often the chosen one is lost within the hour, beside a choice by
chance and one that knows the future.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from plimsoll.domain.spot import CapacityPool, PoolEvent, PoolEventKind, pool_history, risks

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
LEARN: Final = timedelta(days=1)
AHEAD: Final = timedelta(hours=1)
GAPS: Final = {"A3": 195, "B1": 300}
"""Seconds: of these sets the files themselves say another."""
HALF_LIVES: Final = (1, 3, 6, 12, 24, 48, 96)


def main(folder: Path) -> None:
    """Print a row for each set that has regions of several pools."""
    own = pool_history.HALF_LIFE
    for where in sorted(each for each in folder.iterdir() if each.is_dir()):
        choices = list(_choices(where))
        if not choices:
            continue
        chance = sum(sum(lost.values()) / len(lost) for *_, lost in choices)
        best = sum(min(lost.values()) for *_, lost in choices)
        found = {}
        for hours in HALF_LIVES:
            pool_history.HALF_LIFE = timedelta(hours=hours)  # type: ignore[misc] # the one setting that is measured
            found[hours] = sum(_lost(*choice) for choice in choices)
        pool_history.HALF_LIFE = own  # type: ignore[misc] # as above
        print(f"{where.name}: {len(choices)} choices; lost within the hour, in per cent:")
        said = {"by chance": chance, "knowing the future": best}
        said |= {f"half-life {hours} h": lost for hours, lost in found.items()}
        for name, lost in said.items():
            print(f"  {name:20} {100 * lost / len(choices):5.1f}")


def _lost(events: Sequence[PoolEvent], now: datetime, lost: Mapping[CapacityPool, bool]) -> float:
    """Return whether the chosen pool is lost; of several that are alike, the share."""
    risk = risks(events, now)
    least = min(risk.get(pool, 0.0) for pool in lost)
    chosen = [pool for pool in lost if risk.get(pool, 0.0) == least]
    return sum(lost[pool] for pool in chosen) / len(chosen)


def _choices(
    folder: Path,
) -> Iterator[tuple[Sequence[PoolEvent], datetime, Mapping[CapacityPool, bool]]]:
    """Yield for each loss what is known then, the time, and which pools are lost within the hour."""
    regions: dict[str, dict[CapacityPool, Sequence[int]]] = defaultdict(dict)
    gap = timedelta(seconds=300)
    for file in sorted(folder.glob("*.json")):
        zone, _, of_type = file.stem.partition("_")
        said = json.loads(file.read_text())
        gap = timedelta(seconds=GAPS.get(folder.name, said["metadata"]["gap_seconds"]))
        regions[zone[:-1]][CapacityPool(of_type, zone, "spot")] = said["data"]
    for recorded in regions.values():
        losses = {
            pool: [n for n in range(1, len(data)) if data[n - 1] and not data[n]]
            for pool, data in recorded.items()
        }
        length = min(map(len, recorded.values()))
        for n in sorted({n for times in losses.values() for n in times}):
            able = [pool for pool, data in recorded.items() if data[n]]
            if len(able) < 2 or n * gap < LEARN or n + AHEAD // gap >= length:  # noqa: PLR2004 - a choice
                continue
            events = {
                event.key: event
                for pool, times in losses.items()
                for before in times
                if before <= n and (n - before) * gap < pool_history.POOL_EVENTS_KEPT
                for event in [
                    PoolEvent(pool=pool, kind=PoolEventKind.INTERRUPTION, at=START + before * gap)
                ]
            }
            lost = {
                pool: any(n < later <= n + AHEAD // gap for later in losses[pool]) for pool in able
            }
            yield [*events.values()], START + n * gap, lost


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():  # noqa: PLR2004 - one argument
        sys.exit("usage: python -m benchmarks.pool_memory FOLDER, a folder of recordings")
    main(Path(sys.argv[1]))
