"""A cheaper mix of instances for the pods of a cluster, with every rule about their places kept.

Whether a pod fits on an instance is asked of the predicates by which the drain plans. Besides, a
share of each instance stays free, as many replicas stand on on-demand as their floors ask for, spot
is spread over families, and no node or zone holds more replicas of a workload than today, nor a node
more than half of all pods unless one does today.

A node stays what it is where a pod on it asks for something that no offered instance is known to
have, and where its taints set it apart for some pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from typing import Final

from plimsoll.domain.capacity import Daemons
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    HOSTNAME,
    INSTANCE_TYPE,
    REGION,
    ZONE,
    Node,
    Pod,
    Resources,
    total_resources,
)
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_service.domain.analysis.cluster_view import (
    ON_DEMAND,
    SPOT,
    Together,
    View,
)
from plimsoll_service.domain.analysis.consolidation import spared
from plimsoll_service.domain.analysis.fleet import FAMILIES, Fleet, Offer, Worth, useful, worth_of
from plimsoll_service.domain.analysis.floors import may_stand_on_spot
from plimsoll_service.domain.analysis.prices import HOURS_PER_MONTH, PriceTable
from plimsoll_service.domain.analysis.time_limit import OutOfTime, TimeIsOver, never

LIMITS_MILLICORES: Final = (4000, 8000, 16_000, 32_000, 64_000)
"""The heuristic is tried with instances of up to so many millicores, and the cheapest outcome taken."""
MANY_PODS: Final = 1000
"""With more pods than this it is tried once, with all instances."""
MOST_PODS: Final = 5000
"""With more pods than this no mix is made: one cluster must not take the time of all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A node of the mix."""

    type: str
    capacity: str | None
    zone: str | None
    hourly: float
    allocatable: Resources
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceMix:
    """The nodes that the pods of a cluster could stand on."""

    instances: tuple[Instance, ...]
    """All of them: those that stay what they are too."""
    kept: Mapping[str, str]
    """Name of a node that stays what it is -> why, in words."""
    hourly: float
    complete: bool = True
    """Whether the time sufficed; else all nodes stay what they are."""
    bound: float
    """No mix that keeps the same rules costs less than this an hour."""

    @property
    def gap(self) -> float:
        """How far at most it is above the optimum, as a share of the bound."""
        return self.hourly / self.bound - 1 if self.bound else 0.0


def cheaper_mix(view: View, table: PriceTable, out_of_time: OutOfTime = never) -> InstanceMix:
    """Return the cheapest mix that was found: it may cost more than the nodes that are there."""
    try:
        return _mix(view, table, dict(_kept(view, table)), out_of_time)
    except TimeIsOver:
        kept = dict.fromkeys(view.nodes, "there was no time to look for another")
        return replace(_mix(view, table, kept, never), complete=False)


def _mix(
    view: View, table: PriceTable, kept: dict[str, str], out_of_time: OutOfTime
) -> InstanceMix:
    daemons = Daemons(view.standing())
    offers = offers_of(view, table, daemons)
    empty = _EmptyInstances(view, offers)
    while True:
        if out_of_time():
            raise TimeIsOver
        fixed, free = _split(view, kept)
        # Asked before a fleet is made: a fleet takes seconds, and each pod that is stuck asks for another one.
        stuck = [
            *(pod for pod in fixed if not empty.take(pod, on_spot=False)),
            *(pod for pod in free if not empty.take(pod, on_spot=True)),
        ]
        if stuck:
            kept |= {pod.node or "": f"{pod} fits on no instance that is offered" for pod in stuck}
            continue
        worth = worth_of(offers, *_sum([*fixed, *free]))
        fleets = [
            _fleet(
                view,
                kept,
                daemons=daemons,
                worth=worth,
                fixed=fixed,
                free=free,
                out_of_time=out_of_time,
                offers=[offer for offer in offers if offer.cpu <= most],
            )
            for most in (
                LIMITS_MILLICORES if len(view.pods) <= MANY_PODS else LIMITS_MILLICORES[-1:]
            )
        ]
        best = min(fleets, key=lambda fleet: (len(fleet.stuck), fleet.hourly))
        if not best.stuck:
            break
        for pod in best.stuck:
            kept[pod.node or ""] = f"{pod} fits on no instance that is offered"
    stay = [standing_instance(view, table, name) for name in sorted(kept)]
    staying = sum(each.hourly for each in stay)
    return InstanceMix(
        instances=(*stay, *_instances(best)),
        kept=kept,
        hourly=staying + best.hourly,
        bound=staying + _bound(offers, worth, fixed, free),
    )


class _EmptyInstances:
    """One empty instance of each offer in each zone."""

    def __init__(self, view: View, offers: Sequence[Offer]) -> None:
        zones = sorted({node.zone for node in view.nodes.values()}, key=str)
        self._offers = [
            (offer, _node(view, offer, zone, f"empty-{number}"))
            for number, (offer, zone) in enumerate(product(offers, zones))
        ]
        self._snapshot = ClusterSnapshot([node for _, node in self._offers], (), view.claims)
        self._take: dict[tuple[int, bool], bool] = {}

    def take(self, pod: Pod, *, on_spot: bool) -> bool:
        """Whether any of them takes a pod. The pods of a template share the answer."""
        kind, need = (id(pod.scheduling), on_spot), pod.scheduling.requests
        if kind not in self._take:
            large = (
                node
                for offer, node in self._offers
                if need.cpu <= offer.cpu and need.memory <= offer.memory
                if on_spot or offer.capacity == ON_DEMAND
            )
            self._take[kind] = self._snapshot.first(pod, large) is not None
        return self._take[kind]


def _fleet(  # noqa: PLR0913 - what one attempt is made of
    view: View,
    kept: Collection[str],
    *,
    daemons: Daemons,
    worth: Worth,
    fixed: Sequence[Pod],
    free: Sequence[Pod],
    out_of_time: OutOfTime,
    offers: Sequence[Offer],
) -> Fleet:
    together = Together(view)
    snapshot = ClusterSnapshot(
        [view.nodes[name] for name in kept],
        [view.pods[pod.uid] for name in kept for pod in view.on_node[name]],
        view.claims,
    )
    for name in kept:
        for pod in snapshot.on(name):
            together.take(pod, view.nodes[name])
    fleet = Fleet(
        snapshot,
        together,
        node_of=lambda offer, zone, name: _node(view, offer, zone, name),
        zones=sorted({node.zone for node in view.nodes.values()}, key=str),
        daemons=daemons,
        worth=worth,
        most_pods=_most_pods(view, len(fixed) + len(free)),
        out_of_time=out_of_time,
    )
    # Pods that need on-demand come first; the others fill the remaining room.
    fleet.place(fixed, [o for o in offers if o.capacity == ON_DEMAND], on_spot=False)
    fleet.place(free, offers, on_spot=True)
    fleet.shrink(offers)
    return fleet


def _split(view: View, kept: Collection[str]) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that get a place: those that must stand on on-demand, and those that need not."""
    fixed: list[Pod] = []
    free: list[Pod] = []
    for uid, pods in view.of_workload.items():
        workload = view.workloads.get(uid)
        if workload is None:
            continue  # its nodes are kept
        leaving = [
            p for p in pods if view.leaves(p) and p.node in view.nodes and p.node not in kept
        ]
        staying = [view.nodes[p.node] for p in pods if p.node in kept]
        spot = may_stand_on_spot(view, workload) - sum(node.capacity == SPOT for node in staying)
        for number, pod in enumerate(sorted(leaving, key=lambda p: p.uid)):
            (free if number < spot else fixed).append(view.pods[pod.uid])
    return fixed, free


def _most_pods(view: View, pods: int) -> int:
    """Return how many pods may stand on one instance: losing it takes half of all, or as many as today."""
    today = (sum(view.leaves(pod) for pod in its) for its in view.on_node.values())
    return max(ceil(pods / 2), *today, 1)


def _sum(pods: Sequence[Pod]) -> tuple[int, int]:
    whole = total_resources([pod.scheduling.requests for pod in pods])
    return whole.cpu, whole.memory


def _bound(
    offers: Sequence[Offer], worth: Worth, fixed: Sequence[Pod], free: Sequence[Pod]
) -> float:
    """Return what no mix costs less than: all pods on any offer, and what on-demand costs above that."""
    dearer = [
        replace(offer, hourly=max(0.0, offer.hourly - worth.of(offer.cpu, offer.memory)))
        for offer in offers
        if offer.capacity == ON_DEMAND
    ]
    more = worth_of(dearer, *_sum(fixed))
    return worth.of(*_sum([*fixed, *free])) + more.of(*_sum(fixed))


def _instances(fleet: Fleet) -> Iterator[Instance]:
    for name, offer in sorted(fleet.opened.items(), key=lambda each: (each[1].type, each[0])):
        yield Instance(
            type=offer.type,
            capacity=offer.capacity,
            zone=fleet.snapshot.nodes[name].zone,
            hourly=offer.hourly,
            allocatable=offer.whole,
            pods=len(fleet.snapshot.on(name)),
        )


def _kept(view: View, table: PriceTable) -> Mapping[str, str]:
    if len(view.pods) > MOST_PODS:
        return dict.fromkeys(view.nodes, f"there are more than {MOST_PODS} pods")
    found = {}
    for told in view.seen.nodes:
        node = view.nodes[told.name]
        if told.labels.get(INSTANCE_TYPE) not in table.prices:
            found[told.name] = "its type has no known price"
        elif not node.ready:
            found[told.name] = "it is not Ready"
        elif node.taints:
            found[told.name] = "its taints set it apart"
        else:
            unknown = (view.why_unknown(p) for p in view.on_node[told.name] if view.leaves(p))
            why = next((why for why in unknown if why is not None), None)
            if why is not None:
                found[told.name] = f"a pod on it stays: {why}"
    return found


def standing_instance(view: View, table: PriceTable, name: str) -> Instance:
    """Return a node as it is; one without a known price counts as costing nothing."""
    node = view.nodes[name]
    type_ = node.labels.get(INSTANCE_TYPE, "without a type")
    price = table.prices.get(type_)
    return Instance(
        type=type_,
        capacity=node.capacity,
        zone=node.zone,
        hourly=price.monthly(node.capacity) / HOURS_PER_MONTH if price else 0.0,
        allocatable=node.allocatable,
        pods=len(view.on_node[name]),
    )


def offers_of(view: View, table: PriceTable, daemons: Daemons) -> Sequence[Offer]:
    """Return the instances that a mix may be made of, each less what stays free and what DaemonSets take."""
    told = {node.labels.get("kubernetes.io/arch") for node in view.seen.nodes} - {None}
    found = []
    for name, size in table.usual([arch for arch in told if arch] or ["amd64"]).items():
        price = table.prices[name]
        whole = Offer(
            type=name,
            arch=size.arch,
            capacity=ON_DEMAND,
            whole=size.allocatable,
            cpu=size.allocatable.cpu,
            memory=size.allocatable.memory,
            pods=size.allocatable.pods,
            hourly=price.on_demand,
        )
        for offer in (whole, replace(whole, capacity=SPOT, hourly=price.spot)):
            taken = [pod.scheduling.requests for pod in daemons.on(_node(view, offer, None, name))]
            free = size.allocatable - total_resources(taken) - spared(size.allocatable)
            if min(free.cpu, free.memory, free.pods) > 0:
                found.append(replace(offer, cpu=free.cpu, memory=free.memory, pods=free.pods))
    return [
        *useful(offer for offer in found if offer.capacity == ON_DEMAND),
        *useful((offer for offer in found if offer.capacity == SPOT), families=FAMILIES),
    ]


def _node(view: View, offer: Offer, zone: str | None, name: str) -> Node:
    labels = {
        INSTANCE_TYPE: offer.type,
        HOSTNAME: name,
        "kubernetes.io/arch": offer.arch,
        "kubernetes.io/os": "linux",
        CAPACITY_LABELS[0]: offer.capacity,
        CAPACITY_LABELS[1]: offer.capacity,
        CAPACITY_LABELS[2]: offer.capacity.upper().replace("-", "_"),
    }
    labels |= {key: value for key, value in ((ZONE, zone), (REGION, view.region)) if value}
    return Node(
        name=name,
        uid=name,
        resource_version="",
        labels=labels,
        allocatable=offer.whole,
        zone=zone,
        capacity=offer.capacity,
        created=view.at,
    )
