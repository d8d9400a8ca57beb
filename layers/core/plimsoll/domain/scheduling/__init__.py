"""What kube-scheduler would do: which pod fits on which node, and the headroom that is left."""

from __future__ import annotations

from plimsoll.domain.scheduling.cluster_snapshot import ClusterSnapshot
from plimsoll.domain.scheduling.headroom import Headroom
from plimsoll.domain.scheduling.places import count_places, places_on
from plimsoll.domain.scheduling.plan_headroom import creatable, headroom_for

__all__ = [
    "ClusterSnapshot",
    "Headroom",
    "count_places",
    "creatable",
    "headroom_for",
    "places_on",
]
