"""Requests out of what was used: a high percentile, and headroom above it.

Too little memory kills a pod and too little processor slows it: so memory follows the most that was
seen, and processors a percentile that is passed one time in twenty. Requests only are advised; a
limit is its owner's word, and no request is advised above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from plimsoll.domain.names import IGNORE
from plimsoll_service.domain.usage import MIB, WorkloadUsage
from plimsoll_service.domain.view import View
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.snapshot import Amounts

HISTORY: Final = timedelta(days=7)
"""How far back usage is looked at."""
YOUNGEST: Final = timedelta(days=1)
"""A workload with a shorter history is left as it is: nobody has seen its peak."""
LEAST_SAMPLES: Final = 1000
CPU_PERCENTILE: Final = 95
CPU_HEADROOM: Final = 0.15
MEMORY_HEADROOM: Final = 0.20
LEAST: Final = Amounts(cpu_m=10, memory=32 * MIB)
STEP: Final = Amounts(cpu_m=10, memory=16 * MIB)
WORTHWHILE: Final = 0.15
"""A request that would change by a smaller share of itself stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Other requests for the pods of a workload."""

    workload: wire.Workload
    then: Amounts
    reason: str


def resizes(
    view: View, week: Mapping[str, WorkloadUsage], earlier: Mapping[str, WorkloadUsage]
) -> Iterator[Resize | tuple[wire.Workload, str]]:
    """Yield other requests for each workload, or the workload and why its requests stay.

    Args:
        view: the cluster.
        week: usage of the last `HISTORY`, by the uid of the workload.
        earlier: usage of that before the last `YOUNGEST`.
    """
    for workload in view.seen.workloads:
        usage = week.get(workload.uid, WorkloadUsage())
        if workload.uid in view.scalers:
            yield workload, "an autoscaler counts its replicas by the share of requests in use"
        elif workload.annotations.get(IGNORE) == "true":
            yield workload, f"its owner opted out with {IGNORE}"
        elif workload.requests.cpu_m and workload.requests == _of(workload.limits):
            yield workload, "its limits equal its requests: it is Guaranteed, and would not be"
        elif usage.cpu_m.samples < LEAST_SAMPLES or workload.uid not in earlier:
            yield workload, f"{usage.cpu_m.samples} samples do not show its peak yet"
        else:
            yield _resize(workload, usage)


def _resize(workload: wire.Workload, usage: WorkloadUsage) -> Resize | tuple[wire.Workload, str]:
    seen = usage.at(CPU_PERCENTILE, 100)
    now = workload.requests
    cpu = _rounded(seen.cpu_m * (1 + CPU_HEADROOM), STEP.cpu_m, LEAST.cpu_m, workload.limits.cpu_m)
    memory = _rounded(
        seen.memory * (1 + MEMORY_HEADROOM), STEP.memory, LEAST.memory, workload.limits.memory
    )
    then = Amounts(
        cpu_m=cpu if _differs(now.cpu_m, cpu) else now.cpu_m,
        memory=memory if _differs(now.memory, memory) else now.memory,
    )
    if then == _of(now):
        return workload, "they are right"
    reason = (
        f"{usage.cpu_m.samples} samples of {HISTORY.days} days: {CPU_PERCENTILE} % of them used "
        f"{seen.cpu_m}m or less, with {CPU_HEADROOM:.0%} headroom {cpu}m; none used more than "
        f"{seen.memory // MIB} MiB, with {MEMORY_HEADROOM:.0%} headroom {memory // MIB} MiB"
    )
    return Resize(workload=workload, then=then, reason=reason)


def _of(told: Amounts) -> Amounts:
    return Amounts(cpu_m=told.cpu_m, memory=told.memory)


def _rounded(amount: float, step: int, least: int, limit: int) -> int:
    found = max(least, -(-int(amount) // step) * step)
    return min(found, limit) if limit else found


def _differs(now: int, then: int) -> bool:
    return abs(then - now) > WORTHWHILE * now
