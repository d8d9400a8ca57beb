"""Watches of a real API server, over TLS and with the rights of `infra/cluster`: no list again."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.kubernetes.calls import WATCHES
from plimsoll.adapters.kubernetes.collection import WATCH_SECONDS
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.observation import Observation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.support.fake_clusters import MERGE, a_deployment, a_pod

pytestmark = pytest.mark.cluster

ALWAYS: Final = len(WATCHES) - 2
"""Rollouts and PodGroups are asked for only where a pod has one."""
LISTED: Final = ALWAYS + 1
"""Namespaces are read once too, and not watched."""


class Counted:
    """Counts lists and watches on their way."""

    def __init__(self, inner: Transport) -> None:
        self.begun: Counter[str] = Counter()
        self._inner = inner

    def call(self, method: str, path: str, **request: Any) -> Response:
        if method == "GET":
            self.begun["watch" if "watch" in (request.get("query") or {}) else "list"] += 1
        return self._inner.call(method, path, **request)


def test_a_followed_cluster_shows_what_happens_and_is_listed_once(guarded: ControlPlane) -> None:
    transport, warnings = Counted(guarded.transport("plimsoll")), list[str]()
    api = KubernetesCluster(
        transport, "ground", SystemClock(), workers=ThreadWorkers(), warn=warnings.append
    )
    with Ground(guarded) as ground, api.following() as followed:

        def web(seen: Observation) -> list[Pod]:
            return [p for p in seen.pods if p.namespace == ground.name]

        def ready() -> int:
            return sum(pod.serving for pod in web(followed.observe()))

        followed.observe()
        began = time.monotonic()
        ground.nodes("a", "b")
        ground.apply(a_deployment("web", 3))
        ground.until(lambda: ready() == 3)
        first, *_ = web(followed.observe())
        followed.evict(first)
        assert first.name not in {p.name for p in web(followed.observe()) if p.serving}
        ground.until(
            lambda: ready() == 3 and first.uid not in {p.uid for p in web(followed.observe())}
        )
        while time.monotonic() < began + WATCH_SECONDS + 3:  # every watch ends, and is resumed
            followed.observe()
            time.sleep(0.5)
        scale = {"spec": {"replicas": 1}}
        path = f"/apis/apps/v1/namespaces/{ground.name}/deployments/web"
        assert ground.call("PATCH", path, scale, MERGE).status == 200
        ground.until(lambda: len(web(followed.observe())) == 1)
        assert transport.begun["list"] == LISTED
        assert transport.begun["watch"] >= 2 * ALWAYS
        assert web(followed.observe()) == web(api.observe())
    assert warnings == []


def test_a_pod_that_ends_by_itself_is_told_from_one_that_is_deleted(guarded: ControlPlane) -> None:
    api = KubernetesCluster(
        guarded.transport("plimsoll"), "ground", SystemClock(), workers=ThreadWorkers()
    )
    with Ground(guarded) as ground, api.following() as followed:
        ground.nodes("a")
        ground.apply(a_pod("ends"), a_pod("leaves"))
        ground.until(lambda: len(ground.serving()) == 2)
        ended: set[str] = set()

        def mine() -> dict[str, str]:
            seen = followed.observe()
            ended.update(seen.ended)
            return {p.name: p.uid for p in seen.pods if p.namespace == ground.name}

        uids = ground.until(mine)
        ground.delete("leaves")
        done = {"status": {"phase": "Succeeded"}}
        path = f"{ground.pods_path}/ends/status"
        assert ground.call("PATCH", path, done, MERGE).status == 200
        ground.until(lambda: not mine())
        assert ended & set(uids.values()) == {uids["ends"]}
