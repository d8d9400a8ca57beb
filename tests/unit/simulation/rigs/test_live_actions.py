"""Each action is told when the cluster shows it, and its reason when the function's log has it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll_simulation.measure.lines import Line, Log
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.drill import read_drill

DRILL = Path(__file__).parents[3] / "e2e" / "emulated" / "drill.yaml"
MERGE = "application/merge-patch+json"
TAINT = {"key": INTERRUPTION, "value": "spot-interruption", "effect": "NoSchedule"}


class WatchedCluster:
    """A cluster whose actions are kept with the second at which they were told."""

    def __init__(self) -> None:
        drill = read_drill(DRILL)
        [spec] = drill.scenario.clusters
        self.clock = VirtualClock()
        self.measurement = Measurement()
        self.heard: list[tuple[float, str]] = []
        self.rig_cluster = SimulatedRigCluster(
            spec, seed=0, clock=self.clock, measurement=self.measurement, say=self._say
        )
        self.rig_cluster.set_up(drill.objects[spec.name])
        self.wait(30)
        self.zero = self.clock.now()
        self.measurement.begin(self.zero)

    def _say(self, what: str) -> None:
        self.heard.append(((self.clock.now() - self.zero).total_seconds(), what))

    def wait(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now() + timedelta(seconds=seconds))

    def send(self, method: str, path: str, body: dict[str, Any]) -> None:
        kind = MERGE if method == "PATCH" else "application/json"
        answer = self.rig_cluster.cluster.handle(
            method, path, body=body, content_type=kind, now=self.clock.now(), user="plimsoll"
        )
        assert answer.status < 300, answer.body
        self.clock.touch(self.rig_cluster.cluster)

    def pod(self, prefix: str) -> str:
        names = (str(pod["metadata"]["name"]) for pod in self.rig_cluster.all("pods"))
        return next(name for name in names if name.startswith(prefix))

    def node(self) -> str:
        return next(str(node["metadata"]["name"]) for node in self.rig_cluster.all("nodes"))


@pytest.fixture
def watched() -> WatchedCluster:
    return WatchedCluster()


def test_a_cordon_its_record_and_its_end_are_told_at_their_moment(watched: WatchedCluster):
    path, name = f"/api/v1/nodes/{watched.node()}", f"Node {watched.node()}"
    watched.wait(5)
    closed = {
        "metadata": {"annotations": {INTERRUPTION: "{}"}},
        "spec": {"unschedulable": True, "taints": [TAINT]},
    }
    watched.send("PATCH", path, closed)
    watched.wait(2)
    watched.send("PATCH", path, {"metadata": {"annotations": {INTERRUPTION: '{"phase":"empty"}'}}})
    watched.wait(2)
    opened = {
        "metadata": {"annotations": {INTERRUPTION: None}},
        "spec": {"unschedulable": None, "taints": None},
    }
    watched.send("PATCH", path, opened)
    assert watched.heard == [
        (5.0, f"cordon {name}"),
        (7.0, f"record {name}"),
        (9.0, f"uncordon {name}"),
    ]


def test_an_eviction_is_told_at_its_moment_and_its_replacement_when_it_is_ready(
    watched: WatchedCluster,
):
    pod = watched.pod("web-")
    watched.wait(3)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    watched.send("POST", f"/api/v1/namespaces/shop/pods/{pod}/eviction", eviction)
    assert watched.heard == [(3.0, f"evict Pod shop/{pod}")]
    watched.wait(60)
    [(at, what)] = watched.heard[1:]
    assert at > 3.0
    assert what.startswith("Pod shop/web-")
    assert " is Ready on " in what


def test_only_a_delete_with_a_shorter_grace_period_is_a_responders(watched: WatchedCluster):
    pod = watched.pod("web-")
    watched.send("DELETE", f"/api/v1/namespaces/shop/pods/{pod}", {"gracePeriodSeconds": 1})
    assert watched.heard == [(0.0, f"delete Pod shop/{pod}")]
    watched.wait(60)
    other = watched.pod("web-")
    watched.send("DELETE", f"/api/v1/namespaces/shop/pods/{other}", {})
    assert not any(other in what and "delete" in what for _, what in watched.heard)


def test_a_reason_that_comes_late_joins_its_action_and_the_action_keeps_its_time():
    log = Log()
    log.take(Line(31.0, "evict Pod shop/web-1"))
    log.take(Line(40.0, "Pod shop/web-2 is Ready on base-3"))
    log.take(Line(31.2, "evict Pod shop/web-1: its place is ready"))
    log.take(Line(30.0, "grow asg base by 2: 9 pods wait"))
    assert log.lines == [
        Line(30.0, "grow asg base by 2: 9 pods wait"),
        Line(31.0, "evict Pod shop/web-1: its place is ready"),
        Line(40.0, "Pod shop/web-2 is Ready on base-3"),
    ]
