"""How much room the homeless pods need, and the smallest growth of node groups that makes it.

Signatures first; the thinking follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.domain.fit import Board
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One request for more nodes of one group."""

    group: str
    kind: str
    """The kind of node group, as in `NodeGroup.kind`."""
    add: int
    zone: str | None = None
    """The zone to launch in; None where the group itself chooses."""
    pods: tuple[str, ...] = ()
    """The pods that it is for, as `namespace/name`."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPlan:
    """Where every homeless pod goes, and what has to be asked for so that it can."""

    growths: tuple[Growth, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)
    """Pod uid -> node name; the node may be one of `awaited`."""
    awaited: frozenset[str] = frozenset()
    """Names of the nodes in `placed` that do not exist yet (`new-<group>-<n>`)."""
    unplaceable: Mapping[str, str] = field(default_factory=dict)
    """Pod uid -> why no node and no group can take it."""


def replacement_of(pod: Pod) -> Pod:
    """Return the pod that would be made anew for this one: its own uid, no node, not ready.

    Plan with it while the old pod still runs; plan with the old pod itself when it leaves first.
    """
    raise NotImplementedError


def plan_growth(  # noqa: PLR0913 - the whole world of the decision, each part named
    board: Board,
    homeless: Sequence[Pod],
    groups: Sequence[NodeGroup],
    *,
    upcoming: Mapping[tuple[str, str | None], int],
    avoid: Mapping[tuple[str, str | None], datetime],
    now: datetime,
) -> GrowthPlan:
    """Fit pods on the nodes that stay, then on nodes asked for, then on as few new ones as can be.

    Args:
        board: the working picture; it is left as it is.
        homeless: pods that need a node. One that the board still holds is moved, not doubled.
        groups: the groups that may grow; `desired` already counts what was asked for.
        upcoming: (group, zone or None where nobody knows) -> nodes asked for and not there yet.
        avoid: (group, zone or None for all of it) -> until when it is not to be asked.
        now: the time that `avoid` is compared with.
    """
    raise NotImplementedError
