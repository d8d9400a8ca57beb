"""LocalStack as its ordinary image, where a container engine answers: by `compose.yaml`, and by that alone.

Untested: it was written where no engine was at hand. It serves `make localstack`; the rig and the
tests always take `LocalStack`, whose functions reach the drill's fleet and hollow clusters on
loopback, which functions in containers do not.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, override

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.localstack.localstack import LocalStack

URL: Final = "http://127.0.0.1:4566"
_FILE: Final = "infra/local/localstack/compose.yaml"
_ASK_SECONDS: Final = 20.0


@dataclass(slots=True, kw_only=True)
class ComposedLocalStack(LocalStack):
    """The image `localstack/localstack`. Use it as a context manager."""

    @override
    def __enter__(self) -> Self:
        """Start the image and wait until it is healthy.

        Raises:
            Refused: compose could not; the message says what it said.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="plimsoll-localstack-"))
        self.url = URL
        try:
            self._compose("up", "--detach", "--wait")
        except BaseException:
            self.stop()
            raise
        return self

    @override
    def stop(self) -> None:
        """Remove the container, and what it kept. Twice is once."""
        self._compose("down", "--volumes", "--remove-orphans")
        shutil.rmtree(self._folder, ignore_errors=True)

    @override
    def _path(self) -> str:
        return "/usr/local/bin:/usr/bin:/bin"  # of SAM CLI, which is named by its path

    def _compose(self, *words: str) -> None:
        file = self.checkout.root / _FILE
        done = subprocess.run(  # noqa: S603 - the engine's own client
            ["docker", "compose", "--file", file, *words],  # noqa: S607 - wherever it is
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Refused(f"docker compose {words[0]} of {file} failed:\n{done.stdout[-3000:]}")


def engine_answers() -> bool:
    """Whether there is a container engine: a client alone proves nothing."""
    if shutil.which("docker") is None:
        return False
    try:
        asked = subprocess.run(
            ["docker", "info"],  # noqa: S607 - wherever it is
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0
