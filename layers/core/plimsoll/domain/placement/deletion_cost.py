"""Which pods scale-in takes last: those on on-demand of a workload that has an on-demand floor.

Scale-in of a ReplicaSet knows no topology spread: of larger on-demand nodes it may empty all. It
takes pods with a lower deletion cost first, so those on on-demand carry a higher one.
https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.domain.kubernetes import DELETION_COST, OwnerKind, Pod
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.on_demand import OnDemandFloor
from plimsoll.domain.placement.spread_groups import ON_DEMAND

COST: Final = "1000"
"""Any other value on a pod is its owner's, and stays."""


def deletion_costs(
    seen: Observation, floor: OnDemandFloor
) -> Iterator[tuple[Pod, str | None, str]]:
    """Yield the pods whose deletion cost is to change, its new value (None: none), and why.

    StatefulSets drop the highest ordinal, whatever it costs.
    """
    if floor.workload.kind != OwnerKind.DEPLOYMENT:
        return
    for pod in seen.of_workload.get(floor.workload, ()):
        if pod.node is None or pod.deleting is not None or pod.released:
            continue
        node = seen.node.get(pod.node)
        holds = floor.spot_groups > 0 and node is not None and node.capacity == ON_DEMAND
        cost = pod.annotations.get(DELETION_COST)
        if holds and cost is None:
            yield pod, COST, f"scale-in of {floor.workload} must not take its on-demand floor"
        elif not holds and cost == COST:
            yield pod, None, f"it no longer holds an on-demand floor of {floor.workload}"
