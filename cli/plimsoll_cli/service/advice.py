"""`plimsoll login`, `savings`, `history` and `recommendations`: what people read of the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import click
import msgspec

from plimsoll.domain.errors import BadInput
from plimsoll_agent.service import Service
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
from plimsoll_cli.service.login import log_in, log_out, logged_in
from plimsoll_cli.service.pages import pages
from plimsoll_cli.service.realised import realised
from plimsoll_cli.service.sign_in import by_browser, by_device, issuer_of
from plimsoll_cli.terminal import say
from plimsoll_service.domain.access import SESSION_IDLE, SESSION_LIFE
from plimsoll_service.wire.advice import (
    Advice,
    Configuration,
    Recommendation,
    RecommendationPage,
    Recommendations,
)
from plimsoll_service.wire.clusters import Clusters
from plimsoll_service.wire.people import SignedIn, StartedDevice
from plimsoll_service.wire.views import Periods

GIB: Final = 2**30
MILLI: Final = 1000
YEAR: Final = 12
MOST_NAMES: Final = 20
"""Of clusters in a message."""
EXAMPLES: Final = """\b
Examples:
  plimsoll login https://api.example.com/prod
  plimsoll login https://api.example.com/prod --device
  plimsoll savings --cluster harbor
  plimsoll history days --cluster harbor
  plimsoll recommendations --cluster harbor
  plimsoll recommendations --cluster harbor accept r-0123456789abcdef --version 7
  plimsoll recommendations dismiss r-0123456789abcdef --until 2027-01-31 --reason "sale in January"
  plimsoll recommendations cancel r-0123456789abcdef
  plimsoll recommendations --cluster harbor savings --by recommendation

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the service refuses or cannot be reached
"""

LOGIN: Final = f"""\
Log in to the optimisation service: in a browser at your company's issuer, or with a key.

A session ends after {SESSION_LIFE // timedelta(hours=1)} hours, or after \
{SESSION_IDLE // timedelta(minutes=1)} minutes without a request. Where the service names no issuer, and \
with --join-token, you log in with a new key, whose private half stays on this machine.
"""
folder_option: Final = click.option(
    "--config",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="PLIMSOLL_CONFIG",
    default=lambda: Path(click.get_app_dir("plimsoll")),
    metavar="FOLDER",
    help="Keep the login in this folder. [default: the system's folder for settings]",
)
cluster_option: Final = click.option(
    "--cluster", metavar="NAME", help="Use the cluster of this name or id. [default: the only one]"
)


@click.command(epilog=EXAMPLES, help=LOGIN)
@click.argument("url")
@click.option(
    "--join-token",
    envvar="PLIMSOLL_JOIN_TOKEN",
    help="Log in with a new key by this token from your operator, valid once.",
)
@click.option("--device", is_flag=True, help="Confirm a code in the browser of another machine.")
@click.option("--tenant", metavar="NAME", help="Use this tenant. [default: your only one]")
@folder_option
@click.pass_context
def login(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    url: str,
    join_token: str | None,
    device: bool,
    tenant: str | None,
    folder: Path,
) -> None:
    """See `LOGIN`."""
    clock = environment_of(ctx).clock
    issuer = None if join_token else issuer_of(url, clock)
    if issuer is None:
        token = join_token or click.prompt("Join token", hide_input=True)
        say(f"logged in as {log_in(folder, url, token.strip(), clock).cluster_id}")
    elif device:
        _say_session(by_device(folder, url, tenant, clock, show=_show_device))
    else:
        _say_session(by_browser(folder, url, issuer, tenant, clock, show=_show_address))


@click.command(epilog=EXAMPLES)
@folder_option
@click.pass_context
def logout(ctx: click.Context, folder: Path) -> None:
    """End your session at the optimisation service. A login with a key stays."""
    log_out(folder, environment_of(ctx).clock)
    say("logged out")


@click.command(epilog=EXAMPLES)
@cluster_option
@folder_option
@output_option
@click.pass_context
def savings(ctx: click.Context, cluster: str | None, folder: Path, output: Output) -> None:
    """Compare the nodes of a cluster with the cheapest mix found for the same pods.

    The mix keeps every scheduling rule, leaves a tenth of each node free, and puts no more replicas of a
    workload on a node or in a zone than today.
    """
    service = logged_in(folder, environment_of(ctx).clock)
    found = service.call("GET", f"{cluster_path(service, cluster)}/savings", Advice)
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        _show_advice(console(), found)


@click.command(epilog=EXAMPLES)
@click.argument("span", type=click.Choice(["hours", "days"]))
@click.option(
    "--before",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    help="Show what began before this time in UTC. [default: now]",
)
@cluster_option
@folder_option
@output_option
@click.pass_context
def history(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    span: str,
    before: datetime | None,
    cluster: str | None,
    folder: Path,
    output: Output,
) -> None:
    """Show what a cluster had, requested and used: a week of hours, or 92 days.

    The service keeps hours for 35 days and days for 400.
    """
    service = logged_in(folder, environment_of(ctx).clock)
    query = f"before={before:%Y-%m-%dT%H:%M}" if before else ""
    found = service.call("GET", f"{cluster_path(service, cluster)}/{span}", Periods, query=query)
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        _show_history(console(), found)


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@cluster_option
@folder_option
@output_option
@click.pass_context
def recommendations(ctx: click.Context, cluster: str | None, folder: Path, output: Output) -> None:
    """Show the recommendations of the service, with savings and reasons, or decide about one."""
    if ctx.invoked_subcommand is not None:
        ctx.meta[__name__] = lambda: _asked(ctx, cluster, folder)
        return
    service, path = _asked(ctx, cluster, folder)
    read = list(pages(service, path, RecommendationPage))
    found = Recommendations(
        recommendations=tuple(each for page in read for each in page.items),
        left_out=read[-1].left_out,
    )
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        _show_recommendations(console(), found.recommendations)
        if found.left_out:
            console().print(f"{found.left_out} more save less, and are not kept")


recommendations.add_command(realised)


def _asked(ctx: click.Context, cluster: str | None, folder: Path) -> tuple[Service, str]:
    """Return the service, and the path of a cluster's recommendations."""
    service = logged_in(folder, environment_of(ctx).clock)
    return service, f"{cluster_path(service, cluster)}/recommendations"


def asked_of(ctx: click.Context) -> Callable[[], tuple[Service, str]]:
    """Return what asks, for a subcommand, for the service and the path of a cluster's recommendations."""
    asked: Callable[[], tuple[Service, str]] = ctx.meta[__name__]
    return asked


def cluster_path(service: Service, name: str | None) -> str:
    """Return the path of a cluster by its name or id.

    Raises:
        BadInput: there is no such cluster, or none is named and there are several.
    """
    told = [row for page in pages(service, "/v1/clusters", Clusters) for row in page.items]
    found = [c for c in told if name in {None, c.name, c.id}]
    if len(found) == 1:
        return f"/v1/clusters/{found[0].id}"
    names = ", ".join(c.name for c in told[:MOST_NAMES]) or "none yet"
    if told[MOST_NAMES:]:
        names += f", and {len(told[MOST_NAMES:])} more"
    if name is None and found:
        raise BadInput(f"name one of the clusters with --cluster: {names}")
    raise BadInput(f"there is no cluster {name} (enrolled: {names})")


def _show_advice(out: Terminal, advice: Advice) -> None:
    """Print the present nodes of a cluster beside the cheapest mix."""
    columns = [("today", advice.today), ("same pods", advice.optimised)]
    if advice.resized is not None:
        columns.append(("requests as advised", advice.resized))
    shown = table("", *(name.upper() for name, _ in columns))
    for name, row in _rows([each for _, each in columns], advice.today.monthly):
        shown.add_row(name, *row)
    out.print(shown)
    shown = table("TYPE", "CAPACITY", *(name.upper() for name, _ in columns))
    for (type_, capacity), counts in _types([each for _, each in columns]):
        shown.add_row(type_, capacity, *counts)
    out.print(shown)
    out.print(f"of {advice.taken_at:%Y-%m-%d %H:%M:%S} UTC; prices: {advice.prices}")
    if advice.optimised.monthly < advice.today.monthly:
        out.print(f"the mix is at most {advice.gap:.0%} above the optimum under the same rules")
    for name in advice.unpriced:
        out.print(f"no price for {name}: its nodes count as costing nothing")
    if advice.unreached:
        kinds = ", ".join(advice.unreached)
        out.print(f"the last run had no time for {kinds}: earlier advice stands")
    for why, count in sorted(Counter(advice.kept.values()).items()):
        out.print(f"{count} nodes stay unchanged: {why}")


def _show_recommendations(out: Terminal, found: Sequence[Recommendation]) -> None:
    """Print recommendations, the largest saving first."""
    shown = table("ID", "VERSION", "SAVES A MONTH", "STATE", "WHAT", "BECAUSE")
    for each in found:
        about = f"{each.about.kind} {each.about.namespace}/{each.about.name}".replace(" /", " ")
        seen = "" if each.seen_at is None else f", seen {each.seen_at:%Y-%m-%d}"
        who = f"accepted by {each.accepted_by}" if each.accepted_by else ""
        said = "; ".join(dict.fromkeys(filter(None, (who, each.note))))
        note = f" ({said})" if said else ""
        shown.add_row(
            each.id,
            str(each.version),
            DOLLARS.format(each.monthly),
            each.state + seen,
            f"{each.kind} {about}",
            each.reason + note,
        )
    out.print(shown)


def _show_history(out: Terminal, found: Periods) -> None:
    """Print hours or days, in their order."""
    shown = table("START", "NODES", "SPOT", "PODS", "PENDING", "VCPU", "REQUESTED", "USED")
    for each in found.periods:
        counts = (each.nodes, each.spot_nodes, each.pods, each.pending)
        processors = (each.allocatable.cpu_m, each.requested.cpu_m, each.used.cpu_m)
        shown.add_row(
            f"{each.start:%Y-%m-%d %H:%M}",
            *(f"{count:,.1f}" for count in counts),
            *(f"{cpu_m / MILLI:,.1f}" for cpu_m in processors),
        )
    out.print(shown)
    out.print(f"what came before: --before {found.since:%Y-%m-%dT%H:%M}")


def _rows(columns: Sequence[Configuration], now: float) -> Iterable[tuple[str, Iterable[str]]]:
    yield "nodes", [str(each.nodes) for each in columns]
    yield "spot nodes", [str(each.spot) for each in columns]
    yield "vCPU", [str(each.vcpus) for each in columns]
    yield "memory for pods", [f"{each.memory / GIB:,.0f} GiB" for each in columns]
    yield "a month", [DOLLARS.format(each.monthly) for each in columns]
    yield "a year", [DOLLARS.format(each.monthly * YEAR) for each in columns]
    yield "saves a month", [DOLLARS.format(now - each.monthly) for each in columns]


def _types(
    columns: Sequence[Configuration],
) -> Iterable[tuple[tuple[str, str], Iterable[str]]]:
    counts = [{(r.type, r.capacity): r.count for r in each.instances} for each in columns]
    for key in sorted(set().union(*counts)):
        yield key, [str(column.get(key, 0)) for column in counts]


def _show_address(address: str) -> None:
    say(f"Sign in here, if no browser opens:\n{address}", err=True)


def _show_device(started: StartedDevice) -> None:
    say(f"Open {started.verification_uri} and confirm {started.user_code}", err=True)


def _say_session(session: SignedIn) -> None:
    say(f"logged in to {session.tenant} as {session.name} until {session.expires:%H:%M} UTC")
