"""What runs of our code for one spot notice."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final
from unittest.mock import patch

import functions.notices
import plimsoll
from plimsoll import bootstrap
from plimsoll.adapters.clusters import LazyTransport
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from tests.functions.conftest import Context, batch
from tests.support.workload_sets import WiredServices

OURS: Final = tuple(
    str(Path(module.__file__ or "").parent) for module in (functions.notices, plimsoll)
)


@dataclass(slots=True)
class Trace:
    """What ran for one notice."""

    calls: Counter[CodeType] = field(default_factory=Counter)
    at_patch: list[str] = field(default_factory=list)
    """Our functions on the stack when the PATCH was sent, the handler first."""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take in an event of the interpreter: see `sys.setprofile`."""
        if event != "call":
            return
        if frame.f_code.co_filename.startswith(OURS):
            self.calls[frame.f_code] += 1
        elif frame.f_code.co_name == "putrequest" and frame.f_locals.get("method") == "PATCH":
            self.at_patch = list(reversed(_our_frames(frame)))


def _our_frames(frame: FrameType | None) -> list[str]:
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found


def traced() -> Trace:
    """Handle one notice and return what ran of `functions` and `plimsoll`.

    The handler of the function `notices` is called with one SQS record, its instance in the index. The
    API server is a fake one behind HTTP, reached through the transport that reaches EKS; stores and
    queues are in memory.
    """
    services = WiredServices()
    instance = services.join("spot", capacity="spot")
    services.resync.run()
    trace = Trace()
    with FakeApiServer(services.fake_cluster, now=services.now) as server:
        transport = LazyTransport(Access(url=server.url, token=server.token).transport)
        services.api = KubernetesCluster(transport, "harbor", services, workers=services.workers)
        services.api.nodes()  # a warm function: the connection stands
        context: Any = Context()
        event = batch(services.spot_event(instance))
        with patch.object(bootstrap, "services", lambda: services.services):
            sys.setprofile(trace)
            try:
                answer = functions.notices.handler(event, context)
            finally:
                sys.setprofile(None)
        if answer["batchItemFailures"] or not services.node("spot").unschedulable:
            raise RuntimeError("the notice was not handled")
    return trace
