"""One self-contained page about a placement plan: nodes as boxes by spread group, pods in them, floors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import Layout, PlacementPlan, SpreadGroup
from plimsoll_cli.plan.load_lines import LoadLines
from plimsoll_cli.plan.rows import DOLLARS, RESERVE_HEAD, head_of, reserve_rows, rows_of
from plimsoll_cli.plan.spot_savings import Savings
from plimsoll_simulation.output.page.document import rendered

HEADINGS: Final[Mapping[str, str]] = {
    "floors": "Floors",
    "promises": "Promises",
    "nodes": "Nodes by spread group",
    "reserve": "On-demand reserve",
    "changes": "What would change",
}
"""The parts of the page, in order."""
DRAWN: Final = 60
"""Nodes of one group that are drawn; of more only the number is told."""
NAMED: Final = 12
"""Workloads that are named in one node, those with a floor first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The pods of one workload on one node."""

    name: str
    pods: int
    floor: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One node."""

    name: str
    facts: str
    staying: bool
    chips: Sequence[Chip]
    more: int
    """Pods of workloads that are not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBoxes:
    """One spread group, or the nodes that are in none."""

    title: str
    state: str
    closed: bool
    boxes: Sequence[Box]
    more: int


def plan_page(
    seen: Observation,
    plan: PlacementPlan,
    savings: Savings,
    lines: LoadLines,
    *,
    now: datetime,
) -> str:
    """Return the page as HTML."""
    rows = sorted(rows_of(plan, savings, lines), key=lambda row: row.met)
    spreads: dict[Layout, list[SpreadGroup]] = {}
    for group in plan.groups:
        spreads.setdefault(group.layout, []).append(group)
    floors = {status.floor.workload for status in plan.workloads}

    def box(node: Node) -> Box:
        counts = Counter(seen.workload_of(pod) for pod in seen.on_node.get(node.name, ()))
        order = sorted(counts, key=lambda ref: (ref not in floors, ref))
        chips = [
            Chip(name=f"{ref.namespace}/{ref.name}", pods=counts[ref], floor=ref in floors)
            for ref in order[:NAMED]
        ]
        facts = [node.labels.get(INSTANCE_TYPE), node.zone, None if node.staying else "cordoned"]
        return Box(
            name=node.name,
            facts=" · ".join(fact for fact in facts if fact),
            staying=node.staying,
            chips=chips,
            more=sum(counts[ref] for ref in order[NAMED:]),
        )

    def boxes(nodes: Iterable[Node], title: str, state: str, *, closed: bool) -> GroupBoxes:
        there = list(nodes)
        return GroupBoxes(
            title=title,
            state=state,
            closed=closed,
            boxes=[box(node) for node in there[:DRAWN]],
            more=max(0, len(there) - DRAWN),
        )

    given = {
        "headings": HEADINGS,
        "open_rows": 60,
        "title": f"Placement of {seen.cluster}",
        "columns": 1,
        "cluster": seen.cluster,
        "facts": f"{now:%Y-%m-%d %H:%M} UTC · {len(seen.nodes)} nodes · {len(seen.pods)} pods",
        "prices": savings.prices,
        "unpriced": savings.unpriced,
        "others": ", ".join(f"{n} on {where}" for where, n in sorted(savings.others.items())),
        "head": head_of(lines),
        "floors": len(plan.workloads),
        "promises": [[*lines.arithmetic(workload)] for workload in lines.promises],
        "rows": [row.cells for row in rows],
        "missed": [row for row in rows if not row.met],
        "saved": DOLLARS.format(savings.now),
        "problems": plan.problems,
        "spreads": [
            (
                layout,
                [
                    boxes(
                        (seen.node[name] for name in group.nodes),
                        group.name,
                        f"{'open' if group.opened else 'closed'}: {group.reason}",
                        closed=not group.opened,
                    )
                    for group in groups
                ],
            )
            for layout, groups in sorted(spreads.items())
        ],
        "apart": boxes(
            (n for n in seen.nodes if n.capacity is None),
            "in no group",
            "no label says whether they are on-demand or spot",
            closed=True,
        ),
        "reserve_head": RESERVE_HEAD,
        "reserve": reserve_rows(plan),
        "steps": [
            [f"{step.action.verb} {step.action.target}", step.action.reason] for step in plan.steps
        ],
        "held": plan.held,
    }
    return rendered("plan.html.j2", given, package=__package__)
