"""What a watch tells over HTTPS: a thread of its own waits for lines until they are taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

from msgspec import Raw
from urllib3.exceptions import HTTPError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

SILENT_SECONDS: Final = 30.0
"""After so long without a byte the connection is dead: a watch is asked to end before that."""


class WatchedEvents:
    """Implements `plimsoll.adapters.kubernetes.transport.Events`.

    How the connection ends tells nothing: the watch is resumed, and that request says what is wrong.
    """

    def __init__(self, response: BaseHTTPResponse) -> None:
        self.over = False
        self._response = response
        self._lines = deque[Raw]()
        sock = getattr(response.connection, "sock", None)
        if sock is not None:  # None where all of it has come already
            sock.settimeout(SILENT_SECONDS)
        Thread(target=self._read, name="plimsoll-watch", daemon=True).start()

    def take(self) -> Sequence[Raw]:
        """Return the lines that came since the last time, without waiting."""
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def close(self) -> None:
        """Hear no more: a thread that waits for a line wakes up, and gives the connection up."""
        with suppress(RuntimeError):  # it is over, and others may have the connection by now
            self._response.shutdown()

    def _read(self) -> None:
        rest = b""
        try:
            for part in self._response.stream():
                *lines, rest = (rest + part).split(b"\n")
                self._lines.extend(Raw(line) for line in lines if line)
        except (HTTPError, OSError):
            self._response.close()
        finally:
            self._response.release_conn()
            self.over = True
