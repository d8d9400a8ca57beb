"""`plimsoll recommendations accept`, `dismiss` and `cancel`: decisions about a version that was seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import click

from plimsoll.domain.errors import BadInput, NotFound
from plimsoll_agent.service import Service
from plimsoll_cli.options import Decorator
from plimsoll_cli.service.advice import EXAMPLES, asked_of, recommendations
from plimsoll_cli.terminal import say
from plimsoll_service.wire.advice import DismissRequest, Recommendation, Recommendations
from plimsoll_service.wire.documents import encode

_ID: Final = re.compile(r"r-[A-Za-z0-9]{1,62}")

version_option: Final[Decorator] = click.option(
    "--version",
    type=click.IntRange(1),
    help="Decide about this version, as listed. [default: the one that is printed]",
)


@recommendations.command(epilog=EXAMPLES)
@click.argument("id_", metavar="ID")
@version_option
@click.pass_context
def accept(ctx: click.Context, id_: str, version: int | None) -> None:
    """Accept a recommendation, in the version that you saw.

    Within minutes the service signs an instruction, and the agent of the cluster carries it out as far as
    its owner's policy and the state of the cluster allow. For a recommendation that no agent can carry
    out, the command prints a patch for you to commit.
    """
    found = _decided(ctx, id_, "accept", version)
    if found.patch:
        say(found.patch)


@recommendations.command(epilog=EXAMPLES)
@click.argument("id_", metavar="ID")
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    required=True,
    help="Advise it again after this time in UTC, at most 400 days ahead.",
)
@click.option("--reason", required=True, help="Say why, for whoever asks later.")
@version_option
@click.pass_context
def dismiss(
    ctx: click.Context, id_: str, until: datetime, reason: str, version: int | None
) -> None:
    """Dismiss a recommendation until a time. It comes back by itself, or when you cancel."""
    asked = DismissRequest(reason=reason, until=until.replace(tzinfo=UTC))
    _decided(ctx, id_, "dismiss", version, encode(asked))


@recommendations.command(epilog=EXAMPLES)
@click.argument("id_", metavar="ID")
@version_option
@click.pass_context
def cancel(ctx: click.Context, id_: str, version: int | None) -> None:
    """Take back an acceptance for which no instruction is signed yet, or a dismissal."""
    _decided(ctx, id_, "cancel", version)


def _decided(
    ctx: click.Context, id_: str, what: str, version: int | None, body: bytes = b""
) -> Recommendation:
    """Decide about a version, and print what it became.

    Raises:
        BadInput: that is no id.
        NotFound: there is no such recommendation.
    """
    if _ID.fullmatch(id_) is None:
        raise BadInput(f"{id_!r}: give the id of a recommendation, such as r-0123456789abcdef")
    asked: Callable[[], tuple[Service, str]] = asked_of(ctx)
    service, path = asked()
    if version is None:
        seen = _seen(service, path, id_)
        say(f"{id_} version {seen.version}: {seen.kind} {seen.about.name}, {seen.reason}")
        version = seen.version
    found = service.call("POST", f"{path}/{id_}/{what}", Recommendation, body=body, version=version)
    say(f"{found.id} is {found.state}: {found.kind} {found.about.name}")
    return found


def _seen(service: Service, path: str, id_: str) -> Recommendation:
    """Return a recommendation as it is now: what is printed is what is decided about."""
    known = service.call("GET", path, Recommendations).recommendations
    found = next((each for each in known if each.id == id_), None)
    if found is None:
        raise NotFound(f"there is no recommendation {id_}")
    return found
