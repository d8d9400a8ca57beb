"""The way back to spot of pods that no floor spreads: after a storm they stand on on-demand nodes until they end.

A pod returns only where the scheduler leads it: to a spot node that has the place now, and that the scheduler prefers to
all others. No constraint is added. So a pod whose replacement would stand on on-demand again stays where it is. After a
storm spot nodes are empty and on-demand nodes are full, and the scheduler prefers nodes that are emptier and run fewer
pods of the same workload. Where no spot node has a place, `spot_growth` asks for one.

A spot pool that was reclaimed lately is likely to be reclaimed again. So it must have stood for a while, and for longer
where a replacement is Ready only after the pod that it replaces has stopped: then the next notice costs serving pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.kubernetes import Node, Ref, Workload
from plimsoll.domain.placement.move_history import RETURNED, last_move, next_mark, rests
from plimsoll.domain.placement.rebalancing import Move, drawn_order, settled_pods
from plimsoll.domain.placement.spread_groups import ON_DEMAND
from plimsoll.domain.spot import CapacityPool, spot_pool_of

STOOD: Final = timedelta(minutes=10)
"""How long a spot pool must have stood, where a replacement is Ready before the pod that it replaces stops."""
STOOD_FOR_LATE: Final = timedelta(minutes=30)
"""How long where it is not, or where nobody knows."""
BETWEEN_MOVES: Final = timedelta(minutes=5)
"""From one move of a workload to the next, less a little: runs of placement are five minutes apart."""
_EARLY: Final = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotReturn:
    """Whose pods return to spot, and what is known of the spot pools."""

    hours_stood: Mapping[CapacityPool, float] = field(default_factory=dict)
    """For how long pools have stood since their last reclaim; those that are set aside now are left out."""
    promised: Collection[Ref] = frozenset()
    """The workloads whose owners leave it to Plimsoll how much of them stands on spot. The policy of the cluster says so
    for all others."""

    def stands(self, node: Node, least: timedelta) -> bool:
        """Whether a node is one of a spot pool that has stood for so long."""
        pool = spot_pool_of(node)
        return pool is not None and self.has_stood(pool, least)

    def has_stood(self, pool: CapacityPool, least: timedelta) -> bool:
        """Whether a spot pool has stood for so long since its last reclaim."""
        return timedelta(hours=self.hours_stood.get(pool, 0)) >= least

    def moves(
        self, windows: StartWindows, spread: Collection[Ref], now: datetime
    ) -> Iterator[Move]:
        """Yield the workloads of which a pod may return, in an order that the time decides.

        Args:
            windows: those of the observed cluster.
            spread: workloads with a floor, with a spread over our groups, or whose owner wrote what makes no sense.
            now: the time of the observation.
        """
        seen = windows.seen
        if not any(self.has_stood(pool, STOOD) for pool in self.hours_stood):
            return
        found = (
            self._move(windows, workload, now)
            for workload in seen.workloads
            if workload.ref not in spread
            and (seen.policy.return_to_spot or workload.ref in self.promised)
            and not seen.policy.observes(workload.ref.namespace)
        )
        drawn = drawn_order(now)
        moves = [move for move in found if move is not None]
        yield from sorted(moves, key=lambda move: drawn(move.workload))

    def _move(self, windows: StartWindows, workload: Workload, now: datetime) -> Move | None:
        seen = windows.seen
        pods = settled_pods(seen, workload)
        here = [pod for pod in pods if seen.capacities.get(pod.node) == ON_DEMAND]
        if not here:
            return None
        moved = last_move(pods, now)
        if moved is not None and now - moved < BETWEEN_MOVES - _EARLY:
            return None
        mark = next_mark(RETURNED, here, now)
        movable = [pod for pod in here if not rests(pod, now)]
        if mark is None or not movable:
            return None
        window = windows.of(workload.ref)
        least = STOOD if window is not None and window.missing <= 0 else STOOD_FOR_LATE
        # From the node with the fewest pods first: an autoscaler removes what is empty.
        movable.sort(key=lambda pod: (len(seen.on_node.get(pod.node or "", ())), pod.name))
        return Move(
            workload=workload,
            key=None,
            movable=movable,
            lands=lambda node: self.stands(node, least),
            mark=mark,
            reason=f"it stands on on-demand without a floor, and spot has stood for {least.seconds // 60} minutes",
        )


NO_RETURN: Final = SpotReturn()
