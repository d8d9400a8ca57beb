"""Reads of many items of a table, and writes under an optimistic version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import batched
from random import SystemRandom
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Conflict, Throttled

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.adapters.dynamodb.codec import Item

type Warn = Callable[[str], None]
_log: Final = logging.getLogger(__name__)
READ_BATCH_ITEMS: Final = 100
"""The most keys that one BatchGetItem takes."""
ROUNDS: Final = 5
"""How often what DynamoDB left unprocessed is sent before that counts as throttling."""
FIRST_PAUSE_SECONDS: Final = 0.05
"""The bound of the first pause; those of all together stay below a second, since a drain waits for them."""
_RANDOM: Final = SystemRandom()


def logged(what: str) -> None:
    """Log a row that cannot be read: on the command line, where nobody else hears of it."""
    _log.error("%s", what)


def readable[T](
    read: Callable[[Mapping[str, Any]], T], item: Mapping[str, Any], what: str, warn: Warn
) -> T | None:
    """Return what an item holds; one that cannot be read is told of, and counts as absent: None."""
    try:
        return read(item)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        warn(f"{what} cannot be read, and counts as absent: {type(error).__name__} {error}")
        return None


def rounds() -> Iterator[int]:
    """Yield the number of each round, after a pause from the second on: full jitter, below a doubling bound.

    botocore paces only what failed as a whole. Sources:
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html,
    https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
    """
    for number in range(ROUNDS):
        if number:
            sleep(_RANDOM.uniform(0.0, FIRST_PAUSE_SECONDS * 2 ** (number - 1)))
        yield number


def items_of(
    aws: Aws, table: str, keys: Iterable[Item], what: str, *, consistent: bool = False
) -> Iterator[Mapping[str, Any]]:
    """Yield the items of these keys that exist; `what` is what is read, in words.

    Raises:
        Throttled: DynamoDB left some unread, again and again.
    """
    for batch in batched(keys, READ_BATCH_ITEMS, strict=False):
        # DynamoDB answers a batch in part, without an error, where it throttles
        # or the items exceed 16 MB. It refuses a batch that names one key twice.
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
        left: list[dict[str, Any]] = [dict(key) for key in batch]
        for _ in rounds():
            with translated(f"read {what}"):
                answer = aws.dynamodb.batch_get_item(
                    RequestItems={table: {"Keys": left, "ConsistentRead": consistent}}
                )
            yield from answer["Responses"].get(table, [])
            unread = answer.get("UnprocessedKeys", {}).get(table)
            if not unread:
                break
            left = [dict(key) for key in unread["Keys"]]
        else:
            raise Throttled(f"{what}: {len(left)} of {len(batch)} items are unread")


def merged[T](attempts: int, merge: Callable[[], T]) -> T:
    """Return what a merge wrote that reads, and writes under the version that it read.

    Raises:
        Conflict: others wrote in between at every attempt.
    """
    for _ in range(attempts - 1):
        try:
            return merge()
        # The conflict may be with our own write: botocore repeats a write whose answer was
        # lost, and the repetition finds a changed version. Another merge then changes nothing.
        except Conflict:
            continue
    return merge()


def put_version(aws: Aws, table: str, item: Item, version: int, what: str) -> None:
    """Write an item under the next version.

    Args:
        aws: the clients of the table's region.
        table: the table.
        item: all but its version.
        version: what stood there when it was read; 0 where there was none.
        what: what is written, in words.

    Raises:
        Conflict: somebody else wrote in between.
    """
    # The condition is about the version, not the key: a row of
    # an older Plimsoll has no version and may be overwritten.
    condition: dict[str, Any] = (
        {
            "ConditionExpression": "version = :read",
            "ExpressionAttributeValues": {":read": {"N": str(version)}},
        }
        if version
        else {"ConditionExpression": "attribute_not_exists(version)"}
    )
    with translated(what):
        aws.dynamodb.put_item(
            TableName=table, Item={**item, "version": {"N": str(version + 1)}}, **condition
        )
