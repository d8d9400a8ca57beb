"""Plays cases of gangs on a real control plane, with its scheduler alone or with queues before it."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Final, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import PlimsollError, Refused, Temporary
from plimsoll.domain.reports import Metric
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY, GANG
from plimsoll_batch.services.queues import QueueService
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gangs.cases import (
    CLIENTS,
    SIZE,
    Case,
    configuration,
    nodes,
    submissions,
)

POLL_SECONDS: Final = 0.25
CYCLE_SECONDS: Final = 0.5
ATTEMPTS: Final = 5
_CREATED: Final = 201
_OK: Final = 200
_CONFLICT: Final = 409
_STRATEGIC: Final = "application/strategic-merge-patch+json"


class Silent:
    """Implements `Telemetry` for whom only figures matter; warnings are kept."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def log(self, message: str, **facts: object) -> None:
        """Say nothing."""

    def warn(self, message: str, **facts: object) -> None:
        """Keep it."""
        self.warnings.append(f"{message}: {facts}")

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """What became of one case."""

    case: Case
    done: dict[str, float] = field(default_factory=dict)
    """Gang -> second at which it ended."""
    wasted: float = 0.0
    """Seconds, times places held by gangs of which not all pods had one."""
    bound: dict[str, int] = field(default_factory=dict)
    """Gang -> pods with a place, when last seen."""
    whole_since: dict[str, float] = field(default_factory=dict)

    @property
    def makespan(self) -> float | None:
        """When the last job had ended; None where not all did."""
        return max(self.done.values()) if len(self.done) == self.case.jobs else None


def play(
    plane: ControlPlane,
    cases: Sequence[Case],
    *,
    window: float,
    runs: float,
    seen: Callable[[float, Sequence[Progress]], None] = lambda *_: None,
) -> Sequence[Progress]:
    """Play cases side by side. What they leave stays on the control plane.

    Args:
        plane: a control plane that runs.
        cases: their names are those of namespaces, nodes and queues.
        window: seconds after which it ends.
        runs: seconds for which all six pods of a job have to run at once.
        seen: told of the progress, several times a second.
    """
    api = plane.transport()
    _prepare(plane, api, cases)
    progress = [Progress(case=case) for case in cases]
    started = time.monotonic()
    with ExitStack() as stack:
        if any(case.queued for case in cases):
            stack.enter_context(Planner(plane))
        clients = stack.enter_context(ThreadPoolExecutor(CLIENTS * len(cases)))
        submitted = [future for case in cases for future in _submit(plane, clients, case)]
        last = time.monotonic()
        while (now := time.monotonic()) - started < window:
            with suppress(Temporary):  # it is busy, and is asked again
                _observe(api, progress, now - started, now - last, runs)
                last = now
            seen(now - started, progress)
            if all(each.makespan is not None for each in progress):
                break
            time.sleep(POLL_SECONDS)
        for future in submitted:
            future.result()
    return progress


class Planner(AbstractContextManager[None]):
    """Runs the planner of the queues beside the caller, as events about Jobs would, while its block lasts."""

    def __init__(self, plane: ControlPlane) -> None:
        self._workers = ThreadWorkers()
        self._telemetry = Silent()
        clock = SystemClock()
        self._service = QueueService(
            name="gangs",
            cluster=KubernetesQueues.of(plane.transport("admin"), "gangs", clock, self._workers),
            clock=clock,
            workers=self._workers,
            telemetry=self._telemetry,
        )
        self._ended = Event()
        self._thread = Thread(target=self._run, name="planner", daemon=True)

    @override
    def __enter__(self) -> None:
        self._thread.start()

    @override
    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._workers.close()

    def _run(self) -> None:
        while not self._ended.wait(CYCLE_SECONDS):
            try:
                self._service.run(holder="gangs", seconds=5.0, cycle_seconds=CYCLE_SECONDS)
            except PlimsollError as error:
                self._telemetry.warn("the planner failed", because=str(error))


def _prepare(plane: ControlPlane, api: Transport, cases: Sequence[Case]) -> None:
    for case in cases:
        post(api, "/api/v1/namespaces", {"metadata": {"name": case.name}})
    plane.join(*(node for case in cases for node in nodes(case)))
    configure(api, configuration(list(cases)))


def configure(api: Transport, queues: Mapping[str, Any]) -> None:
    """Store the configuration of the queues, in place of the one that is there.

    Raises:
        Refused: the API server does not take it.
    """
    post(api, "/api/v1/namespaces", {"metadata": {"name": "plimsoll"}})
    path = "/api/v1/namespaces/plimsoll/configmaps"
    body = {"metadata": {"name": CONFIGURATION}, "data": {CONFIGURATION_KEY: json.dumps(queues)}}
    if post(api, path, body).status == _CONFLICT:
        one = f"{path}/{CONFIGURATION}"
        expect(api.call("PATCH", one, body=body, content_type=MERGE_PATCH))


def _submit(plane: ControlPlane, clients: ThreadPoolExecutor, case: Case) -> list[Future[None]]:
    """Let each client of a case submit its Jobs, in order."""
    by_client: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for client, job in submissions(case):
        by_client[client].append(job)

    def submit(jobs: Sequence[dict[str, Any]]) -> None:
        api = plane.transport()
        for job in jobs:
            post(api, f"/apis/batch/v1/namespaces/{case.name}/jobs", job)

    return [clients.submit(submit, jobs) for jobs in by_client.values()]


def _observe(
    api: Transport, progress: Sequence[Progress], now: float, passed: float, runs: float
) -> None:
    """Look who has a place, and let those end that have all run long enough."""
    pods: dict[tuple[str, str], list[Any]] = defaultdict(list)
    answer = expect(api.call("GET", "/api/v1/pods", query={"labelSelector": GANG}))
    for pod in answer.body["items"]:
        if pod["status"].get("phase") not in {"Succeeded", "Failed"}:
            meta = pod["metadata"]
            pods[meta["namespace"], meta["labels"][GANG]].append(pod)
    for each in progress:
        for gang in each.case.gangs:
            if gang in each.done:
                continue
            mine = [p for p in pods[each.case.name, gang] if p["spec"].get("nodeName")]
            each.bound[gang] = len(mine)
            if len(mine) < SIZE:
                each.wasted += len(mine) * passed
            running = [p for p in mine if p["status"].get("phase") == "Running"]
            if len(running) < SIZE:
                each.whole_since.pop(gang, None)
            elif now - each.whole_since.setdefault(gang, now) >= runs:
                for pod in running:
                    succeed(api, pod)
                each.done[gang], each.bound[gang] = now, 0


def succeed(api: Transport, pod: Any) -> None:
    """Let the containers of a pod end well."""
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
    body = {"status": {"phase": "Succeeded"}}
    expect(api.call("PATCH", path, body=body, content_type=_STRATEGIC))


def post(api: Transport, path: str, body: object) -> Response:
    """Create an object. Where no answer comes, again: it has a name, so it is there once."""
    for _ in range(ATTEMPTS):
        with suppress(Temporary):
            answer = api.call("POST", path, body=body, content_type="application/json")
            break
    else:
        raise Refused(f"POST {path}: no answer to {ATTEMPTS} requests")
    if answer.status not in {_CREATED, _CONFLICT}:
        raise Refused(f"POST {path}: {answer.status} {answer.body}")
    return answer


def expect(answer: Response) -> Response:
    """Return an answer that is as it should be.

    Raises:
        Refused: it is not.
    """
    if answer.status != _OK:
        raise Refused(f"{answer.status} {answer.body}")
    return answer
