"""`plimsoll reports pools`: the history of capacity pools, and the rate of reclaims that follows from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import click

from plimsoll.domain.spot import (
    POOL_EVENTS_KEPT,
    CapacityPool,
    PoolEventKind,
    PoolRate,
    reclaim_rates,
    set_aside,
)
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


@click.command(epilog=EXAMPLES)
@click.option("--region", metavar="REGION", help="Use this region. [default: the stack's]")
@output_option
@stack_option
@click.pass_context
def pools(ctx: click.Context, region: str | None, output: Output, stack: str) -> None:
    """Show interruptions and refusals of capacity pools in 28 days, and the rate of each spot pool.

    A pool is an instance type in a zone, on-demand or spot. Events of a pool within ten minutes count once.
    The rate is the reclaims an hour that Plimsoll expects: from how long the pool has stood, and from its reclaims
    in the hours that nodes stood there. Both lose half of their weight in seven days. The list starts with the pools
    that are set aside: in the ten minutes after an interruption, a recommendation or a refusal Plimsoll requests capacity
    there last.
    """
    environment = environment_of(ctx)
    deployed, now = environment.deployed(stack), environment.clock.now()
    events, held = deployed.pools.memory(region or deployed.stack.region, now)
    rates = reclaim_rates(events, held, now)
    aside = set_aside(events, now)
    order = sorted(
        rates.keys() | {event.pool for event in events},
        key=lambda pool: (pool not in aside, -rates[pool].per_hour if pool in rates else 0, pool),
    )
    rows = [
        PoolRow(
            pool=pool,
            count=Counter(event.kind for event in events if event.pool == pool),
            last=max((event.at for event in events if event.pool == pool), default=None),
            rate=rates.get(pool),
            set_aside=pool in aside,
        )
        for pool in order
    ]
    if output != "table":
        print_answer({"pools": [row.data for row in rows]}, output)
        return
    if not rows:
        say(f"No capacity pool had an event or was held in {POOL_EVENTS_KEPT.days} days.")
        return
    kinds = [f"{kind.upper()}S" for kind in PoolEventKind]
    shown = table("TYPE", "ZONE", "CAPACITY", *kinds, "LAST", "STOOD", "RATE/H", "")
    for row in rows:
        shown.add_row(*row.cells)
    console().print(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """What is shown of one pool."""

    pool: CapacityPool
    count: Counter[PoolEventKind]
    last: datetime | None
    """When the newest of its events happened."""
    rate: PoolRate | None
    """None where it was neither reclaimed nor held."""
    set_aside: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        return (
            *self.pool,
            *(str(self.count[kind]) for kind in PoolEventKind),
            clock_text(self.last) or "-",
            *(
                ("-", "-")
                if self.rate is None
                else (f"{self.rate.stood_hours:.0f} h", f"{self.rate.per_hour:.4f}")
            ),
            "set aside" if self.set_aside else "",
        )

    @property
    def data(self) -> dict[str, object]:
        """The same as data."""
        return {
            **self.pool._asdict(),
            "rate": None if self.rate is None else asdict(self.rate),
            "set_aside": self.set_aside,
            "last": self.last,
            **{f"{kind}s": self.count[kind] for kind in PoolEventKind},
        }
