"""When the nodes of a cluster were launched: how long the next ones take follows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import NodeGroups, NodeIndex, Telemetry

_OF_GROUP: Final = 10
"""Launches of a group that are looked up: their median tells as much as that of all."""
_AT_ONCE: Final = 300
"""Launches that are looked up together."""


def with_launches(
    seen: Observation, groups: NodeGroups, index: NodeIndex, telemetry: Telemetry
) -> Observation:
    """Return an observation with its node groups, and with launches of their Ready nodes that the groups do not tell.

    Where they cannot be read a new node is assumed to take as long as any.
    """
    try:
        found = groups.list(seen.nodes)
        ready = {node.instance for node in seen.nodes if node.ready}
        wanted = [
            instance
            for group in found
            for instance in sorted((group.instances & ready) - group.launched.keys())[:_OF_GROUP]
        ]
        known = index.find(wanted[:_AT_ONCE])
    except PlimsollError as error:
        telemetry.warn("launches not read", cluster=seen.cluster, because=str(error))
        return seen
    launched = {
        instance: entry.launched
        for instance, entry in known.items()
        if entry.launched is not None and entry.cluster == seen.cluster
    }
    return replace(seen, groups=found, launched=launched)
