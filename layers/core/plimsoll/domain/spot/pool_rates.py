"""How often spot pools are reclaimed: by how long they have stood, and by what was counted of them.

A pool that has stood for x hours is reclaimed at about 1 / (0.5 + x) an hour: on recordings of spot capacity this law
predicts reclaims better than any count of past ones, as long as all pools are seen. Who sees only the pools that it
holds does best with the geometric mean of both. Reclaims are read from the events of a pool. The hours that it was held
are counted once for a pool and hour, by whichever cluster of the region comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf, log1p, sqrt
from typing import Final, NamedTuple

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.spot.capacity_pools import UNKNOWN, CapacityPool, pools_of, spot_pool_of
from plimsoll.domain.spot.pool_history import MERGED, PoolEvent, PoolEventKind

HALF_LIFE: Final = timedelta(days=7)
"""In which a reclaim, and an hour held, lose half of their weight."""
NEVER_SEEN: Final = 0.5
"""Reclaims an hour of a pool of which nothing is known: it is never counted on."""
MOST_POOLS: Final = 300
"""Pools of an account and region whose hours are counted."""
UNBROKEN: Final = timedelta(hours=3)
"""A pool whose hours were not counted for longer was not held meanwhile, and its age begins anew."""
SIBLING_SHARE: Final = 0.20
"""How much of its reclaims a pool shares with others of its family in the region. Measured on recordings of GPU types:
given that one zone lost them, the others lost them too in 17 to 19 of 100 cases beyond chance."""

_HOUR: Final = timedelta(hours=1)
_CALM_HOURS: Final = 0.5
_HORIZON_HOURS: Final = 24.0
"""The rate is the mean of the law over this time: what is decided by it stands for about a day."""
_PRIOR_RECLAIMS: Final = 1.0
_PRIOR_HOURS: Final = 2.0
_RECLAIMED_NOW: Final = 1 / _CALM_HOURS
"""The law for a pool that has not stood for any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPool:
    """What was counted of a spot pool that clusters of a region hold."""

    pool: CapacityPool
    since: datetime
    """Since when nodes of it have stood without a break that is known, whatever was reclaimed meanwhile."""
    hours: float
    """For how many hours it was held, each worth half after a half-life, as of `at`."""
    at: datetime
    """The hour that was counted last."""


class PoolMemory(NamedTuple):
    """What is remembered of the capacity pools of an account and region."""

    events: Sequence[PoolEvent] = ()
    held: Sequence[HeldPool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRate:
    """How often a spot pool is likely to be reclaimed within a day, and by what."""

    per_hour: float
    stood_hours: float
    """Since its last reclaim, as far as it was held."""
    reclaims: float
    """How many there were, each worth half after a half-life."""
    held_hours: float


def rate_by_age(hours: float) -> float:
    """Return the mean reclaims an hour, over a day, of a pool that has stood for so long."""
    x = _CALM_HOURS + hours
    return _HORIZON_HOURS / ((x + _HORIZON_HOURS) * x * log1p(_HORIZON_HOURS / x))


def rate_by_counts(reclaims: float, hours: float) -> float:
    """Return the reclaims an hour of a pool that was reclaimed so often in so many hours: the mean of a Gamma posterior."""
    return (_PRIOR_RECLAIMS + reclaims) / (_PRIOR_HOURS + hours)


def reclaim_rates(
    events: Iterable[PoolEvent], held: Iterable[HeldPool], now: datetime
) -> Mapping[CapacityPool, PoolRate]:
    """Return the rates of the pools that were reclaimed or held; what else befell them changes none.

    Events and hours that arrive twice, late or in another order lead to the same rates.
    """
    reclaimed = _reclaimed(events, now)
    counted = {each.pool: each for each in held}
    found: dict[CapacityPool, PoolRate] = {}
    for pool in sorted(counted.keys() | reclaimed.keys()):
        row, times = counted.get(pool), reclaimed.get(pool, ())
        stood = hours = 0.0
        if row is not None:
            hours = row.hours * _weight(now - row.at)
            if now - row.at <= UNBROKEN:
                stood = max(now - max([row.since, *times[-1:]]), timedelta()) / _HOUR
        reclaims = sum(_weight(now - at) for at in times)
        found[pool] = PoolRate(
            per_hour=sqrt(rate_by_age(stood) * rate_by_counts(reclaims, hours)),
            stood_hours=stood,
            reclaims=reclaims,
            held_hours=hours,
        )
    return found


def set_aside(events: Iterable[PoolEvent], now: datetime) -> frozenset[CapacityPool]:
    """Return the pools from which nothing is asked for ten minutes: reclaimed, advised against, or refused."""
    return frozenset(
        event.pool
        for event in events
        if event.kind is not PoolEventKind.LAUNCH and now - event.at < MERGED
    )


def hours_stood(memory: PoolMemory, now: datetime) -> Mapping[CapacityPool, float]:
    """Return for how many hours pools have stood since their last reclaim; those that are set aside now are left out."""
    aside = set_aside(memory.events, now)
    rates = reclaim_rates(memory.events, memory.held, now)
    return {pool: rate.stood_hours for pool, rate in rates.items() if pool not in aside}


def ranks_of(memory: PoolMemory, now: datetime) -> Mapping[CapacityPool, float]:
    """Return what pools are ranked by: their reclaims an hour, and infinity for those that are set aside now."""
    rates = reclaim_rates(memory.events, memory.held, now)
    known = {pool: rate.per_hour for pool, rate in rates.items()}
    return known | dict.fromkeys(set_aside(memory.events, now), inf)


def rate_of(
    group: NodeGroup,
    zone: str,
    avoided: Collection[CapacityPool],
    ranks: Mapping[CapacityPool, float],
) -> float:
    """Return the mean reclaims an hour of what a group may launch from; a pool that is avoided counts as reclaimed now.

    A group that cannot be steered is asked as a whole, whatever zone is meant. The rate is rounded to a hundredth:
    smaller differences cost less than a node that fits worse.

    Args:
        group: the node group.
        zone: the zone that it would be asked for.
        avoided: pools that are set aside, or reclaimed just now.
        ranks: as `ranks_of` returns them.
    """
    zones = (zone,) if group.launchable else group.zones
    pools = [pool for each in zones for pool in pools_of(group, each)]
    alike = {(pool.instance_type, pool.capacity) for pool in avoided}
    rates = [
        _RECLAIMED_NOW
        if pool in avoided
        else ranks.get(pool, NEVER_SEEN)
        + SIBLING_SHARE * _RECLAIMED_NOW * ((pool.instance_type, pool.capacity) in alike)
        for pool in pools
    ]
    return round(sum(rates) / len(rates), 2) if rates else NEVER_SEEN


def counted_hours(
    known: Iterable[HeldPool], nodes: Iterable[Node], now: datetime
) -> Iterator[tuple[HeldPool | None, HeldPool]]:
    """Yield what is to be written of the pools that stand now: what is known of each, and with this hour counted.

    A pool whose hour is counted, or a later one, is left out, and new pools where as many as are counted are known.

    Args:
        known: all rows of the region.
        nodes: those of one cluster.
        now: the time at which they were seen.
    """
    rows = {each.pool: each for each in known}
    hour = datetime.fromtimestamp(now.timestamp() // 3600 * 3600, UTC)
    room = MOST_POOLS - len(rows)
    for pool, since in sorted(_standing(nodes).items()):
        before = rows.get(pool)
        if before is None:
            room -= 1
            if room >= 0:
                yield None, HeldPool(pool=pool, since=since, hours=1.0, at=hour)
        elif before.at < hour:
            unbroken = now - before.at <= UNBROKEN
            yield (
                before,
                HeldPool(
                    pool=pool,
                    since=min(before.since, since) if unbroken else since,
                    hours=before.hours * _weight(hour - before.at) + 1,
                    at=hour,
                ),
            )


def _standing(nodes: Iterable[Node]) -> Mapping[CapacityPool, datetime]:
    """Return the spot pools of the nodes that are Ready and not interrupted, and since when the oldest stands."""
    found: dict[CapacityPool, datetime] = {}
    for node in nodes:
        pool = spot_pool_of(node) if node.ready and node.interruption is None else None
        if pool is not None and UNKNOWN not in pool:
            found[pool] = min(found.get(pool, node.created), node.created)
    return found


def _reclaimed(
    events: Iterable[PoolEvent], now: datetime
) -> Mapping[CapacityPool, Sequence[datetime]]:
    """Return by pool when it was reclaimed, in order; what lies less than ten minutes apart is one reclaim."""
    times_of: dict[CapacityPool, set[datetime]] = {}
    for event in events:
        if event.kind is PoolEventKind.INTERRUPTION and event.at <= now:
            times_of.setdefault(event.pool, set()).add(event.at)
    found: dict[CapacityPool, list[datetime]] = {}
    for pool, times in times_of.items():
        kept = found.setdefault(pool, [])
        for at in sorted(times):
            if not kept or at - kept[-1] >= MERGED:
                kept.append(at)
    return found


def _weight(age: timedelta) -> float:
    return float(0.5 ** (max(age, timedelta()) / HALF_LIFE))
