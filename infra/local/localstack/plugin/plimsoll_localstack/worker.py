"""One process of a function, and the only one that its Runtime API serves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import suppress
from pathlib import Path

from plimsoll_localstack.runtimeapi import Answered, Call, RuntimeApi

START_SECONDS = 15.0
KEPT_LINES = 2000
END_SECONDS = 1.0


class Worker:
    """A process that waits for invocations, or works on one.

    Args:
        handler: as in the template.
        place: shown in the process's command line, so that others can find it.
        code: the unzipped function.
        layers: the unzipped layers, in the function's order.
        environment: what the process is told.

    Raises:
        ConnectionError: it does not start; the message says why.
    """

    def __init__(
        self,
        handler: str,
        *,
        place: str,
        code: Path,
        layers: Sequence[Path],
        environment: Mapping[str, str],
    ) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._written = 0
        self._api = RuntimeApi()
        self._api.__enter__()
        # Of two layers with the same file the later one wins, and the function before them all:
        # https://docs.aws.amazon.com/lambda/latest/dg/packaging-layers.html.
        path = [code, *(layer / "python" for layer in reversed(layers))]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "awslambdaric", handler, place],
            cwd=code,
            env={
                **environment,
                "LAMBDA_TASK_ROOT": str(code),
                "_HANDLER": handler,
                "AWS_LAMBDA_RUNTIME_API": self._api.address,
                "PYTHONPATH": ":".join(map(str, path)),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._api.ready.result(START_SECONDS)
        except TookTooLong as error:
            self.end()
            raise ConnectionError(
                f"not ready after {START_SECONDS:.0f} s: {self.output()}"
            ) from error
        except ConnectionError:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def mark(self) -> int:
        """Where its output is now, for `output`."""
        return self._written

    def invoke(self, call: Call) -> Answered:
        """Return the answer to an invocation.

        Raises:
            TimeoutError: it took too long; the process still works on it.
            ConnectionError: the process went.
        """
        future = self._api.ask(call)
        if not self._reader.is_alive():  # it went before the question was there to be failed
            self._api.fail(self._gone())
        return future.result(call.seconds)

    def output(self, since: int = 0) -> str:
        """Return what it wrote after a mark, as far as that is kept."""
        lines = list(self._lines)
        return "".join(lines[max(0, len(lines) - (self._written - since)) :])

    def end(self) -> None:
        """Kill it, as Lambda does, and serve nobody any more. Twice is once."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._reader.join(END_SECONDS)
        self._api.__exit__()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was opened as a pipe
        for line in self._process.stdout:
            self._lines.append(line)
            self._written += 1
            sys.stdout.write(line)  # one log for LocalStack and all its functions
            sys.stdout.flush()
        self._process.wait()
        self._api.fail(self._gone())

    def _gone(self) -> str:
        return f"Worker process died (status {self._process.poll()})"
