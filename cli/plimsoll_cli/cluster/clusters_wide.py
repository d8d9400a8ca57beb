"""The columns of `plimsoll clusters list --wide`; a part that cannot be read hides no other part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import ONE_EVENT_WITHIN, Report
from plimsoll_cli.environment import Deployed
from plimsoll_cli.options import clock_text

SEARCHED: Final = 1000
"""How many of a cluster's newest reports are looked through for its last storm."""
_NAMED: Final = 4
"""Missing rights that are named in a row; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Interruptions with a deadline whose notices came together, of one node or of many."""

    noticed: datetime
    nodes: int
    killed: int
    """Pods that were still there when their instances were gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """One cluster as it answers now."""

    name: str
    version: str | None = None
    """Of its API server."""
    rights_held: int | None = None
    rights_missing: Sequence[str] = ()
    nodes: int | None = None
    """EC2 instances among its Nodes."""
    indexed: int | None = None
    """Of these, those in the node index."""
    oldest: datetime | None = None
    """When a resync wrote the oldest of their entries."""
    storm: Storm | None = None
    not_read: Sequence[str] = ()
    """What could not be read, and why."""

    def cells(self, now: datetime) -> Sequence[str]:
        """Return its row, but for the name."""
        return (
            self.version or "?",
            self._rights(),
            self._index(now),
            self._storm(),
        )

    def _rights(self) -> str:
        if self.rights_held is None:
            return "?"
        missing = list(self.rights_missing)
        told = f"{self.rights_held} of {self.rights_held + len(missing)}"
        if not missing:
            return told
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return f"{told}; missing: {', '.join(missing[:_NAMED])}{more}"

    def _index(self, now: datetime) -> str:
        if self.nodes is None or self.indexed is None:
            return "?"
        age = "" if self.oldest is None else f", {(now - self.oldest).total_seconds():.0f} s old"
        return f"{self.indexed} of {self.nodes} nodes{age}"

    def _storm(self) -> str:
        if self.storm is None:
            return "-"
        killed = f", {self.storm.killed} pods killed" if self.storm.killed else ""
        return f"{clock_text(self.storm.noticed)}: {self.storm.nodes} nodes{killed}"


def wide(deployed: Deployed, cluster: Cluster) -> Wide:
    """Return how a cluster answers now."""
    failed: list[str] = []

    def asked[T](what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except PlimsollError as error:
            failed.append(f"{what}: {error}")
            return None

    probe = deployed.probes.cluster(cluster)
    version = asked("version", probe.version)
    rights = asked("rights", probe.rights) if version is not None else None
    nodes = asked("nodes", deployed.clusters.open(cluster).nodes) if version is not None else None
    ids = None if nodes is None else [node.instance for node in nodes if node.instance]
    entries = None if ids is None else asked("node index", lambda: deployed.index.find(ids))
    seen = [entry.seen for entry in (entries or {}).values() if entry.cluster == cluster.name]
    reports = asked("reports", lambda: deployed.reports.list(cluster.name, limit=SEARCHED))
    return Wide(
        name=cluster.name,
        version=version,
        rights_held=None if rights is None else sum(right.held for right in rights),
        rights_missing=[f"{r.verb} {r.resource}" for r in rights or () if not r.held],
        nodes=None if ids is None else len(ids),
        indexed=None if entries is None else len(seen),
        oldest=min(seen, default=None),
        storm=last_storm(reports or ()),
        not_read=failed,
    )


def last_storm(reports: Sequence[Report]) -> Storm | None:
    """Return the newest interruptions that came together; None where there was none with a deadline."""
    final = [report for report in reports if report.deadline is not None]
    if not final:
        return None
    newest = max(report.noticed for report in final)
    together = [report for report in final if newest - report.noticed <= ONE_EVENT_WITHIN]
    return Storm(
        noticed=min(report.noticed for report in together),
        nodes=len(together),
        killed=sum(len(report.killed) for report in together),
    )
