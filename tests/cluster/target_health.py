"""The AWS Load Balancer Controller, as far as pods see it: it opens their readiness gates.

https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/deploy/pod_readiness_gate/
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self, override

from plimsoll.adapters.kubernetes import Transport
from plimsoll_simulation.rigs.threads import Threads

GATE: Final = "target-health.elbv2.k8s.aws/api"
HEALTHY: Final = timedelta(seconds=5)
"""From the moment at which the containers of a pod are ready until the load balancer calls it healthy."""
LOOK_SECONDS: Final = 0.5


@dataclass
class TargetHealth(Threads):
    """Opens the gate of each pod of a namespace that has one, once the pod is healthy."""

    api: Transport
    namespace: str
    opened: dict[str, datetime] = field(default_factory=dict)
    """Pod -> when."""

    def __post_init__(self) -> None:
        super().__init__()

    @override
    def __enter__(self) -> Self:
        self.spawn(self._run, "target health")
        return self

    def _run(self) -> None:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        while not self.ended.wait(LOOK_SECONDS):
            now = datetime.now(UTC)
            for pod in self.api.call("GET", pods).body["items"]:
                name = pod["metadata"]["name"]
                if _gated(pod) and name not in self.opened and _healthy(pod, now):
                    answer = self.api.call(
                        "PATCH",
                        f"{pods}/{name}/status",
                        body={"status": {"conditions": [{"type": GATE, "status": "True"}]}},
                        content_type="application/strategic-merge-patch+json",
                    )
                    if answer.status != 404:  # it went meanwhile
                        assert answer.status == 200, answer.body
                        self.opened[name] = now


def _gated(pod: dict[str, Any]) -> bool:
    return {"conditionType": GATE} in pod["spec"].get("readinessGates", ())


def _healthy(pod: dict[str, Any], now: datetime) -> bool:
    return any(
        condition["type"] == "ContainersReady"
        and condition["status"] == "True"
        and datetime.fromisoformat(condition["lastTransitionTime"]) + HEALTHY <= now
        for condition in pod["status"].get("conditions", ())
    )
