"""Swaps, scale-in and rollouts, as a real control plane was seen to do them."""

from __future__ import annotations

import pytest

from plimsoll_testbed.model.hollow.conditions import condition
from tests.support.hollows import DEPLOYMENTS, Play, a_deployment, a_template


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b", "c")
    return play


def scale(play: Play, name: str, replicas: int) -> None:
    play.patch(f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": replicas}})


def test_without_a_cost_the_pods_that_were_ready_first_stay(play: Play):
    play.apply(a_deployment("web", 1))
    play.wait(3600)
    old = play.names("web")
    scale(play, "web", 2)
    play.wait(60)

    scale(play, "web", 1)
    play.wait(10)

    assert play.names("web") == old


def test_a_rolling_restart_never_has_fewer_ready_than_the_settings_allow(play: Play):
    play.apply(a_deployment("web", 6))
    play.wait(20)
    old = play.names("web")
    annotation = {"kubectl.kubernetes.io/restartedAt": "now"}
    play.patch(
        f"{DEPLOYMENTS}/web",
        {"spec": {"template": {"metadata": {"annotations": annotation}}}},
    )
    fewest = 6
    for _ in range(200):
        play.wait(0.5)
        fewest = min(fewest, len(play.serving("web")))
        assert len([p for p in play.pods("web") if "deletionTimestamp" not in p["metadata"]]) <= 8

    assert fewest == 5  # 25% of six, rounded down
    assert len(play.serving("web")) == 6
    assert play.names("web").isdisjoint(old)
    status = play.get(f"{DEPLOYMENTS}/web")["status"]
    assert status["observedGeneration"] == 2
    assert status["updatedReplicas"] == status["readyReplicas"] == status["replicas"] == 6


def test_a_rolling_restart_of_one_replica_makes_the_new_pod_ready_first(play: Play):
    play.apply(a_deployment("web", 1))
    play.wait(20)
    old = play.names("web")
    play.patch(
        f"{DEPLOYMENTS}/web",
        {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}},
    )
    for _ in range(100):
        play.wait(0.3)
        assert play.serving("web")
    assert play.names("web").isdisjoint(old)


def test_a_deployment_scaled_in_the_middle_of_a_rollout_is_scaled_in_proportion(play: Play):
    play.apply(
        a_deployment("web", 8, strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}})
    )
    play.wait(20)
    play.patch(
        f"{DEPLOYMENTS}/web",
        {"spec": {"template": a_template("web", annotations={"never-ready": "true"})}},
    )
    play.wait(40)  # stuck: 6 old, 4 new
    scale(play, "web", 16)
    play.wait(20)
    sizes = sorted(r["spec"]["replicas"] for r in play.cluster.store.all("replicasets"))
    assert sizes == [7, 11]


def test_min_ready_seconds_delays_what_counts_as_available(play: Play):
    play.apply(a_deployment("web", 1, minReadySeconds=30))
    play.wait(20)
    assert play.get(f"{DEPLOYMENTS}/web")["status"]["availableReplicas"] == 0
    play.wait(30)
    assert play.get(f"{DEPLOYMENTS}/web")["status"]["availableReplicas"] == 1


def test_what_stood_in_a_namespace_goes_with_it(play: Play):
    play.apply(a_deployment("web", 2))
    play.wait(20)
    play.call("DELETE", "/api/v1/namespaces/default")
    play.wait(10)
    assert not play.pods()
    assert not list(play.cluster.store.all("deployments"))


def test_the_same_seed_gives_the_same_cluster():
    def run(seed: int) -> list[object]:
        play = Play(seed)
        play.nodes("a", "b")
        play.apply(a_deployment("web", 4))
        play.wait(60)
        return [list(play.cluster.store.all(r)) for r in ("pods", "replicasets", "nodes")]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_quiet_cluster_has_nothing_due(play: Play):
    play.apply(a_deployment("web", 3))
    play.wait(60)
    assert play.cluster.due is None


def test_going_back_to_an_old_template_takes_its_old_set_again(play: Play):
    play.apply(a_deployment("web", 2))
    play.wait(20)
    (first,) = play.cluster.store.all("replicasets")
    play.patch(
        f"{DEPLOYMENTS}/web",
        {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}},
    )
    play.wait(60)
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"metadata": {"annotations": None}}}})
    play.wait(60)
    sizes = {
        r["metadata"]["name"]: r["spec"]["replicas"] for r in play.cluster.store.all("replicasets")
    }
    assert sizes[first["metadata"]["name"]] == 2
    assert sorted(sizes.values()) == [0, 2]
    annotations = play.get(f"{DEPLOYMENTS}/web")["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"


def test_a_set_without_a_deployment_does_not_look_at_who_is_on_the_same_node(play: Play):
    # By age alone: the one that was Ready last goes, though it is the only one on its node.
    template = a_template("web", nodeSelector={"kubernetes.io/hostname": "a"})
    replicaset = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    play.apply(replicaset)
    play.wait(600)
    old = play.names()
    elsewhere = a_template("web", nodeSelector={"kubernetes.io/hostname": "b"})
    play.patch(f"{sets}/web", {"spec": {"replicas": 3, "template": elsewhere}})
    play.wait(30)
    play.patch(f"{sets}/web", {"spec": {"replicas": 2}})
    play.wait(30)
    assert play.names() == old


def test_a_rollout_that_is_done_stays_done_until_the_template_changes(play: Play):
    play.apply(a_deployment("web", 2))
    assert progress(play) is None
    play.wait(20)
    assert progress(play) == ("True", "NewReplicaSetAvailable")
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 400}})
    play.wait(20)
    assert progress(play) == ("True", "NewReplicaSetAvailable")
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"paused": True}})
    play.wait(20)
    assert progress(play) == ("Unknown", "DeploymentPaused")
    template = {"metadata": {"annotations": {"x": "y"}}}
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"paused": False, "template": template}})
    play.wait(20)
    assert progress(play) == ("True", "ReplicaSetUpdated")


def test_a_deployment_that_is_recreated_is_available_with_all_its_pods_only(play: Play):
    never = a_template("web", annotations={"never-ready": "true"})
    play.apply(a_deployment("web", 2, never, strategy={"type": "Recreate"}))
    play.wait(20)
    available = condition(play.get(f"{DEPLOYMENTS}/web"), "Available")
    assert available is not None
    assert available["status"] == "False"


def progress(play: Play) -> tuple[str, str] | None:
    told = condition(play.get(f"{DEPLOYMENTS}/web"), "Progressing")
    return None if told is None else (told["status"], told["reason"])


def test_a_deployment_made_smaller_and_rolled_out_at_once_keeps_enough_that_serve(play: Play):
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    play.apply(a_deployment("web", 6, strategy=rolling))
    play.wait(20)
    template = {"metadata": {"annotations": {"x": "y"}}}
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5, "template": template}})
    for _ in range(200):
        play.wait(0.5)
        assert len(play.serving()) >= 4
    assert len(play.serving()) == 5
