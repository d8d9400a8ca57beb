"""Looks an installation over: reads all there is to read, and lets the domain judge it.

Every part is asked by itself, so that one that cannot be read hides no other. The canary is sent
first and looked for last: it travels while the rest is read. Nothing is kept but its word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from plimsoll.domain.canaries import CANARIES, seen_in
from plimsoll.domain.clusters import Cluster, ClusterKind
from plimsoll.domain.doctor import Finding, findings_of
from plimsoll.domain.doctor.facts import (
    Arrival,
    Asked,
    Facts,
    GroupSettings,
    Queue,
    Quota,
    Right,
    StackFacts,
    Trial,
)
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.groups import NodeGroup
from plimsoll.services.ports import Clock, Clusters, NodeGroups, NodeIndex, Reports

LOOK_SECONDS: Final = 1.0
"""Between two looks for the canary."""


class CanaryBus(Protocol):
    """The event bus."""

    def send(self, word: str) -> None:
        """Put a canary with that word on the bus."""


class ClusterProbe(Protocol):
    """What can be asked of a cluster without using any of our rights."""

    def version(self) -> str:
        """Return the version of the API server."""

    def rights(self) -> Sequence[Right]:
        """Return every right that Plimsoll uses, and whether it is held."""

    def trials(self) -> Sequence[Trial]:
        """Try changes without keeping them: ours, and such as are their owners' to make."""

    def queue(self) -> Queue:
        """Return through which queue of the API server our requests go."""


class GroupSettingsReader(Protocol):
    """What owners say of their Auto Scaling groups."""

    def read(self, groups: Sequence[NodeGroup]) -> Mapping[str, GroupSettings]:
        """Return the marks of those that are Auto Scaling groups, by name."""


class Quotas(Protocol):
    """What the account may run."""

    def on_demand(self) -> Quota:
        """Return the quota of on-demand vCPUs of the standard families, and what is in use."""


class AccessEntries(Protocol):
    """Whom an EKS cluster knows."""

    def strangers(self) -> Sequence[str]:
        """Return the roles of the stack that are not in the group of our manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """What only a checkup asks."""

    canaries: CanaryBus
    probe: Callable[[Cluster], ClusterProbe]
    marks: Callable[[Cluster], GroupSettingsReader]
    quotas: Callable[[Cluster], Quotas]
    access: Callable[[Cluster], AccessEntries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Looks over one cluster and the stack that looks after it."""

    stack: StackFacts
    index: NodeIndex
    reports: Reports
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    instruments: Instruments
    clock: Clock
    version: str
    """Of the command."""

    def look(self, cluster: Cluster, *, word: str, wait_seconds: float) -> Sequence[Finding]:
        """Return what is to be said.

        Args:
            cluster: A registered cluster.
            word: What the canary says; no two checkups may use the same.
            wait_seconds: How long the canary may take.
        """
        tools = self.instruments
        sent = self.clock.now()
        canary = _asked(lambda: tools.canaries.send(word))
        probe = tools.probe(cluster)
        nodes = _asked(self.clusters.open(cluster).nodes)
        seen = () if isinstance(nodes, PlimsollError) else nodes
        groups = _asked(lambda: self.groups(cluster).list(seen))
        known = () if isinstance(groups, PlimsollError) else groups
        answer, rights = _asked(probe.version), _asked(probe.rights)
        eks = cluster.kind is ClusterKind.EKS
        facts = Facts(
            now=self.clock.now(),
            version=self.version,
            stack=self.stack,
            cluster=cluster,
            answer=answer,
            rights=rights,
            trials=_asked(probe.trials),
            queue=_asked(probe.queue),
            strangers=_asked(tools.access(cluster).strangers) if eks else (),
            nodes=nodes,
            index=_asked(lambda: self.index.find([n.instance for n in seen if n.instance])),
            groups=groups,
            marks=_asked(lambda: tools.marks(cluster).read(known)),
            quota=_asked(tools.quotas(cluster).on_demand),
            canary=canary
            if isinstance(canary, PlimsollError)
            else _asked(lambda: self._arrival(word, sent, wait_seconds)),
        )
        return findings_of(facts)

    def _arrival(self, word: str, sent: datetime, wait_seconds: float) -> Arrival:
        while True:
            seen = seen_in(self.reports.list(CANARIES), word)
            waited = (self.clock.now() - sent).total_seconds()
            if seen is not None or waited >= wait_seconds:
                return Arrival(sent=sent, seen=seen, waited_seconds=waited)
            self.clock.sleep(LOOK_SECONDS)


def _asked[T](ask: Callable[[], T]) -> Asked[T]:
    try:
        return ask()
    except PlimsollError as error:
        return error
