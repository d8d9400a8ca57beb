"""What the planner of the queues needs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from plimsoll.domain.kubernetes import Node, Pod
from plimsoll.services.ports import EventWriter, LeaseKeeper
from plimsoll_batch.domain.jobs import (
    Admission,
    FailedPod,
    Gang,
    GangPodGroup,
    Job,
    NodeRequest,
    PreemptionRecord,
    Stop,
)
from plimsoll_batch.domain.queue_metrics import QueueMeasure
from plimsoll_batch.domain.quota import Grants, QueueConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    """What a plan is made from, as it stands in the cluster."""

    jobs: Sequence[Job]
    """Those that name a queue, bare pods among them."""
    pods: Sequence[Pod]
    """All that are not finished."""
    nodes: Sequence[Node]
    failed: Sequence[FailedPod] = ()
    """Pods of gangs that have failed."""
    grants: Grants = field(default_factory=Grants)
    """As far as the configuration asks for them."""


class PreemptionHistory(Protocol):
    """The preemptions of the last 30 days. Every call may raise the errors of `plimsoll.domain.errors`."""

    def add(self, cluster: str, record: PreemptionRecord) -> None:
        """Keep one; added twice it is one."""

    def list(
        self, cluster: str, *, limit: int, queue: str | None = None
    ) -> Sequence[PreemptionRecord]:
        """Return so many of a cluster, or of gangs of one of its queues, the newest first."""


class QueueMeter(Protocol):
    """Takes the metrics of the queues; a value that is lost is not made up for."""

    def measure(self, cluster: str, measures: Sequence[QueueMeasure]) -> None:
        """Take values of the queues of a cluster."""


class QueueCluster(EventWriter, LeaseKeeper, Protocol):
    """One Kubernetes cluster with queues. Every call may raise the errors of `plimsoll.domain.errors`."""

    def configuration(self) -> QueueConfiguration | None:
        """Return the configuration of the queues; None where there is none.

        Raises:
            BadInput: it is wrong; every problem is named with its place.
        """

    def read(self) -> ClusterObjects:
        """Read jobs, pods and nodes."""

    def leases(self) -> bool:
        """Whether any node is marked as leased to a gang; reads no others."""

    def following(self) -> AbstractContextManager[QueueCluster]:
        """Give the same cluster for many reads: after the first they need not read everything again."""

    def job(self, job: Job) -> Job:
        """Read a Job again.

        Raises:
            NotFound: it is gone, or another has its name.
        """

    def write_plan(self, job: Job, admission: Admission) -> Job:
        """Write a plan on a Job under its uid and resourceVersion, and return what it became."""

    def start(self, job: Job, admission: Admission) -> None:
        """Start a Job and steer its pods in one patch, under its uid and resourceVersion."""

    def write_pod_group(self, group: GangPodGroup) -> None:
        """Make a PodGroup as a gang needs it, or change one that this gang has; that of somebody else is left alone.

        Nothing happens where the cluster serves no PodGroups.

        Raises:
            Refused: that of somebody else needs more pods at once than the gang gives it.
            Conflict: it is being deleted, or was changed meanwhile.
        """

    def lease(self, node: Node, gang: Gang | None) -> None:
        """Mark a node as leased to a gang, or to none, in one patch under its uid and resourceVersion."""

    def write_request(self, job: Job, request: NodeRequest) -> Job:
        """Write on a Job what is asked for its gang, under its uid and resourceVersion; return what it became."""

    def tell_deadline(self, pod: Pod, deadline: str | None) -> None:
        """Write a deadline on a pod, or take it off, under its uid."""

    def suspend(self, job: Job, stop: Stop) -> None:
        """Suspend a Job and write why in one patch, under its uid and resourceVersion."""

    def restart(self, job: Job, admission: Admission) -> None:
        """Suspend a Job and write how it is started again, in one patch, under its uid and resourceVersion."""

    def end(self, job: Job, *, complete: bool) -> None:
        """Let a Job end as Complete, or as Failed, by one patch under its uid and resourceVersion."""
