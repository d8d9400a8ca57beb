"""Nodes that are cordoned and nodes that vanish; and the volumes that hang on them."""

from __future__ import annotations

import pytest

from plimsoll_simulation.fake_cluster.conditions import condition, is_ready
from tests.support.fake_clusters import (
    NODES,
    PODS,
    Json,
    Play,
    a_deployment,
    a_pod,
    a_stateful_set,
    a_template,
)

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a")
    return play


def test_what_runs_on_a_node_that_vanishes_is_killed_at_that_moment(play: Play):
    play.apply(
        a_deployment("web", 2), a_pod("young", a_template("young", annotations={"startup": "5m"}))
    )
    play.wait(20)
    play.cluster.vanish("a", now=play.now)
    assert [(s.how, s.at) for s in play.stops] == [("killed", play.now)] * 2


def test_the_api_learns_late_that_a_node_vanished(play: Play):
    play.apply(a_deployment("web", 1))
    play.wait(20)
    (old,) = play.names()
    play.nodes("b")
    play.cluster.vanish("a", now=play.now)

    play.wait(49)
    assert is_ready(play.get(f"{NODES}/a"))
    assert play.serving() == {old}
    play.wait(2)
    ready = condition(play.get(f"{NODES}/a"), "Ready")
    assert ready is not None
    assert ready["status"] == "Unknown"
    assert not play.serving()
    play.wait(5)
    assert play.call("GET", f"{NODES}/a").status == 404
    assert play.names() == {old}
    play.wait(60)
    assert old not in play.names()
    play.wait(16)
    assert len(play.serving()) == 1
    assert play.pods_on("b") == play.serving()


def test_a_node_that_comes_back_under_its_name_starts_its_pods_again(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    node = play.get(f"{NODES}/a")
    play.cluster.vanish("a", now=play.now)
    play.wait(10)
    play.cluster.join({k: node[k] for k in ("metadata", "spec", "status")}, now=play.now)
    play.wait(100)
    assert play.serving() == {"one"}


def test_the_node_of_a_stopped_instance_stays_and_keeps_what_is_written_on_it(play: Play):
    play.apply(a_pod("one"), a_pod("once", a_template("once", restartPolicy="Never")))
    play.wait(20)
    play.cordon("a")
    node = play.get(f"{NODES}/a")
    play.cluster.vanish("a", now=play.now, stopped=True)
    play.wait(200)
    keys = {taint["key"] for taint in play.get(f"{NODES}/a")["spec"]["taints"]}
    assert "node.cloudprovider.kubernetes.io/shutdown" in keys
    assert not play.serving()
    bare = {"name": "a", "labels": node["metadata"]["labels"]}
    play.cluster.join({"metadata": bare, "spec": {}, "status": node["status"]}, now=play.now)
    play.wait(20)
    assert play.serving() == {"one"}
    assert play.get(f"{PODS}/once")["status"]["phase"] == "Failed"
    back = play.get(f"{NODES}/a")["spec"]
    assert back["unschedulable"]
    assert {taint["key"] for taint in back["taints"]} == {"node.kubernetes.io/unschedulable"}
    assert is_ready(play.get(f"{NODES}/a"))


def stateful(play: Play) -> None:
    play.nodes("b", "c", zone="us-east-1b")
    play.cordon("a")
    play.apply(a_stateful_set("db", 1, volumeClaimTemplates=[CLAIM]))
    play.wait(30)


def test_a_file_system_that_pods_share_is_in_every_zone(play: Play):
    many: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    play.apply(many)
    play.nodes("b", zone="us-east-1b")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    for node in ("a", "b"):
        here = {"kubernetes.io/hostname": node}
        play.apply(a_pod(node, a_template(node, nodeSelector=here, volumes=volumes)))
        play.wait(30)
    assert play.serving() == {"a", "b"}


@pytest.mark.parametrize(("taint", "seconds"), [(False, 360), (True, 3)])
def test_a_volume_hangs_on_a_vanished_node_for_six_minutes_unless_it_is_out_of_service(
    play: Play, *, taint: bool, seconds: int
):
    stateful(play)
    home = play.get(f"{PODS}/db-0")["spec"]["nodeName"]
    play.cluster.vanish(home, now=play.now)
    play.wait(50.2)  # unreachable
    if taint:
        taints = play.get(f"{NODES}/{home}")["spec"]["taints"]
        play.patch(f"{NODES}/{home}", {"spec": {"taints": [*taints, OUT_OF_SERVICE]}})
    play.delete("db-0", gracePeriodSeconds=0)
    play.wait(seconds + 15)
    assert not play.serving()
    play.wait(10)
    assert play.serving() == {"db-0"}
