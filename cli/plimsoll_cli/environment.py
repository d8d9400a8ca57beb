"""What the commands reach: a deployed stack, or a cluster by kubeconfig.

A command asks for what it needs through `Environment`; tests give one of their own as click's `obj`.
Unlike the functions, the command line does not know its tables from the environment: it asks the
stack for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Metric
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.ports import (
    Clock,
    Clusters,
    FrameArchive,
    Instances,
    LayoutStore,
    NodeGroups,
    NodeIndex,
    Pools,
    Registry,
    RepeatingClock,
    Reports,
    Telemetry,
    Times,
)
from plimsoll_cli.setup.objects import ClusterObjects
from plimsoll_cli.stack import Stack
from plimsoll_cli.terminal import say

if TYPE_CHECKING:
    from plimsoll_batch.services.ports import PreemptionHistory
    from plimsoll_cli.probes.aws import AwsProbe
    from plimsoll_cli.probes.kubernetes import KubernetesProbe
    from plimsoll_cli.setup.access import ClusterAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A deployed stack."""

    stack: Stack
    registry: Registry
    index: NodeIndex
    reports: Reports
    pools: Pools
    frames: FrameArchive
    times: Times
    layouts: LayoutStore
    instances: Instances
    """Those of the stack's own account."""
    instances_of: Callable[[Cluster], Instances]
    clusters: Clusters
    requests: Callable[[Cluster], Requests]
    """What makes calls to a cluster that no service makes."""
    groups: Callable[[Cluster], NodeGroups]
    aws: AwsProbe
    access: ClusterAccess
    """What lets the roles of the stack into a cluster, and lets them grow node groups."""
    probe: Callable[[Cluster], KubernetesProbe]
    """What asks a cluster about our rights in it."""

    def observed_times(self, clock: Clock, telemetry: Telemetry) -> ObservedTimes:
        """Return what the stack remembers of how long pods take."""
        return ObservedTimes(
            times=self.times, clock=clock, workers=SerialWorkers(), telemetry=telemetry
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Administered:
    """A cluster as its administrator reaches it, by a kubeconfig."""

    context: str
    server: str
    """The address of its API server."""
    ca: str | None
    """The CA certificate that the kubeconfig trusts, in PEM; None: it names none."""
    kubeconfig: Path | None
    """The file that was named; None: kubectl's own."""
    objects: ClusterObjects


class Environment(Protocol):
    """All that commands reach."""

    @property
    def clock(self) -> RepeatingClock:
        """The time."""

    def deployed(self, stack: str, profile: str | None = None) -> Deployed:
        """Return the stack of that name, in the account and region of a profile where one is named."""

    def preemptions(self, stack: str) -> PreemptionHistory:
        """Return the history of preemptions of a stack of batch queues."""

    def by_kubeconfig(
        self, file: Path | None, context: str | None
    ) -> tuple[str, KubernetesCluster]:
        """Return the cluster of a context and the context's name."""

    def administered(self, file: Path | None, context: str) -> Administered:
        """Return the cluster of a context, to write manifests into it."""


class Said:
    """The port `Telemetry` for a person at a terminal: warnings only, and not on standard output."""

    def log(self, message: str, **facts: object) -> None:
        """Say nothing: what happened is in the command's own answer."""

    def warn(self, message: str, **facts: object) -> None:
        """Warn on standard error."""
        said = ", ".join(f"{key} {value}" for key, value in facts.items())
        warn(f"{message}: {said}" if said else message)

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing."""


def warn(message: str) -> None:
    """Say something on standard error."""
    say(f"Warning: {message}", err=True)
