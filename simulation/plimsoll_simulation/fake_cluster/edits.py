"""Changes to JSON objects that leave the original as it was.

Stored objects are shared by everyone who reads them, so nothing may ever be changed in place:
these functions copy the dicts on the path to a change and share the rest.
"""

from __future__ import annotations

from typing import Any

type Json = dict[str, Any]


def look(obj: Json, *path: str, default: Any = None) -> Any:
    """Return the value at a path, or `default` where a part of it is missing or null."""
    found: Any = obj
    for key in path:
        if not isinstance(found, dict):
            return default
        found = found.get(key)
    return default if found is None else found


def put(obj: Json, path: tuple[str, ...], value: Any) -> Json:
    """Return a copy with the value at the path."""
    key, rest = path[0], path[1:]
    return {**obj, key: put(obj.get(key) or {}, rest, value) if rest else value}
