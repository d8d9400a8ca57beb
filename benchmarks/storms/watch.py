"""Starts the watcher of a storm as a process, and reads what it saw."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_cluster.state import PodStopped
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
    missing: Sequence[tuple[datetime, int]]
    """From each moment on, how many of the wanted pods did not serve."""
    requests: int
    lost: Sequence[datetime]
    """When each request was sent that got no answer."""
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
            missing=[(datetime.fromtimestamp(at, UTC), count) for at, count in said["missing"]],
            requests=said["requests"],
            lost=[datetime.fromtimestamp(at, UTC) for at in said["lost"]],
            changes=said["changes"],
            busy_seconds=said["busy_seconds"],
            seconds=said["seconds"],
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """A watcher that has seen everything there was."""

    _process: subprocess.Popen[str]
    stops: Counter[str] = field(default_factory=Counter)
    """How the pods stopped that did: `killed` is what ran on an instance that went."""

    def stopped(self, stopped: PodStopped) -> None:
        """Tell it that a pod stopped running."""
        pod = stopped.pod
        self.stops[stopped.how] += 1
        said = {
            "uid": pod["metadata"]["uid"],
            "app": pod["metadata"]["labels"]["app"],
            "address": pod["status"]["podIP"],
            "at": stopped.at.timestamp(),
        }
        assert self._process.stdin is not None
        with contextlib.suppress(ValueError, BrokenPipeError):  # it was told to end meanwhile
            self._process.stdin.write(json.dumps(said) + "\n")
            self._process.stdin.flush()

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
            watch = Watch(process)
            plane.on_pod_stopped(watch.stopped)
            yield watch
        finally:
            process.kill()


def _moments(times: Mapping[str, float]) -> Mapping[str, datetime]:
    return {node: datetime.fromtimestamp(at, UTC) for node, at in times.items()}
