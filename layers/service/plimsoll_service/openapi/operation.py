"""One operation of the API, as the description and the router know it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from plimsoll_service.domain.access import Role

CLUSTER: Final = "/v1/clusters/{cluster}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One request, its answer, and who may send it."""

    name: str
    method: str
    path: str
    summary: str
    role: Role | None
    """Who may ask; None: anybody."""
    answer: type[msgspec.Struct]
    body: type[msgspec.Struct] | None = None
    status: int = 200
    compressed: bool = False
    """Whether the body is gzip."""
    versioned: bool = False
    """Whether it names, by If-Match, the version that was seen."""
    query: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The schema of each parameter of the query; none is required."""

    @property
    def parts(self) -> Sequence[str]:
        """The names of the parts of the path that a request fills in."""
        return re.findall(r"\{(\w+)\}", self.path)
