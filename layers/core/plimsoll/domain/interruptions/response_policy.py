"""What a cluster's owner wants done about each kind of notice, and how fast where there is time.

AWS's advice is often followed by nothing. So on advice alone only what can be released moves, and
only so many nodes an hour are cordoned for it, each when its turn comes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, override

from plimsoll.domain.interruptions.maintenance import MaintenanceWindow
from plimsoll.domain.interruptions.model import NEAR, Interruption
from plimsoll.domain.notices import HealthScheduledChange

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
"""How long before a scheduled change a node's turn comes, where no maintenance window opens before."""
_SHARE: Final = 10
"""Of so many nodes one is cordoned on advice in an hour, and of so many pods one is moved for placement,
where the owner says nothing."""
_FEWEST_MOVES: Final = 20
"""So many moves are free in any cluster: a workload of a small one is even again within the hour."""


FOREIGN_CORDON: Final = "foreign-cordon"
"""No notice of AWS: somebody else cordoned a node. Nothing tells `kubectl drain` from `kubectl cordon`."""


class Response(StrEnum):
    """What is done about a notice, from the least to the most."""

    IGNORE = "ignore"
    OBSERVE = "observe"
    CORDON = "cordon"
    MOVE = "move"

    @property
    def writes(self) -> bool:
        """Whether anything is written to the cluster: an observed notice is only reported."""
        return self not in {Response.IGNORE, Response.OBSERVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an owner decided; the default is to move, on advice a tenth of the nodes in an hour."""

    on: tuple[tuple[str, Response], ...] = ()
    """Kind of notice -> response, for those that the owner named."""
    nodes_per_hour: int | None = None
    """How many nodes are cordoned in an hour on advice alone."""
    moves_per_hour: int | None = None
    """How many pods are moved in an hour for placement: voluntarily, from nodes that stay."""
    window: MaintenanceWindow | None = None
    """When nodes are drained for scheduled changes."""
    min_on_demand: str = "0"
    """The on-demand floor of workloads for which neither they nor their namespaces state one."""
    keep_ready: str = "0"
    """The promise of workloads for which neither they nor their namespaces state one; "0": none."""
    obeys_budgets: bool = False
    """Whether no pod is deleted past its PodDisruptionBudget, even where its instance takes it in any case."""
    return_to_spot: bool = False
    """Whether pods of workloads without a floor are moved back to spot once it has stood for a while."""
    act_in: tuple[str, ...] = ()
    """The namespaces whose objects may be written to, sorted; all others are observed only. None named: all."""

    def observes(self, namespace: str) -> bool:
        """Whether nothing is written in a namespace, in whatever mode the cluster is."""
        return bool(self.act_in) and namespace not in self.act_in

    def carried_out(self) -> Policy:
        """Return the policy under which what is observed would be done, for a report of it."""
        on = tuple(
            (kind, response) for kind, response in self.on if response is not Response.OBSERVE
        )
        return replace(self, on=on)

    def of_kind(self, kind: str) -> Response:
        """Return the response to one kind of notice."""
        return dict(self.on).get(kind, usual_response(kind))

    def response(self, interruption: Interruption) -> Response:
        """Return the strongest response that any of the notices that count asks for."""
        found = [self.of_kind(notice.kind) for notice in interruption.standing]
        return max(found, key=list(Response).index, default=Response.IGNORE)

    def budget(self, nodes: int) -> int:
        """Return how many of so many nodes may be cordoned in an hour on advice alone."""
        return max(1, nodes // _SHARE) if self.nodes_per_hour is None else self.nodes_per_hour

    def moves(self, pods: int) -> int:
        """Return how many of so many pods may be moved in an hour for placement."""
        if self.moves_per_hour is None:
            return max(_FEWEST_MOVES, pods // _SHARE)
        return self.moves_per_hour

    def maintains(self, found: Interruption, now: datetime) -> bool:
        """Whether nothing but scheduled changes takes a node, and its owner's window is open."""
        return self.window is not None and _is_scheduled(found) and self.window.is_open(now)

    def postpones(self, found: Interruption, now: datetime) -> str | None:
        """Say until when a node that is scheduled for a change is left alone; None if no longer."""
        change = found.deadline
        if change is None or not _is_scheduled(found) or self.maintains(found, now):
            return None
        if self.window is not None and (opens := self.window.next_start(now)) < change - NEAR:
            return f"waits for the maintenance window, which opens at {opens:%Y-%m-%dT%H:%MZ}"
        if change - DAY > now:
            return f"waits until {change - DAY:%Y-%m-%dT%H:%MZ}, a day before the change"
        return None

    @override
    def __str__(self) -> str:
        hourly = "a tenth of the nodes" if self.nodes_per_hour is None else self.nodes_per_hour
        return "; ".join(
            [
                *(f"{kind}: {response}" for kind, response in self.on),
                f"{hourly} per hour on advice",
                *(
                    [f"{self.moves_per_hour} pods per hour for placement"]
                    if self.moves_per_hour is not None
                    else ()
                ),
                *([f"scheduled changes on {self.window}"] if self.window else ()),
                *(["no PodDisruptionBudget is overruled"] if self.obeys_budgets else ()),
                *(["pods without a floor return to spot"] if self.return_to_spot else ()),
                *([f"acts only in {', '.join(self.act_in)}"] if self.act_in else ()),
                *(
                    [f"an on-demand floor of {floor}"]
                    if (floor := self.min_on_demand) != "0"
                    else ()
                ),
                *([f"{self.keep_ready} kept ready"] if self.keep_ready != "0" else ()),
            ]
        )


def usual_response(kind: str) -> Response:
    """Return the response to a kind for which the owner named none."""
    return Response.IGNORE if kind == FOREIGN_CORDON else Response.MOVE


def _is_scheduled(found: Interruption) -> bool:
    return {notice.kind for notice in found.standing} == {HealthScheduledChange.kind}
