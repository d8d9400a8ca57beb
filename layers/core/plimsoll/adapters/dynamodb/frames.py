"""The table `frames`: the storms of each cluster, one item a frame, for a month."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import TTL, expiry, strings, time_to_text
from plimsoll.adapters.dynamodb.tables import Warn, logged, readable
from plimsoll.domain.errors import Conflict
from plimsoll.domain.frames import Frame

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from plimsoll.adapters.aws import Aws

KEEP_FRAMES: Final = timedelta(days=30)
MOST_BYTES: Final = 65_536
"""Of a compressed frame: a write costs a unit for each KiB, and is made every two seconds."""
_LEVEL: Final = 3
_FRAME: Final = "frame/"
_LAST: Final = "frame0"
"""Behind all frames, and before nothing else: "0" follows "/"."""
_BEGUN: Final = "begun/"
"""Before the first notice of a storm: somebody has told people of it."""
_LISTS: Final = ("workloads", "nodes", "pods", "lines", "capacity")


class DynamoFrames:
    """Writes and reads frames.

    Args:
        aws: the clients of the stack's region.
        table: its name.
        warn: told of frames that cannot be read.
        single_attempt: whether each call is tried once, and for 0.3 s. Beside a drain: the next frame follows in two seconds.
    """

    def __init__(
        self, aws: Aws, table: str, warn: Warn = logged, *, single_attempt: bool = False
    ) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn
        self._single_attempt = single_attempt

    def put(self, frame: Frame) -> None:
        """Write a frame; written twice it is one.

        Raises:
            PlimsollError: DynamoDB did not take it in time.
        """
        item = {
            **strings(cluster=frame.cluster, at=_FRAME + time_to_text(frame.at)),
            **strings(storm=time_to_text(frame.storm)),
            "frame": {"B": encoded(frame)},
            TTL: expiry(frame.at + KEEP_FRAMES),
        }
        with translated(f"write a frame of {frame.cluster}"):
            self._client.put_item(TableName=self._table, Item=item)

    def begin(self, frame: Frame) -> bool:
        """Note that people are told of a storm; False where that was noted before.

        Raises:
            PlimsollError: DynamoDB did not take it in time.
        """
        item = {
            **strings(cluster=frame.cluster, at=_BEGUN + time_to_text(frame.storm)),
            TTL: expiry(frame.at + KEEP_FRAMES),
        }
        try:
            with translated(f"note the storm of {frame.cluster}"):
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#at)",
                    ExpressionAttributeNames={"#at": "at"},
                )
        except Conflict:
            return False
        return True

    def latest(self, cluster: str, until: datetime | None = None) -> Frame | None:
        """Return the last frame of a cluster, up to a time; None where none is kept, or it cannot be read.

        Raises:
            PlimsollError: DynamoDB did not answer in time.
        """
        last = _LAST if until is None else _FRAME + time_to_text(until)
        return next(self._frames(cluster, _FRAME, last, newest_first=True, Limit=1), None)

    def since(self, cluster: str, at: datetime) -> Sequence[Frame]:
        """Return the frames of a cluster from a time on, the oldest first."""
        return [*self._frames(cluster, _FRAME + time_to_text(at), _LAST)]

    def _frames(
        self, cluster: str, first: str, last: str, *, newest_first: bool = False, **how: Any
    ) -> Iterator[Frame]:
        query = {
            "TableName": self._table,
            "KeyConditionExpression": "cluster = :cluster AND #at BETWEEN :first AND :last",
            "ExpressionAttributeNames": {"#at": "at"},
            "ExpressionAttributeValues": strings(
                **{":cluster": cluster, ":first": first, ":last": last}
            ),
            "ScanIndexForward": not newest_first,
            **how,
        }
        with translated(f"read frames of {cluster}"):
            answer: Mapping[str, Any] = self._client.query(**query)
        while True:
            for item in answer["Items"]:
                frame = readable(_frame_of, item, f"a frame of {cluster}", self._warn)
                if frame is not None:
                    yield frame
            after = answer.get("LastEvaluatedKey")
            if after is None or "Limit" in how:
                return
            with translated(f"read frames of {cluster}"):
                answer = self._client.query(**query, ExclusiveStartKey=after)

    @property
    def _client(self) -> DynamoDBClient:
        return self._aws.single_attempt_dynamodb if self._single_attempt else self._aws.dynamodb


def encoded(frame: Frame) -> bytes:
    """Return a frame as it is kept: of one that is too large the end of each list is left out, never a count."""
    while len(data := zlib.compress(msgspec.json.encode(frame), _LEVEL)) > MOST_BYTES:
        halves = {name: getattr(frame, name)[: len(getattr(frame, name)) // 2] for name in _LISTS}
        frame = replace(frame, **halves)
    return data


def decoded(data: bytes) -> Frame:
    """Return what `encoded` wrote.

    Raises:
        ValueError: it is no frame.
    """
    try:
        return msgspec.json.decode(zlib.decompress(data), type=Frame)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error


def _frame_of(item: Mapping[str, Any]) -> Frame:
    return decoded(item["frame"]["B"])
