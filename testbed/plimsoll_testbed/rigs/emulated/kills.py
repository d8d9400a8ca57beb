"""Kills functions by signal: the fault `function-killed` where functions are processes.

Lambda takes an execution environment away whenever it likes, and so does this: no matter whether
it is between two calls, in the middle of one, or waiting for work. Who waited is simply not there
for the next message.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from plimsoll.services.ports import Clock
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_simulation.scenario.timeline import FaultEntry

LIVES: Final = 3.0
"""The most seconds that a process lives which was started while the fault lasts."""
POLL_SECONDS: Final = 0.1
_EXPLAINED: Final = ("Worker process died", "Worker process exited", "timed out after")
"""How the emulator says that a process went while it worked or before it could; and that one which
had to start anew ran out of its time, as happens on a busy machine. It comes back all the same."""


class HasWorkers(Protocol):
    """Runs functions as processes."""

    def workers(self, function: str) -> Sequence[int]:
        """Return the processes that run a function, by its name in the stack's outputs."""


class Kills(Threads):
    """Kills the processes of functions while a fault lasts; use it as a context manager.

    All that run when the fault begins are killed at once. Those that are started while it lasts
    live up to three seconds more, as the seed draws.

    Args:
        emulator: whose processes they are.
        seed: draws how long each lives.
        clock: the real time.
        say: told of each kill.
    """

    def __init__(
        self, emulator: HasWorkers, seed: int, clock: Clock, say: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._emulator = emulator
        self._seed = seed
        self._clock = clock
        self._say = say
        self.killed = 0

    def begin(self, entry: FaultEntry, now: datetime) -> None:
        """Let a fault begin; it ends by itself."""
        self.spawn(partial(self._kill, str(entry.function), now + entry.lasts), entry.fault)

    def explain(self, complaint: str) -> bool:
        """Whether a complaint of the emulator is about what was done here."""
        return self.killed > 0 and any(words in complaint for words in _EXPLAINED)

    def _kill(self, function: str, until: datetime) -> None:
        name = f"{function.capitalize()}Function"  # as the outputs of the stack call it
        draw = random.Random(f"{self._seed}/killed/{function}")  # noqa: S311 - a drill, no secret
        ends = dict.fromkeys(self._emulator.workers(name), self._clock.now())
        while ends or self._clock.now() < until:
            for pid in [pid for pid, at in ends.items() if at <= self._clock.now()]:
                del ends[pid]
                self._end(pid, function)
            if self.ended.wait(POLL_SECONDS):
                return
            there = self._emulator.workers(name)
            ends = {pid: at for pid, at in ends.items() if pid in there}
            if self._clock.now() < until:
                for pid in there:
                    lives = timedelta(seconds=draw.uniform(0, LIVES))
                    ends.setdefault(pid, self._clock.now() + lives)

    def _end(self, pid: int, function: str) -> None:
        with suppress(ProcessLookupError):  # it was quicker
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
            self._say(f"a process of the function {function} is killed by signal")
