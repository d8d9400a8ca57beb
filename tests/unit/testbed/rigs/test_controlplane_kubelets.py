"""The kubelets of a control plane and their volumes, by a clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, override

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.stamps import stamp
from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_simulation.fake_cluster.timers import Timers
from plimsoll_testbed.rigs.controlplane.fake_kubelets.kubelets import WatchedKubelets
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import Loop, Write
from plimsoll_testbed.rigs.controlplane.nodes import ATTACHED_BY_CONTROLLER

START = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)

type Json = dict[str, Any]


class Played(Loop):
    """A loop whose time a test moves, and whose writes nobody answers before it says so."""

    def __init__(self) -> None:
        self.time = START
        self.writes: list[Write] = []
        self.timers = Timers()

    @override
    def now(self) -> datetime:
        return self.time

    @override
    def write(self, write: Write) -> None:
        self.writes.append(write)

    def wait(self, seconds: float) -> None:
        end = self.time + timedelta(seconds=seconds)
        while (due := self.timers.next(writes=True)) is not None and due <= end:
            self.time = max(self.time, due)
            self.timers.pop(writes=True)(self.time)
        self.time = end


class Kubelet:
    """One node `a`, and what its kubelet writes."""

    def __init__(self) -> None:
        self.loop = Played()
        self.stops: list[PodStopped] = []
        settings = Settings(pod_startup=timedelta(seconds=4), pod_stop=timedelta(seconds=3))
        self.kubelets = WatchedKubelets(self.loop, settings, stopped=self.stops.append)
        self.node("a")

    def node(self, name: str, change: str = "ADDED") -> None:
        meta = {
            "name": name,
            "uid": f"node {name}",
            "creationTimestamp": stamp(self.loop.now()),
            "annotations": {ATTACHED_BY_CONTROLLER: "true"},
        }
        self.kubelets.show("nodes", change, {"metadata": meta})

    @property
    def said(self) -> list[str]:
        """What is still wanted of the writes: method and the end of the path, or the phase."""
        return [
            f"{w.method} {look_at(w)}" for w in self.loop.writes if w.wanted() and "pods" in w.path
        ]

    def runs(self, **annotations: str) -> Json:
        pod = a_pod(**annotations)
        self.kubelets.show("pods", "ADDED", pod)
        self.loop.wait(4)
        assert self.said == ["PATCH Running"]
        self.loop.writes.clear()
        return pod


def look_at(write: Write) -> str:
    body: Json = write.body
    return str(body["status"]["phase"]) if write.path.endswith("status") else "pod"


def a_pod(node: str = "a", *, claim: str = "", **annotations: str) -> Json:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "1",
            "annotations": {f"drill.plimsoll.dev/{k}": v for k, v in annotations.items()},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "x"}],
            "volumes": [volume] if claim else [],
        },
        "status": {"phase": "Pending"},
    }


def told_to_go(pod: Json, grace: int) -> Json:
    told = {"deletionTimestamp": "2026-03-01T12:01:00Z", "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": {**pod["metadata"], **told}}


def test_a_pod_runs_after_its_start_up_time_to_the_millisecond():
    kubelet = Kubelet()
    kubelet.kubelets.show("pods", "ADDED", a_pod(startup="1500ms"))
    kubelet.loop.wait(1.499)
    assert kubelet.said == []
    kubelet.loop.wait(0.001)
    assert kubelet.said == ["PATCH Running"]


def test_a_pod_exits_after_its_stop_time():
    kubelet = Kubelet()
    pod = kubelet.runs()
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    kubelet.loop.wait(2.999)
    assert kubelet.said == []
    kubelet.loop.wait(0.001)
    assert kubelet.said == ["PATCH Failed"]
    assert [(stop.how, stop.at) for stop in kubelet.stops] == [
        ("exited", START + timedelta(seconds=7))
    ]


def test_a_pod_is_removed_once_its_last_status_was_written():
    kubelet = Kubelet()
    pod = kubelet.runs(stop="60s")
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    kubelet.loop.wait(30)
    [last] = kubelet.loop.writes
    [main] = last.body["status"]["containerStatuses"]
    assert main["state"]["terminated"]["exitCode"] == 128 + 9
    last.then(Response(status=200))
    assert kubelet.said == ["PATCH Failed", "DELETE pod"]


def test_a_kubelet_whose_instance_is_gone_does_and_writes_nothing_more():
    kubelet = Kubelet()
    pod = kubelet.runs()
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    kubelet.kubelets.instance_gone("a")
    assert [stop.how for stop in kubelet.stops] == ["killed"]
    kubelet.loop.wait(60)
    assert kubelet.said == []
    assert len(kubelet.stops) == 1
