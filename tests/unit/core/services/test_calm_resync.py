"""In calm times the resync lists Nodes only; placement's observation serves for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, override

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.interruptions import Response as PolicyResponse
from plimsoll.domain.notices import HealthScheduledChange, InstanceNotice, SpotInterruption
from plimsoll.domain.observation import LONGEST_LULL
from plimsoll.domain.placement import Layout, label_key
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.floors import spread_over
from tests.support.workload_sets import WiredServices, deployment

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"


class Listened(FakeTransport):
    """Remembers what was listed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.paths: list[str] = []

    @override
    def call(self, method: str, path: str, **how: Any) -> Response:
        self.paths.append(path)
        return super().call(method, path, **how)


@pytest.fixture
def rig() -> WiredServices:
    """A cluster with a node whose pods placement has just seen."""
    wired = WiredServices()
    wired.join("spot", capacity="spot")
    wired.apply(deployment(replicas=2))
    wired.placement.run()
    wired.sleep(60)
    return wired


@pytest.fixture
def listened(rig: WiredServices) -> list[str]:
    transport = Listened(rig.fake_cluster, rig)
    rig.api = KubernetesCluster(transport, "harbor", rig, workers=rig.workers)
    return transport.paths


def warned_of(rig: WiredServices, name: str = "spot") -> SpotInterruption:
    return SpotInterruption(
        instance=rig.node(name).instance or "",
        time=rig.time,
        account="111122223333",
        region="us-east-1",
        id="found",
        action="terminate",
    )


def announced(rig: WiredServices, *, closed: bool) -> HealthScheduledChange:
    return HealthScheduledChange(
        instance=rig.node("spot").instance or "",
        time=rig.time,
        account="111122223333",
        region="us-east-1",
        id="event-1",
        change="retirement",
        code="instance-retirement",
        arn="event-1",
        starts=rig.time + timedelta(days=14),
        closed=closed,
    )


def test_in_calm_times_nodes_are_all_that_is_listed(rig, listened):
    for _ in range(4):
        rig.resync.run()
        rig.sleep(60)
    assert listened == [NODES] * 4


@pytest.mark.parametrize(("cpu", "calm"), [("100m", True), ("64", False)])
def test_a_pod_that_waits_for_its_spread_group_ends_the_calm(rig, listened, cpu, calm):
    """Placement, which would open a group for it, may be minutes away."""
    label = {"metadata": {"labels": {label_key(Layout(1, 1)): "spot-1"}}}
    path, merge = f"{NODES}/spot", "application/merge-patch+json"
    assert rig.fake_cluster.handle("PATCH", path, None, label, merge, now=rig.time).status == 200
    rig.apply(deployment("api", replicas=1, cpu=cpu, **spread_over(1, "api")), settle=60)
    rig.resync.run()
    assert listened[:2] == [NODES, PODS]
    assert (len(listened) == 2) is calm


def test_an_open_interruption_is_looked_after_every_minute(rig, listened):
    assert rig.notices.receive([rig.spot_event(rig.node("spot").instance or "")]) == [None]
    rig.sleep(60)
    rig.wake_ups.sent.clear()
    listened.clear()
    assert rig.resync.run() == 1
    assert PODS in listened
    assert [seconds for _, seconds in rig.wake_ups.sent] == list(SLOW_WAKE_UPS)


def test_an_interruption_of_which_no_event_told_is_found_within_the_minute(rig, listened):
    rig.aws.silent = [warned_of(rig)]
    rig.resync.run()
    assert rig.node("spot").interruption is not None
    assert rig.wake_ups.sent


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        (lambda rig: announced(rig, closed=True), Policy()),
        (warned_of, Policy(on=(("spot-interruption", PolicyResponse.IGNORE),))),
    ],
    ids=["called off", "ignored"],
)
def test_what_leads_to_nothing_ends_no_calm(
    rig: WiredServices,
    listened: list[str],
    kind: Callable[[WiredServices], InstanceNotice],
    policy: Policy,
):
    rig.registry.update(replace(rig.cluster, policy=policy))
    rig.aws.silent = [kind(rig)]
    listened.clear()
    rig.resync.run()
    assert listened == [NODES]
    assert rig.node("spot").interruption is None


def test_a_scheduled_change_that_waits_ends_no_calm(rig: WiredServices, listened: list[str]):
    rig.aws.silent = [announced(rig, closed=False)]
    rig.resync.run()
    assert rig.node("spot").interruption is not None
    rig.placement.run()
    rig.sleep(60)
    listened.clear()
    rig.wake_ups.sent.clear()

    assert rig.resync.run() == 1
    assert (listened, rig.wake_ups.sent) == ([NODES], [])

    rig.sleep(13 * 24 * 3600)
    rig.resync.run()
    assert PODS in listened
    assert rig.wake_ups.sent, "its turn has come"


def test_a_node_that_has_just_joined_is_in_the_index_within_the_minute(rig, listened):
    instance = rig.join("new")
    rig.resync.run()
    assert rig.index.find([instance])[instance].node == "new"
    listened.clear()
    rig.resync.run()
    assert listened == [NODES]


@pytest.mark.parametrize("minutes", [1, 5])
def test_where_placement_stopped_the_resync_looks_at_everything_when_the_lull_is_over(
    rig, listened, minutes
):
    rig.sleep(LONGEST_LULL.total_seconds() - 60 * minutes - 1)
    rig.resync.run()
    before = listened.count(PODS)
    rig.sleep(60 * minutes + 1)
    rig.resync.run()
    assert (before, listened.count(PODS)) == (0, 1)


@pytest.mark.parametrize(("port", "call"), [("aws", "interrupted"), ("index", "find")])
def test_where_it_cannot_ask_whether_it_is_calm_it_looks_at_everything(
    rig, listened, monkeypatch, port, call
):
    def away(_: object) -> None:
        raise Temporary("away")

    monkeypatch.setattr(getattr(rig, port), call, away)
    rig.resync.run()
    assert PODS in listened


def test_placement_keeps_the_sums_of_the_index(rig):
    instance = rig.node("spot").instance or ""
    before = rig.index.find([instance])[instance].requests
    rig.apply(deployment("more", replicas=2))
    rig.placement.run()
    assert rig.index.find([instance])[instance].requests.cpu > before.cpu


def test_a_released_pod_whose_node_lives_on_is_given_back_after_the_next_placement(rig):
    def released() -> list[str]:
        pods = rig.get(PODS)["items"]
        return [
            p["metadata"]["name"]
            for p in pods
            if "plimsoll.dev/released" in p["metadata"].get("annotations", {})
        ]

    seen = rig.api.observe()
    pod = seen.pods[0]
    made = seen.replica_set(pod)
    assert made is not None
    rig.api.release(pod, made, "i-0abc/2026")
    rig.sleep(20)
    assert released()
    rig.resync.run()
    assert not rig.wake_ups.sent
    rig.placement.run()
    assert rig.wake_ups.sent
    for _ in range(3):
        rig.drains.reconcile("harbor", "me")
        rig.sleep(20)
    assert not released()
