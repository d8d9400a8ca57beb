"""Requests to a hollow cluster in virtual time: each takes its latency, and bodies are plain JSON.

While the API server is down a connection is refused at once, and said as the real transport says
it: `Temporary`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.errors import Temporary
from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.rigs.simulated.network import SimulatedNetwork
from plimsoll_testbed.rigs.simulated.time import VirtualClock


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTransport:
    """The port `Transport`, for one program that talks to one cluster."""

    cluster: HollowCluster
    name: str
    user: str
    """The program's user agent."""
    wire: SimulatedNetwork
    clock: VirtualClock
    lag: Callable[[], float]
    """By how many seconds answers are late just now."""

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,
    ) -> Response:
        """Send a request and return its answer, whatever its status.

        Raises:
            Temporary: the API server is down, or too slow.
        """
        sent = None if body is None else json.loads(json.dumps(body))

        def act() -> Response:
            try:
                answer = self.cluster.handle(
                    method,
                    path,
                    query,
                    sent,
                    content_type or "application/json",
                    now=self.clock.now(),
                    user=self.user,
                )
            except ConnectionRefusedError as error:
                raise Temporary(f"cluster {self.name}: {method} {path}: {error}") from error
            if method != "GET":
                self.clock.touch(self.cluster)
            return answer

        return self.wire.to_kubernetes(method, path, act, lag_seconds=self.lag())
