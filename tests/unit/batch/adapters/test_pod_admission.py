"""Pods of suspended Jobs count as admission will make them; tests/cluster compares with a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import ONE_QUEUE, Scene, a_job


def scene(*objects: Json, cpu: int) -> Scene:
    """A queue with quota for so many CPUs, and objects of the namespace `lab`."""
    found = Scene(queues=ONE_QUEUE.replace("1000", str(cpu)))
    found.play.apply(*objects)
    return found


def limits(**item: Any) -> Json:
    spec = {"limits": [{"type": "Container", **item}]}
    return {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "lab"}, "spec": spec}


def runtime(**overhead: str) -> Json:
    meta = {"name": "heavy"}
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": meta,
        "handler": "heavy",
        "overhead": {"podFixed": overhead},
    }


def asking(*, runtime: str | None = None, **resources: Json) -> Json:
    """A Job of three pods."""
    job = a_job("job", 3)
    spec = job["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = resources
    if runtime:
        spec["runtimeClassName"] = runtime
    return job


@pytest.mark.parametrize(
    ("objects", "job"),
    [
        ([limits(defaultRequest={"cpu": "1"})], asking()),
        ([limits(default={"cpu": "1"})], asking()),
        ([limits(max={"cpu": "1"})], asking()),
        ([limits(defaultRequest={"cpu": "2"})], asking(limits={"cpu": "1"})),
        ([runtime(cpu="1")], asking(runtime="heavy")),
        (
            [limits(defaultRequest={"cpu": "400m"}), runtime(cpu="600m")],
            asking(runtime="heavy"),
        ),
    ],
    ids=["request", "limit", "most", "a limit of its own", "overhead", "both"],
)
def test_what_admission_adds_to_pods_counts_before_they_are_there(objects, job):
    short, enough = scene(*objects, cpu=2), scene(*objects, cpu=3)
    for each in (short, enough):
        each.submit(job)
        each.run()
    assert (short.suspended("job"), enough.suspended("job")) == (True, False)


@pytest.mark.parametrize(
    ("objects", "job", "words"),
    [
        (
            [limits(min={"cpu": "2"})],
            asking(requests={"cpu": "1"}),
            "a LimitRange refuses container main: its cpu is below 2",
        ),
        (
            [limits(max={"cpu": "500m"})],
            asking(limits={"cpu": "1"}),
            "its limit of cpu is not at most 500m",
        ),
        (
            [limits(maxLimitRequestRatio={"cpu": "1.5"})],
            asking(requests={"cpu": "500m"}, limits={"cpu": "1"}),
            "its limit of cpu is over 1.5 times its request",
        ),
        (
            [limits(default={"cpu": "1"})],
            asking(requests={"cpu": "2"}),
            "container main requests more cpu than the default limit",
        ),
        ([], asking(runtime="heavy"), "there is no RuntimeClass heavy"),
    ],
    ids=["too little", "too much", "ratio", "over the default", "no runtime"],
)
def test_a_job_whose_pods_admission_would_refuse_waits_and_says_why(objects, job, words):
    found = scene(*objects, cpu=100)
    found.submit(job)
    found.run()
    assert found.suspended("job")
    [event] = found.events("job")
    assert words in event


def test_a_limit_range_counts_in_its_own_namespace_only():
    theirs = limits(defaultRequest={"cpu": "1"}, min={"cpu": "5"})
    theirs["metadata"]["namespace"] = "plimsoll"
    found = scene(theirs, cpu=2)
    found.submit(asking())
    found.run()
    assert not found.suspended("job")


def test_without_the_right_to_read_them_queues_are_planned_as_templates_say():
    found = scene(limits(min={"cpu": "2"}), cpu=3)
    call = found.wire.call

    def denied(method: str, path: str, **more: Any) -> Response:
        if path.endswith("/limitranges"):
            return Response(status=403, body={"kind": "Status", "message": "no"})
        answer: Response = call(method, path, **more)
        return answer

    found.wire.call = denied  # type: ignore[method-assign] # it listens
    found.submit(asking(requests={"cpu": "1"}))
    found.run()
    assert not found.suspended("job")
