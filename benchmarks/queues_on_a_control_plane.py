"""How fast queues start Jobs on a real control plane: decisions, writes and bound pods, each apart.

Kueue's baseline shape, 5 cohorts of 6 queues, each with 350 small, 100 middle and 50 large Jobs: created
suspended, then planned and started by the product's own service against the API server. Quotas and nodes
hold all of them, and no pod ends, so that nothing but the way through is measured. Run it from the repository:

    .venv/bin/python -m benchmarks.queues_on_a_control_plane [--workloads 3000] [--rates 50 1000] [--seconds 200]

Each rate is a run of its own on a new control plane. `make controlplane` builds its programs.
https://github.com/kubernetes-sigs/kueue/tree/main/test/performance/scheduler/configs/baseline
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Thread
from typing import Any, Final, Unpack

from rich.console import Console

from benchmarks.output import machine, table
from benchmarks.queues import BASELINE, Kind
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.transport import RequestParts, Response, Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.admission import QueuePlan, plan_queues
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY, PRIORITY, QUEUE
from plimsoll_batch.services import queues as service
from plimsoll_batch.services.queues import PODS_PER_SECOND, QueueService
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gangs.play import Silent

COHORTS, QUEUES = 5, 6
ALL: Final = COHORTS * QUEUES * sum(kind.number for kind in BASELINE)
NAMESPACE: Final = "bench"
JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
PODS_OF_A_NODE: Final = 110
NODE_CPUS: Final = 1000
CREATORS: Final = 16
RUN_SECONDS: Final = 50.0
"""For how long the service plans at a time; it is called again as long as Jobs wait."""
POLL_SECONDS: Final = 1.0
TIMES: Final = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=1))
_CREATED: Final = 201
_REFUSED: Final = 400


@dataclass
class Run:
    """What one run came to. Times are seconds since the planner began."""

    rate: int
    workloads: int
    began_at: datetime
    began: float = 0.0
    started: list[float] = field(default_factory=list)
    """When each start was answered."""
    refused: Counter[int] = field(default_factory=Counter)
    """Writes that were answered with 400 and above, by status. Those of 409 are tried again."""
    planned_in: float = 0.0
    """CPU seconds of all plans."""
    admitted: int = 0
    bound: list[float] = field(default_factory=list)
    """When each pod was bound, to the second."""


class Counted:
    """Implements `Transport`: notes when each Job was started."""

    def __init__(self, inner: Transport, run: Run) -> None:
        self._inner = inner
        self._run = run

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Send it, and note it where it starts a Job or is refused."""
        answer = self._inner.call(method, path, **more)
        body: Any = more.get("body") or {}
        if method != "GET" and answer.status >= _REFUSED:
            self._run.refused[answer.status] += 1
        elif path.startswith(JOBS) and body.get("spec", {}).get("suspend") is False:
            self._run.started.append(time.monotonic() - self._run.began)
        return answer


@contextmanager
def planner_timed(run: Run) -> Iterator[None]:
    """Count the decisions of the planner, and the CPU seconds of its thread that they take."""

    def call(*given: Any, **more: Any) -> QueuePlan:
        at = time.thread_time()
        plan = plan_queues(*given, **more)
        run.planned_in += time.thread_time() - at
        run.admitted += len(plan.admitted)
        return plan

    of_service = vars(service)
    of_service["plan_queues"] = call
    try:
        yield
    finally:
        of_service["plan_queues"] = plan_queues


def configuration() -> dict[str, Any]:
    """Return Kueue's cohorts and policies, with quotas that hold everything."""
    quota = {"cpu": {"nominal": 10_000}}
    return {
        "flavors": [{"name": "default"}],
        "cohorts": [{"name": f"c{cohort}"} for cohort in range(COHORTS)],
        "queues": [
            {
                "name": f"c{cohort}-q{queue}",
                "cohort": f"c{cohort}",
                "preemption": {"withinQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                "resourceGroups": [{"flavors": [{"name": "default", "resources": quota}]}],
            }
            for cohort in range(COHORTS)
            for queue in range(QUEUES)
        ],
    }


def jobs(workloads: int) -> Iterator[dict[str, Any]]:
    """Yield about so many Jobs of Kueue's mix, the kinds and queues by turns."""
    share = workloads / ALL
    for kind in BASELINE:
        for number in range(max(1, round(kind.number * share))):
            for cohort in range(COHORTS):
                for queue in range(QUEUES):
                    yield _job(f"c{cohort}-q{queue}", kind, number)


def _job(queue: str, kind: Kind, number: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "x",
        "resources": {"requests": {"cpu": str(kind.cpus)}},
    }
    return {
        "metadata": {
            "name": f"{queue}-{kind.cpus}-{number}",
            "labels": {QUEUE: queue},
            "annotations": {PRIORITY: str(kind.priority)},
        },
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def create(api: Transport, path: str, body: object) -> None:
    """Create an object, or fail: what is not there would be missing in every figure."""
    answer = api.call("POST", path, body=body, content_type="application/json")
    if answer.status != _CREATED:
        raise Refused(f"POST {path}: {answer.status} {answer.body}")


def prepare(plane: ControlPlane, run: Run) -> None:
    """Let nodes join that hold every pod, and submit the Jobs."""
    api = plane.transport(connections=CREATORS)
    for name in ("plimsoll", NAMESPACE):
        create(api, "/api/v1/namespaces", {"metadata": {"name": name}})
    data = {CONFIGURATION_KEY: json.dumps(configuration())}
    path = "/api/v1/namespaces/plimsoll/configmaps"
    create(api, path, {"metadata": {"name": CONFIGURATION}, "data": data})
    made = [*jobs(run.workloads)]
    run.workloads = len(made)
    allocatable = {"cpu": str(NODE_CPUS), "memory": "64Gi", "pods": str(PODS_OF_A_NODE)}
    plane.join(
        *(
            {
                "metadata": {"name": f"n{n}", "labels": {"kubernetes.io/hostname": f"n{n}"}},
                "status": {"allocatable": allocatable},
            }
            # A tenth more than pods need: no node has to be filled to the last place.
            for n in range(math.ceil(1.1 * len(made) / PODS_OF_A_NODE) + 1)
        )
    )
    with ThreadPoolExecutor(CREATORS) as threads:
        list(threads.map(lambda job: create(api, JOBS, job), made))


def plan_and_start(plane: ControlPlane, run: Run, heard: Silent, seconds: float) -> None:
    """Run the product's service until everything was started, or for so many seconds."""
    workers, clock = ThreadWorkers(), SystemClock()
    through = Counted(plane.transport("admin"), run)
    planner = QueueService(
        name="bench",
        cluster=KubernetesQueues.of(through, "bench", clock, workers),
        clock=clock,
        workers=workers,
        telemetry=heard,
        pods_per_second=run.rate,
    )
    try:
        while len(run.started) < run.workloads:
            left = seconds - (time.monotonic() - run.began)
            if left <= 0:
                return
            planner.run(holder="bench", seconds=min(RUN_SECONDS, left))
    finally:
        workers.close()


def count(api: Transport, **query: str) -> int:
    """Return how many pods there are, of one page with one of them."""
    body = api.call("GET", PODS, query={"limit": "1", **query}).body
    return len(body["items"]) + int(body["metadata"].get("remainingItemCount") or 0)


def bound(api: Transport, run: Run) -> list[float]:
    """Return when each pod was bound, by its condition."""
    found, more = [], {"limit": "500"}
    while True:
        body = api.call("GET", PODS, query=more).body
        for pod in body["items"]:
            for each in pod["status"].get("conditions", ()):
                if each["type"] == "PodScheduled" and each["status"] == "True":
                    at = datetime.fromisoformat(each["lastTransitionTime"])
                    found.append((at - run.began_at).total_seconds())
        token = body["metadata"].get("continue")
        if not token:
            return sorted(found)
        more = {"limit": "500", "continue": token}


def play(run: Run, seconds: float, heard: Silent) -> None:
    """Play one run on a control plane of its own."""
    with ControlPlane(settings=TIMES) as plane, planner_timed(run):
        print(f"{run.rate} pods a second allowed: creating Jobs", flush=True)
        prepare(plane, run)
        run.began, run.began_at = time.monotonic(), SystemClock().now()
        planner = Thread(target=plan_and_start, args=(plane, run, heard, seconds), daemon=True)
        planner.start()
        api = plane.transport()
        while time.monotonic() - run.began < seconds:
            time.sleep(POLL_SECONDS)
            try:
                pods = count(api)
                unbound = pods < run.workloads or count(api, fieldSelector="spec.nodeName=") > 0
            except Temporary:  # it is busy, and is asked again
                continue
            if not unbound or not (planner.is_alive() or len(run.started) >= run.workloads):
                break
        planner.join(seconds + RUN_SECONDS)
        run.bound = bound(api, run)


def _rate(times: list[float]) -> float:
    """Return how many came in a second, from the planner's beginning to the last."""
    return len(times) / max(1.0, max(times, default=0.0))


def shown(runs: list[Run], console: Console) -> None:
    figures = table(
        "decisions, starts and pods: three figures of three things",
        "pods/s allowed",
        "Jobs",
        "decided per CPU s of planning",
        "Jobs started/s",
        "pods bound/s",
        "started",
        "bound",
        "last bound s",
        "writes refused",
    )
    for run in runs:
        figures.add_row(
            f"{run.rate}",
            f"{run.workloads:,}",
            f"{run.admitted / max(run.planned_in, 1e-9):,.0f}",
            f"{_rate(run.started):.0f}",
            f"{_rate(run.bound):.0f}",
            f"{len(run.started):,}",
            f"{len(run.bound):,}",
            f"{max(run.bound, default=0):.0f}",
            f"{run.refused.total():,}",
        )
    console.print(figures)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--workloads", type=int, default=3000, help=f"Kueue's shape has {ALL:,}.")
    options.add_argument("--rates", type=int, nargs="+", default=[PODS_PER_SECOND, 1000])
    options.add_argument("--seconds", type=float, default=200, help="After these a run ends.")
    given = options.parse_args()
    console, heard = Console(width=160), Silent()
    console.print(machine())
    runs = []
    for rate in given.rates:
        run = Run(rate=rate, workloads=given.workloads, began_at=SystemClock().now())
        play(run, given.seconds, heard)
        runs.append(run)
    shown(runs, console)
    for warning, times in Counter(each.split(":")[0] for each in heard.warnings).items():
        console.print(f"warned {times} times: {warning}")


if __name__ == "__main__":
    main()
