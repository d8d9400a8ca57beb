"""How pods start, stop, and are stopped."""

from __future__ import annotations

import pytest

from plimsoll_simulation.fake_cluster.conditions import is_ready
from tests.support.fake_clusters import PODS, Play, a_deployment, a_pod, a_template


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


def test_grace_zero_takes_the_object_away_at_once_and_kills_what_runs(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    play.delete("one", gracePeriodSeconds=0)
    assert not play.names()
    play.wait(0.1)
    assert [s.how for s in play.stops] == ["cut-short"]


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
