"""Nodes leased to a gang: marked before it starts, closed to all others, given back after it ended."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from tests.support.fake_clusters import NODES, a_daemon_set, a_pod
from tests.support.queue_scenes import KilledError, Scene, a_job, a_training, stop_of
from tests.unit.batch.services.test_queues import reclaim

LEASES = {"plimsoll.dev/lease-nodes": "true"}
ALL_LEASE = """
flavors: [{name: any}]
queues:
  - name: lab
    leaseNodes: true
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 1000}}}]}]
"""
TRAIN = ("train-ps", "train-workers")


def marked(scene: Scene) -> dict[str, str]:
    """Return the nodes with both marks, and for whom."""
    found = {}
    for node in scene.play.cluster.store.all("nodes"):
        label = node["metadata"].get("labels", {}).get("plimsoll.dev/leased-to")
        taints = [
            t for t in node["spec"].get("taints") or () if t["key"] == "plimsoll.dev/leased-to"
        ]
        assert [t["value"] for t in taints] == ([label] if label else [])
        if label:
            found[node["metadata"]["name"]] = label.rpartition(".")[0]
    return found


def nodes_of(scene: Scene, *jobs: str) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in scene.pods_of(*jobs)}


def test_a_gang_runs_on_its_nodes_and_they_are_given_back_when_it_has_ended():
    scene = Scene(nodes=8)
    scene.submit(*a_training("train", run="20s", annotations=LEASES))
    scene.run()
    assert scene.running(*TRAIN) == 6
    assert marked(scene) == dict.fromkeys(nodes_of(scene, *TRAIN), "lab.train")
    scene.run(40)
    assert all(scene.complete(name) for name in TRAIN)
    scene.run(1)
    assert marked(scene) == {}


def test_no_pod_of_it_is_made_before_all_its_nodes_are_marked():
    scene = Scene(nodes=6)
    at_start: list[Collection[str]] = []

    def look(_: str, path: str, body: Any) -> None:
        starts = {"op": "add", "path": "/spec/suspend", "value": False}
        if "/jobs/" in path and starts in body:
            at_start.append(marked(scene))

    scene.wire.before = look
    scene.submit(*a_training("train", annotations=LEASES))
    scene.run()
    assert [len(there) for there in at_start] == [6, 6]


def test_a_queue_may_lease_nodes_to_all_its_gangs():
    scene = Scene(nodes=2, queues=ALL_LEASE)
    scene.submit(a_job("one"))
    scene.run()
    assert marked(scene) == dict.fromkeys(nodes_of(scene, "one"), "lab.one")


def test_nobody_else_comes_to_its_nodes_though_they_have_room():
    scene = Scene(nodes=0)
    scene.play.nodes("large", cpu="4")
    scene.submit(a_job("alone", annotations=LEASES))
    scene.run()
    scene.submit(a_job("other"))
    scene.play.apply(a_pod("foreign"))
    scene.run(10)
    assert scene.running("alone") == 1
    assert not scene.pods_of("other")
    assert scene.play.pods_on("large") == {scene.pods_of("alone")[0]["metadata"]["name"]}


def test_a_node_with_pods_of_others_is_not_leased_and_one_with_daemons_is():
    scene = Scene(nodes=0)
    scene.play.nodes("a", "b", cpu="4")
    scene.play.apply(a_daemon_set("log"))
    scene.play.apply(a_pod("foreign"))
    scene.clock.sleep(3)
    (shared,) = (n for n in ("a", "b") if "foreign" in scene.play.pods_on(n))
    scene.submit(a_job("one", annotations=LEASES), a_job("two", annotations=LEASES))
    scene.run(10)
    assert set(marked(scene)) == {"a", "b"} - {shared}
    assert scene.running("one", "two") == 1


def test_a_pod_that_came_while_nodes_were_marked_keeps_its_place_and_the_gang_starts_elsewhere():
    scene = Scene(nodes=2)
    came: list[str] = []

    def come(_: str, path: str, __: Any) -> None:
        if path.startswith(NODES) and not came:
            came.append(path.rpartition("/")[2])
            pod = a_pod("foreign")
            pod["spec"]["nodeName"] = came[0]
            scene.play.apply(pod)

    scene.wire.after = come
    scene.submit(a_job("one", annotations=LEASES))
    scene.run(10)
    (other,) = {"n0", "n1"} - {*came}
    assert scene.play.pods_on(came[0]) == {"foreign"}
    assert nodes_of(scene, "one") == {other}
    assert set(marked(scene)) == {other}


def test_who_is_overtaken_before_it_starts_gives_its_nodes_back():
    scene = Scene(nodes=6)
    late = a_training("late", annotations={"plimsoll.dev/priority": "9"})

    def come(_: str, path: str, __: Any) -> None:
        if path.startswith(NODES) and late:
            scene.play.apply(*late)
            late.clear()

    scene.wire.after = come
    scene.submit(*a_training("train", annotations=LEASES))
    scene.run(10)
    assert scene.running("late-ps", "late-workers") == 6
    assert marked(scene) == {}


def test_a_gang_that_shares_nodes_gets_those_of_one_that_makes_way():
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train", annotations=LEASES))
    scene.run()
    scene.submit(*a_training("late", annotations={"plimsoll.dev/priority": "9"}))
    scene.run(10)
    assert scene.running("late-ps", "late-workers") == 6
    assert marked(scene) == {}


def test_a_node_with_an_open_interruption_is_left_alone():
    scene = Scene(nodes=3)
    scene.submit(a_job("one", annotations=LEASES, run="20s"))
    scene.run()
    (mine,) = marked(scene)
    reclaim(scene, mine)
    written: list[str] = []
    scene.wire.before = lambda _, path, __: written.append(path)
    scene.run(40)
    assert scene.complete("one")
    scene.run(1)
    assert set(marked(scene)) == {mine}
    assert f"{NODES}/{mine}" not in written


def test_a_gang_that_lost_a_pod_and_its_node_is_suspended_whole_and_starts_on_others():
    scene = Scene(nodes=6, pod_stop=1)
    scene.submit(*a_training("train", annotations=LEASES))
    scene.run()
    scene.play.cordon("n0")
    scene.run(3)
    assert scene.running(*TRAIN) == 6
    (pod,) = scene.play.pods_on("n0")
    scene.play.call("DELETE", f"/api/v1/namespaces/lab/pods/{pod}")
    scene.clock.sleep(3)
    scene.run(6)
    assert not scene.pods_of(*TRAIN)
    assert stop_of(scene.job("train-ps"))["why"].startswith("node n0, which was leased to it")
    scene.play.nodes("new", cpu="1")
    scene.run(10)
    assert scene.running(*TRAIN) == 6
    assert "new" in marked(scene)


@pytest.mark.parametrize("queues", [None, "queues: [{name: lab, cohort: nowhere}]"])
def test_without_a_right_configuration_a_gang_keeps_its_nodes_until_it_has_ended(queues):
    scene = Scene(nodes=8)
    scene.submit(*a_training("train", run="40s", annotations=LEASES))
    scene.run()
    if queues is None:
        scene.play.call("DELETE", "/api/v1/namespaces/plimsoll/configmaps/plimsoll-queues")
    else:
        scene.configure(queues)
    scene.run(10)
    assert scene.running(*TRAIN) == len(marked(scene)) == 6
    scene.clock.sleep(40)
    assert all(scene.complete(name) for name in TRAIN)
    scene.run(1)
    assert marked(scene) == {}


def test_where_no_queue_is_known_and_no_node_is_leased_no_job_and_no_pod_is_read():
    scene = Scene(queues="queues: [{name: lab, cohort: nowhere}]")
    scene.submit(a_job("one"))
    read: list[str] = []
    call = scene.wire.call

    def noted(method: str, path: str, **more: Any) -> Response:
        read.append(path)
        return call(method, path, **more)

    scene.wire.call = noted  # type: ignore[method-assign] # it listens
    scene.run(1)
    assert NODES in read
    assert not [path for path in read if path.endswith(("/jobs", "/pods"))]


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_killed_at_any_write_it_ends_with_every_node_given_back(after):
    total = len(_told(lambda *_: None, after=after)[1])
    assert total > 16
    wrong = {}
    for number in range(total):

        def kill(turn: int, number: int = number) -> None:
            if turn == number:
                raise KilledError

        scene, _ = _told(kill, after=after)
        if not all(scene.complete(name) for name in TRAIN) or marked(scene):
            wrong[number] = marked(scene)
    assert wrong == {}


def _told(kill: Any, *, after: bool) -> tuple[Scene, list[str]]:
    """Play a gang from submission to its end; return the writes that the planner made."""
    scene, writes = Scene(nodes=7), list[str]()

    def write(method: str, path: str, _: Any) -> None:
        writes.append(f"{method} {path}")
        kill(len(writes) - 1)

    setattr(scene.wire, "after" if after else "before", write)
    scene.submit(*a_training("train", run="10s", annotations=LEASES))
    for _ in range(6):
        scene.run(8)
    return scene, writes
