"""Requests to a hollow cluster in virtual time: each takes its latency, and bodies are plain JSON.

While the API server is down a connection is refused at once, and said as the real transport says
it: `Temporary`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rigs.simulated.network import SimulatedNetwork
from plimsoll_testbed.rigs.simulated.time import VirtualClock


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTransport:
    """The port `Transport`, for one program that talks to one cluster."""

    cluster: HollowCluster
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
        hollow = HollowTransport(self.cluster, self.clock, user=self.user)

        def act() -> Response:
            answer = hollow.call(method, path, query=query, body=sent, content_type=content_type)
            if method != "GET":
                self.clock.touch(self.cluster)
            return answer

        return self.wire.to_kubernetes(method, path, act, lag_seconds=self.lag())
