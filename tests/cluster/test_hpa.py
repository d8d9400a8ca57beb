"""An autoscaler on a real control plane, while load rises and the pods that it counts are replaced.

The HPA reckons a pod that is not Ready as idle before it scales up. So it waits for more load, or until the
replacements are Ready; four Deployments under the same load show for how much and for how long.

Source: k8s.io/kubernetes/pkg/controller/podautoscaler/replica_calculator.go (GetResourceReplicas, groupPods)
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.installed import install
from tests.cluster.placing import Cast, a_cast
from tests.support.fake_clusters import MERGE, a_deployment, a_template

pytestmark = [pytest.mark.cluster, pytest.mark.long]

type Json = dict[str, Any]

EVERY: Final = {"kube-controller-manager": ["--horizontal-pod-autoscaler-sync-period=1s"]}
REPLICAS: Final = 10
STARTUP: Final = 60
"""Seconds until a replacement is Ready."""
LEVELS: Final = (100, 109, 112, 122, 125, 140, 165, 170, 200)
"""What the pods use, in per cent of the target: on both sides of what the HPA tolerates."""
INTERRUPTED: Final = {"calm": 0, "advised": 5, "half": 5, "whole": 10}
"""How many pods of each Deployment stand on its interrupted node."""
KINDS: Final = {
    "advised": "rebalance-recommendation",
    "half": "spot-interruption",
    "whole": "spot-interruption",
}
LEFT: Final = timedelta(minutes=4)
"""More than the two minutes of a spot interruption, for a slow machine: nobody is to have an eviction deadline here."""
USAGE: Final = "drill.plimsoll.dev/usage"


@dataclass(frozen=True, kw_only=True)
class ScaleUp:
    """The first time that an HPA raised its count."""

    level: int
    seconds: float
    """Since the first release."""
    ready: bool
    """Whether a replacement was Ready by then."""


@dataclass
class Rising:
    """The Deployments, their HPAs and their load."""

    ground: Ground
    scale_ups: dict[str, ScaleUp] = field(default_factory=dict)

    def start(self) -> None:
        """Let the pods start at once, each on its interrupted node until that is full; and the HPAs judge them."""
        for app in INTERRUPTED:
            template = a_template(
                app,
                cpu="1",
                annotations={"startup": f"{STARTUP}s", "usage": f"{LEVELS[0]}%"},
                nodeSelector={"app": app},
            )
            self.ground.apply(a_deployment(app, REPLICAS, template))
        self.ground.until(lambda: len(self.ground.pods()) == REPLICAS * len(INTERRUPTED))
        for pod in self.ground.pods():
            self._annotate(pod, "drill.plimsoll.dev/startup", "1s")
        for app, count in INTERRUPTED.items():
            if count:
                self.ground.nodes(app, app=app, cpu=str(count))
        self.ground.until(
            lambda: all(len(self._on(app)) == count for app, count in INTERRUPTED.items())
        )
        for app in INTERRUPTED:
            self.ground.nodes(f"{app}-stays", app=app, cpu="100")
        self.ground.until(lambda: len(self.ground.serving()) == len(self.ground.pods()))
        self.old = {pod["metadata"]["uid"] for pod in self.ground.pods()}
        self.ground.apply(*map(an_autoscaler, INTERRUPTED))
        self._rise(LEVELS[0])
        assert self.scale_ups == {}

    def interrupt(self, cast: Cast) -> None:
        now = datetime.now(UTC)
        for node in cast.api.nodes():
            app = node.name.removeprefix(f"{self.ground.name}-")
            if app in KINDS:
                ends = now + LEFT if KINDS[app] == "spot-interruption" else None
                notice = NoticeRecord(kind=KINDS[app], time=now, id=app, ends=ends)
                record = Interruption(
                    instance=node.instance or "",
                    launched=None,
                    node=node.name,
                    notices=(notice,),
                    cordoned=now,
                )
                cast.api.cordon(node, record)

    def rise(self) -> None:
        """Raise the load step by step, each once the HPAs have judged the one before; then let it stay."""
        self.ground.until(self._replaced)
        self.began = time.monotonic()
        for level in LEVELS:
            self._rise(level)
        self.ground.until(lambda: self._keep(LEVELS[-1]), seconds=3 * STARTUP)

    def _rise(self, level: int) -> None:
        self.ground.until(lambda: self._keep(level) or self._judged(level))
        self._keep(level)

    def _keep(self, level: int) -> bool:
        """Share the load among the Ready pods, note which HPAs scaled up, and say whether all have."""
        serving = self.ground.serving()
        for app in INTERRUPTED.keys() - self.scale_ups.keys():
            ready = [pod for pod in serving if pod["metadata"]["labels"]["app"] == app]
            each = f"{level * REPLICAS / len(ready):.3f}%"
            for pod in ready:
                if pod["metadata"]["annotations"][USAGE] != each:
                    self._annotate(pod, USAGE, each)
            if self._replicas(app) > REPLICAS:
                self.scale_ups[app] = ScaleUp(
                    level=level,
                    seconds=time.monotonic() - self.began,
                    ready=any(pod["metadata"]["uid"] not in self.old for pod in ready),
                )
        return len(self.scale_ups) == len(INTERRUPTED)

    def _judged(self, level: int) -> bool:
        """Whether the HPAs that have not scaled up yet know of this load."""
        waiting = [app for app in INTERRUPTED if app not in self.scale_ups]
        return all(self._utilization(app) == level for app in waiting)

    def _replaced(self) -> bool:
        """Whether each release that the plan begins with has led to a replacement."""
        count = {app: len(self.ground.pods(app)) - REPLICAS for app in INTERRUPTED}
        return count == {"calm": 0, "advised": 1, "half": 5, "whole": 10}

    def _on(self, node: str) -> list[Json]:
        name = f"{self.ground.name}-{node}"
        return [pod for pod in self.ground.pods() if pod["spec"].get("nodeName") == name]

    def _annotate(self, pod: Json, key: str, value: str) -> None:
        path = f"{self.ground.pods_path}/{pod['metadata']['name']}"
        self.ground.call("PATCH", path, {"metadata": {"annotations": {key: value}}}, MERGE)

    def _replicas(self, app: str) -> int:
        path = f"/apis/apps/v1/namespaces/{self.ground.name}/deployments/{app}"
        found: int = self.ground.get(path)["spec"]["replicas"]
        return found

    def _utilization(self, app: str) -> int | None:
        """Return what the HPA saw its Ready pods use."""
        group = f"/apis/autoscaling/v2/namespaces/{self.ground.name}"
        status = self.ground.get(f"{group}/horizontalpodautoscalers/{app}").get("status", {})
        [metric] = status.get("currentMetrics") or [{}]
        seen: int | None = look(metric, "resource", "current", "averageUtilization")
        return seen


def an_autoscaler(app: str) -> Json:
    """Its target is all that its pods request, so that a level is a share of the target."""
    target = {"type": "Utilization", "averageUtilization": 100}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
            "minReplicas": REPLICAS,
            "maxReplicas": 4 * REPLICAS,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


@pytest.fixture(scope="module")
def scale_ups() -> dict[str, ScaleUp]:
    with (
        ControlPlane(settings=SETTINGS, flags=EVERY) as plane,
        a_cast(installed(plane)) as cast,
        Threads() as threads,
    ):
        rising = Rising(cast.ground)
        rising.start()
        rising.interrupt(cast)
        threads.spawn(
            lambda: cast.services.drains.reconcile("ground", "test", seconds=2 * STARTUP), "drain"
        )
        rising.rise()
    if threads.error is not None:
        raise threads.error
    sys.stdout.write("\n| Deployment | scales up at | after the release |\n|---|---|---|\n")
    for app, up in rising.scale_ups.items():
        sys.stdout.write(f"| {app} | {up.level}% | {up.seconds:.1f} s |\n")
    return rising.scale_ups


def installed(plane: ControlPlane) -> ControlPlane:
    install(plane)
    return plane


def test_without_an_interruption_it_scales_up_above_its_tolerance(scale_ups):
    assert scale_ups["calm"].level == 112


def test_replacements_of_a_tenth_hold_it_back_by_no_more_than_its_tolerance(scale_ups):
    assert scale_ups["advised"].level == 125
    assert not scale_ups["advised"].ready


def test_replacements_of_half_hold_it_back_by_half(scale_ups):
    assert scale_ups["half"].level == 170
    assert not scale_ups["half"].ready


def test_replacements_of_all_hold_it_back_until_they_are_ready_and_no_longer(scale_ups):
    assert scale_ups["whole"].ready
    assert STARTUP - 10 < scale_ups["whole"].seconds < STARTUP + 30
