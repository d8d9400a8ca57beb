"""What is open in a cluster: interruptions, and released pods that still stand.

Everything is read off the objects themselves, so it is true whoever wrote it, and needs no database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.disruptions import left_on
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.reports import Report

ZONES = "*"
"""The cluster that reports of zones are kept under: a zone belongs to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInterruption:
    """An interruption that is not closed, as its node says."""

    node: str
    instance: str | None
    kind: str
    phase: str
    noticed: datetime | None
    deadline: datetime | None
    pods_left: tuple[str, ...]
    """Pods that must leave the node and are still on it, the stopping ones too."""
    unreadable: str | None = None
    """Why the record is not believed: then nothing else is known. The next notice replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneNotice:
    """Traffic is shifted away from a zone."""

    zone: str
    noticed: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is open in one cluster."""

    cluster: str
    interruptions: tuple[OpenInterruption, ...]
    released_pods: tuple[str, ...]
    """Released pods that were not evicted yet, as `namespace/name`."""
    released_of: Mapping[str, int]
    """Workload -> how many of them are its pods."""
    policy: str
    """What is done about notices, and how fast; in words."""

    @property
    def quiet(self) -> bool:
        """Whether nothing is open."""
        return not self.interruptions and not self.released_pods


def status_of(seen: Observation) -> Status:
    """Return what is open in a cluster, the nearest deadline first."""
    found = [_interruption(seen, node) for node in seen.nodes if _open(node)]
    released = [p for p in seen.pods if p.released and p.deleting is None]
    return Status(
        cluster=seen.cluster,
        interruptions=tuple(sorted(found, key=_by_deadline)),
        released_pods=tuple(sorted(map(str, released))),
        released_of=dict(Counter(sorted(str(seen.workload_of(p)) for p in released))),
        policy=str(seen.policy),
    )


def zones_of(reports: Sequence[Report]) -> tuple[ZoneNotice, ...]:
    """Return the zones that traffic is shifted away from: where the newest report is not closed."""
    newest: dict[str, Report] = {}
    for report in sorted(reports, key=lambda report: report.noticed):
        newest[report.interruption.partition("@")[0]] = report
    return tuple(
        ZoneNotice(zone=zone, noticed=report.noticed, reason="; ".join(map(str, report.reasons)))
        for zone, report in sorted(newest.items())
        if report.closed is None
    )


def _open(node: Node) -> bool:
    if node.unreadable is not None:
        return True
    return node.interruption is not None and node.interruption.phase != "closed"


def _interruption(seen: Observation, node: Node) -> OpenInterruption:
    known = node.interruption
    return OpenInterruption(
        node=node.name,
        instance=known.instance if known else node.instance,
        kind=known.kind if known else "unknown",
        phase=known.phase if known else "unknown",
        noticed=known.noticed if known else None,
        deadline=known.deadline if known else None,
        pods_left=tuple(sorted(str(pod) for pod in left_on(seen, node))),
        unreadable=node.unreadable,
    )


def _by_deadline(one: OpenInterruption) -> tuple[bool, str, str]:
    return one.deadline is None, one.deadline.isoformat() if one.deadline else "", one.node
