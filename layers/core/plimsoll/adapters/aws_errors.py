"""What botocore raises, said in our words: named for what the caller does next.

Sources: the error codes of each service's API reference; botocore's lists of codes that are worth another attempt
(`data/_retry.json`, and those of its standard mode in `retries/standard.py`); the codes of a wrong clock in
https://github.com/aws/aws-sdk-js-v3/blob/main/packages/service-error-classification/src/constants.ts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
)

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

_THROTTLED: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "SlowDown",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_THROTTLING: Final = re.compile("throttl", re.IGNORECASE)
"""In every other code of throttling. Each service names that of KMS in its own way: `KmsThrottled`, `KMSThrottling`."""
_CONFLICT: Final = frozenset(
    {
        "ConditionalCheckFailed",
        "ConditionalCheckFailedException",
        "IdempotentCallInProgress",
        "IdempotentCallInProgressFault",
        "IdempotentCallInProgressException",
        "PreconditionFailed",
        "ReplicatedWriteConflictException",
        "ResourceContention",
        "ResourceContentionFault",
        "ResourceInUse",
        "ResourceInUseException",
        "ScalingActivityInProgress",
        "TransactionConflict",
        "TransactionConflictException",
    }
)
_CLOCK: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "RequestExpired",
        "RequestInTheFuture",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
"""A request or its credentials are too old, or too new: so is one that Lambda froze before it was sent. The next
attempt signs anew."""
_TEMPORARY: Final = frozenset(
    {
        "BadDigest",
        # A write of the same key was under way, and whether it made the object is open. An object that is there
        # answers 412, `PreconditionFailed`. https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
        "ConditionalRequestConflict",
        "IDPCommunicationError",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
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
_BAD_INPUT: Final = re.compile(
    r"Validation(Error|Exception)$|InvalidParameter|InvalidInput|Invalid\w+\.Malformed"
)
"""How codes begin that blame what was sent. Other codes that begin with `Invalid` are about a state or a credential."""
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
UNKNOWN_OPERATION: Final = frozenset(
    {"InvalidAction", "UnknownOperationException", "NotImplemented", "UnsupportedOperation"}
)
"""The endpoint does not know the action: an emulator, or a region that has not got it yet."""


def code_of(error: ClientError) -> str:
    """Return the error code, for example `ValidationError`; of a transaction, why its first part failed."""
    code = error.response.get("Error", {}).get("Code", "")
    # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    reasons = error.response.get("CancellationReasons", ())
    failed = (each["Code"] for each in reasons if each.get("Code", "None") != "None")
    return next(failed, code)


def message_of(error: ClientError) -> str:
    """Return what AWS says about it."""
    return error.response.get("Error", {}).get("Message", "")


_KINDS: Final[tuple[tuple[frozenset[str], type[PlimsollError]], ...]] = (
    (_THROTTLED, Throttled),
    (_CONFLICT, Conflict),
    (_TEMPORARY | _CLOCK, Temporary),
    (_DENIED, MissingRights),
)


def kind_of(code: str) -> type[PlimsollError] | None:
    """Return what an error code means to us; None where no table and no pattern has it."""
    named = next((kind for codes, kind in _KINDS if code in codes), None)
    if named is not None:
        return named
    if _THROTTLING.search(code):
        return Throttled
    return BadInput if _BAD_INPUT.match(code) else None


def translate(error: ClientError, what: str) -> PlimsollError:
    """Return a botocore error as one of ours; `what` is what was being done, in words."""
    code = code_of(error)
    text = f"{what}: {code}: {message_of(error)}"
    kind = kind_of(code)
    if kind is MissingRights:
        text += f". Give the role that ran this the right to {error.operation_name}."
    # Codes before the status: DynamoDB throttles with status 400.
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
    if kind is not None:
        return kind(text)
    if "NotFound" in code or code.endswith("NonExistentQueue"):
        return NotFound(text)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status == _TOO_MANY:
        return Throttled(text)
    # The status comes last: of an unknown code it says no more than whether another attempt may help.
    return Temporary(text) if status >= _SERVER_ERROR else Refused(text)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Run AWS calls; what botocore raises leaves as one of our errors.

    Raises:
        PlimsollError: see `translate`; no answer in time is `Temporary`.
    """
    try:
        yield
    except ClientError as error:
        raise translate(error, what) from error
    except (NoCredentialsError, NoRegionError) as error:
        raise MissingRights(f"{what}: {error}") from error
    except ParamValidationError as error:
        raise BadInput(f"{what}: {error}") from error
    except BotoCoreError as error:  # no connection, no answer in time, a broken answer
        raise Temporary(f"{what}: {error}") from error
