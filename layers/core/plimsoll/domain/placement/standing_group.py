"""The spot groups that the nodes of a cluster make, and how often they are reclaimed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import override

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.load_line import MOST_SPOT_GROUPS, SpotGroup
from plimsoll.domain.placement.spread_groups import SPOT, Layout, family_of, groups_of
from plimsoll.domain.spot import NEVER_SEEN, CapacityPool, PoolRate, spot_pool_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingGroup:
    """A spot group of the cluster, and what is known of the pools that its nodes stand in."""

    group: SpotGroup
    nodes: frozenset[str]
    reclaims: float
    """How many reclaims of its pools are remembered, each worth half after a week."""
    stood_hours: float | None
    """How long the pool has stood that was reclaimed last; None where one was never seen."""

    @override
    def __str__(self) -> str:
        """Return its age and its rate, in words."""
        if self.stood_hours is None:
            known = "has a pool that was not seen before"
        else:
            known = f"stood {self.stood_hours:.0f} h"
        return f"{self.group.name} {known}: {self.group.per_hour:.4f} reclaims an hour"


def standing_groups(
    seen: Observation, rates: Mapping[CapacityPool, PoolRate]
) -> tuple[StandingGroup, ...]:
    """Return the spot groups that the nodes of a cluster make, at most three.

    The rate of a group is the mean of its nodes' pools, and it is lost as a whole: as many pods are lost as by pools,
    and deeper. Groups that share a family count as one family, which all of it is lost with.
    """
    spot = [node for node in seen.nodes if node.capacity == SPOT and node.staying]
    group_of = groups_of(spot, Layout(1, MOST_SPOT_GROUPS))
    standing: dict[str, list[Node]] = defaultdict(list)
    for node in spot:
        standing[group_of[node.name]].append(node)
    families = {name: {family_of(node) for node in nodes} for name, nodes in standing.items()}
    found = []
    for name, nodes in sorted(standing.items()):
        pools = [spot_pool_of(node) for node in nodes]
        known = [None if pool is None else rates.get(pool) for pool in pools]
        per_hour = [NEVER_SEEN if rate is None else rate.per_hour for rate in known]
        ages = [rate.stood_hours for rate in known if rate is not None]
        sharing = [each for each in families.values() if each & families[name]]
        label = ", ".join(sorted(families[name]))
        if len(sharing) > 1:
            label += " in " + ", ".join(sorted({node.zone or "no zone" for node in nodes}))
        found.append(
            StandingGroup(
                group=SpotGroup(
                    name=label,
                    family=", ".join(sorted(set().union(*sharing))),
                    per_hour=sum(per_hour) / len(per_hour),
                ),
                nodes=frozenset(node.name for node in nodes),
                reclaims=sum(rates[p].reclaims for p in {*pools} if p is not None and p in rates),
                stood_hours=min(ages) if len(ages) == len(known) else None,
            )
        )
    return tuple(found)
