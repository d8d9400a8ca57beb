"""What Kubernetes 1.37 does otherwise than those before it, to the second."""

from __future__ import annotations

import pytest

from tests.support.fake_clusters import DEPLOYMENTS, Play, a_deployment, a_stateful_set

STATEFUL_SETS = DEPLOYMENTS.replace("deployments", "statefulsets")
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
NEW = {"spec": {"template": {"metadata": {"labels": {"new": "yes"}}}}}


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def updated(play: Play) -> set[str]:
    return {p["metadata"]["name"] for p in play.pods("db") if "new" in p["metadata"]["labels"]}


@pytest.mark.parametrize(
    ("budget", "missing"), [(None, {"db-3"}), (2, {"db-3", "db-2"}), ("25%", {"db-3"})]
)
def test_an_update_takes_as_many_members_at_once_as_may_be_unavailable(play: Play, budget, missing):
    rolling = {} if budget is None else {"maxUnavailable": budget}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    play.apply(a_stateful_set("db", 4, podManagementPolicy="Parallel", updateStrategy=strategy))
    play.wait(60)
    everyone = play.serving("db")
    play.patch(f"{STATEFUL_SETS}/db", NEW)
    play.wait(1)
    assert everyone - play.serving("db") == missing
    play.wait(300)
    assert updated(play) == play.serving("db") == everyone


def test_a_parallel_set_first_replaces_all_outdated_members_that_are_unavailable(play: Play):
    play.apply(a_stateful_set("db", 3, podManagementPolicy="Parallel"))
    play.wait(60)
    never = {"metadata": {"annotations": {"drill.plimsoll.dev/never-ready": "true"}}}
    play.patch(f"{STATEFUL_SETS}/db", {"spec": {"template": never}})
    play.wait(60)
    assert play.serving("db") == {"db-0", "db-1"}
    healed = {
        "metadata": {
            "annotations": {"drill.plimsoll.dev/never-ready": None},
            **NEW["spec"]["template"]["metadata"],
        }
    }
    play.patch(f"{STATEFUL_SETS}/db", {"spec": {"template": healed}})
    play.wait(1)
    assert play.serving("db") == {"db-0", "db-1"}, "nobody else goes while db-2 is unavailable"
    play.wait(300)
    assert updated(play) == {"db-0", "db-1", "db-2"}


def test_an_update_by_hand_ends_when_all_members_are_new(play: Play):
    play.apply(a_stateful_set("db", 2, updateStrategy={"type": "OnDelete"}))
    play.wait(60)
    play.patch(f"{STATEFUL_SETS}/db", NEW)
    for name in ("db-0", "db-1"):
        play.delete(name)
    play.wait(120)
    status = play.get(f"{STATEFUL_SETS}/db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_an_autoscaler_looks_when_its_spec_changes_and_else_every_15_seconds(play: Play):
    def replicas() -> int:
        found: int = play.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"]
        return found

    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5}
    play.apply(a_deployment("web", 1))
    play.wait(7)
    play.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        }
    )
    play.wait(1)
    assert replicas() == 2
    play.patch(f"{SCALERS}/web", {"spec": {"minReplicas": 3}})
    play.wait(1)
    assert replicas() == 3
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}})
    play.wait(12)
    assert replicas() == 1
    play.wait(2)
    assert replicas() == 3
