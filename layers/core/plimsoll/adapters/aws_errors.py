"""What botocore raises, said in our words: named for what the caller does next.

Source: the error codes of each service's API reference, and botocore's list of throttling codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from plimsoll.domain.errors import (
    BadInput,
    Conflict,
    MissingRights,
    NotFound,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_THROTTLED: Final = frozenset(
    {
        "EC2ThrottledException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_CONFLICT: Final = frozenset(
    {
        "ConditionalCheckFailedException",
        "IdempotentCallInProgress",
        "IdempotentCallInProgressFault",
        "IdempotentCallInProgressException",
        "ResourceContention",
        "ResourceContentionFault",
        "ResourceInUse",
        "ResourceInUseException",
        "ScalingActivityInProgress",
        "TransactionConflictException",
    }
)
_TEMPORARY: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestExpired",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
_DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "InvalidClientTokenId",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_SERVER_ERROR: Final = 500
UNKNOWN_OPERATION: Final = frozenset(
    {"InvalidAction", "UnknownOperationException", "NotImplemented", "UnsupportedOperation"}
)
"""The endpoint does not know the action: an emulator, or a region that has not got it yet."""


def code_of(error: ClientError) -> str:
    """Return the error code, for example `ValidationError`."""
    return error.response.get("Error", {}).get("Code", "")


def message_of(error: ClientError) -> str:
    """Return what AWS says about it."""
    return error.response.get("Error", {}).get("Message", "")


_KINDS: Final[tuple[tuple[frozenset[str], type[PlimsollError]], ...]] = (
    (_THROTTLED, Throttled),
    (_CONFLICT, Conflict),
    (_TEMPORARY, Temporary),
    (_DENIED, MissingRights),
    (frozenset({"ValidationError", "ValidationException"}), BadInput),
)


def kind_of(code: str) -> type[PlimsollError] | None:
    """Return what an error code means to us; None where it is in no table."""
    return next((kind for codes, kind in _KINDS if code in codes), None)


def translate(error: ClientError, what: str) -> PlimsollError:
    """Return a botocore error as one of ours; `what` is what was being done, in words."""
    code = code_of(error)
    text = f"{what}: {code}: {message_of(error)}"
    kind = kind_of(code)
    if kind is MissingRights:
        text += f". Give the role that ran this the right to {error.operation_name}."
    if kind is not None:
        return kind(text)
    if "NotFound" in code or code.endswith("NonExistentQueue"):
        return NotFound(text)
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _SERVER_ERROR:
        return Temporary(text)
    return BadInput(text) if code.startswith("Invalid") else Refused(text)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Run AWS calls; what botocore raises leaves as one of our errors.

    Raises:
        PlimsollError: see `translate`; no answer in time is `Temporary`.
    """
    from botocore import exceptions  # noqa: PLC0415 - imported late, see `aws`

    try:
        yield
    except exceptions.ClientError as error:
        raise translate(error, what) from error
    except (exceptions.NoCredentialsError, exceptions.NoRegionError) as error:
        raise MissingRights(f"{what}: {error}") from error
    except exceptions.ParamValidationError as error:
        raise BadInput(f"{what}: {error}") from error
    except exceptions.BotoCoreError as error:  # no connection, no answer in time, a broken answer
        raise Temporary(f"{what}: {error}") from error
