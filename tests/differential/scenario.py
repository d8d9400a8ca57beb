"""What is played on both clusters, as data: what is there at first, then steps.

Names in requests may stand for what only the cluster knows: `{pod web}` is the first pod of the app
`web`, `{pod web 2}` the third, `{pod web @n-b}` the first on a node; `{uid pods x}` and
`{version nodes x}` are the UID and the version of an object. Pods whose names are made by chance are
numbered by node, label `mark`, deletion cost and name: where that does not tell them apart, the
scenario must not care which one it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

type Json = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_PLACEHOLDER = re.compile(r"\{(pod|uid|version) ([^{}]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. Code, reason and causes of its answer are compared, and what `show` names."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    show: tuple[str, ...] = ()
    """Dotted paths into the answer: `spec.taints`, `items.*.metadata.name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Requests one after the other, and then a wait until nothing changes any more."""

    requests: tuple[Request, ...]
    seconds: float = 0
    """How long the clusters are given at least: for what happens by itself after a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story, in a namespace of its own that bears its name."""

    name: str
    family: str
    steps: tuple[Step, ...]
    alone: bool = False
    """It changes what holds for every namespace, so nothing else may run beside it."""
    ordered: frozenset[str] = frozenset()
    """StatefulSets whose pods come and go one by one, in an order that is compared."""


def resolve(value: Any, ask: Callable[[str, list[str]], str]) -> Any:
    """Return a request's path or body with every placeholder replaced by what `ask` answers."""
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda found: ask(found[1], found[2].split()), value)
        case dict():
            return {resolve(k, ask): resolve(v, ask) for k, v in value.items()}
        case list() | tuple():
            return [resolve(item, ask) for item in value]
        case _:
            return value
