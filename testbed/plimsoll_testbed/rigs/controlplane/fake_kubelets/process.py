"""The fake kubelets as a process of their own: `plimsoll_testbed.rigs.controlplane.fake_kubelets` by a pipe.

Of their own, so that they take no time from whoever measures. Their standard input is the supervisor
and carries commands; when it ends they end. Their standard output tells of pods that stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from plimsoll.domain.errors import Refused
from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.model.hollow.state import PodStopped
from plimsoll_testbed.rigs.supervised import tail_of

SETTINGS: Final = TypeAdapter(Settings)
STOPPED: Final = TypeAdapter(PodStopped)
ANSWER_SECONDS: Final = 60.0
"""They may still be starting, on a busy machine."""
_POLL_SECONDS: Final = 0.5


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
        self._kubeconfig = kubeconfig
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._listen, name="fake kubelets", daemon=True)
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)
        self._vanished: set[str] = set()

    def start(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", str(__package__), self._kubeconfig],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the starter
            )
        self._say(SETTINGS.dump_python(self._settings, mode="json"))
        self._thread.start()

    def vanish(self, node: str) -> None:
        """Let a node's instance be gone, and return when it is.

        Raises:
            Refused: the process has ended.
        """
        self._say({"vanish": node})
        end = time.monotonic() + ANSWER_SECONDS
        with self._answered:
            while node not in self._vanished:
                if self.ended or time.monotonic() > end:
                    raise Refused(f"the fake kubelets do not answer:\n{self.tail()}")
                self._answered.wait(timeout=_POLL_SECONDS)
            self._vanished.discard(node)

    @property
    def ended(self) -> bool:
        """Whether the process ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Kill the process. Twice is once."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if self._thread.is_alive():
            self._thread.join()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None  # noqa: S101 - it was opened as a pipe
            pipe.close()

    def tail(self) -> str:
        """Return the end of the log, under its name."""
        return tail_of(self.name, self._log)

    def _say(self, words: dict[str, Any]) -> None:
        assert self._process is not None  # noqa: S101 - it was started
        assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
        try:
            with self._lock:
                self._process.stdin.write(json.dumps(words) + "\n")
                self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Refused(f"the fake kubelets have ended: {self.tail()}") from error

    def _listen(self) -> None:
        assert self._process is not None  # noqa: S101 - it was started
        assert self._process.stdout is not None  # noqa: S101 - it was opened as a pipe
        for line in self._process.stdout:
            said = json.loads(line)
            if "vanished" in said:
                with self._answered:
                    self._vanished.add(said["vanished"])
                    self._answered.notify_all()
            else:
                self._heard(STOPPED.validate_python(said))
