"""Counts for each cluster and month how its promises were to be kept, and how they were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.errors import Conflict, PlimsollError
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import PromisedWorkload, judged
from plimsoll.domain.reports import Report, Score, months_until, scored, told_since
from plimsoll.services.ports import Reports, Telemetry

_FEW: Final = 25
"""Reports that are read in a calm time."""
_MANY: Final = 500
"""And where the few do not reach back far enough: a storm writes one for each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseScores:
    """Adds a run of placement to the score of its cluster."""

    reports: Reports
    telemetry: Telemetry

    def add(
        self,
        cluster: str,
        seen: Observation,
        promised: Collection[PromisedWorkload],
        now: datetime,
    ) -> None:
        """Add the time since the last run, and what fell below its promise in it.

        What fails is told, and the next run adds it.

        Args:
            cluster: one in the mode act: only these have reports that tell it.
            seen: what the run observed.
            promised: the workloads of which something is promised.
            now: the time of the observation.
        """
        if not promised:
            return
        try:
            month, last = months_until(now)[:2]
            known = self.reports.scores(cluster, [month])
            known = known or self.reports.scores(cluster, [last])
            before = next(iter(known), None)
            told = () if before is None else self._told(cluster, before)
            self.reports.put_score(scored(before, cluster, judged(seen, promised), told, now))
        except Conflict:
            return  # a run beside this one has added the time
        except PlimsollError as error:
            self.telemetry.warn("promises not scored", cluster=cluster, because=str(error))

    def _told(self, cluster: str, before: Score) -> Sequence[Report]:
        since = told_since(before)
        found = self.reports.list(cluster, _FEW)
        if len(found) == _FEW and found[-1].noticed > since:
            found = self.reports.list(cluster, _MANY)
        return found
