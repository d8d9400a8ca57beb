"""Advice of the optimisation service, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console

from plimsoll_cli.options import table
from plimsoll_cli.plan.rows import DOLLARS
from plimsoll_service.wire.advice import Advice, Configuration, Recommendation

GIB: Final = 2**30
YEAR: Final = 12


def show_advice(out: Console, advice: Advice) -> None:
    """Print the present nodes of a cluster beside the cheapest mix."""
    columns = [("today", advice.today), ("same pods", advice.optimised)]
    if advice.resized is not None:
        columns.append(("requests as advised", advice.resized))
    shown = table("", *(name.upper() for name, _ in columns))
    for name, row in _rows([each for _, each in columns], advice.today.monthly):
        shown.add_row(name, *row)
    out.print(shown)
    shown = table("TYPE", "CAPACITY", *(name.upper() for name, _ in columns))
    for (type_, capacity), counts in _types([each for _, each in columns]):
        shown.add_row(type_, capacity, *counts)
    out.print(shown)
    out.print(f"of {advice.taken_at:%Y-%m-%d %H:%M:%S} UTC; prices: {advice.prices}")
    if advice.optimised.monthly < advice.today.monthly:
        out.print(f"the mix is at most {advice.gap:.0%} above the optimum under the same rules")
    for name in advice.unpriced:
        out.print(f"no price for {name}: its nodes count as costing nothing")
    for why, count in sorted(Counter(advice.kept.values()).items()):
        out.print(f"{count} nodes stay unchanged: {why}")


def show_recommendations(out: Console, found: Sequence[Recommendation]) -> None:
    """Print recommendations, the largest saving first."""
    shown = table("ID", "SAVES A MONTH", "STATE", "WHAT", "BECAUSE")
    for each in found:
        about = f"{each.about.kind} {each.about.namespace}/{each.about.name}".replace(" /", " ")
        measured = "" if each.measured is None else f", measured {DOLLARS.format(each.measured)}"
        note = f" ({each.note})" if each.note else ""
        shown.add_row(
            each.id,
            DOLLARS.format(each.monthly),
            each.state + measured,
            f"{each.kind} {about}",
            each.reason + note,
        )
    out.print(shown)


def _rows(columns: Sequence[Configuration], now: float) -> Iterable[tuple[str, Iterable[str]]]:
    yield "nodes", [str(each.nodes) for each in columns]
    yield "spot nodes", [str(each.spot) for each in columns]
    yield "vCPU", [str(each.vcpus) for each in columns]
    yield "memory for pods", [f"{each.memory / GIB:,.0f} GiB" for each in columns]
    yield "a month", [DOLLARS.format(each.monthly) for each in columns]
    yield "a year", [DOLLARS.format(each.monthly * YEAR) for each in columns]
    yield "saves a month", [DOLLARS.format(now - each.monthly) for each in columns]


def _types(
    columns: Sequence[Configuration],
) -> Iterable[tuple[tuple[str, str], Iterable[str]]]:
    counts = [{(r.type, r.capacity): r.count for r in each.instances} for each in columns]
    for key in sorted(set().union(*counts)):
        yield key, [str(column.get(key, 0)) for column in counts]
