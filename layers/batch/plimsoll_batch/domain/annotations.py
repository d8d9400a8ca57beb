"""Records in annotations: JSON that says its version, as short as it can be said.

Tenants write annotations, so what is read is bounded before it is parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field

LONGEST_WHY: Final = 500
"""Characters of a reason in one."""
_VERSION: Final = 1


def text_of(record: Mapping[str, Any]) -> str:
    """Return a record as an annotation."""
    return json.dumps({"v": _VERSION, **record}, separators=(",", ":"))


def record_in(text: str, *, limit: int) -> Field:
    """Return the record in an annotation of at most `limit` characters.

    Raises:
        BadInput: it is none, or of another version than this Plimsoll writes.
    """
    if len(text) > limit:
        raise BadInput(f"is longer than {limit} characters")
    try:
        found = Field(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no JSON: {type(error).__name__}") from None
    if found["v"].value != _VERSION:
        raise found["v"].wrong(f"{_VERSION}, the version that this Plimsoll writes")
    return found
