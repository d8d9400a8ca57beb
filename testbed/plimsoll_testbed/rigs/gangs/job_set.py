"""A JobSet in a queue on a real control plane, with its own operator: it waits, starts, makes way, resumes and completes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_batch.domain.names import PRIORITY, QUEUE, STOP
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gangs.cases import CASE
from plimsoll_testbed.rigs.gangs.play import (
    POLL_SECONDS,
    Planner,
    configure,
    expect,
    post,
    succeed,
)
from plimsoll_testbed.rigs.operators import JOBSET, RunningOperator

NAMESPACE: Final = "framework"
USER: Final = "jobset-operator"
"""Of the control plane: the operator comes as this."""
SLOTS: Final = 4
STEP_SECONDS: Final = 60.0
"""After which a step that has not come about never will."""
_JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_JOB_SETS: Final = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Step(NamedTuple):
    """What is done, and what has to come of it."""

    words: Callable[[], str]
    """Read once it holds."""
    do: Callable[[], object]
    holds: Callable[[], object]


def play(plane: ControlPlane, *, seen: Callable[[float, str], None]) -> None:
    """Play it on places for one gang, which two Jobs want too.

    Args:
        plane: runs, and has the user `USER`.
        seen: told of each step, with the second.

    Raises:
        Refused: a step did not come about.
    """
    api = plane.transport()
    with RunningOperator(plane, JOBSET, user=USER):
        post(api, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        configure(api, _configuration())
        plane.join(_node())
        started = time.monotonic()
        with Planner(plane):
            for step in _steps(api):
                step.do()
                _until(step)
                seen(time.monotonic() - started, step.words())


def _steps(api: Transport) -> Iterator[Step]:
    def running(name: str) -> bool:
        pods = _pods(api, name)
        return [pod["status"].get("phase") for pod in pods] == ["Running"] * SLOTS

    def train() -> Any:
        return expect(api.call("GET", f"{_JOB_SETS}/train")).body

    def why() -> str:
        said = (train()["metadata"].get("annotations") or {}).get(STOP, "{}")
        return str(json.loads(said).get("why", ""))

    def end(name: str) -> None:
        for pod in _pods(api, name):
            succeed(api, pod)

    def completed() -> bool:
        conditions = train().get("status", {}).get("conditions", ())
        return any(c["type"] == "Completed" and c["status"] == "True" for c in conditions)

    yield Step(
        lambda: "Job first runs on all places",
        lambda: post(api, _JOBS, _job("first")),
        lambda: running("first"),
    )
    yield Step(
        lambda: "JobSet train waits in its queue",
        lambda: post(api, _JOB_SETS, _job_set()),
        lambda: train()["spec"]["suspend"] and not _pods(api, "train"),
    )
    yield Step(
        lambda: "Job first has ended: JobSet train runs whole",
        lambda: end("first"),
        lambda: running("train"),
    )
    yield Step(
        lambda: f"JobSet train {why()}",
        lambda: post(api, _JOBS, _job("urgent", priority=10)),
        lambda: running("urgent") and not _pods(api, "train"),
    )
    yield Step(
        lambda: "Job urgent has ended: JobSet train runs whole again",
        lambda: end("urgent"),
        lambda: running("train"),
    )
    yield Step(lambda: "JobSet train has completed", lambda: end("train"), completed)


def _until(step: Step) -> None:
    end = time.monotonic() + STEP_SECONDS
    while True:
        with suppress(Temporary):  # it is busy, and is asked again
            if step.holds():
                return
        if time.monotonic() > end:
            raise Refused(f"not so after {STEP_SECONDS:.0f} s: {step.words()}")
        time.sleep(POLL_SECONDS)


def _pods(api: Transport, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the unfinished pods of a Job or JobSet."""
    pods = expect(api.call("GET", _PODS)).body["items"]
    return [
        pod
        for pod in pods
        if pod["metadata"]["labels"].get("demo") == name
        and pod["status"].get("phase") not in {"Succeeded", "Failed"}
    ]


def _configuration() -> Mapping[str, Any]:
    quota = {"name": NAMESPACE, "resources": {"cpu": {"nominal": SLOTS}}}
    queue = {
        "name": NAMESPACE,
        "preemption": {"withinQueue": "LowerPriority"},
        "resourceGroups": [{"flavors": [quota]}],
    }
    flavor = {"name": NAMESPACE, "nodeLabels": {CASE: NAMESPACE}}
    return {"frameworks": ["jobset"], "flavors": [flavor], "queues": [queue]}


def _node() -> Mapping[str, Any]:
    labels = {"kubernetes.io/hostname": NAMESPACE, CASE: NAMESPACE}
    return {
        "metadata": {"name": NAMESPACE, "labels": labels},
        "status": {"allocatable": {"cpu": str(SLOTS), "memory": "64Gi", "pods": "110"}},
    }


def _meta(name: str, priority: int = 0) -> Mapping[str, Any]:
    annotations = {PRIORITY: str(priority)}
    return {"name": name, "labels": {QUEUE: NAMESPACE}, "annotations": annotations}


def _pods_of(name: str, pods: int) -> Mapping[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"labels": {"demo": name}}, "spec": spec}
    return {"parallelism": pods, "completions": pods, "template": template}


def _job(name: str, *, priority: int = 0) -> Mapping[str, Any]:
    spec = {"suspend": True, **_pods_of(name, SLOTS)}
    return {"metadata": _meta(name, priority), "spec": spec}


def _job_set() -> Mapping[str, Any]:
    roles = [
        {"name": role, "template": {"spec": _pods_of("train", pods)}}
        for role, pods in (("driver", 1), ("workers", SLOTS - 1))
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _meta("train"),
        "spec": {"suspend": True, "replicatedJobs": roles},
    }
