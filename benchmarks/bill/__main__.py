"""What Plimsoll costs in a month, for 1, 10 and 100 clusters, with and without a network of its own.

    .venv/bin/python -m benchmarks.bill            # prints the tables of docs/operate/cost.md
    .venv/bin/python -m benchmarks.bill --count    # counts anew first: a minute or two

The counts are those of `benchmarks/bill/month.py`, kept in `counts.json`; the prices stand in
`prices.csv`, each with the month in which it was noted. Memory, queues, tables, alarms and metrics are
read from the template and the code.
"""

from __future__ import annotations

import json

import click

from benchmarks.bill.month import calm_and_interrupted
from benchmarks.bill.tables import COUNTS, tables


@click.command()
@click.option(
    "--count", is_flag=True, help="Play three hours of virtual time twice, and keep the counts."
)
def main(*, count: bool) -> None:
    """Print what Plimsoll costs in a month."""
    if count:
        COUNTS.write_text(json.dumps(calm_and_interrupted(), indent=2) + "\n")
    click.echo("\n".join(tables()))


main()
