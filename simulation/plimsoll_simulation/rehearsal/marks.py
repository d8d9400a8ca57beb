"""The marks of a live cluster beside what a rehearsal played: what stays Ready of each workload that stands on spot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.kubernetes import KEEP_READY, Ref
from plimsoll.domain.placement import Mark, marks_of, understood_promise
from plimsoll_simulation.rehearsal.live import LiveCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedWorkload:
    """What stays Ready of one workload."""

    workload: str
    ready: int
    """How many replicas are Ready now."""
    promised: int | None
    """How many its owner promises; None: nothing."""
    marks: Sequence[Mark]
    """By the rule: its Ready replicas less those that stand where the worst loss of each kind strikes."""
    left: int
    """By the same rule, what the rehearsed interruption leaves."""
    played: int | None
    """The fewest Ready replicas in the rehearsal; None: it was left out."""

    def breaks(self, stays: int | None) -> bool:
        """Whether so few are fewer than promised."""
        return stays is not None and self.promised is not None and stays < self.promised


def marked_workloads(
    live: LiveCluster, lost: Collection[str], played: Mapping[str, int]
) -> Sequence[MarkedWorkload]:
    """Return the workloads of which something is promised, or that stand on spot, those first that lose most.

    Args:
        live: the cluster as it was read.
        lost: the nodes that the rehearsal took.
        played: workload -> the fewest Ready replicas.
    """
    promised = _promised(live)
    found = [
        MarkedWorkload(
            workload=str(each.workload),
            ready=each.ready,
            promised=promised.get(each.workload),
            marks=each.marks,
            left=each.without(lost),
            played=played.get(str(each.workload)),
        )
        for each in marks_of(live.seen)
        if each.on_spot or each.workload in promised
    ]
    return sorted(
        found, key=lambda each: (each.promised is None, each.left / each.ready, each.workload)
    )


def _promised(live: LiveCluster) -> Mapping[Ref, int]:
    """Return how many replicas are promised of each workload."""
    namespaces = {
        name: promise
        for (_, name), obj in live.by_name("namespaces").items()
        if (promise := (obj["metadata"].get("annotations") or {}).get(KEEP_READY)) is not None
    }
    found = {
        workload.ref: (understood_promise(workload, namespaces, live.keep_ready), workload.replicas)
        for workload in live.seen.workloads
    }
    return {
        ref: promise.wanted(replicas)
        for ref, (promise, replicas) in found.items()
        if promise is not None
    }
