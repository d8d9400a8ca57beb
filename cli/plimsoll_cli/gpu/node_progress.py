"""Where each node of a plan of layouts stands, by the rules of the agent that carries it out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, override

from plimsoll.domain.errors import BadInput
from plimsoll.domain.observation import Observation
from plimsoll_agent.gpu_begin import against_emptying, against_name, against_node
from plimsoll_agent.gpu_change import Look
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_service.wire.gpu_plan import GpuPlan, NodeChange

type Kind = Literal["done", "under way", "next", "refused", "stopped", "alert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """One node."""

    name: str
    label: str
    """The layout that its label names now."""
    planned: str
    kind: Kind
    reason: str = ""

    @override
    def __str__(self) -> str:
        words = "will be changed" if self.kind == "next" else self.kind
        return f"{words}: {self.reason}" if self.reason else words


def progress_of(
    plan: GpuPlan, layouts: str | None, seen: Observation, now: datetime
) -> Sequence[NodeProgress]:
    """Return where each node of a plan stands.

    Args:
        plan: the plan.
        layouts: what mig-manager's ConfigMap holds; None: it is not there.
        seen: the cluster as it is now.
        now: the time of that.
    """
    found = []
    for entry in plan.nodes:
        node = seen.node.get(entry.name)
        kind: Kind = "refused"
        reason: str | None = "there is no such Node"
        if node is not None:
            try:
                look = Look(node=node, change=GpuChange.of(node))
            except BadInput as error:
                kind, reason = "alert", str(error)
            else:
                kind, reason = _begun(look, entry, plan) or _judged(
                    look, entry, plan, layouts, seen, now
                )
        found.append(
            NodeProgress(
                name=entry.name,
                label="" if node is None else node.labels.get(entry.label, ""),
                planned=entry.value,
                kind=kind,
                reason=reason or "",
            )
        )
    return found


def _begun(look: Look, entry: NodeChange, plan: GpuPlan) -> tuple[Kind, str] | None:
    """Return where a change stands; None: there is none of this plan."""
    change = look.change
    if change is None:
        return None
    if change.step == "alert":
        return "alert", change.reason
    if change.under_way:
        return "under way", f"{change.step} since {change.since:%H:%M:%S}"
    if change.step == "stopped" and (change.target, change.config) == (
        entry.value,
        plan.config.sha256,
    ):
        return "stopped", change.reason
    return None


def _judged(  # noqa: PLR0913, PLR0917 - all that an answer depends on
    look: Look,
    entry: NodeChange,
    plan: GpuPlan,
    layouts: str | None,
    seen: Observation,
    now: datetime,
) -> tuple[Kind, str | None]:
    wanted = {name: number for name, number in entry.allocatable.items() if number}
    if look.node.labels.get(entry.label) == entry.value and look.unsteady(wanted) is None:
        return "done", None
    why = (
        against_name(entry, plan.config, layouts or "")
        or against_node(look, entry, plan.config)
        or against_emptying(seen, look.node, entry, now)
    )
    return ("next", None) if why is None else ("refused", why)
