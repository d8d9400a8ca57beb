"""Bare pods in queues: behind a gate until their gang is admitted, and never suspended afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_batch.domain.names import ADMISSION
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import (
    GATE,
    Scene,
    a_bare_pod,
    a_job,
    killed_at_each_write,
    record,
)
from tests.unit.batch.capacity.test_dedicated_nodes import LEASES, marked
from tests.unit.batch.services.test_queues import TWO_FLAVORS

PODS = "/api/v1/namespaces/lab/pods"


def a_gang(name: str, pods: int, **more: Any) -> list[Json]:
    return [a_bare_pod(f"{name}-{n}", gang=name, size=pods, **more) for n in range(pods)]


def phase(scene: Scene, name: str) -> str:
    """Return the phase of a pod; `gated` where its gate is there, `gone` where it is not there."""
    pod = scene.play.cluster.store.get("pods", "lab", name)
    if pod is None:
        return "gone"
    found: str = "gated" if pod["spec"].get("schedulingGates") else pod["status"]["phase"]
    return found


def phases(scene: Scene, *names: str) -> set[str]:
    return {phase(scene, name) for name in names}


TRAIN = ("train-0", "train-1", "train-2")


def test_a_bare_pod_waits_behind_its_gate_and_starts_when_it_fits():
    scene = Scene(nodes=1)
    scene.submit(a_job("first", run="20s"))
    scene.run()
    scene.submit(a_bare_pod("one", run="30s"))
    scene.run()
    assert (scene.running("first"), phase(scene, "one")) == (1, "gated")
    scene.run(30)
    assert phase(scene, "one") == "Running"
    scene.run(40)
    assert phase(scene, "one") == "Succeeded"
    scene.submit(a_job("next"))
    scene.run()
    assert scene.running("next") == 1


def test_no_pod_of_a_gang_starts_before_all_of_it_has_a_place():
    scene = Scene(nodes=2)
    scene.submit(*a_gang("train", 3))
    scene.run()
    assert phases(scene, *TRAIN) == {"gated"}
    scene.play.nodes("more", cpu="1")
    scene.run()
    assert phases(scene, *TRAIN) == {"Running"}


def test_a_gang_waits_until_as_many_pods_are_there_as_it_declares():
    scene = Scene(nodes=3)
    first, *others = a_gang("train", 3)
    scene.submit(first)
    scene.run()
    assert phase(scene, "train-0") == "gated"
    assert any("a Job is missing" in event for event in scene.events("train-0"))
    scene.submit(*others)
    scene.run()
    assert phases(scene, *TRAIN) == {"Running"}


def test_a_bare_pod_is_steered_to_its_flavor_as_it_starts():
    scene = Scene(nodes=0, queues=TWO_FLAVORS)
    scene.play.nodes("base", cpu="1", capacity="base")
    scene.play.nodes("spot", cpu="1", capacity="spot")
    scene.submit(a_bare_pod("one"))
    scene.run()
    pod = scene.play.get(f"{PODS}/one")
    assert pod["spec"]["nodeName"] == "spot"
    assert pod["spec"]["nodeSelector"] == {"capacity": "spot"}
    assert {"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]
    assert record(pod, ADMISSION)["flavors"] == {"cpu": "spot"}


def test_a_bare_pod_makes_way_for_nobody_and_another_gang_does():
    scene = Scene(nodes=2, pod_stop=1)
    scene.submit(a_bare_pod("kept"), a_job("low"))
    scene.run()
    scene.submit(*(a_job(n, annotations={"plimsoll.dev/priority": "9"}) for n in ("a", "b")))
    scene.run(20)
    assert phase(scene, "kept") == "Running"
    assert scene.suspended("low")
    assert scene.running("a", "b") == 1


def test_a_gang_that_does_not_run_in_time_keeps_what_it_started():
    scene = Scene(nodes=3)
    scene.submit(*a_gang("train", 3, annotations={"plimsoll.dev/start-seconds": "5"}))

    def cordon(method: str, path: str, _: Any) -> None:
        if path == f"{PODS}/train-2" and method == "PATCH":
            for node in ("n0", "n1", "n2"):
                scene.play.cordon(node)

    scene.wire.before = cordon
    scene.run(40)
    assert "gated" not in phases(scene, *TRAIN)
    assert "gone" not in phases(scene, *TRAIN)


def test_leased_nodes_are_those_of_bare_pods_until_they_have_ended():
    scene = Scene(nodes=4)
    scene.submit(*a_gang("train", 3, run="20s", annotations=LEASES))
    scene.run()
    assert phases(scene, *TRAIN) == {"Running"}
    assert set(marked(scene).values()) == {"lab.train"}
    assert len(marked(scene)) == 3
    scene.run(30)
    scene.run(1)
    assert marked(scene) == {}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"schedulingGates": [GATE, {"name": "theirs"}]}, "scheduling gate 'theirs'"),
        ({"annotations": {"plimsoll.dev/on-interruption": "suspend"}}, "cannot be suspended"),
        ({"annotations": {"plimsoll.dev/lifecycle": "[" * 9}}, "cannot be suspended"),
        ({"annotations": {"plimsoll.dev/admission": "[" * 99_999}}, "is no JSON"),
        ({"annotations": {"plimsoll.dev/gang-size": "-1"}}, "must be a whole number"),
    ],
    ids=["gate", "interruption", "policies", "forged", "size"],
)
def test_what_a_bare_pod_cannot_be_costs_only_its_own_gang(changed, words):
    scene = Scene(nodes=2)
    scene.submit(a_bare_pod("bad", **changed), a_bare_pod("good"))
    scene.run()
    assert (phase(scene, "bad"), phase(scene, "good")) == ("gated", "Running")
    assert any(words in event for event in scene.events("bad"))


def test_a_gang_is_of_jobs_or_of_bare_pods():
    scene = Scene(nodes=4)
    scene.submit(a_bare_pod("mix-a", gang="mix", size=2), a_job("mix-b", gang="mix", size=2))
    scene.run()
    assert phase(scene, "mix-a") == "gated"
    assert scene.suspended("mix-b")
    assert any("Jobs and bare pods are in it" in event for event in scene.events("mix-a"))


def test_a_pod_of_a_job_is_no_bare_pod_whatever_its_labels():
    scene = Scene(nodes=2)
    job = a_job("one")
    job["spec"]["template"]["metadata"]["labels"] = {"plimsoll.dev/queue": "lab"}
    scene.submit(job, a_job("two"))
    scene.run()
    assert scene.running("one", "two") == 2
    assert len(scene.service().cluster.read().jobs) == 2


def test_a_bare_pod_that_is_made_anew_by_its_name_is_another():
    scene = Scene(nodes=1)
    scene.submit(a_job("first"))
    scene.run()
    scene.submit(a_bare_pod("one"))

    def replace(method: str, path: str, _: Any) -> None:
        if method == "PATCH" and path == f"{PODS}/one":
            scene.wire.before = lambda *_: None
            scene.play.call("DELETE", path)
            scene.play.apply(a_bare_pod("one", annotations={"plimsoll.dev/hold": "true"}))

    scene.wire.before = replace
    scene.play.nodes("more", cpu="1")
    scene.run(10)
    assert scene.play.get(f"{PODS}/one")["metadata"]["annotations"] == {"plimsoll.dev/hold": "true"}
    assert phase(scene, "one") == "gated"


@pytest.mark.parametrize("after", [True, False], ids=["after the write", "before the write"])
def test_killed_at_any_write_all_pods_of_a_gang_run_to_their_end(after):
    def story() -> Scene:
        scene = Scene(nodes=3)
        scene.submit(*a_gang("train", 3, run="20s"))
        return scene

    def tell(scene: Scene) -> None:
        for _ in range(5):
            scene.run(10)

    ends = {
        where: phases(scene, *TRAIN)
        for where, scene in killed_at_each_write(story, tell, after=after)
    }
    assert len(ends) >= 6
    assert {where: end for where, end in ends.items() if end != {"Succeeded"}} == {}
