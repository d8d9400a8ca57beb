"""The fake kubelets as a process of their own, so that they take no time from whoever measures.

A pipe is the leash: when the starter's end of it closes, however that comes about, the process ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_testbed.rigs.controlplane.fake_kubelets.playing import play
from plimsoll_testbed.rigs.supervised import tail_of

ANSWER_SECONDS: Final = 60.0
"""They may still be starting, on a busy machine."""
_POLL_SECONDS: Final = 0.5
_FRESH: Final = get_context("spawn")
"""A new interpreter: a fork of one with threads may hang."""


class FakeKubelets:
    """Starts and stops them, tells them what no API server knows, and hears what they tell.

    Args:
        kubeconfig: who they are.
        log: where they complain.
        settings: how long things take.
        heard: called from a thread for each pod that stopped running.
    """

    def __init__(
        self,
        kubeconfig: Path,
        *,
        log: Path,
        settings: Settings,
        heard: Callable[[PodStopped], None],
    ) -> None:
        self.name: Final = "fake kubelets"
        self._log = log
        self._heard = heard
        self._pipe, self._theirs = _FRESH.Pipe()
        given = (self._theirs, kubeconfig, settings, log)
        self._process = _FRESH.Process(target=play, args=given, daemon=True)
        self._thread = threading.Thread(target=self._listen, name=self.name, daemon=True)
        self._answered = threading.Condition()
        self._vanished: set[str] = set()

    def start(self) -> None:
        """Start the process."""
        self._process.start()
        self._theirs.close()  # else its end would be no end of the pipe
        self._thread.start()

    def vanish(self, nodes: Sequence[str]) -> None:
        """Let the instances of nodes be gone, all at once, and return when they are.

        Raises:
            Refused: the process has ended.
        """
        end = time.monotonic() + ANSWER_SECONDS
        with self._answered:
            try:
                self._pipe.send(tuple(nodes))
            except OSError as error:
                raise Refused(f"the fake kubelets have ended: {self.tail()}") from error
            while not self._vanished.issuperset(nodes):
                if self.ended or time.monotonic() > end:
                    raise Refused(f"the fake kubelets do not answer:\n{self.tail()}")
                self._answered.wait(timeout=_POLL_SECONDS)
            self._vanished.difference_update(nodes)

    @property
    def ended(self) -> bool:
        """Whether the process ended by itself."""
        return self._process.exitcode is not None

    def stop(self) -> None:
        """Kill the process."""
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
            self._thread.join()
        self._pipe.close()

    def tail(self) -> str:
        """Return the end of the log, under its name."""
        return tail_of(self.name, self._log)

    def _listen(self) -> None:
        try:
            while True:
                match self._pipe.recv():
                    case PodStopped() as stopped:
                        self._heard(stopped)
                    case nodes:
                        with self._answered:
                            self._vanished.update(nodes)
                            self._answered.notify_all()
        except (EOFError, OSError):  # the process has ended
            return
