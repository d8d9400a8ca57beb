"""Options that several commands share, and which cluster they choose."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from plimsoll.domain.errors import BadInput
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Deployed, Environment

WIDTH: Final = 160
"""Columns where the output is no terminal."""

type Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

stack_option: Final[Decorator] = click.option(
    "--stack",
    envvar="PLIMSOLL_STACK",
    default="plimsoll",
    show_default=True,
    show_envvar=True,
    help="The deployed stack, in the region of your AWS settings.",
)
json_option: Final[Decorator] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on standard output."
)


def kubeconfig_options[F: Callable[..., Any]](command: F) -> F:
    """Add the options that choose a cluster by a kubeconfig alone: `context` and `kubeconfig`."""
    for option in (
        click.option(
            "--kubeconfig",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="[default: $KUBECONFIG, else ~/.kube/config]",
        ),
        click.option(
            "--context", metavar="NAME", help="Context of the kubeconfig. [default: current]"
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which cluster a command was asked about."""

    stack: str
    cluster: str | None
    kubeconfig: Path | None
    context: str | None

    def __post_init__(self) -> None:
        if self.cluster is not None and self.by_kubeconfig:
            raise click.UsageError(
                "--cluster names a registered cluster, and --kubeconfig and --context one that "
                "need not be registered: give one or the other"
            )

    @property
    def by_kubeconfig(self) -> bool:
        """Whether no stack is asked at all."""
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
            "--context", metavar="NAME", help="Context of the kubeconfig; asks no stack at all."
        ),
        click.option(
            "--kubeconfig",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Read the cluster of this kubeconfig; asks no stack at all.",
        ),
        click.option("--cluster", metavar="NAME", help="A registered cluster."),
    ):
        wrapped = option(wrapped)
    return wrapped


def registered(deployed: Deployed, name: str) -> Cluster:
    """Return a registered cluster.

    Raises:
        BadInput: nobody registered it.
    """
    found = deployed.registry.get(name)
    if found is None:
        known = ", ".join(c.name for c in deployed.registry.list()) or "none yet"
        raise BadInput(
            f"no cluster is registered as {name} in the stack {deployed.name} (registered: "
            f"{known}): add it with `plimsoll clusters add {name}`"
        )
    return found


def unregistered(environment: Environment, choice: Choice) -> tuple[Cluster, ClusterApi]:
    """Return the cluster of a kubeconfig, which may be registered nowhere."""
    name, api = environment.by_kubeconfig(choice.kubeconfig, choice.context)
    cluster = Cluster(
        name=name, kind=ClusterKind.ENDPOINT, region="", added=environment.clock.now()
    )
    return cluster, api


def console(*, stderr: bool = False, width: int = WIDTH) -> Console:
    """Return where people read the answer. Nothing in it is taken for markup.

    Args:
        stderr: whether it is standard error.
        width: columns where it is no terminal and nobody says how wide it is.
    """
    found = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not found.is_terminal:
        found.width = width
    return found


def table(*columns: str, title: str | None = None) -> Table:
    """Return a plain table."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_json(answer: object) -> None:
    """Print an answer as JSON; times in it are in whole seconds."""

    def plain(value: object) -> str | None:
        return clock_text(value) if isinstance(value, datetime) else str(value)

    click.echo(json.dumps(answer, indent=2, default=plain))


def clock_text(time: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, in whole seconds."""
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"
