"""Whether pods with volumes can be spread over on-demand and spot: a volume is usable in its zone alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from plimsoll.domain.kubernetes import NodeTerm, Workload, holds
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.spread_groups import ON_DEMAND, SPOT


def volumes_on_both(seen: Observation) -> Callable[[Workload], bool]:
    """Return what tells of a workload whether on-demand and spot have nodes in every zone of its volumes.

    Spot without any node is no group of a spread, and so needs none. A claim that was not read may be in any zone, so that the answer is no. A volume that has yet to be made is no
    obstacle: it is made where its pod is scheduled.
    """
    nodes = [node for node in seen.nodes if node.staying]
    needed = {ON_DEMAND, *(node.capacity for node in nodes if node.capacity == SPOT)}

    @cache  # volumes of one zone have the same terms
    def on_both(terms: tuple[NodeTerm, ...] | None) -> bool:
        there = {n.capacity for n in nodes if terms is None or any(holds(t, n) for t in terms)}
        return there >= needed

    def spreads(workload: Workload) -> bool:
        pods = seen.of_workload.get(workload.ref, ())
        mounted = {name for pod in pods for name in pod.scheduling.claims}
        claims = (
            seen.claims.get((workload.ref.namespace, name))
            for name in sorted(mounted.union(workload.scheduling.claims))
        )
        return all(claim is not None and on_both(claim.node_terms) for claim in claims)

    return spreads
