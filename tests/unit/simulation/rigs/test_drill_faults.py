"""What breaks in a simulated drill: each fault does what it says, for as long as it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.scenario.faults import FAULTS
from tests.support import drills
from tests.support.drills import WEB

PLATFORM = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: first}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: platform}
spec:
  replicas: 1
  selector: {matchLabels: {app: platform}}
  template:
    metadata: {labels: {app: platform}}
    spec:
      priorityClassName: first
      nodeSelector: {node.kubernetes.io/capacity: on-demand}
      containers:
        - {name: platform, image: example/platform, resources: {requests: {cpu: 400m}}}
"""

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: faults}
spec:
  horizon: 8m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: base, kind: asg, capacity: on-demand, instanceType: m6i.large, zones: [us-east-1a],
           size: 1, max: 3, startup: 40s, allocatable: {cpu: BASE, memory: 4Gi, pods: 10}}
        - {name: spot, kind: asg, capacity: spot, instanceType: m5.xlarge, zones: [us-east-1a],
           size: 1, startup: 10m, allocatable: {cpu: "8", memory: 32Gi, pods: 10}}
      manifests: [web.yaml]
  timeline:
    - {at: 10s, notice: spot-interruption, nodes: {capacity: spot}}
"""
"""web stands on the large spot node; whether there is room for it elsewhere is up to BASE."""

NO_ROOM = "600m"
"""platform is all that stands there, and a replacement of web needs another node."""

FIELDS = {"delay": "2s", "function": "notices", "latency": "100ms", "service": "ec2"}
"""A value for each field that some fault needs."""

type Play = Callable[..., dict[str, Any]]


class Log(Quiet):
    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []

    def say(self, seconds: float, what: str) -> None:
        self.lines.append((seconds, what))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def play(tmp_path: Path, log: Log) -> Play:
    """Play a drill with these faults and return its report."""

    def played(
        *faults: str, responder: str = "plimsoll", base: str = "1", text: str = DRILL
    ) -> dict[str, Any]:
        drill = text.replace("BASE", base) + "".join(f"    - {fault}\n" for fault in faults)
        web = f"{PLATFORM}---{WEB}"
        return drills.play(tmp_path, drill, responder=responder, seed=3, listener=log, web=web)

    return played


def node(report: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = report["nodes"][0]
    return row


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_begins_and_ends_and_costs_no_pod(play: Play, log: Log, fault: str):
    needs = "".join(f", {field}: {FIELDS[field]}" for field in sorted(FAULTS[fault].needs))
    report = play(f"{{at: 5s, fault: {fault}, for: 10s{needs}}}")
    assert {f"fault {fault} begins", f"fault {fault} ends"} <= {what for _, what in log.lines}
    assert (report["settled"], report["totals"]["pods_killed"]) == (True, 0)


def test_a_slow_api_server_takes_longer_for_each_answer(play: Play):
    report = play("{at: 5s, fault: api-server-slow, latency: 2s, for: 5m}", responder="drain")
    # 300 ms, 200 ms and 20 ms as always, and 2 s more for the cordon.
    assert node(report)["cordoned"] == 12.52
    fast = play("{at: 1s, fault: api-server-slow, latency: 2s, for: 5s}", responder="drain")
    assert node(fast)["cordoned"] == 10.52


def test_a_lost_notice_never_arrives_and_a_handler_of_events_alone_never_knows(play: Play):
    report = play("{at: 5s, fault: notices-lost, for: 10s}", responder="drain")
    assert node(report)["cordoned"] is None
    assert report["totals"]["pods_killed"] == 1


def test_plimsoll_learns_of_a_lost_notice_from_ec2_itself(play: Play):
    report = play("{at: 5s, fault: notices-lost, for: 10s}")
    assert 37 <= node(report)["cordoned"] < 40  # the first resync
    assert report["totals"]["pods_killed"] == 0


def test_a_late_notice_is_late_by_its_delay(play: Play):
    report = play("{at: 5s, fault: notices-delayed, delay: 20s, for: 10s}", responder="drain")
    assert node(report)["noticed"] == 10.0
    assert node(report)["cordoned"] == 30.52


def test_a_fraction_of_the_notices_is_hit(play: Play):
    drill = DRILL.replace("size: 1, startup: 10m", "size: 8, startup: 10m")
    report = play(
        "{at: 5s, fault: notices-lost, fraction: 0.5, for: 10s}", responder="drain", text=drill
    )
    assert 0 < report["totals"]["nodes_cordoned"] < 8


@pytest.mark.parametrize("function", ["notices", "drains", "schedule", "sweep"])
def test_a_killed_function_does_nothing_after_its_death_and_its_work_is_done_later(
    play: Play, log: Log, function: str
):
    report = play(f"{{at: 5s, fault: function-killed, function: {function}, for: 20s}}")
    assert report["settled"]
    assert report["totals"]["pods_killed"] == 0
    again = play(f"{{at: 5s, fault: function-killed, function: {function}, for: 20s}}")
    assert again == report


def test_throttled_calls_are_tried_again_as_the_real_client_does_and_then_fail(play: Play):
    report = play("{at: 5s, fault: aws-throttled, service: autoscaling, for: 30s}", base=NO_ROOM)
    calm = play(base=NO_ROOM)
    calls = "autoscaling:DescribeAutoScalingGroups"
    assert report["api"]["aws"][calls] >= calm["api"]["aws"][calls] + 2
    grown = [
        next(row for row in r["capacity"] if row["group"] == "base")["first_asked"]
        for r in (calm, report)
    ]
    assert grown[0] < 12
    assert grown[1] > 35
