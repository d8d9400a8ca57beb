"""JSON documents between a cluster's agent and the service: bounded in size, decoded by type.

Whoever decodes one does not trust its writer. Unknown fields are dropped, so that a newer writer
breaks no older reader; everything else that is not as its type says is refused, and named. Whoever
writes one is held to the same: what its reader would refuse is not written.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Hashable
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta

MOST_BYTES: Final = 10 * 2**20
"""Of a document once it is decompressed."""
_CHUNK: Final = 2**16
_GZIP: Final = 16 + zlib.MAX_WBITS
_BROKEN: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
_BAD_TEXT: Final = re.compile(r"Expected `str` (matching regex|of length) ")
"""How msgspec says that text is none that its field takes."""

MOST_TEXT_CHARACTERS: Final = 256
type Text = Annotated[str, Meta(min_length=1, max_length=MOST_TEXT_CHARACTERS)]
"""A name, a uid, or whatever else is never empty."""
type Words = Annotated[str, Meta(max_length=1024)]
"""A reason for a person to read."""
MOST_COUNT: Final = 2**53
"""Every JSON parser holds it exactly: so many bytes are 9 petabytes."""
type Count = Annotated[int, Meta(ge=0, le=MOST_COUNT)]
type Time = Annotated[datetime, Meta(tz=True)]
"""With its offset from UTC."""


class Malformed(ValueError):  # noqa: N818 - named like the errors of the core layer
    """A document is not what its type says. The message names the place."""


class BadText(Malformed):
    """A name, or another text, is none that its field takes."""


class Unwritable(Exception):  # noqa: N818 - as above
    """Its reader would refuse a document that we made: a fault of ours. The message names the place."""


def encode(document: Any) -> bytes:
    """Return canonical JSON: equal documents have equal bytes.

    Args:
        document: a Struct or a dataclass.

    Raises:
        Unwritable: `decode` would refuse it.
    """
    body = msgspec.json.encode(document, order="sorted")
    try:
        decode(body, type(document))
    except Malformed as error:
        raise Unwritable(f"{type(document).__name__} {error}") from None
    return body


def decode[T](body: bytes, kind: type[T]) -> T:
    """Return what `encode` wrote.

    Raises:
        Malformed: it is too long, no JSON, or a field is wrong.
    """
    if len(body) > MOST_BYTES:
        raise Malformed(f"has {len(body)} bytes, more than {MOST_BYTES}")
    try:
        return cast("T", _decoder(cast("Hashable", kind)).decode(body))
    except _BROKEN as error:
        bad_text = isinstance(error, msgspec.ValidationError) and _BAD_TEXT.match(str(error))
        raise (BadText if bad_text else Malformed)(str(error)) from None


def shortened(text: str, most: int) -> str:
    """Return a text that a field takes: where it is longer, it ends with `…`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def compress(body: bytes) -> bytes:
    """Return it as gzip; equal bodies have equal bytes."""
    return gzip.compress(body, mtime=0)


def decompress(body: bytes, *, most: int = MOST_BYTES) -> bytes:
    """Return what gzip holds, and never make more of it in memory than a chunk above `most`.

    Raises:
        Malformed: it is no gzip, is cut off, or holds more than `most` bytes.
    """
    stream = zlib.decompressobj(wbits=_GZIP)
    found = bytearray()
    try:
        rest = body
        while rest and not stream.eof:
            found += stream.decompress(rest, _CHUNK)
            rest = stream.unconsumed_tail
            if len(found) > most:
                break
        else:
            found += stream.flush()
    except zlib.error as error:
        raise Malformed(f"is no gzip: {error}") from None
    if len(found) > most:
        raise Malformed(f"holds more than {most} bytes")
    if not stream.eof or stream.unused_data:
        raise Malformed("is cut off" if not stream.eof else "goes on after the end of gzip")
    return bytes(found)


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast("type[Any]", kind))
