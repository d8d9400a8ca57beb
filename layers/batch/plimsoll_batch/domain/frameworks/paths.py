"""Ways into an object of which nothing is certain: tenants write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

type Path = tuple[str, ...]
"""Names of fields; `EACH` is every entry of a list or map."""

EACH: Final = "*"


def at(obj: Any, path: Path) -> Any:
    """Return what stands at a path; None where nothing does."""
    for name in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(name)
    return obj


def all_at(obj: Any, path: Path) -> Iterator[Any]:
    """Yield what stands at a path with `EACH`."""
    if not path:
        if obj is not None:
            yield obj
        return
    name, rest = path[0], path[1:]
    if name != EACH:
        yield from all_at(at(obj, (name,)), rest)
    elif isinstance(obj, Mapping):
        for each in obj.values():
            yield from all_at(each, rest)
    elif isinstance(obj, list | tuple):
        for each in obj:
            yield from all_at(each, rest)
