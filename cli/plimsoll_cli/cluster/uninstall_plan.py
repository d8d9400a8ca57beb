"""What is put back when Plimsoll leaves a cluster: every change of ours that would outlast it.

A drain that is under way is not broken off, because its workloads would stand half moved on nodes
that go: it has to end first. Everything else is put back as the drain itself would have done it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Action, Plan, Step, TaintNode, Uncordon, Unguard
from plimsoll.domain.disruptions import disruptions_of
from plimsoll.domain.drain import undo_for_good
from plimsoll.domain.interruptions import NEAR, Interruption
from plimsoll.domain.kubernetes import EXCLUDED, EXCLUDED_BY_US, INTERRUPTION, Node
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.zones import has_shift_taint

OVERDUE: Final = timedelta(minutes=2)
"""How long after its deadline an instance that still serves is believed to be interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallPlan:
    """What there is to do before a cluster can be left, all in words but the plan."""

    plan: Plan = field(default_factory=Plan)
    interrupted: tuple[str, ...] = ()
    """Drains that have to end first. While there is one, nothing is planned."""
    by_hand: tuple[str, ...] = ()
    """What we wrote and cannot read any more, with what to do about it."""

    @property
    def clean(self) -> bool:
        """Whether nothing of ours is left that outlasts us."""
        return not (self.plan.steps or self.interrupted or self.by_hand)


def plan_uninstall(seen: Observation, now: datetime) -> UninstallPlan:
    """Decide what to put back now; asked again until nothing is left."""
    interrupted = tuple(_interrupted_soon(seen, now))
    if interrupted:
        return UninstallPlan(interrupted=interrupted)
    released = {n.name for n in seen.nodes if _outlives_us(n, now)}
    # The nodes as they will be: pods on uncordoned nodes stay, so their releases are undone.
    after = replace(
        seen,
        nodes=[
            replace(n, interruption=None, unschedulable=False) if n.name in released else n
            for n in seen.nodes
        ],
    )
    leaving = InterruptedNodes.of(after)
    actions: list[Action] = [
        Uncordon(node=n, reason="Plimsoll leaves the cluster, and the instance stays")
        for n in seen.nodes
        if n.name in released
    ]
    actions += [
        TaintNode(node=n, tainted=False, reason="Plimsoll leaves the cluster")
        for n in seen.nodes
        if has_shift_taint(n) and n.name not in released
    ]
    actions += [
        undo_for_good(after, disruption, pod, "Plimsoll leaves the cluster")
        for disruption in disruptions_of(after, leaving, now)
        for pod in disruption.released
        if pod.node not in leaving.names
    ]
    actions += [
        Unguard(
            budget=budget,
            reason="Plimsoll leaves the cluster, and other drainers would wait for ever",
        )
        for budget in seen.budgets
        if budget.guards
    ]
    return UninstallPlan(
        plan=Plan(
            steps=tuple(
                Step(action=action, nodes=frozenset())
                for action in sorted(actions, key=lambda action: action.wave)
            )
        ),
        by_hand=tuple(_unreadable_nodes(seen.nodes)),
    )


def _interrupted_soon(seen: Observation, now: datetime) -> Iterator[str]:
    for node in seen.nodes:
        found = node.interruption
        if found is None or (found.gone and not node.ready):
            continue
        if _near(found, now):
            yield (
                f"{found.kind} on node {node.name}: its instance stops at "
                f"{found.deadline:%Y-%m-%dT%H:%M:%SZ}"
            )


def _near(found: Interruption, now: datetime) -> bool:
    deadline = found.deadline
    return deadline is not None and deadline - NEAR < now < deadline + OVERDUE


def _outlives_us(node: Node, now: datetime) -> bool:
    """Whether a node bears marks of ours and does not go away with its instance."""
    if node.unreadable is not None:
        return False
    found = node.interruption
    if found is None:
        tainted = any(taint.key == INTERRUPTION for taint in node.taints)
        return tainted or node.labels.get(EXCLUDED) == EXCLUDED_BY_US
    overdue = found.deadline is not None and found.deadline <= now
    return node.ready or not (overdue or found.gone)


def _unreadable_nodes(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if node.unreadable is not None:
            yield (
                f"cannot read the record on node {node.name} ({node.unreadable}): uncordon the "
                f"node if it stays, then remove its taint and annotation {INTERRUPTION}"
            )
