"""Nodes that do not exist yet: those on their way, and those that a gang could ask for.

Which group is asked, and for how many, is decided by the bin packing that interruptions use, with the same
ranking, refusals and memory of pools. What is on its way is given out here gang by gang: an upcoming node that
was promised is one more node of the plan, with its gang on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from math import inf
from typing import Final

from plimsoll.domain.capacity import Growth, grow_token, plan_growth
from plimsoll.domain.kubernetes import HOSTNAME, ZONE_LABELS, Node, Pod
from plimsoll.domain.node_groups import (
    Asked,
    NodeGroup,
    OtherRefusal,
    Refusal,
    expected_nodes,
    on_the_way,
    start_up,
)
from plimsoll.domain.spot import CapacityPool, interrupted_pools
from plimsoll_batch.domain.capacity.placement import Domain, Place, Placement, domain_of
from plimsoll_batch.domain.jobs import Ask, Gang, NodeRequest
from plimsoll_batch.domain.quota import RoleFlavors

MOST_DOMAINS: Final = 16
"""Zones, racks or groups that are compared for one gang."""
JOINING: Final = timedelta(minutes=2)
"""How long after its Node was created an instance may still lack what it will have: devices, or pods of DaemonSets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The node groups of a cluster, as they were read last."""

    cluster: str
    groups: Sequence[NodeGroup]
    nodes: Sequence[Node]
    """All of the cluster, also those that take no pods."""
    refusals: Mapping[str, Sequence[Refusal]] = field(default_factory=dict)
    """Key of a group -> what our own requests were refused with."""
    pools: Mapping[CapacityPool, float] = field(default_factory=dict)
    """Capacity pool -> its reclaims an hour; infinity: it is set aside now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingPlace:
    """A place for a gang, partly on nodes that do not exist yet."""

    place: Place
    nodes: Sequence[Node] = ()
    """Those of its nodes that do not exist yet."""
    groups: Sequence[str] = ()
    """The keys of their groups, in the same order."""
    growths: tuple[Growth, ...] = ()
    """What has to be asked for first."""


class UpcomingNodes:
    """What comes and could come, while a plan reserves it."""

    def __init__(
        self, capacity: Capacity, requests: Mapping[str, NodeRequest], now: datetime
    ) -> None:
        """Begin with all that is on its way.

        Args:
            capacity: the node groups.
            requests: what is awaited, by the uid of its gang.
            now: the present.
        """
        self._capacity, self._now = capacity, now
        self.requests = dict(requests)
        """Of gangs whose turn has still to come: no other gang is given what they asked for."""
        self._groups = {g.key: g for g in capacity.groups if not g.provisions}
        expected = {key: expected_nodes(g, capacity.nodes, now) for key, g in self._groups.items()}
        self._upcoming = on_the_way(expected)
        self._doubts = {key: found for key, found in expected.items() if found.doubt}
        reclaimed = interrupted_pools(capacity.nodes, capacity.groups)
        self._pools = {**capacity.pools, **dict.fromkeys(reclaimed, inf)}
        self._serial = 0

    def find(
        self, placement: Placement, gang: Gang, flavors: Sequence[RoleFlavors]
    ) -> UpcomingPlace | str:
        """Return a place for a whole gang on as few new nodes as can be; or say why there is none."""
        topology = gang.shape.topology
        if topology is None:
            return self._find(placement, gang, flavors, ())
        found: list[tuple[int, int, Domain, UpcomingPlace]] = []
        reasons: list[str] = []
        for domain in self._domains(placement.levels_of(topology)):
            answer = self._find(placement, gang, flavors, domain)
            if isinstance(answer, str):
                reasons.append(answer)
            else:
                more = sum(growth.add for growth in answer.growths)
                found.append((-topology.weight_of(domain[-1][1]), more, domain, answer))
        if found:
            return min(found, key=lambda each: each[:3])[3]
        if not topology.required:
            return self._find(placement, gang, flavors, ())
        return next(iter(reasons), f"nothing tells which {topology.label} new nodes will have")

    def take(self, placement: Placement, gang: Gang, upcoming: UpcomingPlace) -> Place:
        """Reserve a place for a gang, and for no other."""
        for growth in upcoming.growths:
            group = self._groups[growth.group.key]
            self._groups[group.key] = replace(group, desired=group.desired + growth.add)
            self._upcoming[group.key, growth.zone] += growth.add
        left = self._unasked()
        for key, node in zip(upcoming.groups, upcoming.nodes, strict=True):
            known = (key, node.zone)
            # Nodes that come up in its own zone first; the others may come up anywhere.
            taken = known if left[known] > 0 else (key, None)
            left[taken] -= 1
            self._upcoming[taken] -= 1
            group = self._groups[key]
            self._groups[key] = replace(group, instances=group.instances | {node.name})
        return placement.join(upcoming.nodes, gang, upcoming.place)

    def request(self, upcoming: UpcomingPlace, number: int) -> NodeRequest:
        """Return what to ask for so that its nodes come; `number` gangs have been promised theirs before."""
        cluster, now, nodes = self._capacity.cluster, self._now, self._capacity.nodes
        return NodeRequest(
            at=now,
            number=number,
            expected=now + max(start_up(growth.group, nodes) for growth in upcoming.growths),
            asks=tuple(
                Ask(
                    group=growth.group.key,
                    desired=growth.group.desired + before,
                    add=growth.add,
                    zone=growth.zone,
                    token=grow_token(cluster, growth.group, growth.zone, growth.add, now),
                )
                for growth, before in _in_turn(upcoming.growths)
            ),
        )

    def doubts_of(self, request: NodeRequest) -> str:
        """Say why nodes that were asked for are not counted on."""
        asked = dict.fromkeys(ask.group for ask in request.asks)
        doubts = ((key, self._doubts.get(key)) for key in asked)
        return "; ".join(f"group {key}: {found.doubt}" for key, found in doubts if found)

    def joining(self, request: NodeRequest) -> bool:
        """Whether a node came for a request a moment ago, that may not have all it will have."""
        asked = {ask.group for ask in request.asks}
        theirs = {i for g in self._capacity.groups if g.key in asked for i in g.instances}
        return any(
            node.instance in theirs
            and request.at <= node.created
            and self._now < node.created + JOINING
            for node in self._capacity.nodes
        )

    def _find(
        self, placement: Placement, gang: Gang, flavors: Sequence[RoleFlavors], domain: Domain
    ) -> UpcomingPlace | str:
        members = [
            (role.name, pod)
            for role, pods in placement.members(gang, flavors, domain)
            for pod in pods
        ]
        plan = plan_growth(
            placement.open_to(gang),
            [pod for _, pod in members],
            list(self._groups.values()),
            upcoming=self._unasked(),
            now=self._now,
            refusals=self._refusals(gang),
            pools=self._pools,
            doubts=self._doubts,
        )
        if plan.unplaceable:
            return next(iter(plan.unplaceable.values()))
        nodes = {name: self._named(node) for name, node in plan.awaited.items()}
        placed: list[tuple[Pod, str]] = []
        on: dict[str, Counter[str]] = {}
        for role, pod in members:
            name = plan.placed[pod.uid]
            name = nodes[name].name if name in nodes else name
            placed.append((pod, name))
            on.setdefault(role, Counter())[name] += 1
        return UpcomingPlace(
            place=Place(nodes=on, domain=domain, pods=tuple(placed)),
            nodes=tuple(nodes.values()),
            groups=[plan.group_of[name] for name in plan.awaited],
            growths=plan.growths,
        )

    def _unasked(self) -> Counter[Asked]:
        """Return what is on its way but for what gangs asked for whose turn has still to come."""
        left = Counter(self._upcoming)
        for ask in chain.from_iterable(request.asks for request in self.requests.values()):
            zones = (ask.zone, None) if ask.zone else (None, *self._zones(ask.group))
            more = ask.add
            for zone in zones:
                taken = min(more, max(0, left[ask.group, zone]))
                left[ask.group, zone] -= taken
                more -= taken
        return left

    def _refusals(self, gang: Gang) -> Mapping[str, Sequence[Refusal]]:
        """Return who refused lately; what stands on a gang counts for it alone, since its owner may write it."""
        known, request = self._capacity.refusals, gang.request
        if request is None or request.told is None:
            return known
        told = OtherRefusal(at=request.told, why=request.why)
        return {**known, **{key: (*known.get(key, ()), told) for key in request.refused}}

    def _named(self, node: Node) -> Node:
        """Return a node under a name that no other node of the plan has; it stands for an instance of its group."""
        self._serial += 1
        name = f"{node.name} ({self._serial})"
        labels = {**node.labels, HOSTNAME: name}
        return replace(node, name=name, uid=name, labels=labels, instance=name)

    def _zones(self, key: str) -> Sequence[str]:
        return self._groups[key].zones if key in self._groups else ()

    def _domains(self, levels: Sequence[str]) -> Sequence[Domain]:
        """Return the domains that new nodes may be in."""
        found = {
            domain
            for group in self._groups.values()
            for zone in group.zones
            if (domain := domain_of(_labels(group, zone), levels))
        }
        return sorted(found)[:MOST_DOMAINS]


def _labels(group: NodeGroup, zone: str) -> Mapping[str, str]:
    """Return the labels that tell in which domains a new node of a group will be."""
    template = {} if group.template is None else group.template.labels
    return {**template, **dict.fromkeys(ZONE_LABELS, zone)}


def _in_turn(growths: Sequence[Growth]) -> Iterator[tuple[Growth, int]]:
    """Yield each growth with how many nodes were asked of its group before it."""
    before: Counter[str] = Counter()
    for growth in growths:
        yield growth, before[growth.group.key]
        before[growth.group.key] += growth.add
