"""Priorities, and who has to go for whom.

The order in which nodes are compared is that of pickOneNodeForPreemption in
k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_testbed.model.hollow.conditions import condition
from tests.support.hollows import PODS, Json, Play, a_pod, a_template


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    play.apply(*(a_class(name, value) for name, value in LINES.items()))
    return play


LINES = {"low": 10, "middle": 100, "high": 1000}


def a_class(name: str, value: int, **more: Any) -> Json:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def pod(name: str, line: str, *, on: str | None = None, cpu: str = "8", app: str = "") -> Json:
    spec: Json = {"priorityClassName": line}
    if on is not None:
        spec["nodeSelector"] = {"kubernetes.io/hostname": on}
    return a_pod(name, a_template(app or name, cpu=cpu, **spec))


def victims(play: Play) -> set[str]:
    return {p["metadata"]["name"] for p in play.pods() if "deletionTimestamp" in p["metadata"]}


def test_a_pod_of_higher_priority_takes_the_place_of_a_lower_one(play: Play):
    play.apply(pod("x", "low", on="a"), pod("y", "middle", on="b"))
    play.wait(20)
    play.apply(pod("boss", "high"))
    play.wait(1)
    assert victims(play) == {"x"}
    assert play.get(f"{PODS}/boss")["status"]["nominatedNodeName"] == "a"
    play.wait(20)
    assert play.pods_on("a") == {"boss"}
    assert play.serving() == {"boss", "y"}
    assert "nominatedNodeName" not in play.get(f"{PODS}/boss")["status"]


def test_a_victim_is_given_its_grace_period_and_told_why(play: Play):
    annotations = {"stop": "20s"}
    play.apply(a_pod("x", a_template("x", cpu="8", annotations=annotations)))
    play.apply(pod("y", "high"))
    play.wait(20)
    play.apply(pod("boss", "high"))
    play.wait(15)
    reason = condition(play.get(f"{PODS}/x"), "DisruptionTarget")
    assert reason is not None
    assert reason["reason"] == "PreemptionByScheduler"
    assert "nodeName" not in play.get(f"{PODS}/boss")["spec"]
    play.wait(30)
    assert [s.how for s in play.stops] == ["exited"]
    assert play.serving() == {"boss", "y"}


def test_nobody_goes_where_that_would_not_help(play: Play):
    play.apply(pod("x", "low"), pod("y", "low"))
    play.wait(20)
    play.apply(pod("vast", "high", cpu="9"))
    play.wait(60)
    assert play.serving() == {"x", "y"}


def test_a_class_that_never_preempts_waits_its_turn(play: Play):
    play.apply(a_class("polite", 1000, preemptionPolicy="Never"))
    play.apply(pod("x", "low"), pod("y", "low"))
    play.wait(20)
    play.apply(pod("boss", "polite"))
    play.wait(60)
    assert play.get(f"{PODS}/boss")["spec"]["preemptionPolicy"] == "Never"
    assert play.serving() == {"x", "y"}
    play.delete("x")
    play.wait(30)
    assert play.serving() == {"boss", "y"}


def test_a_class_that_is_deleted_later_leaves_admitted_pods_alone(play: Play):
    play.apply(pod("x", "low"))
    play.call("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/low")
    assert play.get(f"{PODS}/x")["spec"]["priority"] == 10


def test_no_more_go_than_must(play: Play):
    play.cordon("b")
    play.apply(*(pod(name, "low", on="a", cpu="2") for name in ("w", "x", "y", "z")))
    play.wait(20)
    play.apply(pod("boss", "high", cpu="4"))
    play.wait(1)
    assert len(victims(play)) == 2


def test_then_the_node_whose_dearest_victim_is_the_cheapest(play: Play):
    play.apply(
        pod("x1", "low", on="a", cpu="4"),
        pod("x2", "low", on="a", cpu="4"),
        pod("y", "middle", on="b"),
    )
    play.wait(20)
    play.apply(pod("boss", "high"))
    play.wait(1)
    assert victims(play) == {"x1", "x2"}


def test_then_the_node_with_the_smallest_sum_which_more_victims_never_lower(play: Play):
    play.apply(
        pod("x1", "low", on="a", cpu="4"),
        pod("x2", "low", on="a", cpu="4"),
        pod("y", "low", on="b"),
    )
    play.wait(20)
    play.apply(pod("boss", "high"))
    play.wait(1)
    assert victims(play) == {"y"}


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_then_the_node_whose_victims_started_last(play: Play, first: str, second: str):
    play.apply(pod("old", "low", on=first))
    play.wait(20)
    play.apply(pod("young", "low", on=second))
    play.wait(20)
    play.apply(pod("boss", "high"))
    play.wait(1)
    assert victims(play) == {"young"}


def test_room_that_was_made_is_kept_from_lower_pods(play: Play):
    play.cordon("b")
    template = a_template("x", cpu="8", annotations={"stop": "20s"}, priorityClassName="low")
    play.apply(a_pod("x", template))
    play.wait(20)
    play.apply(pod("boss", "high", cpu="6"))
    play.wait(5)
    play.apply(pod("small", "middle", cpu="4"))
    play.wait(60)
    assert play.pods_on("a") == {"boss"}


def test_two_pods_of_one_template_each_find_their_victim(play: Play):
    play.apply(pod("x", "low"), pod("y", "low"))
    play.wait(20)
    play.apply(pod("boss-1", "high", app="boss"), pod("boss-2", "high", app="boss"))
    play.wait(30)
    assert play.serving() == {"boss-1", "boss-2"}
