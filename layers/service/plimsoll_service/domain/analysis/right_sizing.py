"""Requests of each container out of what it used: a high percentile, and headroom above it.

Too little memory kills a container and too little processor slows it: so memory follows the most that was
seen, and processors a percentile that is passed one time in twenty. Requests only are advised; a
limit is its owner's word, and no request is advised above it. What is not known of a container is not
guessed: its requests stay.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.kubernetes import IGNORE, is_ignored
from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.snapshots import MIB, ContainerUsage, WorkloadUsage, sum_of
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.snapshot import Amounts

HISTORY: Final = timedelta(days=7)
"""How far back usage is looked at."""
YOUNGEST: Final = timedelta(days=1)
"""A container with a shorter history is left as it is: nobody has seen its peak."""
LEAST_SAMPLES: Final = 1000
CPU_PERCENTILE: Final = 95
CPU_HEADROOM: Final = 0.15
MEMORY_HEADROOM: Final = 0.20
LEAST: Final = Amounts(cpu_m=10, memory=32 * MIB)
STEP: Final = Amounts(cpu_m=10, memory=16 * MIB)
WORTHWHILE: Final = 0.15
"""A request that would change by a smaller share of itself stays."""
THOUSAND: Final = 1000
_MOST: Final = 2**53
"""More than this no document holds, and headroom is added to the most that one holds."""
_ENDING: Final = {"Job", "CronJob"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Other requests for the containers of a workload."""

    workload: wire.Workload
    template: tuple[wire.Container, ...]
    """All its containers, with the requests that are advised."""
    reason: str

    @property
    def changed(self) -> Iterator[tuple[wire.Container, wire.Container]]:
        """The containers whose requests change, as they are and as they would be."""
        pairs = zip(self.workload.template, self.template, strict=True)
        return ((present, advised) for present, advised in pairs if present != advised)

    @property
    def less(self) -> Amounts:
        """How much less a pod requests; below zero where it requests more."""
        return Amounts(
            cpu_m=sum(
                present.requests.cpu_m - advised.requests.cpu_m for present, advised in self.changed
            ),
            memory=sum(
                present.requests.memory - advised.requests.memory
                for present, advised in self.changed
            ),
        )

    def instead_of(self, requests: Amounts) -> Amounts:
        """Return the requests of a whole pod once its containers have theirs."""
        less = self.less
        return replace(
            requests,
            cpu_m=max(0, requests.cpu_m - less.cpu_m),
            memory=max(0, requests.memory - less.memory),
        )


def resizes(
    view: View, week: Mapping[str, WorkloadUsage], earlier: Mapping[str, WorkloadUsage]
) -> Iterator[Resize | tuple[wire.Workload, str]]:
    """Yield other requests for each workload, or the workload and why its requests stay.

    Args:
        view: the cluster.
        week: usage of the last `HISTORY`, by the uid of the workload.
        earlier: usage of that before the last `YOUNGEST`.
    """
    nothing = WorkloadUsage()
    for workload in view.seen.workloads:
        why = _why_left(view, workload)
        if why is not None:
            yield workload, why
        else:
            known = earlier.get(workload.uid, nothing).containers
            usage = week.get(workload.uid, nothing).containers
            yield _resized(workload, usage, known, since=view.at - HISTORY)


def _why_left(view: View, workload: wire.Workload) -> str | None:  # noqa: PLR0911 - one line for each reason
    if workload.uid in view.scalers:
        return "an autoscaler counts its replicas by the share of requests in use"
    if workload.vertical_scaler:
        return (
            f"the VerticalPodAutoscaler {workload.vertical_scaler} writes the requests of its pods"
        )
    if is_ignored(workload.annotations):
        return f"its owner opted out with {IGNORE}"
    if workload.kind in _ENDING:
        return "its pods end, and snapshots do not say which of them were OOM-killed"
    if not workload.template:
        return "the agent does not report the requests of each of its containers"
    if workload.limit_ranges is None:
        return "the agent could not read the LimitRanges of its namespace"
    if all(c.requests == c.limits and all(_pair(c.requests)) for c in workload.template):
        return "its limits equal its requests: it is Guaranteed, and would not be"
    return None


def _resized(
    workload: wire.Workload,
    usage: Mapping[str, ContainerUsage],
    known: Container[str],
    since: datetime,
) -> Resize | tuple[wire.Workload, str]:
    allowed = workload.limit_ranges or wire.LimitRanges()
    template, notes = [], []
    for present in workload.template:
        its = usage.get(present.name, ContainerUsage())
        advised, note = present, f"{its.cpu_m.samples} samples do not show its peak yet"
        if its.cpu_m.samples >= LEAST_SAMPLES and present.name in known:
            advised, note = _advised(present, its, allowed.container, since)
        template.append(advised)
        notes.append(f"{present.name}: {note}")
    reason = "; ".join(notes)
    if tuple(template) == workload.template:
        return workload, reason
    if not _are_admitted(template, allowed):
        return workload, f"a LimitRange of its namespace would refuse its pods; {reason}"
    return Resize(workload=workload, template=tuple(template), reason=reason)


def _advised(
    present: wire.Container, usage: ContainerUsage, bounds: wire.Bounds, since: datetime
) -> tuple[wire.Container, str]:
    """Return a container with the requests that its usage asks for, and why."""
    killed = usage.killed if usage.killed and usage.killed >= since else None
    seen = usage.at(CPU_PERCENTILE, 100)
    cpu, memory = (
        resource.requested(amount, step, least, may_be_lowered=killed is None)
        for resource, amount, step, least in zip(
            _asked(present.requests, present.limits, bounds),
            (seen.cpu_m * (1 + CPU_HEADROOM), seen.memory * (1 + MEMORY_HEADROOM)),
            _pair(STEP),
            _pair(LEAST),
            strict=True,
        )
    )
    advised = replace(present, requests=Amounts(cpu_m=cpu, memory=memory))
    told = (
        "its requests are right"
        if advised == present
        else f"{_told(advised)} instead of {_told(present)}"
    )
    why = (
        f"{told}: {usage.cpu_m.samples} samples of {HISTORY.days} days, {CPU_PERCENTILE} % of them used "
        f"{seen.cpu_m}m or less, and none more than {seen.memory // MIB} MiB; headroom "
        f"{CPU_HEADROOM:.0%} and {MEMORY_HEADROOM:.0%}"
    )
    if killed is None:
        return advised, why
    return advised, (
        f"{why}; never lowered, because it was OOM-killed or ended without a known reason at "
        f"{killed:%Y-%m-%d %H:%M} UTC"
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """One resource of a container or a pod, beside what LimitRanges allow of it. 0: not stated."""

    request: int
    limit: int
    least: int
    most: int
    ratio: int

    def requested(self, amount: float, step: int, least: int, *, may_be_lowered: bool) -> int:
        """Return the request that comes closest to an amount, of those that would be admitted."""
        wanted = max(least, -(-int(amount) // step) * step)
        by_ratio = -(-self.limit * THOUSAND // self.ratio) if self.ratio else 0
        lowest = max(self.least, by_ratio, 0 if may_be_lowered else self.request)
        highest = min(each for each in (self.limit, self.most, wanted, _MOST) if each)
        closest = max(lowest, highest)
        is_close = abs(closest - self.request) <= WORTHWHILE * self.request
        return self.request if is_close and self.is_admitted else closest

    @property
    def is_admitted(self) -> bool:
        """Whether a LimitRange lets it pass: those it bounds state a request, or a limit, or both.

        https://github.com/kubernetes/kubernetes/blob/v1.34.0/plugin/pkg/admission/limitranger/admission.go
        """
        if self.least and (self.request < self.least or 0 < self.limit < self.least):
            return False
        if self.most and not (self.request <= self.most and 0 < self.limit <= self.most):
            return False
        return not self.ratio or 0 < self.limit * THOUSAND <= self.ratio * self.request


def _asked(requests: Amounts, limits: Amounts, bounds: wire.Bounds) -> Sequence[_Asked]:
    """Return processors and memory, in this order."""
    amounts = (requests, limits, bounds.least, bounds.most, bounds.ratio)
    return [_Asked(*each) for each in zip(*map(_pair, amounts), strict=True)]


def _are_admitted(template: Sequence[wire.Container], allowed: wire.LimitRanges) -> bool:
    """Whether LimitRanges let a pod of these containers pass.

    Init containers that end count only where they ask for more than all of these: nothing is told of them.
    """
    requests, limits = (sum_of(c.requests for c in template), sum_of(c.limits for c in template))
    asked = [each for c in template for each in _asked(c.requests, c.limits, allowed.container)]
    return all(each.is_admitted for each in (*asked, *_asked(requests, limits, allowed.pod)))


def _pair(amounts: Amounts) -> tuple[int, int]:
    return amounts.cpu_m, amounts.memory


def _told(container: wire.Container) -> str:
    return f"{container.requests.cpu_m}m and {-(-container.requests.memory // MIB)} MiB"
