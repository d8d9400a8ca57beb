"""Swaps, scale-in and rollouts, as a real control plane was seen to do them."""

from __future__ import annotations

import pytest

from tests.support.fake_clusters import DEPLOYMENTS, PODS, Play, a_deployment

REPLICA_SETS = DEPLOYMENTS.replace("deployments", "replicasets")


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b", "c")
    return play


def scale(play: Play, name: str, replicas: int) -> None:
    play.patch(f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": replicas}})


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


def test_what_has_another_owner_left_outlives_the_one_that_is_gone(play: Play):
    play.apply(a_deployment("web", 1))
    play.wait(20)
    [pod] = play.pods()
    [made] = play.cluster.store.all("replicasets")
    [above] = made["metadata"]["ownerReferences"]
    beside = {**pod["metadata"]["ownerReferences"][0], "controller": False}
    released = {"labels": {"pod-template-hash": None}, "ownerReferences": [above, beside]}
    play.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": released})
    play.wait(20)
    play.call("DELETE", f"{REPLICA_SETS}/{made['metadata']['name']}")
    play.wait(60)
    [left] = [p for p in play.pods() if p["metadata"]["name"] == pod["metadata"]["name"]]
    assert left["metadata"]["ownerReferences"] == [above]
    play.call("DELETE", f"{DEPLOYMENTS}/web")
    play.wait(60)
    assert play.pods() == []
