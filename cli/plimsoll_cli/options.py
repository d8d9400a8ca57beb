"""Options and output that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, override

import click
import yaml
from click.core import ParameterSource
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from plimsoll.domain.errors import BadInput
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Deployed, Environment
from plimsoll_cli.kubeconfig_options import kubeconfig_option
from plimsoll_cli.terminal import printable

WIDTH: Final = 160
"""Columns where the output is not a terminal."""
SCREEN: Final = 40
"""Lines of an answer that is read in a hurry; with --verbose it has all."""

type Output = Literal["table", "json", "yaml"]
"""The format of a result: text and tables, or data on standard output and nothing else."""
type Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

stack_option: Final[Decorator] = click.option(
    "--stack",
    envvar="PLIMSOLL_STACK",
    default="plimsoll",
    show_default=True,
    show_envvar=True,
    help="Use this stack, in the region of your AWS settings.",
)
output_option: Final[Decorator] = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Print text and tables, or only JSON or YAML.",
)


verbose_option: Final[Decorator] = click.option(
    "--verbose", is_flag=True, help=f"Print everything, and not only {SCREEN} lines."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cluster that the options name."""

    stack: str
    cluster: str | None
    kubeconfig: Path | None
    context: str | None

    def __post_init__(self) -> None:
        if self.cluster is not None and self.by_kubeconfig:
            raise click.UsageError(
                "give either --cluster, for a registered cluster, or --kubeconfig and --context"
            )

    @property
    def by_kubeconfig(self) -> bool:
        """Whether a kubeconfig names the cluster, and no stack is needed."""
        return self.kubeconfig is not None or self.context is not None


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a cluster; the command takes them as its `choice`."""

    @wraps(command)
    def chosen(
        *given: Any,
        stack: str,
        cluster: str | None,
        kubeconfig: Path | None,
        context: str | None,
        **options: Any,
    ) -> Any:
        choice = Choice(stack=stack, cluster=cluster, kubeconfig=kubeconfig, context=context)
        return command(*given, choice=choice, **options)

    wrapped: Callable[..., Any] = chosen
    for option in (
        stack_option,
        click.option(
            "--context", metavar="NAME", help="Use this context of the kubeconfig, and no stack."
        ),
        kubeconfig_option("Use this kubeconfig, and no stack."),
        click.option("--cluster", metavar="NAME", help="Use this registered cluster."),
    ):
        wrapped = option(wrapped)
    return wrapped


def refuse_options_before_subcommand(ctx: click.Context) -> None:
    """Refuse options of a group that stand before its subcommand, which would not see them.

    Raises:
        click.UsageError: there is one.
    """
    for param in ctx.command.params:
        if ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"give {param.opts[0]} after {ctx.invoked_subcommand}")


def environment_of(context: click.Context) -> Environment:
    """Return the environment that a command was given, or the real one."""
    given: Environment | None = context.obj
    if given is not None:
        return given
    from plimsoll_cli.live_environment import LiveEnvironment  # noqa: PLC0415 - loads boto3 and the adapters

    return LiveEnvironment()


def registered(deployed: Deployed, name: str) -> Cluster:
    """Return a registered cluster.

    Raises:
        BadInput: it is not registered.
    """
    found = deployed.registry.get(name)
    if found is None:
        known = ", ".join(c.name for c in deployed.registry.list()) or "none yet"
        raise BadInput(
            f"the stack {deployed.stack.name} has no cluster {name} (registered: {known}): add it with "
            f"`{deployed.stack.command('clusters', 'add', name)}`"
        )
    return found


def unregistered(environment: Environment, choice: Choice) -> tuple[Cluster, ClusterApi]:
    """Return the cluster of a kubeconfig, which may be registered nowhere."""
    name, api = environment.by_kubeconfig(choice.kubeconfig, choice.context)
    cluster = Cluster(
        name=name, kind=ClusterKind.ENDPOINT, region="", added=environment.clock.now()
    )
    return cluster, api


class Terminal(Console):
    """Prints text and tables; only styles of our own reach the terminal as sequences."""

    @override
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(*, stderr: bool = False, width: int = WIDTH) -> Terminal:
    """Return the console for text and tables, without markup.

    Args:
        stderr: print to standard error.
        width: columns where the output is not a terminal.
    """
    found = Terminal(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not found.is_terminal:
        found.width = width
    return found


def print_screen(
    render: Callable[[int], Sequence[str | Table]], *, verbose: bool, command: str
) -> None:
    """Print lines that fit a screen, or all of them.

    Args:
        render: returns the lines, with so many at most for what can be folded.
        verbose: print all.
        command: prints all.
    """
    out = console()

    def printed(most: int) -> Sequence[str]:
        with out.capture() as capture:
            for line in render(most):
                out.print(line)
        return capture.get().splitlines()

    most = sys.maxsize if verbose else SCREEN
    lines = printed(most)
    while not verbose and len(lines) > SCREEN and most > 1:
        most = max(1, most - (len(lines) - SCREEN))
        lines = printed(most)
    if not verbose and len(lines) > SCREEN:
        more = len(lines) - SCREEN + 1
        lines = [*lines[: SCREEN - 1], f"{more} more lines: {command}"]
    for line in lines:
        out.print(Text.from_ansi(line), soft_wrap=True)


def table(*columns: str, title: str | None = None) -> Table:
    """Return a plain table."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_answer(answer: object, output: Output) -> None:
    """Print an answer as JSON or YAML, both with the same content; times are in whole seconds."""

    def plain(value: object) -> str | None:
        return clock_text(value) if isinstance(value, datetime) else str(value)

    text = json.dumps(answer, indent=2, default=plain)
    if output == "yaml":
        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True).rstrip()
    click.echo(text)  # JSON and YAML escape what a terminal obeys


def clock_text(time: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, in whole seconds."""
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"
