"""Objects of frameworks in queues: started whole, steered, preempted and moved, with their operators at play."""

from __future__ import annotations

import pytest

from plimsoll_batch.domain.frameworks import at
from tests.support.fake_clusters import Json
from tests.support.framework_operators import (
    FLAVORS,
    JOBSETS,
    PYTORCH,
    Operators,
    a_job_set,
    a_pytorch_job,
)
from tests.support.queue_scenes import Scene, a_job, record, stop_of

KINDS = {
    "PyTorchJob": (a_pytorch_job, PYTORCH, ("spec", "runPolicy", "suspend")),
    "JobSet": (a_job_set, JOBSETS, ("spec", "suspend")),
}


class Stage:
    """A cluster with two pools of nodes, and the operators."""

    def __init__(self, kind: str = "PyTorchJob", *, nodes: int = 4, queues: str = FLAVORS) -> None:
        self.make, self.path, self.switch = KINDS[kind]
        self.scene = Scene(nodes=0, queues=queues, pod_stop=1)
        for pool in ("a", "b"):
            names = [f"{pool}{number}" for number in range(nodes)]
            self.scene.play.nodes(*names, cpu="1", pool=pool)
        self.operators = Operators(self.scene)

    def goes_on(self, seconds: int = 8) -> None:
        for _ in range(seconds):
            self.scene.run(0.5)
            self.operators.act(0.5)

    def object(self, name: str = "train") -> Json:
        found: Json = self.scene.play.get(f"{self.path}/{name}")
        return found

    def suspended(self, name: str = "train") -> bool:
        return bool(at(self.object(name), self.switch))

    def nodes_of(self, name: str = "train") -> list[str]:
        """Where its pods run."""
        return sorted(
            pod["spec"]["nodeName"]
            for pod in self.scene.play.cluster.store.all("pods")
            if pod["metadata"]["name"].startswith(f"{name}-")
            and pod["status"]["phase"] == "Running"
        )


@pytest.fixture(params=KINDS)
def stage(request):
    return Stage(request.param)


def test_an_object_starts_whole_in_the_first_flavor_and_its_pods_go_there(stage):
    stage.scene.submit(stage.make("train"))
    stage.goes_on()
    assert [node[0] for node in stage.nodes_of()] == ["a", "a", "a"]
    assert record(stage.object())["started"]


def test_its_events_are_about_the_object(stage):
    stage.scene.submit(stage.make("train"))
    stage.goes_on(2)
    (about,) = (
        event["involvedObject"]
        for event in stage.scene.play.cluster.store.all("events")
        if event["reason"] == "QueueAdmitted"
    )
    obj = stage.object()
    assert about == {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": "train",
        "namespace": "lab",
        "uid": obj["metadata"]["uid"],
    }


def test_an_object_and_a_job_are_one_gang_and_start_together(stage):
    obj, job = stage.make("train"), a_job("loader", gang="both", size=4)
    obj["metadata"]["labels"]["plimsoll.dev/gang"] = "both"
    stage.scene.submit(obj)
    stage.goes_on(2)
    assert stage.suspended()
    stage.scene.submit(job)
    stage.goes_on()
    assert len(stage.nodes_of()) == 3
    assert stage.scene.running("loader") == 1


def test_an_object_that_does_not_fit_as_a_whole_waits(stage):
    stage.scene.submit(stage.make("train", workers=5))
    stage.goes_on()
    assert stage.suspended()
    assert stage.nodes_of() == []


def test_a_preempted_object_stops_and_moves_to_another_flavor_without_a_trace_of_the_first(stage):
    stage.scene.submit(stage.make("train"))
    stage.goes_on()
    stage.scene.play.patch("/api/v1/nodes/b0", {"spec": {"unschedulable": True}})
    first = {"plimsoll.dev/priority": "10"}
    stage.scene.submit(a_job("urgent", 4, annotations=first))
    stage.goes_on()
    assert stage.scene.running("urgent") == 4
    assert "makes way" in stop_of(stage.object())["why"]
    assert stage.nodes_of() == ["b1", "b2", "b3"]


def test_it_ends_and_gives_its_quota_to_the_next(stage):
    stage.scene.submit(stage.make("train", run="3s", workers=3))
    stage.scene.submit(stage.make("second", workers=3), stage.make("third", workers=3))
    stage.goes_on(14)
    assert [stage.suspended(name) for name in ("second", "third")] == [False, False]


def templates_of(obj: Json) -> list[Json]:
    if obj["kind"] == "JobSet":
        return [role["template"]["spec"]["template"] for role in obj["spec"]["replicatedJobs"]]
    return [role["template"] for role in obj["spec"]["pytorchReplicaSpecs"].values()]


def test_pods_that_have_succeeded_give_their_quota_to_others_before_the_object_ends(stage):
    obj = stage.make("train", workers=3)
    templates_of(obj)[1]["metadata"]["annotations"] = {"drill.plimsoll.dev/run": "3s"}
    stage.scene.submit(obj)
    stage.goes_on(2)
    stage.scene.submit(stage.make("second"), stage.make("third"))
    stage.goes_on(12)
    running = {name: len(stage.nodes_of(name)) for name in ("train", "second", "third")}
    assert running == {"train": 1, "second": 3, "third": 3}


def test_the_pods_of_a_suspended_object_hold_its_quota_until_the_last_is_gone(stage):
    stage.scene.submit(stage.make("train", workers=3))
    stage.goes_on()
    stage.scene.play.patch("/api/v1/nodes/b0", {"spec": {"unschedulable": True}})
    stage.scene.submit(a_job("urgent", 4, annotations={"plimsoll.dev/priority": "10"}))
    stage.scene.run(0.1)
    stage.scene.run(0.1)
    assert stage.suspended()
    assert stage.scene.suspended("urgent")
    stage.goes_on()
    assert stage.scene.running("urgent") == 4


def test_the_jobs_of_a_job_set_are_no_gangs_of_their_own():
    stage = Stage("JobSet")
    jobs = stage.make("train")
    for role in jobs["spec"]["replicatedJobs"]:
        role["template"]["metadata"] = {"labels": {"plimsoll.dev/queue": "lab"}}
    stage.scene.submit(jobs)
    stage.goes_on()
    assert len(stage.nodes_of()) == 3
    said = record(stage.scene.job("train-driver-0"))
    assert said == {}


def test_a_job_set_waits_where_flavors_have_different_keys_since_it_keeps_those_of_its_last_one():
    stage = Stage("JobSet", queues=FLAVORS.replace("{pool: b}", "{disk: b}"))
    stage.scene.submit(stage.make("train"))
    stage.goes_on(2)
    assert stage.suspended()


def test_a_cluster_without_the_kinds_of_a_framework_plans_its_jobs(monkeypatch):
    stage = Stage(
        queues=FLAVORS.replace("[jobset, kubeflow]", "[jobset, ray, trainer, spark, mpi]")
    )
    call = stage.scene.wire.call

    def without(method: str, path: str, **more):
        assert "pytorchjobs" not in path
        if not path.startswith(("/api/", "/apis/batch", "/apis/coordination", "/apis/node")):
            path = path.replace("/apis/", "/apis/not-served.")
        return call(method, path, **more)

    monkeypatch.setattr(stage.scene.wire, "call", without)
    stage.scene.submit(a_job("plain", 2))
    stage.scene.run()
    assert stage.scene.running("plain") == 2
