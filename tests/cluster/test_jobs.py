"""A Job that may not fail once, on real controllers: what Plimsoll ends of it is no failure.

Its policy ignores the condition DisruptionTarget. The Eviction API, taint eviction and PodGC set it, and a plain
delete does not.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.node_groups import Instance
from plimsoll_simulation.fake_cluster.conditions import condition, is_deleting, is_ready, is_true
from tests.cluster.placing import Cast
from tests.support.fake_clusters import a_budget, a_template

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

IGNORING = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
GRACE = 5
"""Seconds."""
PODGC_SECONDS = 120.0
"""Until a pod of a node that was deleted is collected: 40 s of quarantine, two scans, and a busy machine."""


class Scene:
    """The Job `sum`, whose only pod runs on the node `old`; `new` joins later."""

    def __init__(self, cast: Cast, *manifests: Json) -> None:
        self.cast, self.ground = cast, cast.ground
        [self.old] = self.ground.nodes("old")
        template = a_template("sum", restartPolicy="Never", terminationGracePeriodSeconds=GRACE)
        spec = {"backoffLimit": 0, "podFailurePolicy": IGNORING, "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"}, "spec": spec}
        self.ground.apply(job, *manifests)
        [pod] = self.ground.until(lambda: self.ground.serving("sum"))
        self.first: str = pod["metadata"]["name"]
        [self.new] = self.ground.nodes("new")

    def interrupt(self, seconds: float) -> None:
        """Let the node `old` be interrupted, and go after some seconds."""
        node = next(node for node in self.cast.api.nodes() if node.name == self.old)
        now = datetime.now(UTC)
        ends = now + timedelta(seconds=seconds)
        self.instance = node.instance or ""
        notice = NoticeRecord(kind="spot-interruption", time=now, id="event", ends=ends)
        self.launched = now - timedelta(hours=1)
        interruption = Interruption(
            instance=self.instance, launched=self.launched, node=self.old, notices=(notice,)
        )
        self.cast.api.cordon(node, interruption)
        self._ec2("running")

    def die(self) -> None:
        """Let the instance be gone, and its Node not Ready."""
        self.ground.lose(self.old)
        self._ec2("terminated")

    def _ec2(self, state: str) -> None:
        said = Instance(id=self.instance, state=state, launched=self.launched)
        self.cast.aws.known[self.instance] = said

    def reconcile(self, seconds: float = 2) -> None:
        self.cast.services.drains.reconcile("ground", "test", seconds=seconds)

    def pod(self) -> Json | None:
        return self.ground.pod(self.first)

    def job(self) -> Json:
        return self.ground.get(f"/apis/batch/v1/namespaces/{self.ground.name}/jobs/sum")

    def goes_on(self, seconds: float = 60) -> None:
        """Wait until another pod runs on the other node, and see that no failure was counted."""

        def another() -> bool:
            self.reconcile()
            [*found] = self.ground.serving("sum")
            return [p["spec"]["nodeName"] for p in found] == [self.new]

        self.ground.until(another, seconds)
        self.ground.until(lambda: self.pod() is None)
        job = self.job()
        assert not is_true(job, "Failed")
        assert job["status"].get("failed", 0) == 0


def test_a_pod_that_is_evicted_at_its_deadline_is_no_failure(cast: Cast):
    scene = Scene(cast)
    scene.interrupt(GRACE + 6)

    scene.goes_on()

    assert [stop.how for stop in cast.ground.stops] == ["exited"]


def test_a_pod_on_a_dead_node_is_no_failure_and_is_made_anew_while_its_node_stands(cast: Cast):
    scene = Scene(cast)
    scene.interrupt(300)
    scene.die()

    scene.goes_on()

    node = cast.ground.get(f"/api/v1/nodes/{scene.old}")
    taints = {taint["key"] for taint in node["spec"]["taints"]}
    assert "node.kubernetes.io/out-of-service" in taints
    assert not is_ready(node)


def test_a_pod_is_never_deleted_past_its_budget_and_pod_gc_ends_it_after_its_node(cast: Cast):
    scene = Scene(cast, a_budget("sum", "sum", minAvailable=1))
    scene.interrupt(GRACE + 4)
    scene.reconcile(GRACE + 6)
    pod = scene.pod()
    assert pod is not None
    assert not is_deleting(pod), "the budget refuses"
    scene.die()
    scene.reconcile(4)
    pod = scene.pod()
    assert pod is not None
    assert not is_deleting(pod), "of a dead pod, too"
    assert condition(pod, "DisruptionTarget") is None
    cast.ground.call("DELETE", f"/api/v1/nodes/{scene.old}")  # as the cloud's controller does

    scene.goes_on(PODGC_SECONDS)
