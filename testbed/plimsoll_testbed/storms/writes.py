"""A write of somebody to the API server, as rules look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from plimsoll_testbed.model.hollow.routes import Target

KINDS: Final[Mapping[str, str]] = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
}
"""Resources with a count, and the kind of each."""
GENERATIONS: Final = ("pod-template-hash", "controller-revision-hash")
"""The labels by which controllers tell generations of pods apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A request that changes an object."""

    method: str
    target: Target
    name: str
    body: Mapping[str, Any]
    now: datetime
