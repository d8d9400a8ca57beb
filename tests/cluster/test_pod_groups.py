"""PodGroups on a real control plane: kube-scheduler places and preempts them as one, and plans count on no less."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plimsoll.domain.kubernetes import DEADLINE
from plimsoll.domain.observation import InterruptedNodes
from plimsoll.domain.scheduling import Headroom, headroom_for
from tests.cluster.placing import Cast
from tests.cluster.test_preemption import interrupt
from tests.support.fake_clusters import MERGE, a_template

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]


@pytest.fixture(autouse=True)
def served(cast: Cast) -> None:
    if cast.ground.call("GET", "/apis/scheduling.k8s.io/v1beta1").status == 404:
        pytest.skip("this minor of Kubernetes does not serve PodGroups")


def group(cast: Cast, name: str, count: int, **spec: Any) -> None:
    ground = cast.ground
    ground.create(
        f"/apis/scheduling.k8s.io/v1beta1/namespaces/{ground.name}/podgroups",
        {
            "metadata": {"name": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec},
        },
    )


def job(cast: Cast, name: str, pods: int, *, cpu: str = "2", **spec: Any) -> None:
    """Make a Job whose pods name the PodGroup of its name."""
    grouped = {"schedulingGroup": {"podGroupName": name}, "restartPolicy": "Never", **spec}
    template = a_template(name, cpu=cpu, **grouped)
    cast.ground.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"parallelism": pods, "template": template},
        }
    )
    cast.ground.until(lambda: len(cast.ground.pods(name)) == pods)


def scale(cast: Cast, name: str, pods: int) -> None:
    path = f"/apis/batch/v1/namespaces/{cast.ground.name}/jobs/{name}"
    assert cast.ground.call("PATCH", path, {"spec": {"parallelism": pods}}, MERGE).status == 200


def headroom(cast: Cast) -> Headroom:
    seen = cast.api.observe()
    return headroom_for(seen, InterruptedNodes.of(seen))


def short(cast: Cast) -> int:
    """Return how many pods of the ground have no place, as plans see it."""
    return sum(pod.namespace == cast.ground.name for pod in headroom(cast).short)


def placed(cast: Cast, app: str) -> Counter[str]:
    return Counter(p["spec"]["nodeName"] for p in cast.ground.pods(app) if "nodeName" in p["spec"])


def refused(cast: Cast, app: str) -> bool:
    """Whether kube-scheduler has looked at all pods, and placed none."""
    return all(
        any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)
        for conditions in (p["status"].get("conditions", ()) for p in cast.ground.pods(app))
    )


def test_pods_of_a_group_do_not_fit_alone_and_are_placed_together(cast: Cast):
    ground = cast.ground
    [one] = ground.nodes("one", cpu="4")
    group(cast, "train", 3)
    job(cast, "train", 2)
    assert (short(cast), placed(cast, "train").total()) == (2, 0), "too few of them exist"
    scale(cast, "train", 3)
    ground.until(lambda: len(ground.pods("train")) == 3 and refused(cast, "train"))
    assert (short(cast), placed(cast, "train").total()) == (3, 0), "two of three have room"
    [two] = ground.nodes("two", cpu="4")
    ground.until(lambda: placed(cast, "train").total() == 3)
    assert set(placed(cast, "train")) == {one, two}
    assert short(cast) == 0


def test_a_pod_that_replaces_one_of_a_group_that_stands_fits_as_it_is_placed(cast: Cast):
    ground = cast.ground
    ground.nodes("one", cpu="6")
    group(cast, "train", 3)
    job(cast, "train", 3, restartPolicy="OnFailure")
    ground.until(lambda: len(ground.serving("train")) == 3)
    lost = ground.serving("train")[0]["metadata"]["name"]
    ground.delete(lost)
    ground.until(lambda: lost not in {p["metadata"]["name"] for p in ground.pods("train")})
    ground.until(lambda: len(ground.serving("train")) == 3)
    assert short(cast) == 0


def test_all_pods_of_a_group_are_told_the_deadline_and_none_is_released(cast: Cast):
    ground = cast.ground
    [goes, stays] = ground.nodes("goes", "stays", cpu="4")
    group(cast, "train", 3)
    job(cast, "train", 3, terminationGracePeriodSeconds=5)
    ground.until(lambda: len(ground.serving("train")) == 3)
    assert set(placed(cast, "train")) == {goes, stays}
    before = {pod["metadata"]["uid"] for pod in ground.pods("train")}
    interrupt(cast, goes)

    def told() -> bool:
        cast.services.drains.reconcile("ground", "test", seconds=3)
        return all(DEADLINE in p["metadata"].get("annotations", {}) for p in ground.pods("train"))

    ground.until(told)
    assert {pod["metadata"]["uid"] for pod in ground.pods("train")} == before
    assert all(pod["metadata"].get("ownerReferences") for pod in ground.pods("train"))


def test_a_group_that_is_preempted_as_a_whole_goes_from_all_of_its_nodes(cast: Cast):
    ground = cast.ground
    ground.nodes("a", "b", cpu="4")
    line = f"group-{ground.name}"
    lines = "/apis/scheduling.k8s.io/v1/priorityclasses"
    ground.create(lines, {"metadata": {"name": line}, "value": -10})
    low = {"priorityClassName": line}
    group(cast, "balloon", 4, disruptionMode={"all": {}}, **low)
    job(cast, "balloon", 4, terminationGracePeriodSeconds=0, **low)
    ground.until(lambda: len(ground.serving("balloon")) == 4)
    before = {pod["metadata"]["uid"] for pod in ground.pods("balloon")}
    found = headroom(cast)
    group(cast, "train", 2)
    job(cast, "train", 2)
    ground.until(lambda: placed(cast, "train").total() == 2)
    ground.until(lambda: not before & {p["metadata"]["uid"] for p in ground.serving("balloon")})
    # As a plan made before would have it: the two pods have places, and all four of the group make way.
    train = [p for p in cast.api.observe().pods if p.name.startswith("train-")]
    assert found.snapshot.place_together([p for p in train if p.namespace == ground.name]) == []
    assert len(found.snapshot.take_displaced()) == 4
