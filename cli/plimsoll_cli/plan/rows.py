"""A placement plan as rows, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plimsoll.domain.kubernetes import Ref, Resources
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import (
    ON_DEMAND,
    SINGLE_REPLICA,
    SPOT,
    FloorConstraint,
    OnDemandFloor,
    PlacementPlan,
)
from plimsoll_cli.plan.load_lines import LoadLines
from plimsoll_cli.plan.spot_savings import Savings
from plimsoll_console.placements import Placement, Table, groups_of

DOLLARS: Final = "${:,.2f}"
RESERVE_HEAD: Final = ("loss of", "which", "needs", "free on on-demand", "covered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One workload with a floor or a promise."""

    HEAD: ClassVar[Sequence[str]] = (
        "workload",
        "floor",
        "on-demand",
        "spot",
        "pending",
        "kept by",
        "saves",
        "spot then",
        "saves then",
        "lacks",
    )
    PROMISED: ClassVar[Sequence[str]] = ("line", "kept", "cheapest")
    """After the floor, where anything is promised of any workload."""
    cells: Sequence[str]
    met: bool
    missed: str
    """In words, what is missing."""


def head_of(lines: LoadLines) -> Sequence[str]:
    """Return the heads of the columns."""
    return _with_lines(Row.HEAD, Row.PROMISED if lines.promises else ())


def rows_of(plan: PlacementPlan, savings: Savings, lines: LoadLines) -> Sequence[Row]:
    """Return a row for each workload with a floor, and for each other with a promise."""
    found = []
    for status in plan.workloads:
        floor = status.floor
        saving = savings.of(floor.workload)
        on_demand = status.ready.get(ON_DEMAND, 0)
        cells = (
            str(floor.workload),
            f"{floor.keep} of {floor.replicas}{'' if status.met else ' (missed)'}",
            str(on_demand),
            str(status.ready.get(SPOT, 0)),
            str(status.pending),
            _kept_by(floor),
            DOLLARS.format(saving.now),
            str(saving.spot),
            DOLLARS.format(saving.then),
            status.lacks or "",
        )
        missed = f"{floor.workload}: {on_demand} replicas on on-demand; the floor is {floor.keep}"
        found.append(Row(cells=_row(cells, floor.workload, lines), met=status.met, missed=missed))
    floors = {status.floor.workload for status in plan.workloads}
    for ref in sorted(lines.promises.keys() - floors):
        there = lines.stands[ref]
        stands = (str(ref), "none", str(there[ON_DEMAND]), str(there[SPOT]))
        filled = (*stands, *[""] * (len(Row.HEAD) - len(stands)))
        found.append(Row(cells=_row(filled, ref, lines), met=True, missed=""))
    return found


def _row(cells: Sequence[str], workload: Ref, lines: LoadLines) -> Sequence[str]:
    return _with_lines(cells, lines.cells(workload) if lines.promises else ())


def _with_lines(cells: Sequence[str], promised: Sequence[str]) -> Sequence[str]:
    """Return cells with those of the promise behind the floor."""
    return (*cells[:2], *promised, *cells[2:])


def reserve_rows(plan: PlacementPlan) -> Sequence[Sequence[str]]:
    """Return a row for each kind of loss."""
    return [
        (
            loss.kind,
            "" if loss.name == loss.kind else loss.name,
            _amounts(loss.needs),
            _amounts(loss.free),
            f"{min(loss.covered, 9.99):.0%} ({'enough' if loss.covered >= 1 else 'too little'})",
        )
        for loss in plan.reserve
    ]


def placement_of(
    seen: Observation, plan: PlacementPlan, savings: Savings, lines: LoadLines
) -> Placement:
    """Return a plan as a screen shows it."""
    rows = sorted(rows_of(plan, savings, lines), key=lambda row: row.met)
    others = ", ".join(f"{n} on {where}" for where, n in sorted(savings.others.items()))
    notes = [f"spot saves {DOLLARS.format(savings.now)} a month; prices of {savings.prices}"]
    notes += [f"no price: {name} ({n} nodes)" for name, n in sorted(savings.unpriced.items())]
    notes += [f"pods of workloads without a floor: {others}"] if others else []
    return Placement(
        floors=len(plan.workloads),
        missed=[row.missed for row in rows if not row.met],
        problems=plan.problems,
        notes=notes,
        workloads=Table(
            title="Workloads with a floor or a promise",
            columns=head_of(lines),
            rows=[row.cells for row in rows],
        ),
        promises=[[each.strip() for each in lines.arithmetic(ref)] for ref in lines.promises],
        groups=groups_of(seen, plan),
        reserve=Table(
            title="Free on on-demand against the largest loss of each kind",
            columns=RESERVE_HEAD,
            rows=reserve_rows(plan),
        ),
        steps=Table(
            title="What would change",
            columns=("action", "why"),
            rows=[
                (f"{step.action.verb} {step.action.target}", step.action.reason)
                for step in plan.steps
            ],
        ),
        held=plan.held,
    )


def _kept_by(floor: OnDemandFloor) -> str:
    if floor.way is FloorConstraint.SPREAD:
        single = floor.layout == SINGLE_REPLICA
        return "reserve" if single else f"spread over {floor.layout.entry}"
    return floor.way


def _amounts(resources: Resources) -> str:
    gibibytes = resources.memory / 2**30
    return f"{resources.cpu / 1000:g} CPU, {gibibytes:.1f} GiB, {resources.pods} pods"
