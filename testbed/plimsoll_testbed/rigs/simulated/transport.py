"""Requests to a hollow cluster in virtual time: each takes its latency, and bodies are plain JSON.

While the API server is down a connection is refused at once, and said as the real transport says
it: `Temporary`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import override

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rigs.simulated.network import SimulatedNetwork
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.simulated.time import VirtualClock


class SimulatedTransport(HollowTransport):
    """The way of one program to one cluster; `user` is its user agent."""

    def __init__(
        self, rig_cluster: HollowRigCluster, clock: VirtualClock, wire: SimulatedNetwork, user: str
    ) -> None:
        super().__init__(rig_cluster.cluster, clock, user=user)
        self._rig_cluster = rig_cluster
        self._virtual = clock
        self._wire = wire

    @override
    def late(self) -> float:
        return self._wire.latency_seconds + self._rig_cluster.lag()

    @override
    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,
    ) -> Response:
        sent = None if body is None else json.loads(json.dumps(body))
        send = partial(super().call, query=query, body=sent, content_type=content_type)

        def act() -> Response:
            answer = send(method, path)
            if method != "GET":
                self._virtual.touch(self._rig_cluster.cluster)
            return answer

        page = f"{path}?watch" if query and "watch" in query else path
        return self._wire.to_kubernetes(method, page, act, lag_seconds=self._rig_cluster.lag())
