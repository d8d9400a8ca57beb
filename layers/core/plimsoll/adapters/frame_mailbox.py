"""Keeps the frames of storms beside the drains: a thread writes the last one of each cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Final

from plimsoll.domain.frames import Frame, is_storm, storm_message
from plimsoll.services.ports import Announcer, FrameStore

EVERY_SECONDS: Final = 2.0
"""Between two writes of a cluster."""
READ_SECONDS: Final = 0.3
"""How long a reconcile waits at most for the frame before its first."""


@dataclass(slots=True)
class _Box:
    """What is to be done for one cluster."""

    asked: float
    """When its last frame was asked for."""
    read: bool = False
    before: Frame | None = None
    """The last frame that another process wrote."""
    frame: Frame | None = None
    """To be written."""
    next_write: float = 0.0
    told: object = None
    """The storm of which people are told, or have been."""
    ended: bool = False
    """Its reconcile is over: what is left is written at once."""


@dataclass(slots=True)
class FrameMailbox:
    """Implements `plimsoll.services.ports.FrameSink`: no caller waits for the table, nor hears of its errors.

    Of several frames between two writes the last is written. People are told of a storm once, whichever
    process sees it first.
    """

    store: FrameStore
    announcer: Announcer
    console: str
    """Address of the hosted console; empty: there is none."""
    warn: Callable[[str], None]
    _boxes: dict[str, _Box] = field(init=False, default_factory=dict)
    _changed: Condition = field(init=False, default_factory=Condition)
    _thread: Thread | None = field(init=False, default=None)
    _working: bool = field(init=False, default=False)
    _lost: int = field(init=False, default=0)

    def watch(self, cluster: str) -> None:
        """Begin to read the last frame of a cluster: its reconcile observes meanwhile."""
        with self._changed:
            self._boxes[cluster] = _Box(asked=monotonic())
            if self._thread is None:
                self._thread = Thread(target=self._work, name="frames", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def latest(self, cluster: str) -> Frame | None:
        """Return the last frame of a cluster; None also where it was not read in time."""
        with self._changed:
            box = self._boxes[cluster]
            self._changed.wait_for(
                lambda: box.read, timeout=max(0.0, box.asked + READ_SECONDS - monotonic())
            )
            return box.before

    def take(self, frame: Frame) -> None:
        """Take a frame to be written; a newer one may replace it before it is."""
        with self._changed:
            self._boxes[frame.cluster].frame = frame
            self._changed.notify_all()

    def end(self, cluster: str, seconds: float) -> int:
        """Write what is left of a cluster, for so long at most; return how many frames and messages were lost."""
        with self._changed:
            box = self._boxes[cluster]
            box.ended = True
            self._changed.notify_all()
            written = self._changed.wait_for(
                lambda: box.frame is None and not self._working, timeout=seconds
            )
            lost, self._lost = self._lost + (not written), 0
            return lost

    def _work(self) -> None:
        while True:
            with self._changed:
                while (cluster := self._next(monotonic())) is None:
                    self._changed.wait(timeout=self._pause(monotonic()))
                box = self._boxes[cluster]
                frame, box.frame = (box.frame, None) if box.read else (None, box.frame)
                self._working = True
            try:
                if frame is None:
                    found = self.store.latest(cluster)
                    with self._changed:
                        box.before = found
                else:
                    self._write(box, frame)
            except Exception as error:  # noqa: BLE001 - a thread that ends would lose every later frame
                self.warn(f"frame of {cluster} not kept: {error!r}")
                with self._changed:
                    self._lost += 1
            with self._changed:
                box.read, self._working = True, False
                self._changed.notify_all()

    def _write(self, box: _Box, frame: Frame) -> None:
        box.next_write = monotonic() + EVERY_SECONDS
        self.store.put(frame)
        # After the frame is written, which the link of the message shows.
        if is_storm(frame) and box.told != frame.storm:
            first = self.store.begin(frame)
            box.told = frame.storm
            if first:
                self.announcer.tell(*storm_message(frame, self.console))

    def _next(self, now: float) -> str | None:
        """Return a cluster for which something is to be done now: first those whose last frame is not read."""
        for cluster, box in self._boxes.items():
            if not box.read:
                return cluster
        for cluster, box in self._boxes.items():
            if box.frame is not None and (box.ended or box.next_write <= now):
                return cluster
        return None

    def _pause(self, now: float) -> float | None:
        waits = [box.next_write - now for box in self._boxes.values() if box.frame is not None]
        return max(0.0, min(waits)) if waits else None
