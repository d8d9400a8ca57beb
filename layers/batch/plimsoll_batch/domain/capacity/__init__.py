"""Where gangs fit: on the nodes of the cluster, on nodes that are to come, and on nodes for a gang alone."""

from __future__ import annotations

from plimsoll_batch.domain.capacity.dedicated_nodes import (
    NodeLease,
    by_lease,
    plan_leases,
    taint_of,
    toleration_of,
    unmarked,
    with_whole_nodes,
)
from plimsoll_batch.domain.capacity.placement import (
    Domain,
    NoPlace,
    Place,
    Placement,
    earliest_place,
    never_fits,
)
from plimsoll_batch.domain.capacity.upcoming_nodes import Capacity, UpcomingNodes, UpcomingPlace

__all__ = [
    "Capacity",
    "Domain",
    "NoPlace",
    "NodeLease",
    "Place",
    "Placement",
    "UpcomingNodes",
    "UpcomingPlace",
    "by_lease",
    "earliest_place",
    "never_fits",
    "plan_leases",
    "taint_of",
    "toleration_of",
    "unmarked",
    "with_whole_nodes",
]
