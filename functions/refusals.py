"""What is answered where a request is refused, or fails: one table for the API and for the console."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from plimsoll.domain.errors import (
    Conflict,
    MissingRights,
    NotFound,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.observability import logger
from plimsoll_service.domain.errors import (
    Changed,
    Forbidden,
    TooLarge,
    Unproven,
    VersionMissing,
)
from plimsoll_service.wire.documents import Malformed

_STATUS: Final[tuple[tuple[type[Exception], HTTPStatus], ...]] = (
    (Unproven, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (Changed, HTTPStatus.PRECONDITION_FAILED),
    (VersionMissing, HTTPStatus.PRECONDITION_REQUIRED),
    (Malformed, HTTPStatus.BAD_REQUEST),
    (NotFound, HTTPStatus.NOT_FOUND),
    # Narrow classes first: Throttled and Conflict are Temporary, MissingRights is Refused.
    (Throttled, HTTPStatus.TOO_MANY_REQUESTS),
    (Conflict, HTTPStatus.CONFLICT),
    (Temporary, HTTPStatus.SERVICE_UNAVAILABLE),
    (MissingRights, HTTPStatus.INTERNAL_SERVER_ERROR),
    (Refused, HTTPStatus.CONFLICT),
)
"""The first that an error is says what is answered; what is in none of them is 500."""
_OURS: Final = "the fault is ours, and was written down"
_LATER: Final = "something that is needed does not answer: try again"


def status_of(error: Exception) -> HTTPStatus:
    """Return what is answered to an error."""
    found = (status for kind, status in _STATUS if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def detail_of(error: Exception) -> str:
    """Return the words for whoever asked: of a fault of ours none that tell how it came."""
    match status_of(error):
        case HTTPStatus.INTERNAL_SERVER_ERROR:
            return _OURS
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return _LATER
        case _:
            return str(error)[:1024]


def note(error: Exception) -> None:
    """Write down what is no refusal."""
    match status_of(error):
        case HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("request failed", exc_info=error)
        case HTTPStatus.SERVICE_UNAVAILABLE:
            logger.warning("request not taken", exc_info=error)
        case _:
            pass


def retry_after(error: Exception) -> str | None:
    """Return after how many seconds it is worth asking again; None: it is not, or at once."""
    if status_of(error) not in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        return None
    wait = error.retry_after if isinstance(error, Temporary) and error.retry_after else 5
    return str(int(wait) or 1)
