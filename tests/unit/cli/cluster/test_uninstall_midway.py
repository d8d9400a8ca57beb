"""A cluster is left as it was found, wherever in a drain the functions were stopped.

The drain is played over the fake cluster and dies at each of its writes in turn. Then the cluster
is uninstalled from, and nothing of Plimsoll may be left in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import DELETION_COST, PREFIX
from plimsoll_cli.cluster.uninstall_service import UninstallResult, UninstallService
from tests.support.builders import a_group
from tests.support.workload_sets import WiredServices, deployment

LISTS: Final = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
)
REPLICAS: Final = 3


class Killed(BaseException):
    """The function is no more. No code of ours may catch it."""


class Dying:
    """A transport whose process dies just before, or just after, its nth write arrives."""

    def __init__(self, transport: Transport, *, at: int, before: bool) -> None:
        self._transport = transport
        self._left = at
        self._before = before

    def call(self, method: str, path: str, **how: Any) -> Response:
        if method == "GET" or "/leases" in path:
            return self._transport.call(method, path, **how)
        self._left -= 1
        if self._left == 0 and self._before:
            raise Killed
        answer = self._transport.call(method, path, **how)
        if self._left == 0:
            raise Killed
        return answer


def a_world() -> WiredServices:
    """Three replicas of web, two of them on a spot node, with room for both elsewhere."""
    rig = WiredServices()
    rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=2))
    rig.join("od")
    rig.apply(deployment(replicas=REPLICAS))
    rig.aws.groups = [a_group()]
    return rig


def advice(rig: WiredServices) -> str:
    event = json.loads(rig.spot_event(rig.node("spot").instance or ""))
    event |= {"detail-type": "EC2 Instance Rebalance Recommendation"}
    del event["detail"]["instance-action"]
    return json.dumps(event)


def play(rig: WiredServices, body: str, *, at: int, before: bool) -> bool:
    """Let a notice be handled and drained until the process dies; say whether it did."""
    whole = rig.api
    transport = Dying(whole.requests.transport, at=at, before=before)
    rig.api = KubernetesCluster(transport, "harbor", rig, workers=SerialWorkers())
    try:
        rig.notices.receive([body])
        for wake_up in range(6):
            rig.drains.reconcile("harbor", f"reconcile-{wake_up}")
            rig.sleep(20)
    except Killed:
        return True
    finally:
        rig.api = whole
        rig.sleep(11)  # the lease of the dead runs out
    return False


def uninstall(rig: WiredServices) -> UninstallResult:
    return UninstallService(
        registry=rig.registry,
        clusters=rig,
        groups=rig.node_groups,
        clock=rig,
        workers=SerialWorkers(),
        telemetry=rig.telemetry,
    ).put_back(rig.cluster, "remove", 60)


def marks(rig: WiredServices) -> list[str]:
    """Return everything of ours that is found on an object, but for pods on their way out."""
    return [
        f"{kind}/{thing['metadata']['name']}: {found}"
        for path in LISTS
        for kind in [path.rpartition("/")[2]]
        for thing in rig.get(path)["items"]
        if "deletionTimestamp" not in thing["metadata"]
        for found in _marks(thing)
    ]


def _marks(thing: Mapping[str, Any]) -> Iterator[str]:
    for key in thing["metadata"].get("annotations", {}):
        if key.startswith(PREFIX) or key == DELETION_COST:
            yield key
    for taint in thing["spec"].get("taints", ()):
        if taint["key"].startswith(PREFIX):
            yield f"taint {taint['key']}"
    if thing["spec"].get("unschedulable"):
        yield "cordon"


def replicas(rig: WiredServices) -> int:
    [web] = rig.get("/apis/apps/v1/deployments")["items"]
    count: int = web["spec"]["replicas"]
    return count


@pytest.mark.parametrize("before", [True, False], ids=["before it arrives", "after it arrived"])
@pytest.mark.parametrize("at", range(1, 13), ids=lambda at: f"write {at}")
def test_nothing_is_left_of_a_drain_that_died_at_any_write(at: int, before: bool):  # noqa: FBT001
    rig = a_world()
    play(rig, advice(rig), at=at, before=before)

    departure = uninstall(rig)

    assert departure.left.clean
    assert marks(rig) == []
    assert replicas(rig) == REPLICAS
    rig.sleep(30)
    assert rig.ready("web") == REPLICAS


def test_a_drain_has_the_writes_that_this_file_is_about():
    rig = a_world()
    assert play(rig, advice(rig), at=4, before=True), "a drain of fewer than four writes"
    assert marks(rig)
    rig = a_world()
    assert not play(rig, advice(rig), at=13, before=True), "a drain of more writes: try them too"


def test_a_drain_with_a_deadline_is_waited_for_and_then_nothing_is_left():
    rig = a_world()
    body = rig.spot_event(rig.node("spot").instance or "")
    assert play(rig, body, at=2, before=False)
    found = uninstall(rig)
    assert found.left.interrupted
    assert found.outcomes == ()

    rig.sleep(118)
    rig.fake_cluster.vanish("spot", now=rig.time)
    rig.sleep(timedelta(minutes=2).total_seconds())
    assert uninstall(rig).left.clean
    assert marks(rig) == []
    assert replicas(rig) == REPLICAS


def test_a_drain_that_is_at_work_all_the_time_is_not_disturbed():
    rig = a_world()
    play(rig, advice(rig), at=2, before=False)
    rig.api.acquire("a reconcile", 3600)
    version = rig.version()
    with pytest.raises(Temporary):
        uninstall(rig)
    assert rig.version() == version
