"""What keeps floors from standing and is its owner's to change: told by the plan, and on the object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    MOST_NAMED,
    ClusterEvent,
    Node,
    Ref,
    Workload,
    about_workload,
)
from plimsoll.domain.placement.on_demand import OnDemandFloor, Way
from plimsoll.domain.placement.spread_groups import ON_DEMAND


def problems_of(
    nodes: Sequence[Node], floors: Sequence[tuple[Workload, OnDemandFloor]]
) -> Iterator[ClusterEvent]:
    """Yield floors that cannot stand, and nodes whose pods count for none; at most a few of each."""
    asking = [pair for pair in floors if pair[1].way is not Way.FREE]
    if not asking:
        return
    above = [(workload, floor) for workload, floor in asking if floor.asked > floor.replicas]
    for workload, floor in above:
        yield about_workload(workload, "FloorAboveReplicas", f"{workload.ref}: {floor.reason}")
    unknown = [node for node in nodes if node.capacity is None and node.staying]
    for node in unknown[:MOST_NAMED]:
        yield ClusterEvent(
            about=Ref("Node", "", node.name),
            uid=node.name,
            reason="CapacityUnknown",
            message=f"Node {node.name}: its pods count for no floor, since no label says whether it "
            f"is on-demand or spot; {len(unknown) - 1} other nodes say neither. Set "
            f"{CAPACITY_LABELS[0]}",
            warning=True,
        )
    if not any(node.capacity == ON_DEMAND and node.staying for node in nodes):
        for workload, floor in asking[:MOST_NAMED]:
            yield about_workload(
                workload,
                "NoOnDemandNode",
                f"{workload.ref}: {floor.keep} of its replicas must stand on on-demand, and no "
                "on-demand node takes pods",
            )
