"""Volumes on a control plane without machines: the real attach-detach controller, a played driver."""

from __future__ import annotations

import time
from typing import Any

import pytest

from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_simulation.fake_cluster.edits import look
from tests.cluster.ground import Ground
from tests.support.fake_clusters import ZONE, a_pod, a_stateful_set, a_template

pytestmark = pytest.mark.cluster

ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


def a_claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def a_pod_with(claim: str, name: str, **spec: Any) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return a_pod(name, a_template(name, volumes=[volume], **spec))


def attached_to(ground: Ground) -> set[str]:
    """The nodes of a ground that a volume is attached to."""
    return {
        a["spec"]["nodeName"]
        for a in ground.get(ATTACHMENTS)["items"]
        if a["spec"]["nodeName"].startswith(f"{ground.name}-") and a["status"]["attached"]
    }


def is_running(ground: Ground, name: str) -> bool:
    return is_ready(ground.pod(name) or {})


def test_a_claim_gets_its_volume_in_the_zone_of_its_first_pod(ground: Ground):
    ground.nodes("a", zone="us-east-1b")
    ground.apply(a_claim("data"), a_pod_with("data", "db"))
    ground.until(lambda: is_running(ground, "db"))
    claim = ground.get(f"/api/v1/namespaces/{ground.name}/persistentvolumeclaims/data")
    assert claim["status"]["phase"] == "Bound"
    volume = ground.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["us-east-1b"]}]


def test_a_pod_waits_until_its_volume_is_attached(ground: Ground):
    [node] = ground.nodes("a")
    ground.apply(a_claim("data"), a_pod_with("data", "db"))
    ground.until(lambda: is_running(ground, "db"))
    assert attached_to(ground) == {node}


def test_a_volume_follows_its_pod_to_another_node(ground: Ground):
    first, second = ground.nodes("a", "b")
    template = a_template("db")
    template["spec"]["volumes"] = []
    claim = {**a_claim("data"), "metadata": {"name": "data"}}
    ground.apply(a_stateful_set("db", 1, template, volumeClaimTemplates=[claim]))
    ground.until(lambda: is_running(ground, "db-0"))
    [here] = attached_to(ground)
    there = second if here == first else first
    ground.cordon(here)
    ground.delete("db-0")
    ground.until(lambda: is_running(ground, "db-0") and attached_to(ground) == {there})


def test_a_volume_stays_attached_to_a_node_that_vanished_until_it_is_out_of_service(
    ground: Ground,
):
    [gone] = ground.nodes("a")
    ground.apply(a_claim("data"), a_pod_with("data", "db"))
    ground.until(lambda: is_running(ground, "db"))
    ground.cordon(gone)
    ground.nodes("b")
    ground.plane.vanish(gone)
    ground.delete("db", gracePeriodSeconds=0)
    ground.apply(a_pod_with("data", "again"))
    ground.until(lambda: look(ground.pod("again") or {}, "spec", "nodeName"))
    time.sleep(5)
    assert attached_to(ground) == {gone}
    assert not is_running(ground, "again")
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown"}
    ground.call(
        "PATCH",
        f"/api/v1/nodes/{gone}",
        {"spec": {"unschedulable": True, "taints": [{**taint, "effect": "NoExecute"}]}},
        "application/merge-patch+json",
    )
    ground.until(lambda: is_running(ground, "again"))
    assert gone not in attached_to(ground)


def test_the_volume_goes_with_its_claim(ground: Ground):
    ground.nodes("a")
    ground.apply(a_claim("data"), a_pod_with("data", "db"))
    ground.until(lambda: is_running(ground, "db"))
    path = f"/api/v1/namespaces/{ground.name}/persistentvolumeclaims/data"
    volume = f"/api/v1/persistentvolumes/{ground.get(path)['spec']['volumeName']}"
    ground.delete("db")
    ground.call("DELETE", path)
    ground.until(lambda: ground.call("GET", volume).status == 404)


@pytest.mark.long
def test_a_volume_is_detached_by_force_after_six_minutes_from_a_node_that_vanished(
    ground: Ground,
):
    [gone] = ground.nodes("a")
    ground.apply(a_claim("data"), a_pod_with("data", "db"))
    ground.until(lambda: is_running(ground, "db"))
    ground.cordon(gone)
    ground.nodes("b", "c")
    ground.plane.vanish(gone)
    ground.delete("db", gracePeriodSeconds=0)
    at = time.monotonic()
    ground.apply(a_pod_with("data", "again"))
    ground.until(lambda: is_running(ground, "again"), seconds=600)
    assert time.monotonic() - at >= 360
