"""Where the commands of `plimsoll gpu` read their documents: the service, or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import click
import msgspec

from plimsoll.domain.errors import BadInput
from plimsoll_agent.service import Service
from plimsoll_cli.options import environment_of
from plimsoll_cli.service.advice import cluster_option, cluster_path, folder_option
from plimsoll_cli.service.login import logged_in
from plimsoll_service.wire.documents import Malformed, decode
from plimsoll_service.wire.gpu import ClassDay, ClassDays

MOST_DAYS: Final = 35
"""So long the service keeps them."""


def class_days_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a source of documents; the command takes these as its `found`.

    `found` is a `ClassDays` of all pages.
    """

    @wraps(command)
    def reading(
        *given: Any,
        file: Path | None,
        cluster: str | None,
        days: int,
        folder: Path,
        **options: Any,
    ) -> Any:
        if file is not None and cluster is not None:
            raise click.UsageError("give either --from or --cluster")
        if file is not None:
            found = from_file(file)
        else:
            clock = environment_of(click.get_current_context()).clock
            found = from_service(logged_in(folder, clock), cluster, days)
        return command(*given, found=found, **options)

    wrapped: Callable[..., Any] = reading
    for option in (
        folder_option,
        click.option(
            "--days",
            type=click.IntRange(1, MOST_DAYS),
            default=14,
            show_default=True,
            help="Read so many days from the service.",
        ),
        cluster_option,
        click.option(
            "--from",
            "file",
            type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
            metavar="FILE",
            help="Read the documents from this file, one JSON document a line; - reads standard input.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def from_file(file: Path) -> ClassDays:
    """Return the documents of a file.

    Raises:
        BadInput: a line is not a document.
    """
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    days = []
    for number, line in enumerate(body.splitlines(), 1):
        try:
            days += [decode(line, ClassDay)] if line.strip() else []
        except Malformed as error:
            raise BadInput(f"{file}, line {number}: {error}") from error
    return ClassDays(days=tuple(days))


def from_service(service: Service, cluster: str | None, days: int) -> ClassDays:
    """Return the documents of a cluster.

    Args:
        service: Where they are kept.
        cluster: Its name or id; None: the only one.
        days: How many days, today included.

    Raises:
        BadInput: there is no such cluster.
        PlimsollError: the service refuses, or cannot be reached.
    """
    path = f"{cluster_path(service, cluster)}/gpu"
    query = {"days": str(days)}
    page = service.call("GET", path, ClassDays, query=urlencode(query))
    found = [*page.days]
    while page.next:
        page = service.call("GET", path, ClassDays, query=urlencode(query | {"next": page.next}))
        found += page.days
    return msgspec.structs.replace(page, days=tuple(found))
