"""`plimsoll queues plan` and `why`: what the planner would decide, for a cluster or a snapshot in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from plimsoll.domain.fields import parse_time
from plimsoll_batch.adapters.snapshot_file import state_of
from plimsoll_batch.domain.admission import QueuePlan, QueueState, plan_queues
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.quota import RoleFlavors
from plimsoll_cli.batch.gangs import Queues, explained
from plimsoll_cli.batch.read_queues import read_queues, read_snapshot
from plimsoll_cli.environment import warn
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import (
    SCREEN,
    Decorator,
    Output,
    environment_of,
    output_option,
    print_answer,
    verbose_option,
)
from plimsoll_cli.terminal import first_of, say

MOST_NAMED: Final = 5
"""Gangs in one line."""


def _moment_options(command: Any) -> Any:
    """Add the options that choose what is planned: `file`, `snapshot`, `at`, `context` and `kubeconfig`."""
    options: Sequence[Decorator] = (
        click.option(
            "--at",
            metavar="TIME",
            help="With --snapshot: plan at this time, such as 2026-11-17T14:00:00Z. [default: now]",
        ),
        kubeconfig_options,
        click.option(
            "--snapshot",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read nodes and gangs from this file, in YAML or JSON. [default: from the cluster]",
        ),
        click.option(
            "-f",
            "--file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read the configuration of the queues from this file. [default: that of the cluster]",
        ),
    )
    for option in options:
        command = option(command)
    return command


@click.command()
@_moment_options
@verbose_option
@output_option
@click.pass_context
def plan(ctx: click.Context, /, verbose: bool, output: Output, **moment: Any) -> None:
    """Show which gangs start now and where, which are preempted, and why the others wait.

    With --file, a cluster is planned as if it had this configuration. Nothing is written.
    """
    seen, now = _moment(ctx, **moment)
    found = rows(plan_queues(seen, now))
    if output != "table":
        print_answer(found, output)
        return
    lines = [[*_lines(row)] for row in found]
    shown = found if verbose else found[: _fitting(lines)]
    for each in lines[: len(shown)]:
        for line in each:
            say(line)
    if len(shown) < len(found):
        rest = Counter(row["decision"] for row in found[len(shown) :] for _ in row["gangs"])
        said = ", ".join(f"{decision} {number}" for decision, number in rest.items())
        say(f"and more gangs ({said}): --verbose shows them")


@click.command(name="why")
@click.argument("gang", metavar="NAMESPACE/NAME")
@_moment_options
@output_option
@click.pass_context
def why_command(ctx: click.Context, /, gang: str, output: Output, **moment: Any) -> None:
    """Explain why a gang waits, which gangs must end first, and when.

    With --file, a cluster is asked as if it had this configuration. Nothing is written.
    """
    seen, now = _moment(ctx, **moment)
    uid = next((each.uid for each in seen.gangs if str(each) == gang), None)
    found = None if uid is None else why(seen, uid, now)
    if found is None:
        say(f"no gang {gang} waits", err=True)
        ctx.exit(1)
    if output != "table":
        print_answer(explained(found), output)
    else:
        say(in_words(found))


def rows(plan: QueuePlan) -> list[dict[str, Any]]:
    """Return the decisions of a plan as they are shown."""
    found: list[dict[str, Any]] = [
        {
            "decision": "start",
            "gangs": [str(each.gang)],
            "reason": each.reason,
            "flavors": _by_role(each.flavors),
            "nodes": {} if each.place is None else each.place.nodes,
        }
        for each in plan.admitted
    ]
    found += [
        {
            "decision": "preempt",
            "gangs": [str(each.gang)],
            "reason": each.reason,
            "flavors": _by_role(each.flavors),
            "victims": [
                {"gang": str(v.holder.running.gang), "reason": v.reason} for v in each.victims
            ],
        }
        for each in plan.preempting
    ]
    found += [
        {"decision": decision, "gangs": [str(each.gang)], "reason": each.reason}
        for decision, decided in (("reserve", plan.reserved), ("await", plan.awaiting))
        for each in decided
    ]
    found += [
        {"decision": "wait", "gangs": [str(gang) for gang in each.gangs], "reason": each.reason}
        for each in plan.waiting
    ]
    return found


def _moment(  # noqa: PLR0913 - the options of the commands
    ctx: click.Context,
    *,
    file: Path | None,
    snapshot: Path | None,
    at: str | None,
    context: str | None,
    kubeconfig: Path | None,
) -> tuple[QueueState, datetime]:
    """Return what the options ask to be planned, and when it is."""
    environment = environment_of(ctx)
    configuration = None if file is None else read_queues(file).configuration
    if snapshot is not None:
        if configuration is None:
            raise click.UsageError("--snapshot needs --file")
        if context is not None or kubeconfig is not None:
            raise click.UsageError("give either --snapshot, or --kubeconfig and --context")
        now = environment.clock.now() if at is None else parse_time(at)
        return state_of(read_snapshot(snapshot), configuration), now
    if at is not None:
        raise click.UsageError("--at needs --snapshot: a cluster is planned as it stands now")
    seen = Queues.of(environment, kubeconfig, context, configuration).seen.state
    queues = {queue.name for queue in seen.configuration.queues}
    lost = sorted({str(each.gang) for each in seen.running if each.gang.queue not in queues})
    if lost:
        warn(f"these run in queues that the file does not have: {first_of(lost, MOST_NAMED)}")
    return seen, environment.clock.now()


def _by_role(flavors: Mapping[str, RoleFlavors]) -> dict[str, list[str]]:
    return {role: list(names) for role, names in flavors.items()}


def _lines(row: Mapping[str, Any]) -> Iterable[str]:
    named = dict.fromkeys(name for names in row.get("flavors", {}).values() for name in names)
    where = f" ({', '.join(named)})" if named else ""
    yield f"{row['decision']:<9} {first_of(row['gangs'], MOST_NAMED)}{where}: {row['reason']}"
    victims = row.get("victims", [])
    for line in victims[:MOST_NAMED]:
        yield f"          stops {line['gang']}: {line['reason']}"
    if len(victims) > MOST_NAMED:
        yield f"          and stops {len(victims) - MOST_NAMED} more"


def _fitting(lines: Sequence[Sequence[str]]) -> int:
    """Return how many rows fit the screen, with a line that says that there are more."""
    used = 0
    for number, each in enumerate(lines):
        used += len(each)
        if used > SCREEN or (used == SCREEN and number + 1 < len(lines)):
            return number
    return len(lines)
