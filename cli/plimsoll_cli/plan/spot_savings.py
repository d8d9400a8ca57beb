"""What spot saves a workload, and would save if its pods stood as its floor allows.

A pod pays for the mean of its shares of a node's processors and memory: so the pods of a node never pay
for more than the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, REGION, Node, Pod, Ref, Resources
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import (
    SINGLE_REPLICA,
    SPOT,
    FloorConstraint,
    FloorStatus,
    PlacementPlan,
)
from plimsoll_service.domain.analysis import PriceTable

MOST_REGIONS: Final = 3
"""So many are named, where nodes say that they are elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Of one workload, in dollars per month."""

    now: float
    spot: int
    """How many of its replicas would stand on spot."""
    then: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Of a whole plan."""

    workloads: Mapping[Ref, Saving]
    others: Counter[str]
    """Pods of workloads without a floor, by where they stand."""
    others_now: float
    unpriced: Counter[str]
    """Instance types of spot nodes that the table does not know -> how many nodes: they count as nothing."""
    prices: str
    """Whose prices, and of when."""

    @property
    def now(self) -> float:
        """What spot saves now, with all workloads."""
        return self.others_now + sum(saving.now for saving in self.workloads.values())

    def of(self, workload: Ref) -> Saving:
        """Return what a workload saves; one without pods saves nothing."""
        return self.workloads.get(workload, Saving(now=0.0, spot=0, then=0.0))


def savings_of(seen: Observation, plan: PlacementPlan, table: PriceTable) -> Savings:
    """Return what spot saves now, and would save."""
    spot = [node for node in seen.nodes if node.capacity == SPOT]
    types = {node.name: node.labels.get(INSTANCE_TYPE, "without a type") for node in spot}
    saved = {
        node.name: table.prices[types[node.name]].saved_monthly
        for node in spot
        if types[node.name] in table.prices
    }
    usual = _usual(spot, saved)
    found: dict[Ref, Saving] = {}
    others: Counter[str] = Counter()
    others_now = 0.0
    statuses = {status.floor.workload: status for status in plan.workloads}
    for ref, pods in seen.of_workload.items():
        now = _saved(seen, pods, saved)
        status = statuses.get(ref)
        if status is None:
            where = (seen.node.get(pod.node or "") for pod in pods)
            others.update(node.capacity or "unknown" for node in where if node is not None)
            others_now += now
        else:
            workload = seen.workload[ref]
            count = spot_of(status, workload.replicas)
            then = count * usual(workload.scheduling.requests)
            found[ref] = Saving(now=now, spot=count, then=then)
    return Savings(
        workloads=found,
        others=others,
        others_now=others_now,
        unpriced=Counter(name for name in types.values() if name not in table.prices),
        prices=_told(seen, table),
    )


def _told(seen: Observation, table: PriceTable) -> str:
    """Say whose prices these are, and where they are not those of the nodes."""
    regions = {node.labels.get(REGION, table.region) for node in seen.nodes}
    elsewhere = sorted(regions - {table.region})[:MOST_REGIONS]
    there = f"; prices differ in {', '.join(elsewhere)}, where nodes are" if elsewhere else ""
    return f"{table.region}, {table.dates}{there}"


def spot_of(status: FloorStatus, replicas: int) -> int:
    """Return how many of its replicas stand on spot once all groups are open and even."""
    floor = status.floor
    if floor.way is not FloorConstraint.SPREAD:
        return 0
    if floor.layout == SINGLE_REPLICA:
        return status.ready.get(SPOT, 0) if status.reserved else 0
    return replicas - floor.layout.floor(replicas)


def _usual(spot: Sequence[Node], saved: Mapping[str, float]) -> Callable[[Resources], float]:
    """Return what a pod saves on the mean of the spot nodes; one without a price saves nothing."""
    nodes = len(spot) or 1
    cpu = sum(saved.get(n.name, 0.0) / (n.allocatable.cpu or 1) for n in spot) / nodes
    memory = sum(saved.get(n.name, 0.0) / (n.allocatable.memory or 1) for n in spot) / nodes
    return lambda requests: (requests.cpu * cpu + requests.memory * memory) / 2


def _saved(seen: Observation, pods: Iterable[Pod], saved: Mapping[str, float]) -> float:
    return sum(
        _share(pod.scheduling.requests, seen.node[pod.node].allocatable) * saved[pod.node]
        for pod in pods
        if pod.node is not None and pod.node in saved
    )


def _share(requests: Resources, whole: Resources) -> float:
    return (requests.cpu / (whole.cpu or 1) + requests.memory / (whole.memory or 1)) / 2
