"""What a file of queues would change of the one in a cluster, as lines to read before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.domain.fields import clip
from plimsoll_batch.adapters.queues_file import QueuesFile

_KINDS: Final = {"flavors": "flavor", "cohorts": "cohort", "queues": "queue"}
"""Lists whose entries have names."""


def changes(before: QueuesFile, after: QueuesFile) -> list[str]:
    """Return what differs, a line each: + is added, - goes, ~ is another value."""
    old, new = _settings(before), _settings(after)
    found = []
    for place in dict.fromkeys((*old, *new)):
        if place not in new:
            found.append(f"- {place}{_value(old[place])}")
        elif place not in old:
            found.append(f"+ {place}{_value(new[place])}")
        elif old[place] != new[place]:
            found.append(f"~ {place}:{_value(old[place])} →{_value(new[place])}")
    return found


def _settings(file: QueuesFile) -> dict[str, Any]:
    """Return every setting that a file makes, by its place in words."""
    said = file.model_dump(by_alias=True, exclude_defaults=True, mode="json")
    found: dict[str, Any] = {}
    for field, value in said.items():
        kind = _KINDS.get(field)
        if kind is None:
            found |= _flat(field, value)
            continue
        for entry in value:
            place = f"{kind} {entry['name']}"
            found[place] = None
            found |= _flat(place, {k: v for k, v in entry.items() if k != "name"})
    return found


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values inside a value; entries of a list that have names are known by them, as quotas are by flavor."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{place}: {key}", inner)
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        if len(value) > 1 and all("name" in each for each in value):
            yield f"{place}: order", [each["name"] for each in value]  # flavors are tried in it
        for number, inner in enumerate(value):
            name = inner.get("name", number)
            rest = {k: v for k, v in inner.items() if k != "name"}
            yield from _flat(f"{place}: {name}", rest)
    else:
        yield place, value


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return f" {', '.join(map(str, value))}"
    return f" {value}" if isinstance(value, int | float) else f" {clip(value)}"
