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

BOOKMARK_SECONDS: Final = 60.0
"""How often an API server writes to a watch on which nothing happens.

https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks
"""
WAITING_BYTES: Final = 16 * 2**20
"""When so much waits to be taken the watch ends, to be resumed from there: whatever happens in the cluster
meanwhile, memory is bounded."""


class WatchedEvents:
    """Implements `plimsoll.adapters.kubernetes.transport.Events`.

    How the connection ends tells nothing: the watch is resumed, and that request says what is wrong.

    Args:
        response: What is read.
        seconds: How long the watch was asked to last. Twice that without a byte, or two bookmarks that
            did not come, and the connection is dead.
    """

    def __init__(self, response: BaseHTTPResponse, seconds: float) -> None:
        self.over = False
        self._response = response
        self._lines = deque[Raw]()
        self._came = self._taken = 0  # bytes; each is written by one thread
        sock = getattr(response.connection, "sock", None)
        if sock is not None:  # None where all of it has come already
            # The request's read timeout of five seconds would end a quiet watch.
            sock.settimeout(2 * min(seconds, BOOKMARK_SECONDS))
        Thread(target=self._read, name="plimsoll-watch", daemon=True).start()

    def take(self) -> Sequence[Raw]:
        """Return the lines that came since the last time, without waiting."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        self._taken += sum(map(len, lines))
        return lines

    def close(self) -> None:
        """Hear no more: a thread that waits for a line wakes up, and gives the connection up."""
        # It is over, closed by its thread, or others have the connection by now.
        with suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()

    def _read(self) -> None:
        rest = b""
        try:
            for part in self._response.stream():
                *lines, rest = (rest + part).split(b"\n")
                self._lines.extend(Raw(line) for line in lines if line)
                self._came += sum(map(len, lines))
                if self._came - self._taken > WAITING_BYTES:
                    self._response.close()
                    break
        except (HTTPError, OSError):
            self._response.close()
        finally:
            # Released before `over` is set: the next watch finds the connection in the pool.
            self._response.release_conn()
            self.over = True
