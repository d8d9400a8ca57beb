"""HorizontalPodAutoscalers on a control plane whose pods use constant amounts."""

from __future__ import annotations

import pytest

from tests.cluster.ground import Ground
from tests.support.fake_clusters import a_deployment, a_template

pytestmark = pytest.mark.cluster

METRICS = "/apis/metrics.k8s.io/v1beta1"


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
