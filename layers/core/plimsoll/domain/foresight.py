"""What would be seen if some nodes were going: the look that a dry run plans on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.observation import Observation


def as_if(seen: Observation, interrupted: Mapping[str, Interruption]) -> Observation:
    """Return the same look with these interruptions on their nodes, by name."""
    return replace(
        seen,
        nodes=[
            replace(node, interruption=interrupted[node.name], unschedulable=True)
            if node.name in interrupted
            else node
            for node in seen.nodes
        ],
    )
