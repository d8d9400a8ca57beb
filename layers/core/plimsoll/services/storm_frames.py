"""Shows a storm while it is drained: one frame after the actions of each plan, in the pause before the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from plimsoll.domain.actions import Action
from plimsoll.domain.drain import ClusterPlan
from plimsoll.domain.frames import Frame, frame_of
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.reports import Metric
from plimsoll.services.ports import FrameSink, Telemetry

END_SECONDS: Final = 0.7
"""For so long the end of a reconcile waits for the last write: one that takes longer is given up by its client."""
OLDEST: Final = timedelta(seconds=10)
"""While pods are to be told to stop, a frame is made only once the last one is so old."""


@dataclass(slots=True, kw_only=True)
class StormFrames:
    """Makes the frames of one cluster, between `begin` and `end`."""

    cluster: str
    sink: FrameSink | None
    """None: nobody watches."""
    telemetry: Telemetry
    last: Frame | None = field(init=False, default=None)
    _done: list[Action] = field(init=False, default_factory=list)
    """Carried out since the last frame."""

    def begin(self) -> None:
        """Let the last frame be read, which the first one of this reconcile follows."""
        if self.sink is not None:
            self.sink.watch(self.cluster)

    def end(self) -> None:
        """Keep the last frame: nobody else has it."""
        if self.sink is not None and (lost := self.sink.end(self.cluster, END_SECONDS)):
            self.telemetry.count(Metric.FRAMES_LOST, lost)

    def show(
        self,
        plan: ClusterPlan,
        done: Sequence[Action],
        refusals: Mapping[str, Sequence[Refusal]],
    ) -> None:
        """Make the frame of a plan that was carried out, and hand it on.

        A fault in a frame costs the frame: no drain ends because of what people look at.
        """
        if self.sink is None:
            return
        self._done += done
        before = self.last or self.sink.latest(self.cluster)
        if plan.hurried and before is not None and plan.at - before.at < OLDEST:
            return
        try:
            frame = frame_of(plan, before, done=self._done, refusals=refusals)
        except Exception as error:  # noqa: BLE001 - the drain goes on
            self.telemetry.warn("frame not made", cluster=self.cluster, because=repr(error))
            return
        finally:
            self._done = []
        if frame is None or (before is not None and before.over and frame.over):
            return
        self.last = frame
        self.sink.take(frame)
