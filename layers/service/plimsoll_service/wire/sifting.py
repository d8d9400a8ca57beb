"""Documents with lists of objects, decoded without the objects whose names are not valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from plimsoll_service.wire.documents import BadText, decode

MOST_PARTS: Final = 2**20
"""Commas of a document that is sifted object by object: the largest cluster has fewer, and a hostile one would
fill the memory."""


def decode_sifted[T: Struct](
    document: bytes, kind: type[T], items: Mapping[str, type[Struct]]
) -> tuple[T, int]:
    """Return what a document holds without the objects in which text is not what its field takes, and how many they are.

    Args:
        document: as `encode` of documents writes it.
        kind: of the document.
        items: what its lists hold, by their fields; lists of which the kind has none are ignored.

    Raises:
        Malformed: anything else is wrong with it.
    """
    try:
        return decode(document, kind), 0
    except BadText:
        if document.count(b",") > MOST_PARTS:
            raise
    sifted, left_out = _without_bad_text(document, kind, items)
    return decode(sifted, kind), left_out


def _without_bad_text(
    document: bytes, kind: type[Struct], items: Mapping[str, type[Struct]]
) -> tuple[bytes, int]:
    parts, left_out = decode(document, dict[str, Raw]), 0
    for name in items.keys() & parts.keys() & {*kind.__struct_fields__}:
        kept = list[Raw]()
        for each in decode(bytes(parts[name]), list[Raw]):
            try:
                decode(bytes(each), items[name])
            except BadText:
                left_out += 1
            else:
                kept.append(each)
        parts[name] = Raw(msgspec.json.encode(kept))
    return msgspec.json.encode(parts), left_out
