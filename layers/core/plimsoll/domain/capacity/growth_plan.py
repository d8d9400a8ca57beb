"""How much headroom the unschedulable pods need, and the smallest growth of node groups that makes it.

Pods are placed by priority, the constrained and the big first, on the nodes that stay, then to those
that were asked for, then to new ones: of on-demand groups, of spot groups where no on-demand
group will do, and as last resort out of capacity pools that are reclaimed just now, and of groups whose
nodes do not come. Pods of a negative priority make way for those that have no place, and are placed after all
others.
The exact minimum is a bin packing problem; this is first-fit decreasing, and what it asks for is enough by
construction, because every pod was placed by the scheduler's rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from types import MappingProxyType

from plimsoll.domain.capacity.bin_packing import BinPacking, Doubts
from plimsoll.domain.kubernetes import Node, Pod
from plimsoll.domain.node_groups import (
    DOUBTED_AFTER_REFUSAL,
    Asked,
    Expectation,
    NodeGroup,
    Refusal,
    not_asked_again,
)
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import CapacityPool, interrupted_pools, rate_of, refused_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One request for more nodes of one group."""

    group: NodeGroup
    add: int
    zone: str | None = None
    """The zone to launch in; None where the group itself chooses."""
    pods: tuple[str, ...] = ()
    """The pods that wait for nodes of this group and zone, as `namespace/name`."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPlan:
    """Where every unschedulable pod goes, and what has to be asked for so that it can."""

    growths: tuple[Growth, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)
    """Pod uid -> node name, in the order of placing; the node may be one of `awaited`."""
    awaited: Mapping[str, Node] = field(default_factory=dict)
    """The nodes that are counted on and do not exist yet, by name (`new-<group>-<n>`)."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """The keys of their groups."""
    unplaceable: Mapping[str, str] = field(default_factory=dict)
    """Pod uid -> why no node and no group can take it."""
    full: Collection[str] = frozenset()
    """Keys of the groups that are at their maxima, where a pod gets no node."""


def plan_growth(  # noqa: PLR0913 - the whole world of the decision, each part named
    snapshot: ClusterSnapshot,
    unschedulable: Sequence[Pod],
    groups: Sequence[NodeGroup],
    *,
    upcoming: Mapping[Asked, int],
    now: datetime,
    refusals: Mapping[str, Sequence[Refusal]] = MappingProxyType({}),
    pools: Mapping[CapacityPool, float] = MappingProxyType({}),
    doubts: Mapping[str, Expectation] = MappingProxyType({}),
    foremost: Collection[str] = frozenset(),
    frozen: Collection[str] = frozenset(),
) -> GrowthPlan:
    """Fit pods on the nodes that stay, then on nodes asked for, then on as few new ones as can be.

    Args:
        snapshot: where pods stand; it is left as it is.
        unschedulable: pods that need a node. One that the snapshot still holds is moved, not doubled.
        groups: the groups that may grow; `desired` already counts what was asked for.
        upcoming: (key of a group, zone or None where nobody knows) -> nodes asked for and not there yet.
        now: the time that refusals are compared with.
        refusals: key of a group -> what our own requests were refused with.
        pools: capacity pool -> its reclaims an hour, as far as they are known; infinity: it is set aside now.
        doubts: key of a group -> what is doubted of it: as last resort that is counted on, and more of it asked.
        foremost: uids of pods that come before all others of their priority.
        frozen: zones that traffic is shifted away from: nodes there are the last resort.
    """
    start = snapshot.copy()
    # All are removed first: none may be in the way of another that is placed before it.
    for pod in unschedulable:
        start.remove(pod)
    avoided = interrupted_pools(snapshot.nodes.values(), groups)
    avoided |= {pool for pool, rate in pools.items() if rate == inf}
    told = {g.key: (*refusals.get(g.key, ()), *g.refusals) for g in groups}
    closed = {key: not_asked_again(refused, now) for key, refused in refusals.items()}
    doubt = Doubts(
        closed=refused_sources(groups, closed, now - DOUBTED_AFTER_REFUSAL),
        last=refused_sources(groups, told, now - DOUBTED_AFTER_REFUSAL, avoided)
        | {(g.key, zone) for g in groups for zone in g.zones if zone in frozen},
        rate={(g.key, zone): rate_of(g, zone, avoided, pools) for g in groups for zone in g.zones},
        expected=doubts,
    )
    # Both sorts are stable: within a priority the foremost come first, and the rest keep the order of `_in_order`.
    order = sorted(
        _in_order(unschedulable, start, groups),
        key=lambda pod: (-pod.priority, pod.uid not in foremost),
    )

    packing = BinPacking(start, groups, upcoming, doubt)
    packing.pack(order)
    return _plan(packing, groups)


def _plan(packing: BinPacking, groups: Sequence[NodeGroup]) -> GrowthPlan:
    asked = Counter(packing.opened.values())
    waiting: dict[Asked, list[str]] = defaultdict(list)
    for pod in packing.pods.values():
        node = packing.awaited.get(packing.placed.get(pod.uid, ""))
        if node is not None:
            for zone in (node.zone, None):
                waiting[packing.group_of[node.name], zone].append(str(pod))
    return GrowthPlan(
        growths=tuple(
            Growth(
                group=group,
                add=add,
                zone=zone,
                pods=tuple(waiting[key, zone]),
                reason=_reason(waiting[key, zone], packing.cause[key, zone]),
            )
            for group in groups
            for (key, zone), add in sorted(asked.items(), key=lambda item: item[0][1] or "")
            if key == group.key
        ),
        placed=packing.placed,
        awaited=packing.awaited,
        group_of={name: packing.group_of[name] for name in packing.awaited},
        unplaceable=packing.refused,
        full=packing.full if packing.refused else frozenset(),
    )


def _reason(pods: Sequence[str], cause: str) -> str:
    whom = f"{len(pods)} pods, the first {pods[0]}" if len(pods) > 1 else "".join(pods)
    return f"headroom for {whom} ({cause})"


def _in_order(
    pods: Sequence[Pod], snapshot: ClusterSnapshot, groups: Sequence[NodeGroup]
) -> list[Pod]:
    """Sort by priority, then the constrained before the free, then the big before the small."""
    wholes = [node.allocatable for node in snapshot.nodes.values()]
    wholes += [group.template.allocatable for group in groups if group.template is not None]
    cpu = max((whole.cpu for whole in wholes), default=0) or 1
    memory = max((whole.memory for whole in wholes), default=0) or 1

    def rank(pod: Pod) -> tuple[int, int, float, str, str, str]:
        s = pod.scheduling
        # Few nodes take a pod with many demands, so it chooses first. Of
        # the other pods the largest choose first (first-fit decreasing).
        demands = (
            s.claims,
            s.node_selector,
            s.node_terms,
            s.affinity,
            s.anti_affinity,
            s.spread,
            s.host_ports,
            s.requests.extended,
        )
        size = s.requests.cpu / cpu + s.requests.memory / memory
        return -pod.priority, -sum(map(bool, demands)), -size, pod.namespace, pod.name, pod.uid

    return sorted(pods, key=rank)
