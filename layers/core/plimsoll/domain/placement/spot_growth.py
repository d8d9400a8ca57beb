"""Spot nodes for pods that would return to spot, where no spot node has a place for them.

An autoscaler removes spot nodes that stand empty while their pods run on on-demand, and launches none for pods that run
well where they are. So the spot groups are asked for a node: only groups that their owner lets Plimsoll grow, and only
from pools that have stood for long enough. Pods move once it is Ready, as to any other spot node. An autoscaler may
empty such a node again. So within six hours no more are added than the workloads of these pods stand on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from plimsoll.domain.actions import Grow
from plimsoll.domain.capacity import Daemons, future_node, grow_token
from plimsoll.domain.kubernetes import Node, Pod
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.move_history import RESTS
from plimsoll.domain.placement.rebalancing import released_in
from plimsoll.domain.placement.spot_return import STOOD_FOR_LATE, SpotReturn
from plimsoll.domain.placement.spread_groups import SPOT
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import pools_of

type Source = tuple[NodeGroup, str]
"""A group, and the zone in which it would launch."""
ADDED_WITHIN: Final = RESTS
"""For so long as a pod that returned is left alone, the nodes count that were added for it."""


def growth_for_return(
    seen: Observation,
    homeless: Sequence[Pod],
    spot_return: SpotReturn,
    added: int,
    now: datetime,
) -> Iterator[Grow]:
    """Yield what spot groups are asked for, so that pods may return.

    Args:
        seen: one observation of the cluster and its node groups.
        homeless: pods that would return, one of a workload, on nodes of on-demand.
        spot_return: what is known of the spot pools.
        added: how many nodes were added within `ADDED_WITHIN`.
        now: the time of the observation.
    """
    workloads = map(seen.workload_of, homeless)
    pods = chain.from_iterable(seen.of_workload.get(ref, ()) for ref in workloads)
    most = len({pod.node for pod in pods}) - added
    sources = [*_sources(seen, spot_return)]
    if most < 1 or not sources:
        return
    snapshot = ClusterSnapshot(seen.nodes, seen.bound, seen.claims)
    daemons, opened = Daemons(snapshot), list[tuple[Source, Node]]()
    for pod in homeless:
        replacement = released_in(snapshot, pod)
        names = {node.name for _, node in opened}
        place = snapshot.choose(replacement)
        if place is not None and place.name in names:
            snapshot.place(replacement, place.name)
        elif len(opened) < most:
            found = _opened(
                snapshot, daemons, replacement, sources, Counter(s[0].key for s, _ in opened)
            )
            opened += [] if found is None else [found]
    asked = Counter((group.key, zone) for (group, zone), _ in opened)
    for group, zone in sources:
        if add := asked[group.key, zone]:
            where = zone if group.launchable else None
            yield Grow(
                group=group,
                add=add,
                zone=where,
                token=grow_token(seen.cluster, group, where, add, now),
                reason=f"pods return to spot, and the scheduler leads them to no spot node: {zone} has stood for long enough",
            )


def _sources(seen: Observation, spot_return: SpotReturn) -> Iterator[Source]:
    """Yield the spot groups that may be asked, and have no node on the way.

    A group that cannot be steered chooses the zone itself, so all its pools must have stood.
    """
    ready = {node.instance for node in seen.nodes if node.ready}
    for group in seen.groups:
        on_the_way = group.desired > len(group.instances & ready)
        if group.capacity != SPOT or group.provisions or group.template is None or on_the_way:
            continue
        if group.addable_nodes < 1:
            continue
        stood = [zone for zone in group.zones if _has_stood(group, zone, spot_return)]
        if group.launchable:
            yield from ((group, zone) for zone in stood)
        elif stood and len(stood) == len(group.zones):
            yield group, stood[0]


def _has_stood(group: NodeGroup, zone: str, spot_return: SpotReturn) -> bool:
    pools = pools_of(group, zone)
    return bool(pools) and all(spot_return.has_stood(pool, STOOD_FOR_LATE) for pool in pools)


def _opened(
    snapshot: ClusterSnapshot,
    daemons: Daemons,
    replacement: Pod,
    sources: Sequence[Source],
    opened: Mapping[str, int],
) -> tuple[Source, Node] | None:
    """Add the first new node that a pod would be scheduled to, and return it; None where none is."""
    for group, zone in sources:
        if group.template is None or opened.get(group.key, 0) >= group.addable_nodes:
            continue
        node = future_node(
            group, group.template, zone, f"new-{group.name}-{zone}-{sum(opened.values())}"
        )
        snapshot.add_node(node)
        for pod in daemons.on(node):
            snapshot.place(pod, node.name)
        if snapshot.choose(replacement) == node:
            snapshot.place(replacement, node.name)
            return (group, zone), node
        snapshot.remove_node(node.name)
    return None
