"""The metrics of one instance and of one node group in a drill."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from plimsoll.domain.interruptions import urgency


@dataclass(slots=True, kw_only=True)
class NodeMetrics:
    """What is known of one instance."""

    cluster: str
    name: str
    instance: str
    group: str
    zone: str
    kind: str | None = None
    """Its most urgent notice; `none` for an instance that ends without one."""
    deadline: datetime | None = None
    """When it goes, as far as is known."""
    told: datetime | None = None
    """When that was said. An instance that goes without a word is told at that very moment."""
    said: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    """When each notice that arrives was sent, and the end that it tells."""
    noticed: datetime | None = None
    cordoned: datetime | None = None
    empty: datetime | None = None
    gone: datetime | None = None
    killed: int = 0
    cut_short: int = 0

    def foreseen(self, end: datetime, ahead: timedelta) -> bool:
        """Whether this end, or a nearer one, was told so long ahead by a notice that arrived."""
        return any(told <= end and end - at >= ahead for at, told in self.said if told is not None)

    @property
    def listed(self) -> bool:
        """Whether it has a row in the report: it got a notice, or its end was felt."""
        return self.kind is not None or self.killed > 0

    def notice(self, now: datetime, kind: str, deadline: datetime | None, *, pods: int) -> None:
        """Take in a notice; the earlier deadline is the more urgent, but a change may be postponed."""
        if kind != "none":
            self.said.append((now, deadline))
            if self.noticed is None:
                self.noticed = now
                self.empty = None if pods else now
        if self.kind is None or self._rank(kind, deadline) < self._rank(self.kind, self.deadline):
            self.kind = kind
        postponed = kind == self.kind == "health-scheduled-change"
        sooner = deadline and (self.deadline is None or deadline < self.deadline)
        if deadline is not None and (sooner or postponed):
            self.deadline, self.told = deadline, now

    @staticmethod
    def _rank(kind: str, deadline: datetime | None) -> tuple[bool, float, int]:
        return deadline is None, deadline.timestamp() if deadline else 0.0, urgency(kind)

    def cordon(self, now: datetime) -> None:
        """Take in that it is unschedulable; the first time counts."""
        if self.cordoned is None:
            self.cordoned = now

    def occupy(self, now: datetime, pods: int) -> None:
        """Take in how many pods are on it; a pod that comes late makes it not empty again."""
        if self.noticed is None or self.gone is not None:
            return
        if pods:
            self.empty = None
        elif self.empty is None:
            self.empty = now


@dataclass(slots=True, kw_only=True)
class GroupMetrics:
    """What is known of one node group."""

    cluster: str
    group: str
    capacity: str
    price: float
    """USD per hour of one on-demand instance."""
    begun: bool = False
    first_asked: datetime | None = None
    added: int = 0
    peak: int = 0
    spent: timedelta = timedelta(0)
    running: dict[str, datetime] = field(default_factory=dict)

    def begin(self, now: datetime) -> None:
        """Start to measure."""
        self.begun = True
        self.running = dict.fromkeys(self.running, now)
        self.peak = len(self.running)

    def ask(self, now: datetime) -> None:
        """Take in a request for capacity; the first counts."""
        if self.begun and self.first_asked is None:
            self.first_asked = now

    def start(self, now: datetime, instance: str) -> None:
        """Take in that an instance runs."""
        self.running[instance] = now
        self.added += self.begun
        self.peak = max(self.peak, len(self.running))

    def stop(self, now: datetime, instance: str) -> None:
        """Take in that an instance is gone."""
        since = self.running.pop(instance, None)
        if since is not None and self.begun:
            self.spent += now - since

    def hours(self, now: datetime) -> float:
        """Return the instance hours from time 0 to now."""
        still = sum((now - since for since in self.running.values()), timedelta(0))
        return (self.spent + still) / timedelta(hours=1)
