"""How pods start, stop, and are stopped."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_testbed.model.hollow.conditions import is_ready
from tests.support.hollows import PODS, Play, a_deployment, a_pod, a_template


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def test_a_pod_behind_a_scheduling_gate_waits_and_gates_are_only_taken_off(play: Play):
    pod = a_pod("one")
    pod["spec"]["schedulingGates"] = [{"name": "ours"}]
    play.apply(pod)
    play.wait(20)
    path = f"{PODS}/one"
    assert "nodeName" not in play.get(path)["spec"]
    more = {"spec": {"schedulingGates": [{"name": "ours"}, {"name": "more"}]}}
    assert play.call("PATCH", path, more).status == 422
    started = {"spec": {"schedulingGates": None, "nodeSelector": {"kubernetes.io/hostname": "b"}}}
    play.patch(path, started)
    play.wait(20)
    assert play.get(path)["spec"]["nodeName"] == "b"
    assert play.call("PATCH", path, {"spec": {"schedulingGates": [{"name": "ours"}]}}).status == 422
    assert play.call("PATCH", path, {"spec": {"nodeSelector": {"a": "b"}}}).status == 422


def test_a_pod_is_pending_until_its_start_up_time_is_over(play: Play):
    play.apply(a_pod("one"))
    play.wait(15)
    assert play.get(f"{PODS}/one")["status"]["phase"] == "Pending"
    play.wait(0.1)
    assert is_ready(play.get(f"{PODS}/one"))


def test_a_pod_told_to_go_stays_until_it_has_exited(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    answer = play.delete("one")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert answer.body["metadata"]["deletionTimestamp"] == "2026-03-01T12:00:50Z"
    play.wait(3)
    assert play.names() == {"one"}
    play.wait(0.1)
    assert not play.names()
    assert [s.how for s in play.stops] == ["exited"]


def test_a_pod_that_overruns_its_grace_period_is_killed_at_its_end(play: Play):
    play.apply(a_pod("one", a_template("one", annotations={"stop": "5m"})))
    play.wait(20)
    play.delete("one")
    told = play.now
    play.wait(40)
    assert [(s.how, round((s.at - told).total_seconds())) for s in play.stops] == [("overran", 30)]


def test_a_grace_period_shorter_than_its_own_cuts_a_pod_short(play: Play):
    play.apply(a_pod("one", a_template("one", annotations={"stop": "20s"})))
    play.wait(20)
    play.delete("one", gracePeriodSeconds=5)
    told = play.now
    play.wait(10)
    assert [(s.how, round((s.at - told).total_seconds())) for s in play.stops] == [("cut-short", 5)]


def test_a_shorter_grace_period_that_is_long_enough_cuts_nobody_short(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    play.delete("one", gracePeriodSeconds=5)
    play.wait(10)
    assert [s.how for s in play.stops] == ["exited"]


def test_a_second_delete_shortens_the_grace_period_and_never_lengthens_it(play: Play):
    play.apply(a_pod("one", a_template("one", annotations={"stop": "5m"})))
    play.wait(20)
    play.delete("one")
    play.wait(2)
    longer = play.delete("one", gracePeriodSeconds=100)
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = play.delete("one", gracePeriodSeconds=10)
    assert shorter.body["metadata"]["deletionTimestamp"] == "2026-03-01T12:00:30Z"
    told = play.now
    play.wait(20)
    assert [(s.how, round((s.at - told).total_seconds())) for s in play.stops] == [
        ("cut-short", 10)
    ]


def test_grace_zero_takes_the_object_away_at_once_and_kills_what_runs(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    play.delete("one", gracePeriodSeconds=0)
    assert not play.names()
    play.wait(0.1)
    assert [s.how for s in play.stops] == ["cut-short"]


def test_a_pod_without_a_node_and_one_that_has_not_started_go_at_once(play: Play):
    play.apply(a_pod("large", a_template("large", cpu="100")), a_pod("young"))
    play.wait(5)
    play.delete("large")
    play.delete("young")
    assert play.names() == {"young"}
    play.wait(0.1)
    assert not play.names()
    assert not play.stops


def test_a_replacement_is_made_when_a_pod_is_told_to_go_not_when_it_is_gone(play: Play):
    play.apply(a_deployment("web", 1, a_template("web", annotations={"stop": "25s"})))
    play.wait(20)
    (old,) = play.names()
    play.delete(old)
    play.wait(20)
    assert len(play.names()) == 2
    assert len(play.serving()) == 1


def test_a_delete_with_another_uid_or_an_old_version_is_refused(play: Play):
    play.apply(a_pod("one"))
    version = play.get(f"{PODS}/one")["metadata"]["resourceVersion"]
    play.wait(20)
    for condition in ({"uid": "other"}, {"resourceVersion": version}):
        answer = play.delete("one", preconditions=condition)
        assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert play.serving() == {"one"}


def test_an_unschedulable_pod_says_why_and_runs_when_a_node_comes(play: Play):
    play.apply(a_pod("large", a_template("large", cpu="12")))
    play.wait(1)
    (condition,) = play.get(f"{PODS}/large")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert "Insufficient cpu" in condition["message"]
    play.nodes("big", cpu="16")
    play.wait(20)
    assert play.serving() == {"large"}


def test_a_waiting_pod_of_higher_priority_is_placed_first(play: Play):
    line: dict[str, Any] = {
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
        "preemptionPolicy": "Never",
    }
    play.apply(
        line,
        a_pod("x", a_template("x", cpu="8")),
        a_pod("y", a_template("y", cpu="8")),
        a_pod("low", a_template("low", cpu="8")),
    )
    play.wait(20)
    play.apply(a_pod("high", a_template("high", cpu="8", priorityClassName="high")))
    play.wait(20)
    play.delete("x")
    play.wait(20)
    assert play.serving() == {"y", "high"}


def test_no_pod_is_placed_on_a_cordoned_node(play: Play):
    play.cordon("a")
    play.apply(a_deployment("web", 4))
    play.wait(20)
    assert not play.pods_on("a")
    assert len(play.pods_on("b")) == 4


def test_while_the_api_server_is_away_pods_run_on_and_exit_but_nothing_is_written(play: Play):
    play.apply(a_pod("one"), a_deployment("web", 1))
    play.wait(20)
    play.delete("one")
    play.wait(1)
    play.cluster.take_api_away(now=play.now)
    play.wait(10)
    assert [s.how for s in play.stops] == ["exited"]
    assert "one" in play.names()
    with pytest.raises(ConnectionRefusedError):
        play.get(PODS)
    play.cluster.bring_api_back(now=play.now)
    play.wait(0)
    assert "one" not in play.names()
