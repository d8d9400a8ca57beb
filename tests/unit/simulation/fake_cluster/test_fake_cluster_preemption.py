"""Priorities, and who has to go for whom.

The order in which nodes are compared is that of pickOneNodeForPreemption in
k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_simulation.fake_cluster.conditions import condition
from tests.support.fake_clusters import PODS, Json, Play, a_pod, a_template


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


def test_who_has_room_is_placed_though_another_of_its_template_still_waits_for_its_own(play: Play):
    slow = a_template("slow", cpu="8", annotations={"stop": "30s"}, priorityClassName="low")
    slow["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    play.apply(pod("quick", "low", on="b"))
    play.wait(20)
    play.apply(a_pod("slow", slow))
    play.wait(20)
    play.apply(pod("boss-0", "high", app="boss"))
    play.wait(1)
    play.apply(pod("boss-1", "high", app="boss"))
    play.wait(10)
    assert play.pods_on("a") == {"slow"}
    assert play.pods_on("b") == {"boss-1"}
