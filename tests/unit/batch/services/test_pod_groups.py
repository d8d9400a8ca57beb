"""A gang whose Jobs name a PodGroup gets it when it is admitted, and kube-scheduler places its pods together."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import (
    JOBS,
    Scene,
    a_job,
    a_pod_group,
    a_training,
    in_group,
    killed_at_each_write,
)

GROUP = "/apis/scheduling.k8s.io/v1beta1/namespaces/lab/podgroups/train"


def a_grouped_training(**more: Any) -> list[Json]:
    return [in_group("train", job) for job in a_training("train", **more)]


def group(scene: Scene) -> Json:
    found: Json = scene.play.get(GROUP)
    return found


def owners(scene: Scene) -> set[tuple[str, str]]:
    return {(each["kind"], each["name"]) for each in group(scene)["metadata"]["ownerReferences"]}


def gang(count: int) -> Json:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


def test_an_admitted_gang_gets_the_pod_group_that_its_jobs_name():
    scene = Scene()
    jobs = a_grouped_training()
    scene.play.apply({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5})
    for job in jobs:
        job["spec"]["template"]["spec"]["priorityClassName"] = "high"
    scene.submit(*jobs)
    scene.run()
    assert scene.running("train-ps", "train-workers") == 6
    made = group(scene)
    assert made["metadata"]["labels"] == {"plimsoll.dev/gang": "train"}
    assert made["spec"] == gang(6) | {"priorityClassName": "high"}
    assert owners(scene) == {("Job", "train-ps"), ("Job", "train-workers")}


def test_no_pod_group_is_made_for_a_gang_that_waits_or_names_none():
    scene = Scene(nodes=5)
    scene.submit(*a_grouped_training(), a_job("alone", 1))
    scene.run()
    assert scene.running("alone") == 1
    assert scene.play.call("GET", GROUP).status == 404


def test_a_gang_that_goes_on_with_fewer_pods_needs_only_these_at_once():
    scene = Scene()
    jobs = a_grouped_training(annotations={"plimsoll.dev/gang-size": "4:6"})
    for job in jobs:
        job["metadata"]["annotations"]["plimsoll.dev/gang-size"] = "4:6"
    scene.submit(*jobs)
    scene.run()
    assert group(scene)["spec"] == gang(4)


def test_a_pod_group_of_an_earlier_run_is_brought_up_to_date():
    scene = Scene()
    scene.play.apply(a_pod_group("train", gang(9), gang="train"))
    scene.submit(*a_grouped_training())
    scene.run()
    assert scene.running("train-ps", "train-workers") == 6
    assert group(scene)["spec"] == gang(6)
    assert owners(scene) == {("Job", "train-ps"), ("Job", "train-workers")}


@pytest.mark.parametrize(("count", "running"), [(3, 6), (7, 0)])
def test_a_pod_group_of_somebody_else_is_left_alone_and_counts(count, running):
    scene = Scene()
    scene.play.apply(a_pod_group("train", gang(count)))
    scene.submit(*a_grouped_training())
    scene.run()
    assert scene.running("train-ps", "train-workers") == running
    assert group(scene)["spec"] == gang(count)
    if not running:
        assert scene.suspended("train-ps")
        [words] = scene.events("train-ps")
        assert words.startswith("QueueProblem")
        assert "needs 7 pods at once, and the gang starts 6" in words


def test_a_cluster_that_serves_no_pod_groups_starts_gangs_as_ever():
    scene = Scene()
    call = scene.wire.call

    def older(method: str, path: str, **more: Any) -> Response:
        if "podgroups" in path:
            return Response(status=404, body={"kind": "Status", "reason": "NotFound"})
        return call(method, path, **more)

    scene.wire.call = older  # type: ignore[method-assign] # it listens
    jobs = a_grouped_training()
    for job in jobs:  # such a cluster drops the field
        del job["spec"]["template"]["spec"]["schedulingGroup"]
    scene.submit(*jobs)
    scene.run()
    assert scene.running("train-ps", "train-workers") == 6


@pytest.mark.parametrize("after", [False, True])
def test_a_planner_killed_at_any_write_leaves_a_gang_that_the_next_one_starts(after):
    def tell(scene: Scene) -> None:
        scene.submit(*a_grouped_training())
        scene.run()

    for where, scene in killed_at_each_write(Scene, tell, after=after):
        scene.run(10)  # the Lease of the dead one is over after that
        scene.run()
        assert scene.running("train-ps", "train-workers") == 6, where
        assert group(scene)["spec"] == gang(6), where
        assert not scene.play.get(f"{JOBS}/train-ps")["spec"].get("suspend"), where
