"""What AWS bills a cluster for, as far as snapshots show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, capacity_of
from plimsoll_service.domain.snapshots.usage import MIB
from plimsoll_service.wire.snapshot import Snapshot

MOST_TYPES: Final = 100
"""Instance types, and types of volumes, that are told apart: an agent may name as many as it likes."""
UNTYPED: Final = "without a type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """Counts are sums over `samples`: divide to get a mean."""

    samples: int
    on_demand: Mapping[str, int]
    """Nodes by instance type; those of an unknown capacity, too."""
    spot: Mapping[str, int]
    volumes: Mapping[str, int]
    """MiB by the type of the EBS volume."""
    load_balancers: int
    left_out: int = 0
    """Types that are too many to be told apart, counted once a sample."""


def billed_of(snapshot: Snapshot) -> Billed:
    """Return what a full snapshot shows."""
    on_demand, spot, volumes = Counter[str](), Counter[str](), Counter[str]()
    for node in snapshot.nodes:
        nodes = spot if capacity_of(node.labels) == "spot" else on_demand
        nodes[node.labels.get(INSTANCE_TYPE) or UNTYPED] += 1
    for volume in snapshot.volumes:
        if volume.type:
            volumes[volume.type] += volume.capacity // MIB
    balancers = {each.address or each.uid for each in snapshot.load_balancers if each.provisioned}
    return _bounded(1, on_demand, spot, volumes, len(balancers), 0)


def combined_billed(parts: Iterable[Billed | None]) -> Billed | None:
    """Return the sum of parts; those of an older version tell nothing. None: no part tells anything."""
    on_demand, spot, volumes = Counter[str](), Counter[str](), Counter[str]()
    samples = balancers = left_out = 0
    for part in parts:
        if part is not None:
            on_demand.update(part.on_demand)
            spot.update(part.spot)
            volumes.update(part.volumes)
            samples += part.samples
            balancers += part.load_balancers
            left_out += part.left_out
    return _bounded(samples, on_demand, spot, volumes, balancers, left_out) if samples else None


def _bounded(  # noqa: PLR0913, PLR0917 - the fields of what is returned
    samples: int,
    on_demand: Counter[str],
    spot: Counter[str],
    volumes: Counter[str],
    load_balancers: int,
    left_out: int,
) -> Billed:
    kept = [_most(counts) for counts in (on_demand, spot, volumes)]
    left_out += sum(len(c) - len(k) for c, k in zip((on_demand, spot, volumes), kept, strict=True))
    return Billed(
        samples=samples,
        on_demand=kept[0],
        spot=kept[1],
        volumes=kept[2],
        load_balancers=load_balancers,
        left_out=left_out,
    )


def _most(counts: Counter[str]) -> Mapping[str, int]:
    # The name breaks ties, so that equal snapshots give equal rollups.
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST_TYPES])
