"""Gangs near their data: zones by weight."""

from __future__ import annotations

import pytest

from tests.support.builders import a_group
from tests.support.fake_clusters import Json
from tests.support.growing_scenes import GrowingScene
from tests.support.queue_scenes import Scene, a_job, a_training

DATA = "plimsoll.dev/data"
ZONE = "topology.kubernetes.io/zone"


def a_scene(**nodes: int) -> Scene:
    """A cluster with so many nodes in zone a, b and c."""
    scene = Scene(nodes=0)
    for letter, count in nodes.items():
        names = (f"{letter}{number}" for number in range(count))
        scene.play.nodes(*names, cpu="1", zone=f"us-east-1{letter}")
    return scene


def zones_of(scene: Scene, *jobs: str) -> set[str]:
    nodes: dict[str, Json] = {
        node["metadata"]["name"]: node for node in scene.play.cluster.store.all("nodes")
    }
    return {
        nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][ZONE] for pod in scene.pods_of(*jobs)
    }


@pytest.mark.parametrize("heavy", ["a", "b"])
def test_a_gang_stands_in_the_zone_with_most_of_its_data(heavy: str):
    scene = a_scene(a=4, b=4)
    other = "b" if heavy == "a" else "a"
    weights = f"us-east-1{heavy}=3,us-east-1{other}=1"
    scene.submit(a_job("train", 3, annotations={DATA: weights}))
    scene.run(5)
    assert scene.running("train") == 3
    assert zones_of(scene, "train") == {f"us-east-1{heavy}"}


def test_where_that_is_full_it_takes_the_next_and_then_any_places():
    scene = a_scene(a=2, b=3, c=1)
    weights = {DATA: "us-east-1a=9,us-east-1b=1"}
    scene.submit(a_job("second", 3, annotations=weights))
    scene.run(5)
    assert zones_of(scene, "second") == {"us-east-1b"}
    scene.submit(a_job("scattered", 3, annotations=weights))
    scene.run(5)
    assert zones_of(scene, "scattered") == {"us-east-1a", "us-east-1c"}


def test_a_zone_that_is_required_is_chosen_by_weight_and_none_is_left_for_others():
    scene = a_scene(a=2, b=3)
    notes = {DATA: "us-east-1a=9", "plimsoll.dev/topology": f"required={ZONE}"}
    scene.submit(a_job("train", 3, annotations=notes))
    scene.submit(a_job("waits", 3, annotations=notes))
    scene.run(5)
    assert sorted((scene.running("train"), scene.running("waits"))) == [0, 3]


def test_the_weights_of_all_roles_count_together():
    scene = a_scene(a=6, b=6)
    ps, workers = a_training("train")
    ps["metadata"]["annotations"][DATA] = "us-east-1a=3"
    workers["metadata"]["annotations"][DATA] = "us-east-1a=1,us-east-1b=5"
    scene.submit(ps, workers)
    scene.run(5)
    assert zones_of(scene, "train-ps", "train-workers") == {"us-east-1b"}


def test_new_nodes_are_asked_for_in_the_zone_with_most_of_its_data():
    scene = GrowingScene(a_group("both", cpu="1"))
    scene.submit(a_job("train", 3, annotations={DATA: "us-east-1b=2,us-east-1a=1"}))
    scene.run(5)
    assert [ask["zone"] for ask in scene.request("train")["asks"]] == ["us-east-1b"]


@pytest.mark.parametrize(
    "text",
    ["", "us-east-1a", "us-east-1a=", "us-east-1a=-1", "a=1,a=2", "=1", "a=1234567", "a=1;b"],
)
def test_weights_that_cannot_be_read_keep_their_gang_waiting_and_say_why(text: str):
    scene = a_scene(a=2)
    scene.submit(a_job("wrong", annotations={DATA: text}), a_job("right"))
    scene.run(5)
    assert (scene.running("wrong"), scene.running("right")) == (0, 1)
    assert any("must be ZONE=WEIGHT" in words for words in scene.events("wrong"))


def test_weights_beside_a_topology_of_racks_are_a_problem_that_is_told():
    scene = a_scene(a=6)
    notes = {DATA: "us-east-1a=1", "plimsoll.dev/topology": "required=example.com/rack"}
    scene.submit(*a_training("train", annotations=notes), a_job("alone", annotations=notes))
    scene.run(5)
    for job in ("train-ps", "alone"):
        assert any("its topology is example.com/rack" in words for words in scene.events(job))
