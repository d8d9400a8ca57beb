"""Queues at play: a fake cluster whose Jobs are planned, and time that moves when a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import yaml

from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.interruptions import Policy
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.ports import Times
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.names import ADMISSION, CONFIGURATION, STOP
from plimsoll_batch.domain.queue_metrics import QueueMeasure
from plimsoll_batch.services.preemption_log import PreemptionLog
from plimsoll_batch.services.queues import QueueService
from plimsoll_simulation.fake_cluster.conditions import is_active, is_true
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.fake_clusters import Json, Play
from tests.support.preemptions import MemoryPreemptions
from tests.support.repeating import VirtualTime

JOBS = "/apis/batch/v1/namespaces/lab/jobs"
GATE: Json = {"name": "plimsoll.dev/queue"}
ONE_QUEUE = """
flavors: [{name: any}]
queues:
  - name: lab
    preemption: {withinQueue: LowerPriority}
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 1000}}}]}]
"""


class KilledError(BaseException):
    """The planner dies: nothing that it would have done afterwards happens."""


def killed_at_each_write(
    make: Callable[[], Scene], tell: Callable[[Scene], None], *, after: bool
) -> Iterator[tuple[str, Scene]]:
    """Tell a story once for each of its writes, killing the planner there, and yield where and what came of it.

    Args:
        make: sets up the scene; always the same.
        tell: plays the story; planners that come up later carry on.
        after: whether the write is made before the planner dies.
    """
    writes: list[str] = []
    scene = make()
    scene.wire.after = lambda method, path, _: writes.append(f"{method} {path}")
    tell(scene)
    for number, write in enumerate(writes):
        scene, left = make(), number

        def kill(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise KilledError

        setattr(scene.wire, "after" if after else "before", kill)
        tell(scene)
        assert left < 0, f"the planner was not killed at write {number}, {write}"
        yield f"{number}: {write}", scene


class Heard:
    """Implements `Telemetry`; keeps what was said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Mapping[str, object]]] = []

    def log(self, message: str, **facts: object) -> None:
        self.said.append((message, facts))

    warn = log

    def count(self, metric: object, value: float = 1, *, cluster: str | None = None) -> None: ...


class Metered:
    """Implements `QueueMeter`; keeps what was measured."""

    def __init__(self) -> None:
        self.measured: list[tuple[str, str, str | None, float]] = []

    def measure(self, cluster: str, measures: Sequence[QueueMeasure]) -> None:
        assert cluster == "harbor"
        self.measured += [(m.metric, m.queue, m.reason, m.value) for m in measures]


class Wire(FakeTransport):
    """Says each write to a listener, before and after it is made. Of who was killed no call arrives."""

    dead = False
    before: Callable[[str, str, Any], None] = staticmethod(lambda *_: None)
    after: Callable[[str, str, Any], None] = staticmethod(lambda *_: None)

    def call(self, method: str, path: str, **more: Any) -> Response:
        if self.dead:
            raise KilledError
        write = method != "GET" and "/leases" not in path
        try:
            if write:
                self.before(method, path, more.get("body"))
            answer = super().call(method, path, **more)
            if write:
                self.after(method, path, more.get("body"))
        except KilledError:
            self.dead = True
            raise
        return answer


class _Clock(VirtualTime):
    def __init__(self, play: Play) -> None:
        super().__init__(play.now)
        self._play = play

    def pass_to(self, time: datetime) -> None:
        super().pass_to(time)
        self._play.now = max(self._play.now, time)
        self._play.cluster.step(self._play.now)


class Scene:
    """A cluster with queues and its planner."""

    def __init__(self, nodes: int = 10, queues: str = ONE_QUEUE, **settings: float) -> None:
        times: dict[str, Any] = {"pod_startup": 1, **settings}
        self.play = Play(**times)
        self.clock = _Clock(self.play)
        self.wire = Wire(self.play.cluster, self.clock, user="planner")
        self.heard = Heard()
        self.meter = Metered()
        self.preemptions = MemoryPreemptions()
        self.policy = Policy()
        self.times: Times | None = None
        self.play.apply(
            *({"kind": "Namespace", "metadata": {"name": n}} for n in ("lab", "plimsoll"))
        )
        self.play.nodes(*(f"n{number}" for number in range(nodes)), cpu="1")
        self.configure(queues)
        self._runs = 0

    def configure(self, queues: str) -> None:
        data = {"queues.json": json.dumps(yaml.safe_load(queues))}
        path = "/api/v1/namespaces/plimsoll/configmaps"
        body = {"metadata": {"name": CONFIGURATION}, "data": data}
        if self.play.call("POST", path, body).status != 201:
            self.play.patch(f"{path}/{CONFIGURATION}", body)

    def service(self) -> QueueService:
        """A planner as it comes up: it remembers nothing of those before."""
        cluster = KubernetesQueues.of(self.wire, "harbor", self.clock, SerialWorkers())
        return QueueService(
            name="harbor",
            cluster=cluster,
            clock=self.clock,
            workers=SerialWorkers(),
            telemetry=self.heard,
            policy=self.policy,
            meter=self.meter,
            preemptions=PreemptionLog(history=self.preemptions, telemetry=self.heard),
            observed_times=None
            if self.times is None
            else ObservedTimes(
                times=self.times,
                clock=self.clock,
                workers=SerialWorkers(),
                telemetry=self.heard,
            ),
        )

    def run(self, seconds: float = 5) -> int:
        """Run the planner for so long, whether or not it has something to do."""
        self._runs += 1
        self.wire.dead = False
        end = self.clock.time.timestamp() + seconds
        try:
            cycles = self.service().run(holder=f"run-{self._runs}", seconds=seconds)
        except KilledError:
            cycles = -1
        self.clock.sleep(max(0.0, end - self.clock.time.timestamp()))
        return cycles

    def submit(self, *jobs: Json) -> None:
        self.play.apply(*jobs)
        self.clock.sleep(0.2)

    def job(self, name: str) -> Json:
        return self.play.get(f"{JOBS}/{name}")

    def patch(self, name: str, body: Json) -> None:
        self.play.patch(f"{JOBS}/{name}", body)

    def pods_of(self, *jobs: str) -> Sequence[Json]:
        return [
            pod
            for pod in self.play.cluster.store.all("pods")
            if is_active(pod)
            and pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") in jobs
        ]

    def running(self, *jobs: str) -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in self.pods_of(*jobs))

    def suspended(self, name: str) -> bool:
        return bool(self.job(name)["spec"].get("suspend"))

    def complete(self, name: str) -> bool:
        return is_true(self.job(name), "Complete")

    def events(self, name: str) -> list[str]:
        return [
            f"{event['reason']}: {event['message']}"
            for event in self.play.cluster.store.all("events")
            if event["involvedObject"]["name"] == name
        ]


def a_job(  # noqa: PLR0913 - a test names what it is about
    name: str,
    pods: int = 1,
    *,
    gang: str | None = None,
    size: int | None = None,
    role: str | None = None,
    run: str | None = None,
    queue: str = "lab",
    cpu: str = "1",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """Return a suspended Job of the queue `lab`; a pod takes a whole node."""
    labels = {"plimsoll.dev/queue": queue, "plimsoll.dev/gang": gang, "plimsoll.dev/role": role}
    notes = dict(annotations or {}) | ({"plimsoll.dev/gang-size": str(size)} if size else {})
    template = {
        "metadata": {"annotations": {"drill.plimsoll.dev/run": run} if run else {}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "lab",
            "labels": {key: value for key, value in labels.items() if value},
            "annotations": notes,
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "template": template,
            **spec,
        },
    }


def a_bare_pod(
    name: str,
    *,
    gang: str | None = None,
    size: int | None = None,
    run: str | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """Return a gated pod of the queue `lab` that takes a whole node."""
    job = a_job(name, gang=gang, size=size, run=run, annotations=annotations)
    meta, template = job["metadata"], job["spec"]["template"]
    notes = meta["annotations"] | template["metadata"]["annotations"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "annotations": notes},
        "spec": {**template["spec"], "schedulingGates": [GATE], **spec},
    }


def in_group(group: str, job: Json) -> Json:
    """Return a Job whose pods name a PodGroup."""
    job["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": group}
    return job


def a_pod_group(name: str, spec: Json, *, gang: str | None = None) -> Json:
    """Return a PodGroup of the namespace `lab`; with a gang one that the planner made for it."""
    labels = {} if gang is None else {"plimsoll.dev/gang": gang}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "lab", "labels": labels},
        "spec": spec,
    }


def a_training(name: str, ps: int = 2, workers: int = 4, **more: Any) -> list[Json]:
    """Return a gang of two roles."""
    size = ps + workers
    return [
        a_job(f"{name}-ps", ps, gang=name, size=size, role="ps", **more),
        a_job(f"{name}-workers", workers, gang=name, size=size, role="workers", **more),
    ]


def record(job: Json, annotation: str = ADMISSION) -> Json:
    """Return what is kept on a Job; empty where nothing is."""
    found: Json = json.loads((job["metadata"].get("annotations") or {}).get(annotation, "{}"))
    return found


def stop_of(job: Json) -> Json:
    return record(job, STOP)
