"""`plimsoll gpu audit`: what GPUs are held for, what that costs, and when they idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from plimsoll_cli.gpu.documents import class_days_options
from plimsoll_cli.gpu.files import scaled_object, write
from plimsoll_cli.options import (
    Output,
    Terminal,
    console,
    environment_of,
    output_option,
    print_answer,
    table,
)
from plimsoll_cli.plan.rows import DOLLARS
from plimsoll_cli.terminal import say
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.gpu import Audit, OwnerUse, audit_gpus
from plimsoll_service.wire.gpu import COUNTERS, ClassDays

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@click.command("audit")
@class_days_options
@click.option(
    "--price",
    "priced",
    multiple=True,
    metavar="TYPE=DOLLARS",
    help="Set what an instance of a type costs an hour. [default: list prices of us-east-1]",
)
@click.option(
    "--files",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write a KEDA ScaledObject for each proposed schedule into this folder.",
)
@output_option
@click.pass_context
def audit_command(
    ctx: click.Context,
    found: ClassDays,
    priced: tuple[str, ...],
    files: Path | None,
    output: Output,
) -> None:
    """Show GPU-hours by owner, their cost, and when they are idle.

    A run is idle if no kernel ran for 30 minutes or more. The command proposes schedules for workloads
    that are idle at the same hours again and again, and changes nothing itself.
    """
    answer = audit_gpus(found.days, _prices(priced), environment_of(ctx).clock.now())
    manifests = {
        f"{owner.namespace}-{owner.name}-schedule.yaml": scaled_object(owner, schedule)
        for owner, schedule in answer.schedules.items()
    }
    if files is not None:
        write(files, manifests)
    if output != "table":
        print_answer(_plain(answer, found.left_out), output)
    else:
        _show(console(), answer, found.left_out)
        if answer.schedules and files is None:
            say("--files FOLDER writes a ScaledObject for each")


def _prices(priced: tuple[str, ...]) -> Mapping[tuple[str, str], float]:
    """Return the prices of instances: those that are given, and else those of the shipped table."""
    hourly = {}
    for name, price in price_table().prices.items():
        hourly[name, "on-demand"], hourly[name, "spot"] = price.on_demand, price.spot
    for each in priced:
        name, _, dollars = each.partition("=")
        try:
            hourly[name, "on-demand"] = hourly[name, "spot"] = float(dollars)
        except ValueError:
            raise click.UsageError(f"--price {each}: give TYPE=DOLLARS") from None
    return hourly


def _name(use: OwnerUse) -> str:
    return f"{use.owner.kind} {use.owner.namespace}/{use.owner.name}"


def _show(out: Terminal, answer: Audit, left_out: int) -> None:
    shown = table("OWNER", "GPU-HOURS", "COST", "IDLE", "IDLE COST", "NOTE")
    for use in answer.owners:
        share = use.idle_gpu_hours / use.gpu_hours if use.gpu_hours else 0
        shown.add_row(
            _name(use),
            f"{use.gpu_hours:,.1f}",
            DOLLARS.format(use.cost),
            f"{use.idle_gpu_hours:,.1f} ({share:.0%})",
            DOLLARS.format(use.idle_cost),
            "; ".join(_notes(use)),
        )
    out.print(shown)
    out.print(f"of {answer.days} days; prices: {price_table().dates}, or as given with --price")
    hours = [sum(at) for at in zip(*(use.by_hour for use in answer.owners), strict=True)]
    if any(hours):
        shown = table("IDLE GPU-HOURS, UTC", *(f"{hour:02}" for hour in range(24)))
        for day, name in enumerate(DAYS):
            shown.add_row(name, *(f"{each:.0f}" for each in hours[day * 24 : day * 24 + 24]))
        out.print(shown)
    for owner, schedule in answer.schedules.items():
        out.print(f"{owner.kind} {owner.namespace}/{owner.name} can be off: {schedule.reason}")
    for line in _gaps(answer, left_out):
        out.print(line)


def _notes(use: OwnerUse) -> Iterator[str]:
    if use.never_touched:
        yield f"{use.never_touched} pods never used their GPUs"
    if use.slice_enough:
        yield f"{use.slice_enough} would hold it"
    if use.unpriced_hours:
        yield f"{use.unpriced_hours:,.1f} h without a price"
    if use.unknown_hours:
        yield f"{use.unknown_hours:,.1f} h not measured"


def _gaps(answer: Audit, left_out: int) -> Iterator[str]:
    for name in answer.unpriced:
        yield f"no price for {name}: its hours cost nothing here; give --price {name}=DOLLARS"
    for name, classes in sorted(answer.missing.items()):
        yield f"{name} is not measured for {classes} classes; add to the exporter's counters: {_line(name)}"
    if left_out:
        yield f"{left_out} GPUs, slices or classes were too many to keep"


def _line(name: str) -> str:
    """Return the line of the exporter's counters file that turns a metric on."""
    return f"{name}, {COUNTERS.get(name, 'gauge, of another version of Plimsoll')}"


def _plain(answer: Audit, left_out: int) -> Any:
    return {
        "days": answer.days,
        "owners": [
            {
                "owner": _name(use),
                "gpuHours": use.gpu_hours,
                "cost": use.cost,
                "idleGpuHours": use.idle_gpu_hours,
                "idleCost": use.idle_cost,
                "idleByHourOfWeek": use.by_hour,
                "neverTouchedPods": use.never_touched,
                "sliceEnough": use.slice_enough or None,
                "unpricedHours": use.unpriced_hours,
                "unknownHours": use.unknown_hours,
            }
            for use in answer.owners
        ],
        "schedules": [
            {
                "owner": f"{owner.kind} {owner.namespace}/{owner.name}",
                "nightUtc": schedule.night,
                "weekend": schedule.weekend,
                "reason": schedule.reason,
                "manifest": scaled_object(owner, schedule),
            }
            for owner, schedule in answer.schedules.items()
        ],
        "unpriced": answer.unpriced,
        "missing": {name: _line(name) for name in answer.missing},
        "leftOut": left_out,
    }
