"""HorizontalPodAutoscalers on a control plane whose pods use constant amounts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.ground import Ground
from tests.support.fake_clusters import MERGE, a_deployment, a_template

pytestmark = pytest.mark.cluster

METRICS = "/apis/metrics.k8s.io/v1beta1"


def an_autoscaler(name: str, least: int, target: int = 50) -> dict[str, Any]:
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": resource}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def autoscaler_path(ground: Ground, name: str) -> str:
    return f"/apis/autoscaling/v2/namespaces/{ground.name}/horizontalpodautoscalers/{name}"


def replicas(ground: Ground, name: str) -> int:
    path = f"/apis/apps/v1/namespaces/{ground.name}/deployments/{name}"
    found: int = ground.get(path)["spec"]["replicas"]
    return found


def test_what_runs_uses_a_tenth_of_what_it_requests_or_what_it_says(ground: Ground):
    ground.nodes("a")
    ground.apply(
        a_deployment("idle", 1, a_template("idle", cpu="500m")),
        a_deployment("busy", 1, a_template("busy", cpu="500m", annotations={"usage": "80%"})),
    )
    ground.until(lambda: len(ground.serving()) == 2)
    ground.until(lambda: ground.call("GET", METRICS).status == 200)

    def cpu(app: str) -> list[str]:
        answer = ground.api.call(
            "GET",
            f"{METRICS}/namespaces/{ground.name}/pods",
            query={"labelSelector": f"app={app}"},
        )
        return [item["containers"][0]["usage"]["cpu"] for item in answer.body["items"]]

    assert ground.until(lambda: cpu("idle")) == ["50m"]
    assert cpu("busy") == ["400m"]


def test_an_autoscaler_follows_a_raised_minimum_and_comes_back_when_it_is_restored(
    ground: Ground,
):
    ground.nodes("a")
    ground.apply(a_deployment("web", 2), an_autoscaler("web", 2))
    path = autoscaler_path(ground, "web")
    ground.call("PATCH", path, {"spec": {"minReplicas": 4}}, MERGE)
    ground.until(lambda: replicas(ground, "web") == 4)
    ground.until(lambda: len(ground.serving("web")) == 4)
    ground.call("PATCH", path, {"spec": {"minReplicas": 2}}, MERGE)
    ground.until(lambda: replicas(ground, "web") == 2, seconds=120)


def test_an_autoscaler_at_its_target_stays_where_it_is(ground: Ground):
    ground.nodes("a")
    busy = a_template("web", annotations={"usage": "50%"})
    ground.apply(a_deployment("web", 3, busy), an_autoscaler("web", 1))
    path = autoscaler_path(ground, "web")

    def judged() -> bool:
        status = ground.get(path)["status"]
        return bool(status.get("currentMetrics")) and bool(status["currentMetrics"][0])

    ground.until(judged, seconds=90)
    assert replicas(ground, "web") == 3
