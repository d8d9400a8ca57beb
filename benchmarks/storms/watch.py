"""Starts the watcher of a storm as a process, and reads what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.controlplane import ControlPlane

_SCRIPT: Final = Path(__file__).with_name("watcher.py")
_END_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a watch saw of a storm."""

    cordoned: Mapping[str, datetime]
    empty: Mapping[str, datetime]
    pods: Mapping[str, int]
    """How many pods each node still had in the end."""
    changes: int
    busy_seconds: float
    """The processor time of the watcher."""
    seconds: float

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Return what the watcher's JSON says."""
        return cls(
            cordoned=_moments(said["cordoned"]),
            empty=_moments(said["empty"]),
            pods=said["pods"],
            changes=said["changes"],
            busy_seconds=said["busy_seconds"],
            seconds=said["seconds"],
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """A watcher that has seen everything there was."""

    _process: subprocess.Popen[str]

    def end(self) -> Seen:
        """End it, and return what it saw.

        Raises:
            Refused: it did not answer; its own message stands on standard error.
        """
        try:
            said, _ = self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Refused(f"the watcher did not end within {_END_SECONDS:.0f} s") from error
        if not said:
            raise Refused("the watcher ended before it said what it saw")
        return Seen.read(json.loads(said))


@contextmanager
def watching(plane: ControlPlane, *, nodes: int, pods: int) -> Iterator[Watch]:
    """Watch a control plane that has so many nodes and pods; the watcher is gone after the block."""
    command = [sys.executable, str(_SCRIPT), str(plane.kubeconfig()), str(nodes), str(pods)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise Refused("the watcher did not start: see its message above")
            yield Watch(process)
        finally:
            process.kill()


def _moments(times: Mapping[str, float]) -> Mapping[str, datetime]:
    return {node: datetime.fromtimestamp(at, UTC) for node, at in times.items()}
