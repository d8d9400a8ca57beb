"""Jobs, bare pods and objects of frameworks as the queues see them, and a gang with all that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, override

from plimsoll.domain.kubernetes import Pod, Ref, Resources, Scheduling
from plimsoll_batch.domain.frameworks import JOB, Framework
from plimsoll_batch.domain.jobs.gangs import Gang, Topology, largest_first
from plimsoll_batch.domain.jobs.job_annotations import Admission, Stop
from plimsoll_batch.domain.jobs.lifecycle import Lifecycle
from plimsoll_batch.domain.jobs.node_requests import NodeRequest

BARE_POD: Final = "Pod"
"""The kind of a pod that no controller made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOwner:
    """A label by which pods of an object are known."""

    label: str
    value: str
    owners: frozenset[str]
    """The kind of their controller is one of these: others can write labels too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one template."""

    name: str = ""
    """What its object calls it; empty: the object has no other."""
    pods: int = 1
    """How many of it run at once, as far as the object has not finished them."""
    scheduling: Scheduling
    """Of its template, without what an admission added."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its template."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """The node selector of its template as it stands there."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """The tolerations of its template as they stand there, every field of them."""
    at: tuple[str | int, ...] | None = ()
    """Where these two stand in the object; None: nobody steers these pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one switch suspends and starts: a Job, an object of a framework, or a bare pod behind its gate."""

    ref: Ref
    framework: Framework = JOB
    uid: str
    resource_version: str
    created: datetime
    queue: str
    gang: str | None = None
    """None: it is a gang of its own."""
    role: str
    declared: int | None = None
    """Pods of its whole gang, as it declares them."""
    least: int | None = None
    """With how many of these the gang goes on; None: it needs all of them."""
    priority: int | str = 0
    """As stated: a number, or a name of the configuration."""
    topology: Topology | None = None
    data: tuple[tuple[str, int], ...] = ()
    """Zone -> how much of its gang's data is there."""
    limit: timedelta | None = None
    """Its own `activeDeadlineSeconds`."""
    start_seconds: int | None = None
    checkpoint_seconds: int | None = None
    """From one checkpoint of its work to the next."""
    checkpoint_takes: int | None = None
    """How many seconds one takes."""
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
    """Pods of all its sets at once."""
    completions: int | None = None
    active: int = 0
    """Pods that its controller counts as pending or running; of a framework 0, and its pods alone count."""
    failed: int = 0
    made_pods: bool = False
    """Whether its controller has begun."""
    finished: bool = False
    """Complete or Failed, or about to be: no pods of it come any more."""
    failure: bool = False
    """It has finished, and has failed."""
    sets: tuple[PodSet, ...]
    pod_labels: tuple[PodOwner, ...] = ()
    """How its pods are known; empty: it is their controller."""
    overrides: tuple[Mapping[str, Any], ...] = ()
    """What stands in the list of its framework's `overrides`."""
    annotated: bool = False
    """Whether it has any annotations."""
    group: str | None = None
    """The PodGroup that its pods name."""
    priority_class: str = ""
    """Of its pods."""
    admission: Admission | None = None
    stop: Stop | None = None
    request: NodeRequest | None = None
    """What node groups were asked for its gang."""
    wrong: tuple[str, ...] = ()
    """What it says of itself that cannot be read, in words; its gang waits until that is mended."""
    gates: tuple[str, ...] = ()
    """What else it waits for, in words."""

    @property
    def bare(self) -> bool:
        """Whether it is a bare pod. Once it is started it cannot be suspended, and nobody makes it anew."""
        return self.ref.kind == BARE_POD

    @property
    def pods(self) -> int:
        """How many pods it runs at once, as far as it has not finished them."""
        return sum(each.pods for each in self.sets)

    @property
    def scheduling(self) -> Scheduling:
        """Of its largest pods."""
        return next(
            (each.scheduling for each in largest_first(self.sets)),
            Scheduling(requests=Resources()),
        )

    def set_of(self, pod: Pod) -> str | None:
        """Return the name of the set of one of its pods; None where nobody knows it."""
        if len(self.sets) == 1:
            return self.sets[0].name
        name = pod.labels.get(self.framework.role_label) or self.framework.unlabelled
        return name if any(each.name == name for each in self.sets) else None

    @property
    def plan(self) -> str | None:
        """The plan by which it runs; None where it does not, or nobody admitted it."""
        return None if self.suspended or self.admission is None else self.admission.plan

    @property
    def grown(self) -> bool:
        """Whether its `parallelism` was raised after its plan was made."""
        was = self.admission
        return (
            was is not None and was.parallelism is not None and self.parallelism > was.parallelism
        )

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPod:
    """A pod that has failed, as long as it is there."""

    owner: Ref
    name: str
    ended: datetime
    code: int | None
    """The first that is not 0 of its containers; None where it has none."""
    disrupted: bool = False
    """It was evicted, preempted or its node went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangJobs:
    """A gang with its Jobs and their pods."""

    gang: Gang
    roles: Sequence[Job]
    """Those that are not finished, by name."""
    pods: Sequence[Pod] = ()
    """Those of its roles that are there; finished ones are not."""
    finished: Sequence[Job] = ()
    """Its Jobs that are."""
    failed: Sequence[FailedPod] = ()
    """As far as its policies ask for them."""
    hanging: Sequence[Pod] = ()
    """Its last pods, where all of them should have ended long ago."""
    problems: Sequence[str] = ()
    """What is wrong with it, in words."""

    @property
    def started(self) -> Sequence[Job]:
        """Roles that are not suspended."""
        return [role for role in self.roles if not role.suspended]

    @property
    def plan(self) -> str | None:
        """The plan by which it runs; None where no role was started by one."""
        return min((role.plan for role in self.roles if role.plan is not None), default=None)

    @property
    def needs(self) -> int:
        """With how many pods it goes on; by default with all."""
        whole = sum(role.pods for role in self.roles)
        return min(whole, max((role.least for role in self.roles if role.least), default=whole))

    @property
    def does_without(self) -> bool:
        """Whether some of its pods do not run, and it goes on without them."""
        return self.needs <= self.running < sum(role.pods for role in self.roles)

    @property
    def running(self) -> int:
        """How many of its pods run."""
        return sum(pod.phase == "Running" for pod in self.pods)

    @property
    def starting(self) -> bool:
        """Whether a plan has started it, and fewer of its pods run than it needs, yet or any more."""
        return self.plan is not None and self.running < self.needs

    @property
    def stopping(self) -> bool:
        """Whether all of it is suspended, and something of it is still there."""
        there = bool(self.pods) or any(role.active for role in self.roles)
        return not self.started and there

    @property
    def grown(self) -> Job | None:
        """A role that runs more pods at once than its plan admitted; None where none does."""
        return next((role for role in self.started if role.grown), None)

    @property
    def admitted(self) -> bool:
        """Whether it counts in its queue."""
        if self.stopping:
            return any(role.admission is not None for role in self.roles)
        return self.plan is not None

    @property
    def by_hand(self) -> str | None:
        """The role that somebody suspended after a plan had started it; None where nobody did."""
        return next((role.ref.name for role in self.roles if role.by_hand), None)

    @override
    def __str__(self) -> str:
        return str(self.gang)
