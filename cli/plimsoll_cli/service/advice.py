"""`plimsoll login`, `plimsoll savings` and `plimsoll recommendations`: the advice of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from plimsoll.domain.errors import BadInput
from plimsoll_agent.service import Service
from plimsoll_cli.options import Output, console, environment_of, output_option, print_answer
from plimsoll_cli.service.advice_tables import show_advice, show_recommendations
from plimsoll_cli.service.login import log_in, logged_in
from plimsoll_service.wire.advice import Advice, Recommendation, Recommendations
from plimsoll_service.wire.views import Clusters

EXAMPLES: Final = """\b
Examples:
  plimsoll login https://api.example.com/prod
  plimsoll savings --cluster harbor
  plimsoll recommendations --cluster harbor
  plimsoll recommendations --cluster harbor accept r-0123456789abcdef

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the service refuses or cannot be reached
"""

_folder: Final = click.option(
    "--config",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="PLIMSOLL_CONFIG",
    default=lambda: Path(click.get_app_dir("plimsoll")),
    metavar="FOLDER",
    help="Keep the login in this folder. [default: the system's folder for settings]",
)
_cluster: Final = click.option(
    "--cluster", metavar="NAME", help="Use the cluster of this name or id. [default: the only one]"
)


@click.command(epilog=EXAMPLES)
@click.argument("url")
@click.option(
    "--join-token",
    prompt=True,
    hide_input=True,
    envvar="PLIMSOLL_JOIN_TOKEN",
    help="Use this token from your operator, valid once. [default: ask for it]",
)
@_folder
@click.pass_context
def login(ctx: click.Context, url: str, join_token: str, folder: Path) -> None:
    """Log in to the optimisation service with a new key, whose private half stays on this machine."""
    enrolled = log_in(folder, url, join_token.strip(), environment_of(ctx).clock)
    click.echo(f"logged in as {enrolled.cluster_id}")


@click.command(epilog=EXAMPLES)
@_cluster
@_folder
@output_option
@click.pass_context
def savings(ctx: click.Context, cluster: str | None, folder: Path, output: Output) -> None:
    """Compare the nodes of a cluster with the cheapest mix found for the same pods.

    The mix keeps every scheduling rule, leaves a tenth of each node free, and puts no more replicas of a
    workload on a node or in a zone than today.
    """
    service = logged_in(folder, environment_of(ctx).clock)
    found = service.call("GET", f"{_path(service, cluster)}/savings", Advice)
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        show_advice(console(), found)


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@_cluster
@_folder
@output_option
@click.pass_context
def recommendations(ctx: click.Context, cluster: str | None, folder: Path, output: Output) -> None:
    """Show the recommendations of the service, with savings and reasons, or accept one."""
    if ctx.invoked_subcommand is not None:
        ctx.meta[__name__] = lambda: _asked(ctx, cluster, folder)
        return
    service, path = _asked(ctx, cluster, folder)
    found = service.call("GET", path, Recommendations)
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        show_recommendations(console(), found.recommendations)


def _asked(ctx: click.Context, cluster: str | None, folder: Path) -> tuple[Service, str]:
    """Return the service, and the path of a cluster's recommendations."""
    service = logged_in(folder, environment_of(ctx).clock)
    return service, f"{_path(service, cluster)}/recommendations"


@recommendations.command(epilog=EXAMPLES)
@click.argument("id_", metavar="ID")
@click.pass_context
def accept(ctx: click.Context, id_: str) -> None:
    """Accept a recommendation.

    Within minutes the service signs an instruction, and the agent of the cluster carries it out as far as
    its owner's policy and the state of the cluster allow. For a recommendation that no agent can carry
    out, the command prints a patch for you to commit.
    """
    if not id_.startswith("r-") or not id_[2:].isalnum():
        raise BadInput(f"{id_!r}: give the id of a recommendation, such as r-0123456789abcdef")
    asked: Callable[[], tuple[Service, str]] = ctx.meta[__name__]
    service, path = asked()
    found = service.call("POST", f"{path}/{id_}/accept", Recommendation)
    click.echo(f"{found.id} is {found.state}: {found.kind} {found.about.name}")
    if found.patch:
        click.echo(found.patch)


def _path(service: Service, name: str | None) -> str:
    """Return the path of a cluster by its name or id.

    Raises:
        BadInput: there is no such cluster, or none is named and there are several.
    """
    known = service.call("GET", "/v1/clusters", Clusters).clusters
    found = [c for c in known if name in {None, c.name, c.id}]
    if len(found) == 1:
        return f"/v1/clusters/{found[0].id}"
    names = ", ".join(c.name for c in known) or "none yet"
    if name is None and found:
        raise BadInput(f"name one of the clusters with --cluster: {names}")
    raise BadInput(f"there is no cluster {name} (enrolled: {names})")
