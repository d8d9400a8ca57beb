"""What one reconcile of a drain knows besides the cluster. It may be lost at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Step
from plimsoll.domain.errors import PlimsollError, Temporary, Throttled
from plimsoll.domain.kubernetes import Node, Pod, Ref
from plimsoll.domain.node_groups import (
    DOUBTED_AFTER_REFUSAL,
    FIRST_SIGN_WITHIN,
    LONGEST_WHY_CHARACTERS,
    Instance,
    LaunchesThrottled,
    NodeGroup,
    NotGrown,
    OtherRefusal,
    Refusal,
    expected_nodes,
)
from plimsoll.domain.observation import (
    Count,
    Endings,
    Observation,
    Samples,
    ShiftedZone,
    WorkloadTimes,
    times_are_kept,
)
from plimsoll.domain.reports import WAIT, Report
from plimsoll.domain.spot import CapacityPool, PoolEvent, events_of
from plimsoll.services.observed_times import KnownTimes

REREAD: Final = timedelta(seconds=5)
BUSY: Final = timedelta(seconds=5)
"""How long a group may say that it cannot be asked now until another one is asked."""
EVICTED_AGAIN: Final = timedelta(seconds=5)
"""How long after an eviction was refused it is tried again: an admission webhook may allow it any moment."""
LONGEST_REFUSAL_CHARACTERS: Final = 200
"""Characters of what a budget refused an eviction with: a report may hold one for each pod of a node."""
KEPT_REFUSALS: Final = 20
"""How many refusals of a group are remembered."""
MADE_ANEW: Final = timedelta(seconds=10)
"""How long a controller that we do not know is given to make a pod anew that an earlier reconcile evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """How many nodes a group is to have, and since when."""

    desired: int
    asked: datetime
    promised: bool = False
    """Whether it was us who asked: then it counts before the group tells it."""


@dataclass(slots=True)
class ReconcileMemory:
    """Node groups, who refused what, and the reports so far."""

    groups: Sequence[NodeGroup] | None = None
    """As `note_groups` left them. Read once, again before anything is asked for and after a change of ours, and while nodes are on
    the way every five seconds: they may have been refused."""
    groups_read: datetime | None = None
    sizes: dict[str, GroupSize] = field(default_factory=dict)
    """Key of a node group -> what it is to have."""
    refusals: dict[str, tuple[Refusal, ...]] = field(default_factory=dict)
    """As in `plan_drain`, the newest first."""
    busy: dict[str, datetime] = field(default_factory=dict)
    """Key of a node group -> since when it only ever said that it cannot be asked now."""
    pools: Mapping[CapacityPool, float] | None = None
    """As in `Observation.pools`: read once."""
    shifts: Mapping[str, ShiftedZone] | None = None
    """As in `Observation.shifts`: read once."""
    zones_read: bool = False
    """Whether pools and shifts were read: what failed is not read again, since no drain waits for a database."""
    pool_events: dict[object, PoolEvent] = field(default_factory=dict)
    """What happened to pools, each once."""
    refused: dict[str, tuple[str, datetime | None]] = field(default_factory=dict)
    """Target -> why it was refused, and until when it is not tried again; None: in this reconcile."""
    planning: timedelta = timedelta()
    """How long the last plan took: the plan after this one acts two such times after its observation."""
    past: Sequence[Report] | None = None
    """As `Observation.reports`: read once."""
    terminated: dict[str, Instance] = field(default_factory=dict)
    """Instances of which EC2 said that they are terminated: they stay so."""
    counts: dict[Ref, int] = field(default_factory=dict)
    """As in `Observation.counts`: evicting one pod must not lower what the next is held against."""
    counted: dict[Ref, datetime] = field(default_factory=dict)
    """Since when: the reconcile before may have evicted one that is not made anew yet."""
    noted: dict[Ref, Samples | None] = field(default_factory=dict)
    """Those of disrupted controllers, as soon as none of the pods is missing that were known; None once that is told.
    What could not be read is not told either: it may name more pods."""
    times: KnownTimes = field(default_factory=KnownTimes)
    """As `Observation.times`."""
    endings: Endings = field(default_factory=Endings)
    """How long pods took to stop, as this reconcile sees it."""
    reports: dict[str, Report] = field(default_factory=dict)
    told: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """Of each report the turns that were tried to be written."""

    def wants_groups(self, nodes: Sequence[Node], now: datetime) -> bool:
        """Whether to read the node groups; also where they could not be read the last time."""
        if self.groups is None or self.groups_read is None:
            return True
        on_the_way = any(expected_nodes(group, nodes, now).upcoming for group in self.groups)
        return on_the_way and now - self.groups_read >= REREAD

    def note_groups(self, groups: Sequence[NodeGroup] | None, now: datetime) -> None:
        """Take in the node groups as they were just read, with what they promised beside it.

        A size that was promised a moment ago may not be told yet. Since when a size stands that others
        asked for, nothing says: it counts from when it was first seen, unless the group tells more.
        """
        self.groups_read = now
        self.groups = None if groups is None else [self._sized(group, now) for group in groups]

    def _sized(self, group: NodeGroup, now: datetime) -> NodeGroup:
        known = self.sizes.get(group.key)
        # A larger size counts at once. A smaller one counts only when our own promise should have shown by now.
        if known is None or group.desired > known.desired:
            known = GroupSize(desired=group.desired, asked=group.asked or now)
        elif group.desired < known.desired and not (
            known.promised and now < known.asked + FIRST_SIGN_WITHIN
        ):
            known = replace(known, desired=group.desired, promised=False)
        self.sizes[group.key] = known
        return replace(group, desired=known.desired, asked=known.asked)

    def grown(self, group: NodeGroup, promised: int, now: datetime) -> None:
        """Note what a group promised."""
        self.busy.pop(group.key, None)
        known = self.sizes.get(group.key)
        desired = max(group.desired, known.desired if known else 0) + promised
        self.sizes[group.key] = GroupSize(desired=desired, asked=now, promised=True)

    def count(self, seen: Observation, now: datetime) -> None:
        """Count the pods of controllers that we do not know, and those that an earlier reconcile saw."""
        for ref, pods in seen.of_workload.items():
            if ref in seen.workload:
                continue
            self.counted.setdefault(ref, now)
            known = seen.times.get(ref, WorkloadTimes()).pods or 0
            self.counts[ref] = max(self.counts.get(ref, 0), known, len(pods))
            running = sum(pod.deleting is None for pod in pods)
            if running >= known and ref in seen.times and times_are_kept(ref):
                count = Count(at=now.replace(microsecond=0), pods=running)
                self.noted.setdefault(ref, Samples(count=count))

    def fresh_counts(self) -> Mapping[Ref, Samples]:
        """Return the counts that the next reconcile has to know, each once."""
        fresh = {ref: told for ref, told in self.noted.items() if told is not None}
        self.noted |= dict.fromkeys(fresh)
        return fresh

    def refused_at(self, now: datetime) -> Mapping[str, str]:
        """Return what is not tried again now, as in `plan_drain`."""
        return {
            target: why
            for target, (why, until) in self.refused.items()
            if until is None or now < until
        }

    def uncounted(self, seen: Observation, now: datetime) -> frozenset[Ref]:
        """Return the controllers of which an earlier reconcile may have evicted a pod just now.

        None did where no node was cordoned for longer than the first wake-up of a notice takes. A pod of a node
        that has been empty for as long was made anew meanwhile.
        """
        found = (n.interruption for n in seen.nodes if n.interruption)
        cordons = (i.cordoned for i in found if i.emptied is None or now < i.emptied + MADE_ANEW)
        first = min((at for at in cordons if at), default=now)
        return frozenset(
            ref
            for ref, at in self.counted.items()
            if first + MADE_ANEW < at and now < at + MADE_ANEW
        )

    def not_grown(self, group: NodeGroup, error: PlimsollError, now: datetime) -> None:
        """Note that a group did not take a request.

        One that is being changed in another way may stay so for half an hour: then another is asked.
        """
        busy, why = isinstance(error, Temporary), str(error)[:LONGEST_WHY_CHARACTERS]
        waits = busy and now < self.busy.setdefault(group.key, now) + BUSY
        told: tuple[Refusal, ...] = () if waits else (OtherRefusal(at=now, why=why),)
        known = self.refusals.get(group.key, ())
        if isinstance(error, Throttled):
            told = (LaunchesThrottled(at=now, why=why), *told)
            known = tuple(each for each in known if not isinstance(each, LaunchesThrottled))
        elif isinstance(error, NotGrown):
            # An answer to a token that comes again is as old as the first: we were refused now.
            told = tuple(replace(refusal, at=now) for refusal in error.refusals)
        self.refusals[group.key] = (*told, *known)[:KEPT_REFUSALS]

    def keep_refusals(self, known: Mapping[str, Sequence[Refusal]], now: datetime) -> None:
        """Take over what node groups refused lately: what is refused is not asked for anew by each reconcile."""
        for key, refusals in known.items():
            self.refusals[key] = tuple(r for r in refusals if now < r.at + DOUBTED_AFTER_REFUSAL)

    def note_launches(self, nodes: Sequence[Node]) -> None:
        """Note what became of the launches of all groups."""
        for group in self.groups or ():
            told = (*self.refusals.get(group.key, ()), *group.refusals)
            self.pool_events |= {event.key: event for event in events_of(group, told, nodes)}

    def learn(self, reports: Iterable[Report]) -> None:
        """Merge the reports of an observation."""
        for report in reports:
            known = self.reports.get(report.interruption)
            self.reports[report.interruption] = known.merged(report) if known else report

    def add(self, report: Report) -> None:
        """Note that nodes were added: in the report of any interruption, and in this one where none is open."""
        found = next(iter(self.reports.values()), report)
        self.learn([replace(found, added=report.added)])

    def take_back(self, nodes: Mapping[str, int], interruption: str) -> None:
        """Note in the report of an interruption that its node was taken back."""
        if (report := self.reports.get(interruption)) is not None:
            self.learn([replace(report, added=nodes)])

    def overrule(self, pod: Pod, refusal: str) -> None:
        """Note in the report of its node that a pod was deleted past its budget."""
        for report in [r for r in self.reports.values() if r.node == pod.node]:
            self.learn(
                [replace(report, overruled={str(pod): refusal[:LONGEST_REFUSAL_CHARACTERS]})]
            )

    def block(self, step: Step, webhook: str, now: datetime) -> None:
        """Note in the reports of its nodes that an admission webhook did not let a step be taken."""
        reason = step.reason(now)
        said = f"the admission webhook {webhook} does not let Plimsoll {reason.verb} it"
        reason = replace(reason, verb=WAIT, why=said, urgent=True)
        for report in [r for r in self.reports.values() if r.node in step.nodes]:
            self.learn([replace(report, reasons=(reason,))])

    def news(self, *, defer: bool = False) -> Sequence[Report]:
        """Return reports that are new or took a turn, each once.

        They are worth writing at once: a reconcile may be killed, and the Node gone before the next.

        Args:
            defer: leave reports that took no turn yet for a later observation, or the end: pods of many nodes
                are told to stop, and hundreds of reports would make them wait for seconds.
        """
        untold = _NO_TURN if defer else None
        found = [r for key, r in self.reports.items() if self.told.get(key, untold) != _turns(r)]
        self.told |= {report.interruption: _turns(report) for report in found}
        return found


def _turns(report: Report) -> tuple[object, ...]:
    return report.gone, report.closed, report.killed, report.added, report.overruled


_NO_TURN: Final[tuple[object, ...]] = (None, None, (), {}, {})
