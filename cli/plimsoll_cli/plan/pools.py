"""`plimsoll reports pools`: the history of capacity pools, and the risk that follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import click

from plimsoll.domain.spot import POOL_EVENTS_KEPT, CapacityPool, PoolEvent, PoolEventKind, risks
from plimsoll_cli.options import (
    Output,
    clock_text,
    console,
    environment_of,
    output_option,
    print_answer,
    stack_option,
    table,
)
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll reports pools
  plimsoll reports pools --region us-east-1 --output json

\b
Exit status:
  0  the pools were printed, if there are any
  2  an argument is wrong, or the stack cannot be reached
"""
_BAR: Final = 20
"""Characters of a bar that stands for a risk of 1."""


@click.command(epilog=EXAMPLES)
@click.option("--region", metavar="REGION", help="Use this region. [default: the stack's]")
@output_option
@stack_option
@click.pass_context
def pools(ctx: click.Context, region: str | None, output: Output, stack: str) -> None:
    """Show interruptions and refusals of capacity pools in 14 days, and the risk of each pool.

    A pool is an instance type in a zone, on-demand or spot. Events of a pool within ten minutes count once.
    An event loses half of its weight in 48 hours. The list starts with the highest risk: AWS is reclaiming a
    pool of risk 1 now, and Plimsoll requests capacity there last.
    """
    environment = environment_of(ctx)
    deployed, now = environment.deployed(stack), environment.clock.now()
    events = deployed.pools.read(region or deployed.stack.region, now)
    risk = risks(events, now)
    order = sorted(risk, key=lambda pool: (-risk[pool], pool))
    if output != "table":
        print_answer({"pools": [_as_data(pool, risk[pool], events) for pool in order]}, output)
        return
    if not order:
        say(f"No capacity pool had an event in {POOL_EVENTS_KEPT.days} days.")
        return
    kinds = [f"{kind.upper()}S" for kind in PoolEventKind]
    shown = table("TYPE", "ZONE", "CAPACITY", *kinds, "LAST", "RISK", "")
    for pool in order:
        count = _count(pool, events)
        last = max(event.at for event in events if event.pool == pool)
        bar = "█" * round(risk[pool] * _BAR)
        numbers = (str(count[kind]) for kind in PoolEventKind)
        shown.add_row(*pool, *numbers, clock_text(last), f"{risk[pool]:.2f}", bar)
    console().print(shown)


def _count(pool: CapacityPool, events: Sequence[PoolEvent]) -> Counter[PoolEventKind]:
    return Counter(event.kind for event in events if event.pool == pool)


def _as_data(pool: CapacityPool, risk: float, events: Sequence[PoolEvent]) -> dict[str, object]:
    count = _count(pool, events)
    return {
        **pool._asdict(),
        "risk": risk,
        "last": max(event.at for event in events if event.pool == pool),
        **{f"{kind}s": count[kind] for kind in PoolEventKind},
    }
