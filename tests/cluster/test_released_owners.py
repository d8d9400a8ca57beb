"""Who owns a released pod, and what garbage collection and the controllers above make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import Pod, ReplicaSet
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.support.fake_clusters import MERGE, a_budget, a_deployment

pytestmark = pytest.mark.cluster

NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def shop(guarded: ControlPlane) -> Iterator[Ground]:
    """One replica of web behind a budget that lets no pod go."""
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(a_budget("web", "web", maxUnavailable=0), a_deployment("web", 1))
        ground.until(ground.serving)
        yield ground


def deployment(shop: Ground) -> str:
    return f"/apis/apps/v1/namespaces/{shop.name}/deployments/web"


def observed(shop: Ground) -> tuple[KubernetesCluster, Pod, ReplicaSet]:
    api = KubernetesCluster(
        shop.plane.transport("plimsoll"), shop.name, SystemClock(), workers=SerialWorkers()
    )
    seen = api.observe()
    [made] = [s for s in seen.replica_sets.values() if s.ref.namespace == shop.name]
    pods = [p for p in seen.pods if p.namespace == shop.name]
    return api, next((p for p in pods if p.released), pods[0]), made


def release(shop: Ground, *, uid: str | None = None) -> str:
    """Release the pod of web, with another UID of its Deployment if one is given; return its name."""
    api, pod, made = observed(shop)
    api.release(pod, replace(made, controller_uid=uid or made.controller_uid), "i-1@noon")
    shop.until(lambda: len(shop.serving()) == 2)
    return pod.name


def owners(shop: Ground, name: str) -> list[tuple[str, bool]]:
    pod = shop.pod(name)
    assert pod is not None
    found: list[dict[str, Any]] = pod["metadata"].get("ownerReferences", [])
    return [(owner["kind"], bool(owner.get("controller"))) for owner in found]


def patch(shop: Ground, body: dict[str, Any]) -> None:
    answer = shop.call("PATCH", deployment(shop), body, MERGE)
    assert answer.status == 200, answer.body


def test_a_released_pod_belongs_to_its_deployment_and_to_its_replica_set(shop: Ground):
    name = release(shop)
    assert owners(shop, name) == [("Deployment", True), ("ReplicaSet", False)]


def test_a_wrong_uid_costs_the_reference_and_not_the_pod_which_can_be_handed_back(shop: Ground):
    name = release(shop, uid=NOBODY)
    shop.until(lambda: owners(shop, name) == [("ReplicaSet", False)])
    api, pod, made = observed(shop)
    assert (pod.name, pod.serving, pod.deleting) == (name, True, None)
    api.undo_release(pod, made)
    shop.until(lambda: [p["metadata"]["name"] for p in shop.serving()] and len(shop.pods()) == 1)
    [left] = shop.pods()
    assert owners(shop, left["metadata"]["name"]) == [("ReplicaSet", True)]


def test_a_released_pod_serves_on_when_its_replica_set_is_scaled_down_and_pruned(shop: Ground):
    patch(shop, {"spec": {"revisionHistoryLimit": 0}})
    name = release(shop)
    patch(shop, {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
    shop.until(lambda: owners(shop, name) == [("Deployment", True)])
    patch(shop, {"spec": {"replicas": 0}})
    shop.until(lambda: [p["metadata"]["name"] for p in shop.pods()] == [name])
    assert [p["metadata"]["name"] for p in shop.serving()] == [name]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_released_pod_goes_with_its_deployment(shop: Ground, policy: str):
    release(shop)
    gone = shop.call("DELETE", deployment(shop), {"propagationPolicy": policy})
    assert gone.status == 200, gone.body
    shop.until(lambda: shop.pods() == [])
