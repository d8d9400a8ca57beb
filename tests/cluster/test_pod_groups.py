"""PodGroups on a real control plane: kube-scheduler places and preempts them as one, and plans count on no less."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plimsoll.domain.kubernetes import DEADLINE
from plimsoll.domain.observation import InterruptedNodes
from plimsoll.domain.scheduling import Headroom, headroom_for
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.installed import message_of, until
from tests.cluster.placing import Cast
from tests.cluster.test_preemption import interrupt
from tests.cluster.test_queues import JOBS, PLANNER, PODS, Lab, lab
from tests.support.fake_clusters import MERGE, a_deployment, a_template
from tests.support.queue_scenes import a_job, a_pod_group, a_training, in_group

pytestmark = pytest.mark.cluster
__all__ = ["lab"]

type Json = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def served(plane: ControlPlane) -> None:
    if plane.transport().call("GET", "/apis/scheduling.k8s.io/v1beta1").status == 404:
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
    # A Job waits ten seconds before it makes a pod anew.
    grouped = {"schedulingGroup": {"podGroupName": "train"}}
    ground.apply(a_deployment("train", 3, a_template("train", cpu="2", **grouped)))
    ground.until(lambda: placed(cast, "train").total() == 3)
    lost = ground.pods("train")[0]["metadata"]["name"]
    ground.delete(lost, gracePeriodSeconds=0)
    ground.until(lambda: lost not in {p["metadata"]["name"] for p in ground.pods("train")})
    ground.until(lambda: placed(cast, "train").total() == 3)
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


OF_LAB = "/apis/scheduling.k8s.io/v1beta1/namespaces/lab/podgroups"


def test_a_gang_of_a_queue_gets_the_pod_group_that_its_jobs_name(lab: Lab):
    names = ("train-ps", "train-workers")
    lab.submit(*(in_group("train", each) for each in a_training("train")))
    lab.plan_until(lambda: lab.ready(*names) == 6)
    made = lab.plane.transport().call("GET", f"{OF_LAB}/train").body
    assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 6}}
    assert {owner["name"] for owner in made["metadata"]["ownerReferences"]} == {*names}
    pods = lab.plane.transport().call("GET", PODS).body["items"]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"train"}
    for name in names:
        query = {"propagationPolicy": "Background"}
        lab.plane.transport().call("DELETE", f"{JOBS}/{name}", query=query)
    until(lambda: lab.plane.transport().call("GET", f"{OF_LAB}/train").status == 404)


def test_nobody_names_a_group_for_a_job_that_is_there_suspended_or_not(lab: Lab):
    """So the planner cannot name one either: the template does from the beginning, or never."""
    lab.submit(a_job("late", annotations={"plimsoll.dev/hold": "true"}))
    assert lab.job("late")["spec"]["suspend"] is True
    named = {"spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "late"}}}}}
    refused = lab.patch(f"{JOBS}/late", named)
    assert refused.status == 422
    assert "field is immutable" in message_of(refused)
    lab.submit(in_group("early", a_job("early", annotations={"plimsoll.dev/hold": "true"})))
    assert lab.patch(f"{JOBS}/early", named).status == 422
    for name in ("late", "early"):
        lab.plane.transport().call("DELETE", f"{JOBS}/{name}")


def test_the_planner_makes_and_changes_pod_groups_of_gangs_and_nothing_else_of_them(lab: Lab):
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    ours = a_pod_group("ours", policy, gang="ours")
    theirs = a_pod_group("theirs", policy)
    assert lab.post(OF_LAB, theirs).status == 201

    def made(spec: Json, *, gang: str | None = "g", path: str = OF_LAB, **meta: Any) -> str:
        body = a_pod_group("tried", spec, gang=gang)
        body["metadata"] = {k: v for k, v in body["metadata"].items() if k != "namespace"} | meta
        answer = lab.post(f"{path}?dryRun=All", body, PLANNER)
        return "" if answer.status == 201 else f"{answer.status} {message_of(answer)}"

    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "x"}
    assert made(policy, ownerReferences=[owner]) == ""
    assert "label plimsoll.dev/gang" in made(policy, gang=None)
    assert "plimsoll.dev/queues=true" in made(policy, path=OF_LAB.replace("lab", "default"))
    assert "spec.disruptionMode" in made(policy | {"disruptionMode": {"all": {}}})
    assert "another policy than gang" in made({"schedulingPolicy": {"basic": {}}})
    controller = [owner | {"controller": True}]
    assert "or a controller" in made(policy, ownerReferences=controller)
    assert lab.post(OF_LAB, ours, PLANNER).status == 201
    more: Json = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    assert lab.patch(f"{OF_LAB}/ours", more, PLANNER).status == 200
    refused = lab.patch(f"{OF_LAB}/theirs", more, PLANNER)
    assert "label plimsoll.dev/gang" in message_of(refused)
    label: Json = {"metadata": {"labels": {"theirs": "1"}}}
    assert "metadata.labels" in message_of(lab.patch(f"{OF_LAB}/ours", label, PLANNER))
    assert lab.as_user(PLANNER).call("DELETE", f"{OF_LAB}/ours").status == 403
    fewer: Json = {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    hides: Json = {"metadata": {"managedFields": [{}]}}
    for body, query in ((fewer, {"fieldManager": "kubectl"}), (hides, {})):
        answer = lab.as_user(PLANNER).call(
            "PATCH", f"{OF_LAB}/ours", query=query, body=body, content_type=MERGE
        )
        assert "'plimsoll-history'" in message_of(answer)
    for name in ("ours", "theirs"):
        lab.plane.transport().call("DELETE", f"{OF_LAB}/{name}")
