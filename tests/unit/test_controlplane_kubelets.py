"""The kubelets of a control plane and their volumes, by a clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, override

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.model.hollow.stamps import stamp
from plimsoll_testbed.model.hollow.state import PodStopped
from plimsoll_testbed.model.hollow.timers import Timers
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


def test_a_change_of_the_pod_does_not_start_its_time_anew():
    kubelet = Kubelet()
    kubelet.kubelets.show("pods", "ADDED", a_pod())
    kubelet.loop.wait(3)
    kubelet.kubelets.show("pods", "MODIFIED", a_pod(note="x"))
    kubelet.loop.wait(1)
    assert kubelet.said == ["PATCH Running"]


def test_a_pod_waits_for_a_node_that_was_not_seen_yet():
    kubelet = Kubelet()
    kubelet.kubelets.show("pods", "ADDED", a_pod("b"))
    kubelet.loop.wait(10)
    kubelet.node("b")
    kubelet.loop.wait(4)
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


def test_a_pod_that_succeeded_before_it_was_told_to_go_has_not_failed():
    kubelet = Kubelet()
    pod = a_pod(run="10s")
    pod["spec"]["restartPolicy"] = "Never"
    kubelet.kubelets.show("pods", "ADDED", pod)
    kubelet.loop.wait(14)
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    assert kubelet.said == ["PATCH Running", "PATCH Succeeded", "PATCH Succeeded"]


def test_a_shorter_grace_period_counts_from_when_the_kubelet_hears_of_it():
    kubelet = Kubelet()
    pod = kubelet.runs(stop="60s")
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    kubelet.loop.wait(10)
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 5))
    kubelet.loop.wait(4.9)
    assert kubelet.stops == []
    kubelet.loop.wait(0.1)
    assert [stop.how for stop in kubelet.stops] == ["cut-short"]


def test_a_kubelet_whose_instance_is_gone_does_and_writes_nothing_more():
    kubelet = Kubelet()
    pod = kubelet.runs()
    kubelet.kubelets.show("pods", "MODIFIED", told_to_go(pod, 30))
    kubelet.kubelets.instance_gone("a")
    assert [stop.how for stop in kubelet.stops] == ["killed"]
    kubelet.loop.wait(60)
    assert kubelet.said == []
    assert len(kubelet.stops) == 1


def test_what_waited_to_be_written_when_the_instance_went_is_never_written():
    kubelet = Kubelet()
    kubelet.kubelets.show("pods", "ADDED", a_pod())
    kubelet.loop.wait(4)
    [running] = kubelet.loop.writes
    assert running.wanted()
    kubelet.kubelets.instance_gone("a")
    assert not running.wanted()


def test_an_instance_may_be_gone_before_its_node_is_seen():
    kubelet = Kubelet()
    kubelet.kubelets.instance_gone("b")
    kubelet.node("b")
    kubelet.kubelets.show("pods", "ADDED", a_pod("b"))
    kubelet.loop.wait(60)
    assert kubelet.said == []


def test_a_node_of_the_same_name_is_another_instance():
    kubelet = Kubelet()
    kubelet.node("a", "DELETED")
    kubelet.kubelets.instance_gone("a")
    kubelet.loop.wait(10)
    kubelet.node("a")
    kubelet.kubelets.show("pods", "ADDED", a_pod())
    kubelet.loop.wait(4)
    assert kubelet.said == ["PATCH Running"]


def test_an_annotation_that_cannot_be_read_is_said_and_harms_nobody_else():
    kubelet = Kubelet()
    kubelet.kubelets.show("pods", "ADDED", a_pod(stop="later"))
    kubelet.loop.wait(60)
    [write] = kubelet.loop.writes
    assert write.body["status"]["reason"] == "BadAnnotation"
    assert "drill.plimsoll.dev/stop" in write.body["status"]["message"]


def attachment(*, attached: bool, **meta: Any) -> Json:
    return {
        "metadata": {"name": "csi-1", "uid": "a1", **meta},
        "spec": {
            "attacher": "ebs.csi.aws.com",
            "nodeName": "a",
            "source": {"persistentVolumeName": "pv"},
        },
        "status": {"attached": attached},
    }


class TestVolumes:
    def mounting(self) -> Kubelet:
        """A pod with a bound claim, seen before its volume is attached."""
        kubelet = Kubelet()
        claim = {"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}
        csi = {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}
        kubelet.kubelets.show(
            "persistentvolumes", "ADDED", {"metadata": {"name": "pv"}, "spec": {"csi": csi}}
        )
        kubelet.kubelets.show("persistentvolumeclaims", "ADDED", claim)
        kubelet.kubelets.show("pods", "ADDED", a_pod(claim="data"))
        return kubelet

    def in_use(self, kubelet: Kubelet) -> list[list[str]]:
        return [w.body["status"]["volumesInUse"] for w in kubelet.loop.writes if "nodes" in w.path]

    def test_a_pod_starts_when_its_volume_is_attached(self):
        kubelet = self.mounting()
        kubelet.loop.wait(60)
        assert kubelet.said == []
        kubelet.kubelets.show("volumeattachments", "MODIFIED", attachment(attached=True))
        kubelet.loop.wait(4)
        assert kubelet.said == ["PATCH Running"]

    def test_a_volume_is_reported_in_use_before_it_is_attached_and_until_the_containers_are_gone(
        self,
    ):
        kubelet = self.mounting()
        assert self.in_use(kubelet) == [["kubernetes.io/csi/ebs.csi.aws.com^vol-1"]]
        kubelet.loop.writes.pop().then(Response(status=200))
        kubelet.kubelets.show("volumeattachments", "MODIFIED", attachment(attached=True))
        kubelet.loop.wait(4)
        kubelet.kubelets.show("pods", "MODIFIED", told_to_go(a_pod(claim="data"), 30))
        assert self.in_use(kubelet) == []
        kubelet.loop.wait(3)
        assert self.in_use(kubelet) == [[]]

    def test_of_an_instance_that_vanished_it_is_never_taken_back(self):
        kubelet = self.mounting()
        kubelet.loop.writes.pop().then(Response(status=200))
        kubelet.kubelets.show("volumeattachments", "MODIFIED", attachment(attached=True))
        kubelet.loop.wait(4)
        kubelet.kubelets.instance_gone("a")
        kubelet.kubelets.show("pods", "DELETED", a_pod(claim="data"))
        assert self.in_use(kubelet) == []

    def test_one_report_at_a_time_and_the_last_one_is_right(self):
        kubelet = self.mounting()
        kubelet.kubelets.volumes.unmount(a_pod(claim="data"))
        [report] = kubelet.loop.writes
        report.then(Response(status=200))
        assert self.in_use(kubelet) == [["kubernetes.io/csi/ebs.csi.aws.com^vol-1"], []]

    def test_an_attachment_is_held_then_attached_and_let_go_in_its_time(self):
        kubelet = Kubelet()
        kubelet.kubelets.show("volumeattachments", "ADDED", attachment(attached=False))
        [held] = kubelet.loop.writes
        assert held.body["metadata"]["finalizers"] == ["external-attacher/ebs-csi-aws-com"]
        ours = {"finalizers": ["external-attacher/ebs-csi-aws-com"]}
        kubelet.kubelets.show("volumeattachments", "MODIFIED", attachment(attached=False, **ours))
        kubelet.loop.wait(2.9)
        assert len(kubelet.loop.writes) == 1
        kubelet.loop.wait(0.1)
        assert kubelet.loop.writes[-1].body == {"status": {"attached": True}}
        gone = attachment(attached=True, deletionTimestamp="2026-03-01T12:00:09Z", **ours)
        kubelet.kubelets.show("volumeattachments", "MODIFIED", gone)
        kubelet.loop.wait(3)
        assert kubelet.loop.writes[-1].body == {"metadata": {"finalizers": None}}
