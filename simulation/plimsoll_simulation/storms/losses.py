"""What each workload lost in a play, measured by itself or against the counts of another play.

A count that the owner raises binds once a play has reached it (`measure/workload_metrics.py`): the start of the new pods
is no loss. In two plays of one storm it so binds from different moments on, or in one play alone, and the play that
served more would look worse. A comparison measures both plays against one count at each moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.domain.kubernetes import quorum
from plimsoll_simulation.measure.history import Level
from plimsoll_simulation.measure.measure import Measurement

type Count = tuple[int, int]
"""So many replicas, and their floor."""
type Binding = Callable[[Count, Count], Count]
"""Chooses from what binds in two plays."""

BINDINGS: Final[Sequence[Binding]] = (max, min)
"""A raised count binds in both plays once either has reached it, and in a second measurement once both have. A workload
is worse off where either measurement says so, since each alone hides a loss. By the first, the play that never reaches
the raised count is below its floor all the time, and the other may lose pods of the former count unnoticed. By the
second, a play is excused that never reaches a count that the other reached. A count that neither reaches binds in
neither, so that the loss of a pod of the former count shows. While an autoscaler holds either play to fewer than its
owner declared, only what both have reached binds in either measurement. A lowered count binds at once, in all plays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one workload lost in one play."""

    kind: str = ""
    levels: Sequence[Level] = ()
    """How it stood over time; nothing where only its killed pods count."""
    until: float = 0.0
    """When the play ended, in seconds."""
    killed: int = 0
    """Killed with their instance, or cut short, though the end was told in time for them to stop."""
    surprised: int = 0
    """Pods that came to an instance that was yet to get its first notice."""
    unforeseen: int = 0
    """Pods that were killed or cut short since the end of their instance was not told in time."""
    died: bool = False
    """Whether any pod was killed or cut short, however late its end was told."""

    @property
    def seconds_at_zero(self) -> float:
        """How long none of its pods was Ready."""
        return self._seconds(lambda level: level.ready == 0 < level.replicas)

    @property
    def seconds_below_floor(self) -> float:
        """How long fewer were Ready than its floor."""
        return self._seconds(lambda level: level.ready < level.floor)

    @property
    def seconds_below_quorum(self) -> float:
        """How long fewer were Ready than its quorum."""
        return self._seconds(lambda level: level.ready < quorum(self.kind, level.replicas))

    def against(self, other: Loss, binding: Binding) -> Loss:
        """Return it as measured against the count chosen from what bound in both plays at each moment."""
        moments = sorted({level.seconds for level in (*self.levels, *other.levels)})
        return replace(
            self,
            levels=tuple(
                Level(seconds, mine.ready, *_binds(mine, theirs, binding))
                for seconds in moments
                if (mine := _at(self.levels, seconds)) and (theirs := _at(other.levels, seconds))
            ),
        )

    def _seconds(self, lacks: Callable[[Level], bool]) -> float:
        ends = [*(level.seconds for level in self.levels), self.until][1:]
        return sum(
            max(0.0, min(end, self.until) - level.seconds)
            for level, end in zip(self.levels, ends, strict=True)
            if lacks(level)
        )


def _binds(mine: Level, theirs: Level, binding: Binding) -> Count:
    counts = (mine.replicas, mine.floor), (theirs.replicas, theirs.floor)
    return min(counts) if mine.overruled or theirs.overruled else binding(*counts)


def _at(levels: Sequence[Level], seconds: float) -> Level | None:
    return next((level for level in reversed(levels) if level.seconds <= seconds), None)


def losses(measurement: Measurement) -> Mapping[str, Loss]:
    """Return what each workload has lost until the figures were taken, by kind and name."""
    began = measurement.started
    return {
        f"{kind} {namespace}/{name}": Loss(
            kind=kind,
            levels=tuple(measurement.levels.get(id_, ())),
            until=(metrics.since - began).total_seconds() if metrics.since and began else 0.0,
            killed=metrics.killed + metrics.cut_short - metrics.unforeseen,
            surprised=metrics.surprised,
            unforeseen=metrics.unforeseen,
            died=metrics.killed + metrics.cut_short > 0,
        )
        for id_, metrics in measurement.workload_metrics.items()
        for _, namespace, kind, name in (id_,)
    }
