"""A flood by somebody else does not delay a drain, because requests of ours have their own queue.

The flood is in the API server's queue for everybody, which is made small so that few connections
fill it. Places are what it takes, not processor time: so what is measured is the queue, on a busy
machine too.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Conflict, Temporary
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll_cli.probes.kubernetes import KubernetesProbe
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import install, until

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEVEL = f"{FLOW}/prioritylevelconfigurations/global-default"
BY_HAND = "apf.kubernetes.io/autoupdate-spec"
"""https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#maintenance-of-the-mandatory-and-suggested-configuration-objects"""


@dataclass
class Queues:
    """A transport that notes through which queue each request went."""

    inner: Transport
    used: set[tuple[str, str]] = field(default_factory=set)

    def call(self, method: str, path: str, **request: Any) -> Response:
        answer = self.inner.call(method, path, **request)
        schema, level = (
            answer.headers[f"x-kubernetes-pf-{what}-uid"]
            for what in ("flowschema", "prioritylevel")
        )
        self.used.add((schema, level))
        return answer


@pytest.fixture
def small_queue(guarded: ControlPlane) -> Iterator[None]:
    """Few places for everybody, and none borrowed."""
    api = guarded.transport()
    before = api.call("GET", LEVEL).body["spec"]
    few = {"nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0}
    change(api, LEVEL, {"metadata": {"annotations": {BY_HAND: "false"}}, "spec": {"limited": few}})
    try:
        until(lambda: metric(api, "nominal_limit_seats", "global-default") < 10)
        yield
    finally:
        limited = {**dict.fromkeys(few), **before["limited"]}
        marks = {"annotations": {BY_HAND: "true"}}
        change(api, LEVEL, {"metadata": marks, "spec": {"limited": limited}})


@pytest.fixture
def flooded(guarded: ControlPlane, ground: Ground, small_queue: None) -> Iterator[Ground]:
    """A ground, while somebody else takes every place of the queue for everybody."""
    may_edit = {
        "metadata": {"name": "flood"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "edit",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "flood"}],
    }
    ground.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ground.name}/rolebindings", may_edit
    )
    ground.nodes("a")
    command = (
        sys.executable,
        "-m",
        "tests.cluster.flood",
        guarded.kubeconfig("flood"),
        ground.name,
    )
    flood = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)
    try:
        until(lambda: metric(ground.api, "current_inqueue_requests", "global-default") > 5)
        yield ground
    finally:
        assert flood.stdin is not None
        flood.stdin.close()
        assert flood.wait(timeout=30) == 0


def change(api: Transport, path: str, body: Json) -> None:
    answer = api.call("PATCH", path, body=body, content_type=MERGE_PATCH)
    assert answer.status == 200, answer.body


def metric(api: Transport, name: str, level: str) -> float:
    """Sum what the API server measures of a priority level."""
    lines = re.compile(
        rf'^apiserver_flowcontrol_{name}{{.*priority_level="{level}".*}} (\S+)$', re.MULTILINE
    )
    return sum(float(value) for value in lines.findall(str(api.call("GET", "/metrics").body)))


def cordon(ground: Ground, wire: Transport) -> float:
    """Find a node, cordon it and read all, as the functions do; return the seconds it took."""
    api = KubernetesCluster(wire, "it", SystemClock(), workers=SerialWorkers())
    name = f"{ground.name}-a"
    instance = ground.get(f"/api/v1/nodes/{name}")["spec"]["providerID"].rpartition("/")[2]
    notice = NoticeRecord(kind="spot-interruption", time=SystemClock().now(), id="event")
    interrupted = Interruption(instance=instance, launched=None, node=name, notices=(notice,))
    begin = time.monotonic()
    node = api.node(name)
    assert node is not None
    with suppress(Conflict):  # the node controller was quicker: an answer as any other
        api.cordon(node, interrupted)
    assert node.name in {seen.name for seen in api.nodes()}
    return time.monotonic() - begin


def test_a_flood_does_not_delay_a_drain_and_without_our_queue_it_does(
    guarded: ControlPlane, flooded: Ground
) -> None:
    admin = flooded.api
    schema = admin.call("GET", f"{FLOW}/flowschemas/plimsoll").body["metadata"]["uid"]
    level = admin.call("GET", f"{FLOW}/prioritylevelconfigurations/plimsoll").body["metadata"][
        "uid"
    ]

    ours = Queues(guarded.transport("plimsoll"))
    waited = metric(admin, "request_wait_duration_seconds_sum", "plimsoll")
    began = metric(admin, "request_wait_duration_seconds_count", "plimsoll")
    with_queue = [cordon(flooded, ours) for _ in range(10)]
    served = metric(admin, "request_wait_duration_seconds_count", "plimsoll") - began
    waited = metric(admin, "request_wait_duration_seconds_sum", "plimsoll") - waited
    assert ours.used == {(schema, level)}
    assert served >= 30
    assert waited < 0.05 * served  # as the API server itself measured it

    admin.call("DELETE", f"{FLOW}/flowschemas/plimsoll")
    try:
        plain = Queues(guarded.transport("plimsoll"))
        until(lambda: elsewhere(plain, schema))
        plain.used.clear()
        without = [attempt(lambda: cordon(flooded, plain)) for _ in range(3)]
        assert schema not in {used for used, _ in plain.used}
    finally:
        install(guarded)
    assert statistics.median(without) > 3 * statistics.median(with_queue)
    assert statistics.median(without) > 0.5


def elsewhere(wire: Queues, schema: str) -> bool:
    """Whether our requests go through another queue by now."""
    wire.used.clear()
    attempt(lambda: KubernetesProbe(wire, "it", SerialWorkers()).queue())
    return bool(wire.used) and schema not in {used for used, _ in wire.used}


def attempt(act: Callable[[], object]) -> float:
    """Return how long something took; what was given up took at least so long."""
    begin = time.monotonic()
    with suppress(Temporary):
        act()
    return time.monotonic() - begin
