"""StatefulSets, DaemonSets, Jobs and autoscalers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hollows import (
    PODS,
    Play,
    a_daemon_set,
    a_stateful_set,
    a_template,
)

SETS = "/apis/apps/v1/namespaces/default/statefulsets"


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def test_ordered_pods_come_one_after_another(play: Play):
    play.apply(a_stateful_set("db", 3))
    play.wait(14)
    assert play.names() == {"db-0"}
    play.wait(2)
    assert play.names() == {"db-0", "db-1"}
    play.wait(32)
    assert play.serving() == {"db-0", "db-1", "db-2"}


def test_an_ordinal_is_made_again_only_when_the_old_pod_is_gone(play: Play):
    play.apply(a_stateful_set("db", 1, a_template("db", annotations={"stop": "10s"})))
    play.wait(20)
    old = play.get(f"{PODS}/db-0")["metadata"]["uid"]
    play.delete("db-0")
    play.wait(9)
    assert play.get(f"{PODS}/db-0")["metadata"]["uid"] == old
    play.wait(2)
    assert play.get(f"{PODS}/db-0")["metadata"]["uid"] != old
    play.wait(15)
    assert play.serving() == {"db-0"}


def test_an_ordered_set_replaces_nothing_while_a_lower_ordinal_is_missing(play: Play):
    play.apply(a_stateful_set("db", 3, a_template("db", annotations={"stop": "10s"})))
    play.wait(60)
    play.delete("db-0")
    play.delete("db-2", gracePeriodSeconds=1)
    play.wait(5)
    assert play.names() == {"db-0", "db-1"}


def test_the_highest_ordinals_go_first_and_one_after_another(play: Play):
    play.apply(a_stateful_set("db", 3))
    play.wait(60)
    play.patch(f"{SETS}/db", {"spec": {"replicas": 1}})
    play.wait(2)
    assert play.serving() == {"db-0", "db-1"}
    play.wait(8)
    assert play.names() == {"db-0"}


def test_an_update_goes_from_the_highest_ordinal_down_and_waits_for_each(play: Play):
    play.apply(a_stateful_set("db", 3))
    play.wait(60)
    annotations = {"restartedAt": "now"}
    play.patch(f"{SETS}/db", {"spec": {"template": {"metadata": {"annotations": annotations}}}})
    order = []
    for _ in range(300):
        play.wait(0.25)
        missing = {"db-0", "db-1", "db-2"} - play.serving()
        assert len(missing) <= 1
        order += [m for m in missing if m not in order]
    assert order == ["db-2", "db-1", "db-0"]
    status = play.get(f"{SETS}/db")["status"]
    assert status["updatedReplicas"] == 3
    assert status["currentRevision"] == status["updateRevision"]


def test_what_is_immutable_in_a_set_is_refused(play: Play):
    play.apply(a_stateful_set("db", 1))
    answer = play.call("PATCH", f"{SETS}/db", {"spec": {"serviceName": "other"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_daemon_follows_selectors_and_taints(play: Play):
    play.nodes("gpu", accelerator="yes")
    play.apply(a_daemon_set("agent", a_template("agent", nodeSelector={"accelerator": "yes"})))
    play.wait(20)
    assert [len(play.pods_on(n)) for n in ("a", "b", "gpu")] == [0, 0, 1]


def test_a_new_template_of_a_daemon_rolls_through_the_nodes_one_by_one(play: Play):
    play.nodes("c")
    play.apply(a_daemon_set("agent"))
    play.wait(20)
    old = play.names()
    path = "/apis/apps/v1/namespaces/default/daemonsets/agent"
    play.patch(path, {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    for _ in range(200):
        play.wait(0.5)
        assert len(play.serving()) >= 2
    assert len(play.serving()) == 3
    assert play.names().isdisjoint(old)


def test_a_deleted_pod_of_a_job_is_made_again(play: Play):
    job: dict[str, Any] = {
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default"},
        "spec": {"template": a_template("sum", restartPolicy="Never")},
    }
    play.apply(job)
    play.wait(20)
    (old,) = play.names()
    play.delete(old)
    play.wait(20)
    (new,) = play.serving()
    assert new != old


def test_a_set_updated_on_delete_waits_to_be_told(play: Play):
    play.apply(a_stateful_set("db", 1, updateStrategy={"type": "OnDelete"}))
    play.wait(20)
    old = play.get(f"{PODS}/db-0")["metadata"]["uid"]
    play.patch(f"{SETS}/db", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    play.wait(60)
    assert play.get(f"{PODS}/db-0")["metadata"]["uid"] == old
    play.delete("db-0")
    play.wait(60)
    assert play.get(f"{PODS}/db-0")["metadata"]["annotations"] == {"x": "y"}


def test_an_update_on_delete_is_never_complete(play: Play):
    play.apply(a_stateful_set("db", 1, updateStrategy={"type": "OnDelete"}))
    play.wait(20)
    play.patch(f"{SETS}/db", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    play.delete("db-0")
    play.wait(60)
    status = play.get(f"{SETS}/db")["status"]
    assert status["updatedReplicas"] == 1
    assert status["currentRevision"] != status["updateRevision"]


def test_pods_of_a_parallel_set_become_available_in_their_time(play: Play):
    play.apply(a_stateful_set("db", 2, podManagementPolicy="Parallel", minReadySeconds=30))
    play.wait(20)
    assert play.get(f"{SETS}/db")["status"]["availableReplicas"] == 0
    play.wait(40)
    assert play.get(f"{SETS}/db")["status"]["availableReplicas"] == 2
