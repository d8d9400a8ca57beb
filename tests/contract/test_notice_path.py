"""A notice reaches the API server on a short way: few frames on the stack, and each decision once."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import functions.notices
import plimsoll
from plimsoll import bootstrap
from plimsoll.adapters.clusters import LazyTransport
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll_testbed.model.hollow.serve import HollowServer
from plimsoll_testbed.rigs.access import Access
from tests.functions.conftest import Context, batch
from tests.support.workload_sets import WiredServices

MOST_FRAMES: Final = 12
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
    API server is a hollow one behind HTTP, reached through the transport that reaches EKS; stores and
    queues are in memory.
    """
    services = WiredServices()
    instance = services.join("spot", capacity="spot")
    services.resync.run()
    trace = Trace()
    before = bootstrap.notices
    with HollowServer(services.hollow, now=services.now) as server:
        transport = LazyTransport(Access(url=server.url, token=server.token).transport)
        services.api = KubernetesCluster(transport, "harbor", services, workers=services.workers)
        services.api.nodes()  # a warm function: the connection stands
        context: Any = Context()
        event = batch(services.spot_event(instance))
        bootstrap.notices = lambda: services.notices
        sys.setprofile(trace)
        try:
            answer = functions.notices.handler(event, context)
        finally:
            sys.setprofile(None)
            bootstrap.notices = before
        if answer["batchItemFailures"] or not services.node("spot").unschedulable:
            raise RuntimeError("the notice was not handled")
    return trace


def test_few_frames_of_ours_are_on_the_stack_when_the_patch_is_sent():
    trace = traced()
    assert trace.at_patch[0] == "handler"
    assert len(trace.at_patch) <= MOST_FRAMES, trace.at_patch


def test_a_notice_is_parsed_and_decided_once():
    names = {code.co_qualname: count for code, count in traced().calls.items()}
    assert names["NoticeService._read"] == names["actionable"] == names["merge"] == 1
