"""Jobs and bare pods as the queues see them: each is a role of a gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, override

from plimsoll.domain.kubernetes import Ref, Scheduling
from plimsoll_batch.domain.gangs import Topology
from plimsoll_batch.domain.lifecycle import Lifecycle
from plimsoll_batch.domain.node_requests import NodeRequest
from plimsoll_batch.domain.records import Admission, Stop

BARE_POD: Final = "Pod"
"""The kind of a pod that no controller made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One Job that names a queue, or a bare pod that does: as a Job of one pod, suspended by a gate."""

    ref: Ref
    uid: str
    resource_version: str
    created: datetime
    queue: str
    gang: str | None = None
    """None: it is a gang of its own."""
    role: str
    declared: int | None = None
    """Pods of its whole gang, as it declares them."""
    priority: int = 0
    topology: Topology | None = None
    data: tuple[tuple[str, int], ...] = ()
    """Zone -> how much of its gang's data is there."""
    limit: timedelta | None = None
    """Its own `activeDeadlineSeconds`."""
    start_seconds: int | None = None
    checkpoint_seconds: int | None = None
    """From one checkpoint of its work to the next."""
    held: bool = False
    resumed: str | None = None
    """The plan after which somebody suspended it by hand, and lets it start again."""
    leaves_whole: bool = False
    """Its gang is suspended when a node of it is reclaimed, and waits before all others."""
    told: bool = False
    """The pods of its gang are told when the first node of it goes that is reclaimed."""
    leases: bool = False
    """Its gang takes whole nodes, which are leased to it."""
    lifecycle: Lifecycle | None = None
    suspended: bool
    indexed: bool = False
    parallelism: int = 1
    completions: int | None = None
    active: int = 0
    """Pods that its controller counts as pending or running."""
    succeeded: int = 0
    failed: int = 0
    finished: bool = False
    """Complete or Failed, or about to be: no pods of it come any more."""
    failure: bool = False
    """It has finished, and has failed."""
    scheduling: Scheduling
    """Of its template, without what an admission added."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its template."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """The node selector of its template as it stands there."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """The tolerations of its template as they stand there, every field of them."""
    admission: Admission | None = None
    stop: Stop | None = None
    request: NodeRequest | None = None
    """What node groups were asked for its gang."""
    wrong: tuple[str, ...] = ()
    """What it says of itself that cannot be read, in words; its gang waits until that is mended."""

    @property
    def bare(self) -> bool:
        """Whether it is a bare pod. Once it is started it cannot be suspended, and nobody makes it anew."""
        return self.ref.kind == BARE_POD

    @property
    def pods(self) -> int:
        """How many pods it runs at once, as far as it has not finished them."""
        if self.completions is None:
            return self.active if self.succeeded else self.parallelism
        return min(self.parallelism, max(0, self.completions - self.succeeded))

    @property
    def plan(self) -> str | None:
        """The plan by which it runs; None where it does not, or nobody admitted it."""
        return None if self.suspended or self.admission is None else self.admission.plan

    @property
    def by_hand(self) -> bool:
        """Whether somebody suspended it after a plan had started it, and has not resumed it."""
        was = self.admission
        if not self.suspended or was is None or not was.started or self.resumed == was.plan:
            return False
        return self.stop is None or self.stop.plan != was.plan

    @override
    def __str__(self) -> str:
        return str(self.ref)
