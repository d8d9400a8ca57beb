"""`plimsoll login`, `plimsoll savings` and `plimsoll recommendations`: the service's advice, for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from plimsoll.domain.errors import BadInput
from plimsoll_agent.service import Service
from plimsoll_cli.environment import environment_of
from plimsoll_cli.options import console, json_option, print_json
from plimsoll_cli.savings_shown import show_advice, show_recommendations
from plimsoll_cli.service_login import log_in, logged_in
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
  0  it was done
  2  something given is wrong, or the service refuses or cannot be reached
"""

_folder: Final = click.option(
    "--config",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="PLIMSOLL_CONFIG",
    default=lambda: Path(click.get_app_dir("plimsoll")),
    metavar="FOLDER",
    help="Where the login is kept. [default: the system's folder for settings]",
)
_cluster: Final = click.option(
    "--cluster", metavar="NAME", help="Name or id of a cluster; needless where there is one only."
)


@click.command(epilog=EXAMPLES, short_help="Log in to the optimisation service.")
@click.argument("url")
@click.option(
    "--join-token",
    prompt=True,
    hide_input=True,
    envvar="PLIMSOLL_JOIN_TOKEN",
    help="From your operator; good once. Asked for where it is not given.",
)
@_folder
@click.pass_context
def login(ctx: click.Context, url: str, join_token: str, folder: Path) -> None:
    """Make a key on this machine and enrol it. The private half never leaves it."""
    enrolled = log_in(folder, url, join_token.strip(), environment_of(ctx).clock)
    click.echo(f"logged in as {enrolled.cluster_id}")


@click.command(epilog=EXAMPLES, short_help="Show what a cluster costs, and could cost.")
@_cluster
@_folder
@json_option
@click.pass_context
def savings(ctx: click.Context, cluster: str | None, folder: Path, as_json: bool) -> None:
    """Show the nodes of a cluster today beside the cheapest that were found for the same pods.

    Every rule about their places is kept, a tenth of each node stays free, and no node or zone holds more
    replicas of a workload than today.
    """
    service = logged_in(folder, environment_of(ctx).clock)
    found = service.call("GET", f"{_path(service, cluster)}/savings", Advice)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        show_advice(console(), found)


@click.group(
    epilog=EXAMPLES,
    invoke_without_command=True,
    short_help="Show what the service advises; accept it.",
)
@_cluster
@_folder
@json_option
@click.pass_context
def recommendations(ctx: click.Context, cluster: str | None, folder: Path, as_json: bool) -> None:
    """Show what the service advises, with what it saves and why."""
    if ctx.invoked_subcommand is not None:
        ctx.meta[__name__] = lambda: _asked(ctx, cluster, folder)
        return
    service, path = _asked(ctx, cluster, folder)
    found = service.call("GET", path, Recommendations)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        show_recommendations(console(), found.recommendations)


def _asked(ctx: click.Context, cluster: str | None, folder: Path) -> tuple[Service, str]:
    """Return the service, and the path of a cluster's recommendations."""
    service = logged_in(folder, environment_of(ctx).clock)
    return service, f"{_path(service, cluster)}/recommendations"


@recommendations.command(epilog=EXAMPLES, short_help="Accept a recommendation.")
@click.argument("id_", metavar="ID")
@click.pass_context
def accept(ctx: click.Context, id_: str) -> None:
    """Accept a recommendation. What can be executed becomes a signed instruction within minutes.

    The cluster's own executor carries it out, as far as its owner's policy and the live state allow.
    Anything else is for you to commit: its patch is printed.
    """
    if not id_.startswith("r-") or not id_[2:].isalnum():
        raise BadInput(f"{id_!r} is no id of a recommendation, such as r-0123456789abcdef")
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
    raise BadInput(f"no cluster is called {name}; enrolled are: {names}")
