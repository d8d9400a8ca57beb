"""How many pods of one shape the nodes of a cluster have places for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from plimsoll.domain.kubernetes import Ref, Resources, Workload, total_resources, why_never
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.pending import TRIED_PENDING_WORKLOADS
from plimsoll.domain.placement.spread_groups import ON_DEMAND
from plimsoll.domain.scheduling import places_on


def held_by_on_demand(seen: Observation, workloads: Iterable[Workload]) -> frozenset[Ref]:
    """Return those of some workloads, in their order, that on-demand nodes can hold whole and together.

    For how many it looks is bounded: each look is at all nodes.
    """
    nodes = [node for node in seen.nodes if node.capacity == ON_DEMAND and node.staying]
    names = {node.name for node in nodes}
    free = dict(free_without(seen, frozenset()))
    held, looks = set(), 0
    for workload in workloads:
        each = workload.scheduling.requests
        left = workload.replicas - sum(
            pod.node in names for pod in seen.of_workload.get(workload.ref, ())
        )
        if left > 0:
            looks += 1
        if looks > TRIED_PENDING_WORKLOADS:
            break
        after: dict[str, Resources] = {}
        for node in nodes:
            if left <= 0:
                break
            if why_never(workload.scheduling, node) is None:
                headroom = free[node.name]
                for _ in range(min(left, places_on(each, headroom))):
                    headroom, left = headroom - each, left - 1
                after[node.name] = headroom
        if left <= 0:
            held.add(workload.ref)
            free |= after
    return frozenset(held)


def free_without(seen: Observation, without: Collection[Ref]) -> Mapping[str, Resources]:
    """Return what the pods of all workloads but these leave free, by node."""
    taken: dict[str, list[Resources]] = defaultdict(list)
    for ref, pods in seen.of_workload.items():
        if ref not in without:
            for pod in pods:
                taken[pod.node or ""].append(pod.scheduling.requests)
    return {
        node.name: node.allocatable - total_resources(taken.get(node.name, ()))
        for node in seen.nodes
    }
