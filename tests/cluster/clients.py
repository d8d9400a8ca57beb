"""Clients of Services on a real control plane, and the requests that they lose.

No kubelet here runs a program that could answer. So a request is a moment at which a client sends to
an address, and it is answered if the pod of that address runs then and for as long as an answer
takes. Which addresses there are the client knows from the EndpointSlices alone, as kube-proxy does;
when a pod stops the kubelets tell, to the millisecond.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Self, override

from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints, Service

BETWEEN_REQUESTS: Final = 0.05
ANSWER: Final = timedelta(seconds=0.1)
FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)
PATIENCE: Final = 9.0
"""Seconds until every Service must have endpoints: before any notice."""


@dataclass(frozen=True, kw_only=True)
class Request:
    at: datetime
    service: Service
    address: str | None
    """None: there was no ready endpoint."""


@dataclass
class Client(Threads):
    """Sends requests to all Services in turn, each to the next of its ready endpoints."""

    endpoints: ReadyEndpoints
    services: Sequence[Service]
    sent: list[Request] = field(default_factory=list)
    stopped: dict[str, datetime] = field(default_factory=dict)
    """Address -> when its pod stopped running."""

    def __post_init__(self) -> None:
        super().__init__()

    @override
    def __enter__(self) -> Self:
        self.spawn(self._run, "client")
        return self

    def lost(self, service: Service | None = None) -> list[Request]:
        """An address that is ready has a pod that runs: it answers until that stops."""
        return [
            request
            for request in self.sent
            if service in {None, request.service}
            and (
                request.address is None
                or request.at + ANSWER > self.stopped.get(request.address, FOR_EVER)
            )
        ]

    def saw(self, stopped: PodStopped) -> None:
        self.stopped[stopped.pod["status"]["podIP"]] = stopped.at

    def _run(self) -> None:
        for turn in itertools.count():
            for service in self.services:
                ready = self.endpoints.ready(service)
                address = ready[turn % len(ready)] if ready else None
                self.sent.append(Request(at=datetime.now(UTC), service=service, address=address))
            if self.ended.wait(BETWEEN_REQUESTS):
                return


def send(plane: ControlPlane, exits: ExitStack, services: Sequence[Service]) -> Client:
    """Start a client, once every Service has endpoints; it ends with `exits`."""
    endpoints = exits.enter_context(ReadyEndpoints(plane.kubeconfig()))
    end = time.monotonic() + PATIENCE
    while not all(map(endpoints.ready, services)):
        assert time.monotonic() < end, "the Services have no endpoints"
        time.sleep(BETWEEN_REQUESTS)
    client = Client(endpoints, services)
    plane.on_pod_stopped(client.saw)
    return exits.enter_context(client)
