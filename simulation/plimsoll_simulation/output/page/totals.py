"""The table of totals: one column for each responder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SHOULD_BE_0: Final[Mapping[str, tuple[str, str]]] = {
    "ready_replica_seconds_lost": ("Ready-replica-seconds lost", ""),
    "pods_killed": ("Pods killed with their node", ""),
    "pods_cut_short": ("Pods cut short", ""),
    "workloads_at_zero": ("Workloads with nothing Ready", ""),
    "seconds_at_zero": ("Time with nothing Ready", " s"),
    "seconds_below_floor": ("Time below the ready floor", " s"),
    "seconds_below_replicas": ("Time short of replicas", " s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that should be 0."""

    text: str
    share: float
    """In percent of the highest figure beside it."""


def totals(columns: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str | Figure]]:
    """Yield the rows: their name, and what each responder's report says."""
    for name, (words, unit) in _SHOULD_BE_0.items():
        most = max(column[name] for column in columns)
        yield [words, *(_figure(column[name], unit, most) for column in columns)]
    yield ["Nodes with notice", *(str(column["nodes_noticed"]) for column in columns)]
    yield ["Nodes cordoned", *(str(column["nodes_cordoned"]) for column in columns)]
    yield ["Cordoned after", *(_spread(column, "cordon_after") for column in columns)]
    yield ["Empty after", *(_spread(column, "empty_after") for column in columns)]
    yield ["Cost, against all on demand", *(_cost(column) for column in columns)]


def _figure(value: Any, unit: str, most: Any) -> Figure:
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
    return Figure(text=f"{text}{unit}", share=100 * value / most if most else 0.0)


def _spread(column: Mapping[str, Any], name: str) -> str:
    middle, most = column[f"{name}_p50"], column[f"{name}_p99"]
    if middle is None:
        return "never"
    return f"{middle:g} s" if middle == most else f"{middle:g} s, the slowest {most:g} s"


def _cost(column: Mapping[str, Any]) -> str:
    cost = column["cost_vs_all_on_demand"]
    return "no node ran" if cost is None else f"{cost:.0%}"
