"""Requests to a fake cluster in virtual time: each takes its latency, and bodies are plain JSON.

While the API server is down a connection is refused at once, and said as the real transport says
it: `Temporary`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Unpack, override

from plimsoll.adapters.kubernetes.transport import RequestParts, Response
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock


class SimulatedTransport(FakeTransport):
    """The way of one program to one cluster; `user` is its user agent."""

    def __init__(
        self,
        rig_cluster: SimulatedRigCluster,
        clock: VirtualClock,
        wire: SimulatedNetwork,
        user: str,
    ) -> None:
        super().__init__(rig_cluster.cluster, clock, user=user)
        self._rig_cluster = rig_cluster
        self._virtual = clock
        self._wire = wire

    @override
    def late(self) -> float:
        return self._wire.latency_seconds + self._rig_cluster.lag()

    @override
    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        more["body"] = json.loads(json.dumps(more.get("body")))
        send = partial(super().call, method, path, **more)

        def act() -> Response:
            answer = send()
            if method != "GET":
                self._virtual.touch(self._rig_cluster.cluster)
            return answer

        page = f"{path}?watch" if "watch" in (more.get("query") or {}) else path
        return self._wire.to_kubernetes(method, page, act, lag_seconds=self._rig_cluster.lag())
