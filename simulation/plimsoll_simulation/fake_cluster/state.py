"""What the controllers of a fake cluster share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.identities import Identities
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.store import Store
from plimsoll_simulation.fake_cluster.timers import Timers

type How = Literal["exited", "overran", "cut-short", "killed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStopped:
    """A pod that ran has stopped running, at the moment it did: before its object goes.

    `exited`: by itself, in its time. `overran`: SIGKILL at the end of its own grace period.
    `cut-short`: SIGKILL before that, because the period was shortened. `killed`: its node vanished.
    """

    pod: Json
    how: How
    at: datetime


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """Store, indexes, timers and settings of one cluster."""

    store: Store
    indexes: Indexes
    timers: Timers
    identities: Identities
    settings: Settings
    started: datetime
    vanished: set[str] = field(default_factory=set)
    """Names of nodes whose instance is gone: no kubelet acts there, whatever the Node says."""
    bindings: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    """By kind, namespace and name of what makes pods, or of a pod: where its next pods are put, whatever
    the scheduler would choose. Each is used once."""
    stop_listeners: list[Callable[[PodStopped], None]] = field(default_factory=list)

    def stopped(self, pod: Json, how: How, at: datetime) -> None:
        """Tell who listens that a pod stopped running."""
        for listener in self.stop_listeners:
            listener(PodStopped(pod=pod, how=how, at=at))
