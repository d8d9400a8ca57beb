"""What happens to a notice: whose is it, cordon the node at once, wake the drain.

A batch is handled as one: one look-up for all its instances, the cordons side by side, one series
of wake-ups for each cluster. Everything may be repeated: a notice that is in the record already
writes nothing, but wakes the drain again, for the one before us may have died in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.canaries import echo_of
from plimsoll.domain.clusters import Cluster, IndexEntry, Mode
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.interruptions import Effect, actionable
from plimsoll.domain.notices import Canary, InstanceNotice, Notice, ZonalShift, parse
from plimsoll.domain.reports import Report
from plimsoll.domain.writers import Writers
from plimsoll.services.cordons import Cordons, Located
from plimsoll.services.executor import Executor
from plimsoll.services.locator import InstanceLocator
from plimsoll.services.ports import Clock, Clusters, Reports, Telemetry, WakeUps, Workers
from plimsoll.services.rehearsal import Rehearsal

URGENT_WAKE_UPS: Final = (*range(0, 120, 10), 130, 150, 180)
"""Seconds after a notice with a deadline. A reconcile works 19 s, so one of every two finds the lease
free; those after the deadline put back what was changed for a while."""
CALM_WAKE_UPS: Final = (0, 20, 40)
"""Without a deadline: after these the resync wakes the cluster every minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What became of one body."""

    effects: tuple[str, ...]
    """For each notice in it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeService:
    """Handles notices."""

    ownership: InstanceLocator
    clusters: Clusters
    rehearsal: Rehearsal
    reports: Reports
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    kill_switch: bool = False
    drills: bool = False
    region: str | None = None

    def receive(self, bodies: Sequence[str]) -> Sequence[Handled | Exception]:
        """Handle a batch and return, in order, what became of each body.

        An exception stands for a body that was not (wholly) handled: `Temporary` may come back,
        `Permanent` cannot be mended. Handling a body again never hurts.
        """
        read = [self._read(body) for body in bodies]
        parsed = [
            notice for notices in read if not isinstance(notices, Exception) for notice in notices
        ]
        effects = dict(zip(parsed, self.handle(parsed), strict=True)) if parsed else {}
        answers: list[Handled | Exception] = []
        for notices in read:
            if isinstance(notices, Exception):
                answers.append(notices)
                continue
            found = [effects[notice] for notice in notices]
            errors = [e for e in found if isinstance(e, Exception)]
            answers.append(errors[0] if errors else Handled(effects=tuple(str(e) for e in found)))
        return answers

    def _read(self, body: str) -> tuple[Notice, ...] | Exception:
        try:
            return parse(body, received=self.clock.now(), drills=self.drills, region=self.region)
        except PlimsollError as error:
            return error

    def handle(self, notices: Sequence[Notice]) -> Sequence[str | Exception]:
        """Handle notices and return, in order, the effect of each in words, or its error."""
        answers: dict[Notice, str | Exception] = {}
        merging: list[InstanceNotice] = []
        for notice in notices:
            verdict = actionable(notice)
            if verdict.merges and not isinstance(notice, ZonalShift):
                merging.append(notice)  # type: ignore[arg-type]  # only notices of instances merge
                continue
            if isinstance(notice, Canary):
                self._echo(notice)
                answers[notice] = verdict.reason
                continue
            if verdict.effect is Effect.SHOW:
                self._show(notice, verdict.reason)
            self.telemetry.count("NoticesIgnored")
            self.telemetry.log("notice acknowledged", kind=notice.kind, because=verdict.reason)
            answers[notice] = verdict.reason
        owners = self.ownership.of(merging)
        by_cluster: dict[str, list[Located]] = defaultdict(list)
        for notice in merging:
            owner = owners[notice.instance]
            if isinstance(owner, IndexEntry):
                by_cluster[owner.cluster].append((notice, owner))
            else:
                answers[notice] = owner
        for name, found in sorted(by_cluster.items()):
            answers |= self._of_cluster(name, found)
        return [answers[notice] for notice in notices]

    def _echo(self, canary: Canary) -> None:
        """Count a canary, and write its word down. A failure is logged: it is not worth a retry."""
        self.telemetry.count("CanariesSeen")
        echo = echo_of(canary, seen=self.clock.now())
        try:
            if echo is not None:
                self.reports.merge(echo)
        except PlimsollError as error:
            self.telemetry.warn("canary not written down", because=str(error))

    def _show(self, notice: Notice, reason: str) -> None:
        if isinstance(notice, ZonalShift):
            self.reports.merge(
                Report(
                    interruption=f"{notice.zone_id or 'zone'}@{notice.id}",
                    cluster="*",
                    node="",
                    kind=notice.kind,
                    noticed=notice.time,
                    closed=None if notice.active else notice.time,
                    reasons=(reason,),
                )
            )

    def _of_cluster(self, name: str, found: Sequence[Located]) -> Mapping[Notice, str | Exception]:
        try:
            cluster = self.ownership.registry.get(name)
            if cluster is None:
                self.telemetry.count("NoticesNotOurs", len(found))
                return {n: f"{name} is not a registered cluster" for n, _ in found}
            return self._in_cluster(cluster, found)
        except PlimsollError as error:
            return dict.fromkeys((notice for notice, _ in found), error)

    def _in_cluster(
        self, cluster: Cluster, found: Sequence[Located]
    ) -> Mapping[Notice, str | Exception]:
        api = self.clusters.open(cluster)
        writing = cluster.mode is Mode.ACT and not self.kill_switch
        writers = Writers(cluster=api, capacity=self.rehearsal.groups(cluster))
        cordons = Cordons(
            api=api,
            executor=Executor(
                writers=writers if writing else None, workers=self.workers, telemetry=self.telemetry
            ),
            clock=self.clock,
        )
        marks = cordons.write(cluster.name, found)
        if marks.interrupted and writing:
            urgent = any(i.deadline is not None for i in marks.interrupted.values())
            self.wake_ups.send(cluster.name, URGENT_WAKE_UPS if urgent else CALM_WAKE_UPS)
        elif marks.interrupted:
            self.rehearsal.report(cluster, api, marks.interrupted)
        return marks.answers
