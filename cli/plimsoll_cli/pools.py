"""`plimsoll pools`: what is remembered of capacity pools, and which are asked last for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import click

from plimsoll.domain.spot import POOL_EVENTS_KEPT, CapacityPool, PoolEvent, PoolEventKind, risks
from plimsoll_cli.environment import environment_of
from plimsoll_cli.options import clock_text, console, json_option, print_json, stack_option, table

EXAMPLES: Final = """\b
Examples:
  plimsoll pools
  plimsoll pools --region us-east-1 --json

\b
Exit status:
  0  they were read, also where there are none
  2  something given is wrong, or the stack cannot be reached
"""
_BAR: Final = 20
"""Characters of a bar that stands for a risk of 1."""


@click.command(epilog=EXAMPLES, short_help="Show which capacity pools are avoided.")
@click.option("--region", metavar="REGION", help="The region of the stack by default.")
@json_option
@stack_option
@click.pass_context
def pools(ctx: click.Context, region: str | None, as_json: bool, stack: str) -> None:
    """Show what happened to capacity pools in the last 14 days, and the risk that follows from it.

    A pool is an instance type in a zone, on-demand or spot. What happened to it within ten minutes counts
    once. The risk orders pools, the highest first: 1 is a pool that is reclaimed now and asked only as
    the last resort; what is past loses half of its weight in 48 hours.
    """
    environment = environment_of(ctx)
    deployed, now = environment.deployed(stack), environment.clock.now()
    events = deployed.pools.read(region or deployed.region, now)
    risk = risks(events, now)
    order = sorted(risk, key=lambda pool: (-risk[pool], pool))
    if as_json:
        print_json({"pools": [_as_json(pool, risk[pool], events) for pool in order]})
        return
    if not order:
        click.echo(f"Nothing happened to any capacity pool in {POOL_EVENTS_KEPT.days} days.")
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


def _as_json(pool: CapacityPool, risk: float, events: Sequence[PoolEvent]) -> dict[str, object]:
    count = _count(pool, events)
    return {
        **pool._asdict(),
        "risk": risk,
        "last": max(event.at for event in events if event.pool == pool),
        **{f"{kind}s": count[kind] for kind in PoolEventKind},
    }
