"""Whether the pods of a gang fit on the nodes, all at once, by the scheduler's predicates.

kube-scheduler places them later, pod by pod; this is only a forecast, on a snapshot that holds what runs
and whatever the plan admitted before. What runs stands there as one sum for each node, so that a million
pods cost no more than their nodes. Pods that keep others away, by anti-affinity or host ports, or that
others want to be near, are given one by one besides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

from plimsoll.domain.capacity import Daemons
from plimsoll.domain.kubernetes import Node, Pod, Ref, Resources, Scheduling, total_resources
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_batch.domain.capacity.dedicated_nodes import lease_of
from plimsoll_batch.domain.jobs import (
    Gang,
    Role,
    RunningGang,
    Shape,
    Topology,
    amounts_of,
    largest_first,
)
from plimsoll_batch.domain.quota import QueueConfiguration, RoleFlavors

type Domain = tuple[tuple[str, str], ...]
"""Labels and their values, the widest level first, where all pods have to stand in one domain. Empty: anywhere."""

_NONE: Final[frozenset[str]] = frozenset()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the pods of a gang stand in the forecast."""

    nodes: Mapping[str, Mapping[str, int]]
    """Role -> node -> pods."""
    domain: Domain
    pods: tuple[tuple[Pod, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPlace:
    """Why a gang has none, in words."""

    reason: str


type Opportunity = tuple[Place, Sequence[RunningGang], datetime | None]
"""A place, who has to end before, and when that is at the latest; None where it is not known."""


class Placement:
    """The nodes of a cluster while a plan fills them."""

    def __init__(  # noqa: PLR0913 - all that stands on nodes
        self,
        nodes: Sequence[Node],
        sums: Mapping[str, Resources],
        running: Iterable[RunningGang],
        configuration: QueueConfiguration,
        pods: Sequence[Pod] = (),
        *,
        shared: Iterable[str] = (),
    ) -> None:
        """Begin with what stands on the nodes.

        Args:
            nodes: all nodes.
            sums: node -> what its pods request, without those of gangs and those in `pods`.
            running: gangs that were admitted.
            configuration: the queues'.
            pods: those that have to be known one by one.
            shared: nodes with pods that are of no gang and do not belong to the node.
        """
        self._snapshot = ClusterSnapshot(nodes, pods)
        self._occupied = Counter(shared)
        """Node -> gangs and others on it: who takes whole nodes takes those without."""
        self._coming: frozenset[str] = frozenset()
        """Nodes that are not there yet: whoever starts now has no place on them."""
        self._flavors = {flavor.name: flavor for flavor in configuration.flavors}
        self._levels = configuration.topology_levels
        self._standing: dict[str, Resources] = {}
        """Node -> what stands there as one sum."""
        self._scheduling: dict[tuple[int, RoleFlavors, Domain], tuple[Role, Scheduling]] = {}
        found: defaultdict[str, list[Resources]] = defaultdict(list)
        for name, amount in sums.items():
            found[name].append(amount)
        for each in running:
            for name, amount in each.on_nodes.items():
                found[name].append(amount)
                self._occupied[name] += 1
        for name, amounts in found.items():
            if name in self._snapshot.nodes:
                self._stand(name, total_resources(amounts))

    def place(self, gang: Gang, flavors: Sequence[RoleFlavors]) -> Place | NoPlace:
        """Place all pods of a gang, or none, on nodes that are there; first where they are leased to it already."""
        nodes = self._snapshot.nodes
        if not gang.shape.leases:
            return self._place_by_topology(gang, flavors, self._coming)
        closed = self._in_use() | self._coming
        held = {name for name, node in nodes.items() if lease_of(node) == gang.lease} - closed
        # Its own leased nodes first: an earlier cycle marked them for it, and no other gang may use them.
        if held:
            found = self._place_by_topology(gang, flavors, frozenset(nodes.keys() - held))
            if isinstance(found, Place):
                return found
        return self._place_by_topology(gang, flavors, closed)

    def _in_use(self) -> frozenset[str]:
        """Return the nodes that nobody can have for itself."""
        return frozenset(name for name in self._snapshot.nodes if self._occupied[name] > 0)

    def _place_by_topology(
        self, gang: Gang, flavors: Sequence[RoleFlavors], closed: frozenset[str]
    ) -> Place | NoPlace:
        topology = gang.shape.topology
        if topology is None:
            return self._place_in(gang, flavors, (), closed)
        tried = 0
        for domain in self._domains(topology, gang.shape, closed):
            tried += 1
            found = self._place_in(gang, flavors, domain, closed)
            if isinstance(found, Place):
                return found
        if not topology.required:
            return self._place_in(gang, flavors, (), closed)
        return NoPlace(
            reason=f"no single {topology.label} holds all of it ({tried} have enough free in sum)"
        )

    def remove(self, place: Place) -> None:
        """Take a gang off again."""
        self._take_off(place.pods)

    def put(self, place: Place) -> None:
        """Put it where it was, whether it fits or not."""
        for pod, name in place.pods:
            self._put(pod, name)

    def release(self, running: Iterable[RunningGang]) -> None:
        """See gangs as ended."""
        for name, amounts in _by_node(running).items():
            self._occupied[name] -= len(amounts)
            if name in self._standing:
                self._stand(name, self._standing[name] - total_resources(amounts))

    def occupy(self, running: Iterable[RunningGang]) -> None:
        """See them as running again."""
        for name, amounts in _by_node(running).items():
            self._occupied[name] += len(amounts)
            if name in self._standing:
                self._stand(name, self._standing[name] + total_resources(amounts))

    def hold(self, running: Iterable[RunningGang], place: Place) -> None:
        """Keep what released gangs leave beyond a place: they are still there until they have stopped."""
        used: defaultdict[str, list[Resources]] = defaultdict(list)
        for pod, name in place.pods:
            used[name].append(pod.scheduling.requests)
        for name, amounts in _by_node(running).items():
            if name in self._standing:
                self._occupied[name] += len(amounts)
                rest = total_resources(amounts) - total_resources(used.get(name, []))
                self._stand(name, self._standing[name] + _at_least_zero(rest))

    def copy(self) -> Self:
        """Return a forecast to try something on."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        self._snapshot, self._standing = self._snapshot.copy(), self._standing.copy()
        self._occupied = self._occupied.copy()

    def _stand(self, name: str, amount: Resources) -> None:
        self._standing[name] = amount
        self._snapshot.place(_standing_pod(name, amount), name)

    def _place_in(
        self,
        gang: Gang,
        flavors: Sequence[RoleFlavors],
        domain: Domain,
        closed: frozenset[str],
        *,
        explained: bool = False,
    ) -> Place | NoPlace:
        placed: list[tuple[Pod, str]] = []
        nodes: dict[str, Counter[str]] = {}
        for role, members in self.members(gang, flavors, domain):
            on = nodes[role.name] = Counter()
            for number, pod in enumerate(members):
                node = self._snapshot.choose(pod, closed)
                if node is None:
                    reason = f"role {role.name}: {number} of {role.pods} pods have a place"
                    if explained:
                        reason += f"; for the next {self._snapshot.explain(pod, without=closed)}"
                        if closed:
                            reason += f"; {len(closed)} nodes are not free as a whole"
                    self._take_off(placed)
                    return NoPlace(reason=reason)
                self._put(pod, node.name)
                placed.append((pod, node.name))
                on[node.name] += 1
        if gang.shape.leases:
            placed += self._fill(gang, {name for counts in nodes.values() for name in counts})
        return Place(nodes=nodes, domain=domain, pods=tuple(placed))

    def explain(self, gang: Gang, flavors: Sequence[RoleFlavors]) -> str | None:
        """Say in the scheduler's words why the first pod without a place has none; None where all have.

        As if its topology were not asked for: `place` says what that costs.
        """
        closed = self._in_use() if gang.shape.leases else _NONE
        found = self._place_in(gang, flavors, (), closed, explained=True)
        if isinstance(found, NoPlace):
            return found.reason
        self.remove(found)
        return None

    def members(
        self, gang: Gang, flavors: Sequence[RoleFlavors], domain: Domain
    ) -> Iterator[tuple[Role, Iterator[Pod]]]:
        """Yield the roles of a gang with their pods, as flavors and a domain steer them: the largest pods first."""
        asked = dict(zip((role.name for role in gang.shape.roles), flavors, strict=True))
        for role in largest_first(gang.shape.roles):
            scheduling = self._steered(role, asked[role.name], domain)
            owner = Ref("Job", gang.namespace, f"{gang.uid}/{role.name}")
            yield role, (_member(owner, n, scheduling, role.labels) for n in range(role.pods))

    def open_to(self, gang: Gang) -> ClusterSnapshot:
        """Return a copy of the nodes on which its pods may be counted at all."""
        snapshot = self._snapshot.copy()
        for name in self._in_use() if gang.shape.leases else ():
            snapshot.remove_node(name)
        return snapshot

    def join(self, nodes: Iterable[Node], gang: Gang, place: Place) -> Place:
        """Add nodes that are to come, with the pods of their DaemonSets, and put a gang there."""
        daemons = Daemons(self._snapshot)
        for node in nodes:
            self._coming |= {node.name}
            self._snapshot.add_node(node)
            self._stand(
                node.name, total_resources([p.scheduling.requests for p in daemons.on(node)])
            )
        self.put(place)
        if not gang.shape.leases:
            return place
        names = {name for counts in place.nodes.values() for name in counts}
        return replace(place, pods=(*place.pods, *self._fill(gang, names)))

    def comes(self, place: Place) -> bool:
        """Whether some of a place has still to come."""
        return any(name in self._coming for _, name in place.pods)

    def _put(self, pod: Pod, name: str) -> None:
        self._snapshot.place(pod, name)
        self._occupied[name] += 1

    def _take_off(self, placed: Iterable[tuple[Pod, str]]) -> None:
        for pod, name in placed:
            self._snapshot.remove(pod)
            self._occupied[name] -= 1

    def _fill(self, gang: Gang, names: Iterable[str]) -> Iterator[tuple[Pod, str]]:
        """Take what a gang leaves of its nodes: it has them for itself."""
        for name in names:
            rest = Scheduling(requests=_at_least_zero(self._snapshot.free(name)))
            pod = _member(Ref("Job", gang.namespace, f"{gang.uid} on {name}"), 0, rest, {})
            self._put(pod, name)
            yield pod, name

    def _steered(self, role: Role, names: RoleFlavors, domain: Domain) -> Scheduling:
        """Return what the pods of a role ask for with its flavors; the same object for the same question."""
        key = (id(role), names, domain)
        known = self._scheduling.get(key)
        if known is None:
            flavors = [self._flavors[name] for name in names]
            labels = {k: v for flavor in flavors for k, v in flavor.node_labels.items()}
            labels |= dict(domain)
            scheduling = replace(
                role.scheduling,
                node_selector={**role.scheduling.node_selector, **labels},
                tolerations=(
                    *role.scheduling.tolerations,
                    *(toleration for flavor in flavors for toleration in flavor.tolerations),
                ),
            )
            known = self._scheduling[key] = (role, scheduling)
        return known[1]

    def levels_of(self, topology: Topology) -> Sequence[str]:
        """Return the labels whose values together name a domain: its own, and those of the levels above."""
        known = topology.label in self._levels
        return (
            self._levels[: self._levels.index(topology.label) + 1] if known else (topology.label,)
        )

    def _domains(
        self, topology: Topology, shape: Shape, closed: Collection[str]
    ) -> Iterator[Domain]:
        """Yield the domains with enough free in sum: by weight, then the fullest first, so that large ones stay whole."""
        levels = self.levels_of(topology)
        free: defaultdict[Domain, list[Resources]] = defaultdict(list)
        for name, node in self._snapshot.nodes.items():
            domain = domain_of(node.labels, levels)
            if domain and name not in closed:
                free[domain].append(_at_least_zero(self._snapshot.free(name)))
        need = total_resources(
            [role.scheduling.requests for role in shape.roles for _ in range(role.pods)]
        )
        sums = {domain: total_resources(amounts) for domain, amounts in free.items()}
        enough = [domain for domain, whole in sums.items() if need.within(whole)]
        # The name breaks ties, so that each cycle tries the same domain first.
        yield from sorted(
            enough, key=lambda d: (-topology.weight_of(d[-1][1]), -_part(need, sums[d]), d)
        )


def domain_of(labels: Mapping[str, str], levels: Sequence[str]) -> Domain:
    """Return the domain that labels name; empty where they lack a level."""
    named = tuple((level, labels[level]) for level in levels if level in labels)
    return named if len(named) == len(levels) else ()


def earliest_place(
    placement: Placement,
    running: Iterable[RunningGang],
    gang: Gang,
    flavors: Sequence[RoleFlavors],
) -> Opportunity | None:
    """Return the place that a gang has first; None where it has none though all others ended.

    They end in the order in which they say so, then those that do not say it, the oldest first. Twice as
    many at each step: the place that is found may need up to twice as many ends as it has to.
    """
    order = sorted((each for each in running if each.on_nodes), key=_end_of)
    everything = placement.copy()
    # Tried first as if all had ended: a gang that has no place then has none before.
    everything.release(order)
    if not isinstance(everything.place(gang, flavors), Place):
        return None
    twin, done, step = placement.copy(), 0, 1
    while done < len(order):
        twin.release(order[done : done + step])
        done, step = done + step, step * 2
        found = twin.place(gang, flavors)
        if isinstance(found, Place):
            names = {name for _, name in found.pods}
            after = [each for each in order[:done] if not names.isdisjoint(each.on_nodes)]
            ends = [each.ends for each in after if each.ends is not None]
            return found, after, max(ends) if ends and len(ends) == len(after) else None
    return None


def never_fits(
    placement: Placement,
    running: Iterable[RunningGang],
    gang: Gang,
    flavors: Sequence[RoleFlavors],
) -> bool:
    """Whether it is proven that a gang has no place though all others ended.

    `earliest_place` does not prove it: pods are placed one after the other, and might fit in another order. It is
    proven where one role alone has no place, since its pods are all alike, or where the nodes have less than all pods
    request. Pods that ask for others beside them or away from them prove nothing alone.
    """
    twin = placement.copy()
    twin.release(each for each in running if each.on_nodes)
    snapshot = twin.open_to(gang)
    whole = total_resources([_at_least_zero(snapshot.free(name)) for name in snapshot.nodes])
    need: list[Resources] = []
    for role, pods in twin.members(gang, flavors, ()):
        need += [role.scheduling.requests] * role.pods
        asks = role.scheduling
        if asks.affinity or asks.anti_affinity or asks.spread:
            continue
        alone = snapshot.copy()
        for pod in pods:
            node = alone.choose(pod)
            if node is None:
                return True
            alone.place(pod, node.name)
    return not total_resources(need).within(whole)


def _end_of(running: RunningGang) -> tuple[bool, datetime, str]:
    return running.ends is None, running.ends or running.admitted, running.gang.uid


def _part(need: Resources, whole: Resources) -> float:
    """Return the largest part that is needed of anything."""
    have = amounts_of(whole, 1)
    return max((n / have[name] for name, n in amounts_of(need, 1).items()), default=0.0)


def _by_node(running: Iterable[RunningGang]) -> Mapping[str, Sequence[Resources]]:
    found: defaultdict[str, list[Resources]] = defaultdict(list)
    for each in running:
        for name, amount in each.on_nodes.items():
            found[name].append(amount)
    return found


def _standing_pod(name: str, amount: Resources) -> Pod:
    return Pod(
        namespace="",
        name=name,
        uid=f"on {name}",
        resource_version="",
        labels={},
        created=_EPOCH,
        scheduling=Scheduling(requests=amount),
    )


def _member(owner: Ref, number: int, scheduling: Scheduling, labels: Mapping[str, str]) -> Pod:
    return Pod(
        namespace=owner.namespace,
        name=owner.name,
        uid=f"{owner.name}/{number}",
        resource_version="",
        labels=labels,
        owner=owner,
        created=_EPOCH,
        scheduling=scheduling,
    )


def _at_least_zero(amount: Resources) -> Resources:
    return Resources(
        cpu=max(0, amount.cpu),
        memory=max(0, amount.memory),
        pods=max(0, amount.pods),
        extended=tuple((name, max(0, each)) for name, each in amount.extended),
    )
