"""What our user may do on a real API server with `infra/cluster` applied, and what it may not.

Every refusal is tried twice: with our own rights, and with all rights beside the group, so that
the policies are seen to hold by themselves.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.kubernetes.dry_runs import TrialResult, policies_missing
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    DEADLINE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    EXCLUDED,
    EXCLUDED_BY_US,
    FLOORS,
    GPU_CHANGE,
    IGNORE,
    INTERRUPTION,
    MOVED,
    OVERRULE_BUDGETS,
    PROTECTED,
    RELEASED,
)
from plimsoll.domain.kubernetes.names import (
    CHECKPOINT_TAKES_SECONDS,
    RELEASE,
    SAFE_TO_EVICT,
    STOP_SECONDS,
)
from plimsoll.domain.placement import label_key
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.probes.kubernetes import GROUP, KubernetesProbe, Queue
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import BINDINGS, a_lease, as_member, install, message_of, until
from tests.contract.rights import documents
from tests.support.cli_environment import an_environment, run
from tests.support.fake_clusters import STRATEGIC, a_deployment, a_stateful_set

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def shop(guarded: ControlPlane) -> Iterator[Ground]:
    """One of each kind that we write to. What is refused changes nothing, so rows share it."""
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(
            a_deployment("web", 1),
            a_stateful_set("db", 1),
            {**a_deployment("alone", 1), "kind": "ReplicaSet"},
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"},
                    "minReplicas": 1,
                    "maxReplicas": 3,
                },
            },
        )
        ground.until(lambda: len(ground.serving()) == 3)
        taints = [{"key": "theirs", "value": "1", "effect": "PreferNoSchedule"}]
        marks = {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}}
        assert patch(ground.api, node_of(ground), {"spec": {"taints": taints}}).status == 200
        pod = f"{ground.pods_path}/{ground.pods('web')[0]['metadata']['name']}"
        for path in (node_of(ground), pod, *(workload_of(ground, kind) for kind in WORKLOADS)):
            assert patch(ground.api, path, {"metadata": marks}).status == 200
        yield ground


WORKLOADS = {"deployments": "web", "statefulsets": "db", "replicasets": "alone"}


def node_of(ground: Ground) -> str:
    return f"/api/v1/nodes/{ground.name}-a"


def workload_of(ground: Ground, plural: str) -> str:
    return f"/apis/apps/v1/namespaces/{ground.name}/{plural}/{WORKLOADS[plural]}"


def pod_of(ground: Ground) -> str:
    """Return a pod of web that its ReplicaSet owns and that is not terminating."""
    for pod in ground.pods("web"):
        meta = pod["metadata"]
        if "deletionTimestamp" not in meta and "pod-template-hash" in meta["labels"]:
            return f"{ground.pods_path}/{meta['name']}"
    raise AssertionError("web has no pod")


def patch(api: Transport, path: str, body: Json, **query: str) -> Response:
    return api.call("PATCH", path, query=query, body=body, content_type=MERGE_PATCH)


def held(answer: Response, policy: str, field_: str) -> None:
    """Assert that a policy of ours refused a change, by name and with the cure."""
    assert answer.status == 403, answer.body
    assert f"'plimsoll-{policy}'" in message_of(answer)
    assert f"this changes {field_}" in message_of(answer)
    assert "under another identity" in message_of(answer)


def marks(kind: str, **pairs: str | None) -> Json:
    return {"metadata": {kind: pairs}}


# Nodes


OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


def taint(key: str, value: str = "1", effect: str = "PreferNoSchedule", **more: str) -> Json:
    return {"key": key, "value": value, "effect": effect, **more}


@pytest.mark.parametrize(
    ("field_", "body"),
    [
        ("the taint theirs", {"spec": {"taints": []}}),
        ("the taint theirs", {"spec": {"taints": [taint("theirs", "2")]}}),
        ("the taint theirs", {"spec": {"taints": [taint("theirs", effect="NoSchedule")]}}),
        ("the taint new", {"spec": {"taints": [taint("theirs"), taint("new")]}}),
        (
            "the taint notplimsoll.dev/x",
            {"spec": {"taints": [taint("theirs"), taint("notplimsoll.dev/x")]}},
        ),
        (
            "the taint theirs",
            {"spec": {"taints": [taint("theirs", timeAdded="2026-01-01T00:00:00Z")]}},
        ),
        (
            "the taint plimsoll.dev/interruption to NoExecute",
            {"spec": {"taints": [taint("theirs"), taint(INTERRUPTION, effect="NoExecute")]}},
        ),
        (
            f"the taint {INTERRUPTION} to PreferNoSchedule",
            {"spec": {"taints": [taint("theirs"), taint(INTERRUPTION)]}},
        ),
        (
            "the taint node.kubernetes.io/out-of-service to NoExecute on a Node that is Ready",
            {"spec": {"taints": [taint("theirs"), OUT_OF_SERVICE]}},
        ),
        ("the label theirs", marks("labels", theirs="2")),
        (
            "the label node.kubernetes.io/capacity",
            {"metadata": {"labels": {CAPACITY_LABELS[0]: "free"}}},
        ),
        (f"the label {EXCLUDED}", {"metadata": {"labels": {EXCLUDED: "true"}}}),
        (
            "the label kubernetes.io/hostname",
            {"metadata": {"labels": {"kubernetes.io/hostname": "b"}}},
        ),
        ("the label spread.plimsoll.dev/x", marks("labels", **{"spread.plimsoll.dev/x": "1"})),
        ("the annotation theirs", marks("annotations", theirs=None)),
        ("metadata.finalizers", {"metadata": {"finalizers": ["a.b/c"]}}),
        ("spec.podCIDR", {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}),
    ],
    ids=[
        "taint off",
        "taint changed",
        "taint with another effect",
        "new taint",
        "taint that only ends like ours",
        "taint made older",
        "our taint that evicts",
        "our taint that only advises",
        "out of service though Ready",
        "label",
        "capacity type of no kind",
        "out of load balancers in another name",
        "well-known label",
        "label that only begins like ours",
        "annotation off",
        "finalizer",
        "pod network",
    ],
)
def test_of_a_node_what_is_not_ours_is_refused(
    shop: Ground, ours: Transport, field_: str, body: Json
):
    answer = patch(ours, node_of(shop), body)
    assert answer.status == 403
    assert field_ in message_of(answer)
    assert "'plimsoll-nodes'" in message_of(answer)


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [taint("theirs"), taint(INTERRUPTION, effect="NoSchedule")]}},
        {"metadata": {"annotations": {INTERRUPTION: "{}"}}},
        {"metadata": {"labels": {label_key(2): "spot-1"}}},
        {"metadata": {"labels": {label_key(0): "spot"}}},
        {"metadata": {"labels": {CAPACITY_LABELS[0]: "spot"}}},
        {"metadata": {"labels": {EXCLUDED: EXCLUDED_BY_US}}},
    ],
    ids=[
        "cordon",
        "our taint",
        "record",
        "spread group",
        "spread group of single replicas",
        "capacity type",
        "out of load balancers",
    ],
)
def test_of_a_node_our_fields_pass(shop: Ground, ours: Transport, body: Json):
    answer = patch(ours, node_of(shop), body, dryRun="All")
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    ("value", "status"),
    [("karpenter", 403), ("", 403), (EXCLUDED_BY_US, 200)],
    ids=["another program", "an administrator", "plimsoll"],
)
def test_a_node_returns_to_load_balancers_only_if_it_left_them_in_our_name(
    shop: Ground, ours: Transport, value: str, status: int
):
    (left,) = shop.nodes("left")
    path = f"/api/v1/nodes/{left}"
    theirs = shop.call(
        "PATCH", path, {"metadata": {"labels": {EXCLUDED: value}}}, "application/merge-patch+json"
    )
    assert theirs.status == 200
    answer = patch(ours, path, {"metadata": {"labels": {EXCLUDED: None}}}, dryRun="All")
    assert answer.status == status, message_of(answer)
    shop.api.call("DELETE", path)


def test_a_node_that_is_not_ready_may_be_taken_out_of_service(shop: Ground, ours: Transport):
    (dead,) = shop.nodes("dead")
    path = f"/api/v1/nodes/{dead}"
    shop.lose(dead)
    for effect, status in (("NoExecute", 200), ("NoSchedule", 403)):
        there = shop.get(path)["spec"].get("taints", [])
        taints = {"spec": {"taints": [*there, OUT_OF_SERVICE | {"effect": effect}]}}
        answer = patch(ours, path, taints, dryRun="All")
        assert answer.status == status, message_of(answer)
    shop.api.call("DELETE", path)


# Pods


@pytest.mark.parametrize(
    ("field_", "body"),
    [
        ("spec.activeDeadlineSeconds", {"spec": {"activeDeadlineSeconds": 1}}),
        ("the label theirs", marks("labels", theirs="2")),
        ("the label plimsoll.dev/x", {"metadata": {"labels": {"plimsoll.dev/x": "1"}}}),
        ("the label pod-template-hash", {"metadata": {"labels": {"pod-template-hash": "other"}}}),
        ("metadata.ownerReferences", {"metadata": {"ownerReferences": None}}),
        ("the annotation theirs", marks("annotations", theirs="2")),
        ("metadata.finalizers", {"metadata": {"finalizers": ["a.b/c"]}}),
    ],
    ids=[
        "deadline",
        "label",
        "a label even of ours",
        "another hash",
        "no owner",
        "annotation",
        "finalizer",
    ],
)
def test_of_a_pod_what_is_not_ours_is_refused(
    shop: Ground, ours: Transport, field_: str, body: Json
):
    held(patch(ours, pod_of(shop), body), "pods", field_)


def test_of_a_pod_the_image_is_its_owners(shop: Ground, ours: Transport):
    body = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
    held(ours.call("PATCH", pod_of(shop), body=body, content_type=STRATEGIC), "pods", "spec.cont")


def release_of(shop: Ground, above: Json | None = None, below: Json | None = None) -> Json:
    """Return the patch that releases the pod of web, with changes of its owners where some are given."""
    deployment = shop.get(workload_of(shop, "deployments"))["metadata"]
    [replica_set] = shop.get(pod_of(shop))["metadata"]["ownerReferences"]
    named = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["name"]}
    owner = {**named, "uid": deployment["uid"], "controller": True, "blockOwnerDeletion": False}
    kept = {**replica_set, "controller": False, "blockOwnerDeletion": False}
    return {
        "metadata": {
            "labels": {"pod-template-hash": None},
            "annotations": {RELEASED: "i-1@noon"},
            "ownerReferences": [owner | (above or {}), kept | (below or {})],
        }
    }


def only(patch: Json, *indexes: int) -> Json:
    """Return a release with some of its owners alone."""
    owners = [patch["metadata"]["ownerReferences"][i] for i in indexes]
    return {"metadata": {**patch["metadata"], "ownerReferences": owners}}


def back_of(before: Json, **changes: Any) -> Json:
    """Return the patch that hands a released pod back to its ReplicaSet, or to another one."""
    return {
        "metadata": {
            "labels": {"pod-template-hash": before["labels"]["pod-template-hash"]},
            "annotations": {RELEASED: None},
            "ownerReferences": [
                before["ownerReferences"][0] | {"blockOwnerDeletion": False} | changes
            ],
        }
    }


def test_a_pod_may_be_released_and_handed_back(shop: Ground, ours: Transport):
    before = shop.get(pod_of(shop))["metadata"]
    path = f"{shop.pods_path}/{before['name']}"
    answer = patch(ours, path, release_of(shop))
    assert answer.status == 200, answer.body
    for changes in ({"uid": "of-another"}, {"name": "web-other"}, {"kind": "Deployment"}):
        answer = patch(ours, path, back_of(before, **changes), dryRun="All")
        assert "metadata.ownerReferences" in message_of(answer)
    answer = patch(ours, path, back_of(before))
    assert answer.status == 200, answer.body
    shop.until(lambda: len(shop.pods("web")) == 1)  # the others find no pod that goes away


def without(patch: Json, part: str) -> Json:
    return {"metadata": {k: v for k, v in patch["metadata"].items() if k != part}}


PARTS = ("labels", "annotations", "ownerReferences")
PARTIAL = "a part of a release alone"


@pytest.mark.parametrize("part", PARTS)
def test_a_release_and_its_way_back_are_whole(shop: Ground, all_rights: Transport, part: str):
    """With the right to delete pods, so that no admission plugin keeps owners back."""
    before = shop.get(pod_of(shop))["metadata"]
    path = f"{shop.pods_path}/{before['name']}"
    whole, back = release_of(shop), back_of(before)
    some = without(whole, part)
    for body in (some, {"metadata": {part: whole["metadata"][part]}}):
        answer = patch(all_rights, path, body, dryRun="All")
        assert (answer.status, "'plimsoll-pods'" in message_of(answer)) == (403, True), body
    assert PARTIAL in message_of(patch(all_rights, path, some, dryRun="All")) or part == "labels"
    assert patch(all_rights, path, whole).status == 200
    try:
        answer = patch(all_rights, path, without(back, part), dryRun="All")
        assert (answer.status, "'plimsoll-pods'" in message_of(answer)) == (403, True)
        again = marks("annotations", **{RELEASED: "i-2@noon"})
        held(patch(all_rights, path, again, dryRun="All"), "pods", PARTIAL)
    finally:
        assert patch(all_rights, path, back).status == 200
    shop.until(lambda: len(shop.pods("web")) == 1)


def test_a_released_pod_is_not_released_again(shop: Ground, ours: Transport):
    """Its label came back by another hand, and its mark stayed."""
    pod = pod_of(shop)
    assert patch(shop.api, pod, marks("annotations", **{RELEASED: "i-1@noon"})).status == 200
    try:
        held(patch(ours, pod, release_of(shop), dryRun="All"), "pods", PARTIAL)
    finally:
        assert patch(shop.api, pod, marks("annotations", **{RELEASED: None})).status == 200


@pytest.mark.parametrize(("name", "status"), [("rolled-h1", 200), ("rolled", 403)])
def test_the_label_of_a_rollout_goes_alone_only_from_a_pod_that_its_replica_set_made(
    shop: Ground, ours: Transport, name: str, status: int
):
    made = {**a_deployment(name, 1), "kind": "ReplicaSet"}
    labels = {"app": name, "rollouts-pod-template-hash": "h1"}
    made["spec"]["selector"] = {"matchLabels": labels}
    made["spec"]["template"]["metadata"]["labels"] = labels
    shop.apply(made)
    (pod,) = shop.until(lambda: shop.serving(name))
    path = f"{shop.pods_path}/{pod['metadata']['name']}"
    body = {
        "metadata": {
            "labels": {"rollouts-pod-template-hash": None},
            "annotations": {RELEASED: "i-1@noon"},
        }
    }
    try:
        answer = patch(ours, path, body, dryRun="All")
        assert answer.status == status, answer.body
        held(patch(ours, path, without(body, "annotations"), dryRun="All"), "pods", PARTIAL)
    finally:
        shop.api.call("DELETE", f"/apis/apps/v1/namespaces/{shop.name}/replicasets/{name}")
    shop.until(lambda: not shop.pods(name))


def test_a_pod_that_the_version_before_released_may_be_handed_back(shop: Ground, ours: Transport):
    before = shop.get(pod_of(shop))["metadata"]
    path = f"{shop.pods_path}/{before['name']}"
    released = only(release_of(shop), 0)
    assert patch(shop.api, path, released).status == 200
    answer = patch(ours, path, back_of(before))
    assert answer.status == 200, answer.body
    shop.until(lambda: len(shop.pods("web")) == 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"kind": "StatefulSet"},
        {"apiVersion": "v1"},
        {"controller": False},
        {"blockOwnerDeletion": True},
    ],
    ids=["another Deployment", "another kind", "another group", "no controller", "blocks"],
)
def test_a_released_pod_gets_no_other_owner(shop: Ground, ours: Transport, changes: Json):
    answer = patch(ours, pod_of(shop), release_of(shop, changes), dryRun="All")
    assert answer.status in {403, 422}, answer.body
    if answer.status == 403:
        assert "metadata.ownerReferences" in message_of(answer)


@pytest.mark.parametrize(
    "changes",
    [{"uid": "of-another"}, {"name": "web-other"}, {"kind": "Deployment"}],
    ids=["another UID", "another name", "another kind"],
)
def test_a_released_pod_keeps_its_replica_set_among_its_owners(
    shop: Ground, ours: Transport, changes: Json
):
    whole = release_of(shop)
    for body in (release_of(shop, below=changes), only(whole, 0), only(whole, 1)):
        answer = patch(ours, pod_of(shop), body, dryRun="All")
        assert (answer.status, "metadata.ownerReferences" in message_of(answer)) == (403, True)


def test_no_pod_of_an_excluded_namespace_is_changed(shop: Ground, ours: Transport):
    namespace = f"/api/v1/namespaces/{shop.name}"
    assert patch(shop.api, namespace, marks("labels", **{IGNORE: "true"})).status == 200
    try:
        until(lambda: patch(ours, pod_of(shop), release_of(shop), dryRun="All").status == 403)
        answer = patch(ours, pod_of(shop), release_of(shop), dryRun="All")
        assert "the namespace bears plimsoll.dev/ignore" in message_of(answer)
        answer = create_event(ours, shop.name, an_event(shop))
        assert "a namespace that its owner excludes" in message_of(answer)
    finally:
        assert patch(shop.api, namespace, marks("labels", **{IGNORE: None})).status == 200
    until(lambda: patch(ours, pod_of(shop), release_of(shop), dryRun="All").status == 200)


def departures(ours: Transport, path: str, uid: str) -> list[Response]:
    """Try to evict and to delete a pod, each by its UID and in a dry run."""
    options = {"preconditions": {"uid": uid}, "dryRun": ["All"]}
    eviction = {"metadata": {"name": path.rpartition("/")[2]}, "deleteOptions": options}
    evicted = ours.call("POST", f"{path}/eviction", body=eviction)
    return [evicted, ours.call("DELETE", path, body=options)]


def test_no_pod_of_an_excluded_namespace_is_evicted_or_deleted(shop: Ground, ours: Transport):
    namespace, path = f"/api/v1/namespaces/{shop.name}", pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    assert patch(shop.api, namespace, marks("labels", **{IGNORE: "true"})).status == 200
    try:
        until(lambda: [a.status for a in departures(ours, path, uid)] == [403, 403])
        for answer in departures(ours, path, uid):
            assert "bears plimsoll.dev/ignore" in message_of(answer)
    finally:
        assert patch(shop.api, namespace, marks("labels", **{IGNORE: None})).status == 200
    until(lambda: [a.status for a in departures(ours, path, uid)] == [201, 200])


def test_no_pod_with_the_label_of_its_owner_is_evicted_or_deleted(shop: Ground, ours: Transport):
    path = pod_of(shop)
    pod = shop.get(path)["metadata"]
    other = next(p["metadata"] for p in shop.pods("db"))
    assert patch(shop.api, path, marks("labels", **{IGNORE: "true"})).status == 200
    try:
        until(lambda: [a.status for a in departures(ours, path, pod["uid"])] == [403, 403])
        for answer in departures(ours, path, pod["uid"]):
            assert "bears" in message_of(answer)
        beside = departures(ours, f"{shop.pods_path}/{other['name']}", other["uid"])
        assert [answer.status for answer in beside] == [201, 200]
    finally:
        assert patch(shop.api, path, marks("labels", **{IGNORE: None})).status == 200
    until(lambda: [a.status for a in departures(ours, path, pod["uid"])] == [201, 200])


def test_a_labelled_pod_counts_in_its_own_namespace_alone(shop: Ground, ours: Transport):
    """So the tenants of a namespace slow down evictions there, by many labelled pods, and nowhere else."""
    pod = shop.pods("db")[0]["metadata"]
    name, elsewhere = pod["name"], f"{shop.name}-elsewhere"
    namespace, path = f"/api/v1/namespaces/{elsewhere}", f"/api/v1/namespaces/{elsewhere}/pods"
    twin = {
        "metadata": {"name": name, "labels": {IGNORE: "true"}},
        "spec": {
            "schedulingGates": [{"name": "example.com/waits"}],
            "containers": [{"name": "main", "image": "main"}],
        },
    }
    made = {"metadata": {"name": elsewhere}}
    until(lambda: shop.api.call("POST", "/api/v1/namespaces", body=made).status == 201)
    try:
        until(lambda: shop.api.call("POST", path, body=twin).status == 201)  # its account is made
        uid = shop.get(f"{path}/{name}")["metadata"]["uid"]
        until(lambda: departures(ours, f"{path}/{name}", uid)[0].status == 403)
        here = departures(ours, f"{shop.pods_path}/{name}", pod["uid"])
        assert [answer.status for answer in here] == [201, 200]
    finally:
        shop.api.call("DELETE", namespace)


def test_a_pod_with_the_annotation_of_its_owner_is_not_deleted(shop: Ground, ours: Transport):
    path = pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    assert patch(shop.api, path, marks("annotations", **{IGNORE: "true"})).status == 200
    try:
        _, deleted = departures(ours, path, uid)
        assert "bears plimsoll.dev/ignore" in message_of(deleted)
    finally:
        assert patch(shop.api, path, marks("annotations", **{IGNORE: None})).status == 200


def is_answered(api: Transport, path: str, uid: str, status: int) -> bool:
    return departures(api, path, uid)[0].status == status


def test_the_labels_of_owners_hold_again_after_their_binding_was_away(
    shop: Ground, guarded: ControlPlane
):
    """https://github.com/kubernetes/kubernetes/issues/130887: parameters may freeze when no binding needs them."""
    api, path = guarded.transport("plimsoll"), pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    binding = f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-ignored"
    assert shop.api.call("DELETE", binding).status == 200
    time.sleep(3)  # the API server stops looking after about one
    install(guarded)
    for value, status in (("true", 403), (None, 201)):
        assert patch(shop.api, path, marks("labels", **{IGNORE: value})).status == 200
        until(partial(is_answered, api, path, uid, status))


@pytest.mark.parametrize("name", ["nodes", "pods", "history", "departures", "events", "lease"])
def test_a_binding_that_was_deleted_is_named_by_the_hourly_pre_flight(
    shop: Ground, guarded: ControlPlane, name: str
):
    api = guarded.transport("plimsoll")
    until(lambda: not policies_missing(api, "harbor"))
    binding = f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-{name}"
    assert shop.api.call("DELETE", binding).status == 200
    try:
        until(lambda: policies_missing(api, "harbor") == [f"plimsoll-{name}"])
    finally:
        install(guarded)
    until(lambda: not policies_missing(api, "harbor"))


def test_without_the_overlay_pods_are_evicted_and_not_deleted(shop: Ground, guarded: ControlPlane):
    api = guarded.transport("plimsoll")
    path = pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    options = {"preconditions": {"uid": uid}, "dryRun": ["All"]}
    eviction = {"metadata": {"name": path.rpartition("/")[2]}, "deleteOptions": options}
    overlay = f"{BINDINGS}/plimsoll-deletions"
    assert guarded.transport().call("DELETE", overlay).status == 200
    try:
        until(lambda: api.call("DELETE", path, body=options).status == 403)
        assert "cannot delete resource" in message_of(api.call("DELETE", path, body=options))
        assert api.call("POST", f"{path}/eviction", body=eviction).status == 201
        assert patch(api, path, release_of(shop), dryRun="All").status == 200
    finally:
        install(guarded)
    until(lambda: api.call("DELETE", path, body=options).status == 200)


# Injection


@pytest.fixture(scope="module")
def floors(shop: Ground) -> str:
    """Return the path of the ConfigMap in the shop that says how new pods are constrained."""
    path = f"/api/v1/namespaces/{shop.name}/configmaps"
    shop.create(path, {"metadata": {"name": FLOORS}, "data": {"odd": "an owner's own"}})
    shop.create(path, {"metadata": {"name": "settings"}})
    return f"{path}/{FLOORS}"


def test_a_pod_is_created_in_a_dry_run_only(guarded: ControlPlane, ours: Transport):
    pods = "/api/v1/namespaces/plimsoll/pods"
    body = {
        "metadata": {"name": "canary"},
        "spec": {"containers": [{"name": "canary", "image": "canary"}]},
    }
    answer = ours.call("POST", pods, query={"dryRun": "All"}, body=body)
    assert answer.status == 201, answer.body
    answer = ours.call("POST", pods, body=body)
    assert answer.status == 403
    assert "may create a pod in a dry run only" in message_of(answer)
    assert guarded.transport().call("GET", f"{pods}/canary").status == 404


def test_only_budgets_of_our_own_that_let_no_pod_go_are_made_and_deleted(
    guarded: ControlPlane, ours: Transport
):
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    labels = {"plimsoll.dev/guard": "true"}
    selector = {"matchLabels": {"app": "web"}}

    def budget(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "labels": labels},
            "spec": {"selector": selector, **spec},
        }

    made = budget("plimsoll-deployment-web", labels, maxUnavailable=0)
    theirs = budget("theirs", {}, minAvailable=1)
    assert guarded.transport().call("POST", path, body=theirs).status == 201
    dry = {"dryRun": "All"}
    foreign = budget("ours-not", labels, maxUnavailable=0)
    until(lambda: ours.call("POST", path, query=dry, body=foreign).status == 403)  # in force
    for refused in (
        budget("plimsoll-deployment-web", {}, maxUnavailable=0),
        budget("web", labels, maxUnavailable=0),
        budget("plimsoll-deployment-web", labels, maxUnavailable=1),
        budget("plimsoll-deployment-web", labels, maxUnavailable="100%"),
        budget("plimsoll-deployment-web", labels, minAvailable=0),
    ):
        answer = ours.call("POST", path, body=refused)
        assert answer.status == 403, answer.body
        assert "plimsoll-guard" in message_of(answer)
    assert ours.call("POST", path, body=made).status == 201
    one = f"{path}/plimsoll-deployment-web"
    assert patch(ours, one, {"spec": {"maxUnavailable": 1}}).status == 403
    assert ours.call("DELETE", f"{path}/theirs").status == 403
    assert ours.call("DELETE", one).status == 200
    assert guarded.transport().call("DELETE", f"{path}/theirs").status == 200


def test_of_the_floors_of_a_namespace_only_their_words_change(floors: str, ours: Transport):
    for value in ("1", "on-demand", None):
        answer = patch(ours, floors, {"data": {"deployment.web": value}}, dryRun="All")
        assert answer.status == 200, answer.body
    settings = floors.replace(FLOORS, "settings")
    for path, body in (
        (floors, {"data": {"deployment.web": "four"}}),
        (floors, {"binaryData": {"a": "YQ=="}}),
        (floors, {"immutable": True}),
        (floors, marks("labels", theirs="2")),
        (floors, {"metadata": {"finalizers": ["a.b/c"]}}),
        (settings, {"data": {"deployment.web": "1"}}),
    ):
        assert patch(ours, path, body, dryRun="All").status == 403


def test_without_the_overlay_no_floor_is_read_or_told(floors: str, guarded: ControlPlane):
    api = guarded.transport("plimsoll")
    field = {"fieldSelector": f"metadata.name={FLOORS}"}
    assert api.call("GET", "/api/v1/configmaps", query=field).status == 200
    assert api.call("GET", "/api/v1/configmaps").status == 403
    assert guarded.transport().call("DELETE", f"{BINDINGS}/plimsoll-injection").status == 200
    try:
        until(lambda: api.call("GET", "/api/v1/configmaps", query=field).status == 403)
        assert patch(api, floors, {"data": {"deployment.web": "1"}}, dryRun="All").status == 403
    finally:
        install(guarded)
    until(lambda: api.call("GET", "/api/v1/configmaps", query=field).status == 200)


OF_OWNERS = (
    IGNORE,
    OVERRULE_BUDGETS,
    RELEASE,
    STOP_SECONDS,
    CHECKPOINT_TAKES_SECONDS,
    SAFE_TO_EVICT,
    "plimsoll.dev/admission",
    "plimsoll.dev/new-in-a-later-version",
    "spread.plimsoll.dev/2",
)


@pytest.mark.parametrize("key", OF_OWNERS)
def test_no_annotation_of_a_pod_s_owner_is_set_changed_or_taken_off(
    shop: Ground, ours: Transport, key: str
):
    pod, refused = pod_of(shop), f"the annotation {key}"
    held(patch(ours, pod, marks("annotations", **{key: "mine"}), dryRun="All"), "pods", refused)
    assert patch(shop.api, pod, marks("annotations", **{key: "theirs"})).status == 200
    try:
        for value in ("mine", None):
            body = marks("annotations", **{key: value})
            held(patch(ours, pod, body, dryRun="All"), "pods", refused)
    finally:
        assert patch(shop.api, pod, marks("annotations", **{key: None})).status == 200


@pytest.mark.parametrize("part", ["annotations", "labels", "taints"])
@pytest.mark.parametrize("key", [GPU_CHANGE, "plimsoll.dev/leased-to", *OF_OWNERS[:1]])
def test_no_key_of_a_node_that_another_writes_is_set_or_taken_off(
    shop: Ground, ours: Transport, part: str, key: str
):
    """The journal of plimsoll-gpu, what the queues lease, and what owners say."""
    node = node_of(shop)
    taints = shop.get(node)["spec"]["taints"]

    def body(value: str | None) -> Json:
        if part != "taints":
            return marks(part, **{key: value})
        more = [taint(key, value, "NoSchedule")] if value else []
        return {"spec": {"taints": [*taints, *more]}}

    for there, wanted in ((None, "mine"), ("theirs", "mine"), ("theirs", None)):
        assert patch(shop.api, node, body(there)).status == 200
        try:
            answer = patch(ours, node, body(wanted), dryRun="All")
        finally:
            assert patch(shop.api, node, body(None)).status == 200
        assert answer.status == 403, answer.body
        assert f"the {part.rstrip('s')} {key}" in message_of(answer)


@pytest.mark.parametrize("key", [DELETION_COST, MOVED, DEADLINE])
def test_of_a_pod_our_annotations_pass(shop: Ground, ours: Transport, key: str):
    body = {"metadata": {"annotations": {key: "-7"}}}
    assert patch(ours, pod_of(shop), body, dryRun="All").status == 200


def age_of(pod: Json, seconds: float) -> str:
    """Return the age of a pod so many seconds from now, as Karpenter counts it."""
    started = datetime.fromisoformat(pod["status"]["startTime"])
    return f"{int((datetime.now(UTC) - started).total_seconds() + seconds)}s"


def protected(age: str | None, ours: str | None, **more: str | None) -> Json:
    return {"metadata": {"annotations": {DO_NOT_DISRUPT: age, PROTECTED: ours, **more}}}


def of_the_set(shop: Ground) -> str:
    return f"{shop.pods_path}/db-0"


def test_karpenter_is_told_for_how_long_and_no_longer(shop: Ground, ours: Transport):
    """With a release, and of pods that move one by one."""
    pod, member = pod_of(shop), of_the_set(shop)
    age = age_of(shop.get(pod), 120)
    released = release_of(shop)
    released["metadata"]["annotations"] |= {DO_NOT_DISRUPT: age, PROTECTED: age}
    assert patch(ours, pod, released, dryRun="All").status == 200
    age = age_of(shop.get(member), 120)
    answer = patch(ours, member, protected(age, age))
    assert answer.status == 200, answer.body
    held(patch(ours, member, protected(None, age), dryRun="All"), "pods", KARPENTERS)
    held(patch(ours, member, protected(age, "1s"), dryRun="All"), "pods", KARPENTERS)
    assert patch(ours, member, protected(None, None)).status == 200


KARPENTERS = f"the annotation {DO_NOT_DISRUPT}"


@pytest.mark.parametrize(
    "say",
    [
        lambda pod: protected("true", "true"),
        lambda pod: protected("0s", "0s"),
        lambda pod: protected("1h", "1h"),
        lambda pod: protected(age_of(pod, 1200), age_of(pod, 1200)),
        lambda pod: protected("999999999s", "999999999s"),
        lambda pod: protected(age_of(pod, 120), "1s"),
        lambda pod: protected(age_of(pod, 120), None),
        lambda pod: protected(None, age_of(pod, 120)),
    ],
    ids=[
        "for good",
        "no time",
        "hours",
        "twenty minutes",
        "decades",
        "another mark",
        "no mark of ours",
        "our mark alone",
    ],
)
def test_karpenter_is_not_told(shop: Ground, ours: Transport, say: Callable[[Json], Json]):
    member = of_the_set(shop)
    held(patch(ours, member, say(shop.get(member)), dryRun="All"), "pods", KARPENTERS)


@pytest.mark.parametrize("manager", ["plimsoll", "plimsoll-1", "kubectl", "ancient-changes"])
def test_no_time_that_comes_with_a_request_tells_karpenter_more(
    shop: Ground, ours: Transport, manager: str
):
    member, age = of_the_set(shop), "999999999s"
    entries = shop.get(member)["metadata"]["managedFields"]
    fields: Json = {"f:metadata": {"f:annotations": {f"f:{DO_NOT_DISRUPT}": {}}}}
    and_another = {"f:metadata": {**fields["f:metadata"], "f:labels": {"f:app": {}}}}
    for owned, version, operation, subresource, query in itertools.product(
        (fields, and_another),
        ("v1", "v2"),
        ("Update", "Apply"),
        ({}, {"subresource": "status"}),
        ({}, {"fieldManager": manager}),
    ):
        forged = {
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "time": "2100-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": owned,
            **subresource,
        }
        body = protected(age, age)
        body["metadata"]["managedFields"] = [*entries, forged]
        answer = patch(ours, member, body, dryRun="All", **query)
        assert answer.status == 403, (forged, query)
        if owned == fields and (manager == "plimsoll" or not query):
            held(
                answer, "pods", KARPENTERS
            )  # the API server wrote the time of our entry, and dropped theirs


def test_a_pod_that_is_neither_released_nor_of_a_stateful_set_is_not_karpenter_s_to_leave(
    shop: Ground, ours: Transport
):
    age = age_of(shop.get(pod_of(shop)), 120)
    held(patch(ours, pod_of(shop), protected(age, age), dryRun="All"), "pods", KARPENTERS)


def test_what_its_owner_tells_karpenter_stays(shop: Ground, ours: Transport):
    member = of_the_set(shop)
    age = age_of(shop.get(member), 120)
    assert patch(shop.api, member, protected("true", None)).status == 200
    for body in (protected(None, None), protected(age, age)):
        held(patch(ours, member, body, dryRun="All"), "pods", KARPENTERS)
    assert patch(shop.api, member, protected(None, None)).status == 200
    assert patch(ours, member, protected(age, age)).status == 200
    assert patch(shop.api, member, protected("true", age)).status == 200
    held(patch(ours, member, protected(None, None), dryRun="All"), "pods", KARPENTERS)
    assert patch(ours, member, protected("true", None)).status == 200, "only our own mark goes"
    assert patch(shop.api, member, protected(None, None)).status == 200


def test_what_takes_a_release_back_takes_its_mark_off(shop: Ground, ours: Transport):
    pod = pod_of(shop)
    before = shop.get(pod)
    age = age_of(before, 120)
    released, back = release_of(shop), back_of(before["metadata"])
    released["metadata"]["annotations"] |= {DO_NOT_DISRUPT: age, PROTECTED: age}
    assert patch(ours, pod, released).status == 200
    held(patch(ours, pod, back, dryRun="All"), "pods", KARPENTERS)
    back["metadata"]["annotations"] |= {DO_NOT_DISRUPT: None, PROTECTED: None}
    assert patch(ours, pod, back).status == 200
    shop.until(lambda: len(shop.pods("web")) == 1)


def test_a_pod_is_told_to_go_only_by_its_uid(shop: Ground, ours: Transport):
    path = pod_of(shop)
    eviction: Json = {"metadata": {"name": path.rpartition("/")[2]}}
    for answer in (
        ours.call("DELETE", path),
        ours.call("DELETE", path, body={"gracePeriodSeconds": 0}),
        ours.call("POST", f"{path}/eviction", body=eviction),
    ):
        assert answer.status == 403, answer.body
        assert "'plimsoll-departures'" in message_of(answer)
        assert "Add preconditions.uid" in message_of(answer)
    options = {"preconditions": {"uid": shop.get(path)["metadata"]["uid"]}, "dryRun": ["All"]}
    assert ours.call("DELETE", path, body=options).status == 200
    eviction["deleteOptions"] = options
    assert ours.call("POST", f"{path}/eviction", body=eviction).status == 201


# Events


def an_event(ground: Ground, **changes: Any) -> Json:
    name = ground.pods("web")[0]["metadata"]["name"]
    return {
        "metadata": {"name": f"plimsoll.{'0' * 32}"},
        "involvedObject": {"kind": "Pod", "namespace": ground.name, "name": name},
        "source": {"component": "plimsoll"},
        "type": "Normal",
        "reason": "Evicted",
        "message": "a test",
    } | changes


def create_event(api: Transport, namespace: str, body: Json) -> Response:
    path = f"/api/v1/namespaces/{namespace}/events"
    return api.call("POST", path, query={"dryRun": "All"}, body=body)


def test_events_about_pods_and_nodes_pass(shop: Ground, ours: Transport):
    assert create_event(ours, shop.name, an_event(shop)).status == 201
    node = {"kind": "Node", "name": f"{shop.name}-a"}
    assert create_event(ours, "default", an_event(shop, involvedObject=node)).status == 201


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"metadata": {"name": "web.1"}}, "another name"),
        ({"source": {"component": "kubelet"}}, "another source"),
        ({"reportingComponent": "kubelet"}, "another source"),
        ({"source": {}}, "another source"),
        ({"message": "x" * 1001}, "a message of more than 1000 characters"),
    ],
    ids=["name", "source", "reporting component", "no source", "length"],
)
def test_an_event_in_the_name_of_others_or_too_long_is_refused(
    shop: Ground, ours: Transport, changes: Json, named: str
):
    answer = create_event(ours, shop.name, an_event(shop, **changes))
    assert answer.status == 403, answer.body
    assert "'plimsoll-events'" in message_of(answer)
    assert named in message_of(answer)


def test_no_event_about_what_we_do_not_work_on_passes(shop: Ground, ours: Transport):
    secret = {"kind": "Secret", "namespace": shop.name, "name": "x"}
    answer = create_event(ours, shop.name, an_event(shop, involvedObject=secret))
    assert "the kind Secret" in message_of(answer)


# What RBAC alone refuses


@dataclass(frozen=True)
class Ask:
    method: str
    path: str
    body: Json | None = None
    content_type: str = "application/json"
    here: dict[str, str] = field(default_factory=dict)


RBAC = "/apis/rbac.authorization.k8s.io/v1"
REFUSED = {
    "read a Secret": Ask("GET", "/api/v1/namespaces/{ns}/secrets/x"),
    "list Secrets": Ask("GET", "/api/v1/secrets"),
    "read a ConfigMap": Ask("GET", "/api/v1/namespaces/{ns}/configmaps/x"),
    "delete a Deployment": Ask("DELETE", "/apis/apps/v1/namespaces/{ns}/deployments/web"),
    "delete all Deployments": Ask("DELETE", "/apis/apps/v1/namespaces/{ns}/deployments"),
    "create a Deployment": Ask("POST", "/apis/apps/v1/namespaces/{ns}/deployments", {}),
    "replace a Deployment": Ask("PUT", "/apis/apps/v1/namespaces/{ns}/deployments/web", {}),
    "change a Deployment": Ask(
        "PATCH", "/apis/apps/v1/namespaces/{ns}/deployments/web", {}, MERGE_PATCH
    ),
    "change a ReplicaSet": Ask(
        "PATCH", "/apis/apps/v1/namespaces/{ns}/replicasets/alone", {}, MERGE_PATCH
    ),
    "change a StatefulSet": Ask(
        "PATCH", "/apis/apps/v1/namespaces/{ns}/statefulsets/db", {}, MERGE_PATCH
    ),
    "change an autoscaler": Ask(
        "PATCH",
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers/web",
        {},
        MERGE_PATCH,
    ),
    "scale by the subresource": Ask(
        "PATCH", "/apis/apps/v1/namespaces/{ns}/deployments/web/scale", {}, MERGE_PATCH
    ),
    "change a DaemonSet": Ask(
        "PATCH", "/apis/apps/v1/namespaces/{ns}/daemonsets/x", {}, MERGE_PATCH
    ),
    "delete a Node": Ask("DELETE", "/api/v1/nodes/{ns}-a"),
    "create a Node": Ask("POST", "/api/v1/nodes", {}),
    "change a node's status": Ask("PATCH", "/api/v1/nodes/{ns}-a/status", {}, MERGE_PATCH),
    "reach a kubelet": Ask("GET", "/api/v1/nodes/{ns}-a/proxy/pods"),
    "create a pod": Ask("POST", "/api/v1/namespaces/{ns}/pods", {}),
    "delete all pods": Ask("DELETE", "/api/v1/namespaces/{ns}/pods"),
    "bind a pod": Ask("POST", "/api/v1/namespaces/{ns}/pods/x/binding", {}),
    "run a command in a pod": Ask("POST", "/api/v1/namespaces/{ns}/pods/x/exec?command=sh"),
    "read a pod's log": Ask("GET", "/api/v1/namespaces/{ns}/pods/x/log"),
    "debug a pod": Ask(
        "PATCH", "/api/v1/namespaces/{ns}/pods/x/ephemeralcontainers", {}, MERGE_PATCH
    ),
    "a Lease elsewhere": Ask(
        "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", {}
    ),
    "another's Lease": Ask(
        "GET", "/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases/somebody-elses"
    ),
    "delete our Lease": Ask(
        "DELETE", "/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases/drains"
    ),
    "more rights": Ask("POST", f"{RBAC}/clusterrolebindings", {}),
    "its own role": Ask("PATCH", f"{RBAC}/clusterroles/plimsoll", {}, MERGE_PATCH),
    "another's admission policy": Ask(
        "DELETE", f"{ADMISSION}/mutatingadmissionpolicybindings/somebody-elses"
    ),
    "its own admission policy": Ask(
        "DELETE", f"{ADMISSION}/mutatingadmissionpolicies/plimsoll-floors"
    ),
    "its own policy": Ask("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-pods"),
    "its own queue": Ask(
        "PATCH", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/plimsoll", {}, MERGE_PATCH
    ),
    "another's queue": Ask(
        "GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/global-default"
    ),
    "a token": Ask("POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {}),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
def test_what_no_rule_grants_is_refused(shop: Ground, guarded: ControlPlane, ask: Ask):
    answer = guarded.transport("plimsoll").call(
        ask.method,
        ask.path.format(ns=shop.name),
        body=ask.body,
        content_type=None if ask.body is None else ask.content_type,
    )
    refused(answer)


def refused(answer: Response) -> None:
    assert answer.status == 403, answer.body
    assert 'User "plimsoll" cannot ' in message_of(answer)


def test_of_our_namespace_only_our_lease_may_be_made(guarded: ControlPlane):
    answer = a_lease(guarded, "somebody-elses")
    assert answer.status == 403
    assert "only the Lease drains" in message_of(answer)
    assert a_lease(guarded, "drains").status in {201, 409}


# Others


def test_nobody_else_is_held_to_our_fields(shop: Ground, guarded: ControlPlane):
    admin = guarded.transport()
    for path, body in (
        (workload_of(shop, "deployments"), {"spec": {"paused": True}}),
        (node_of(shop), marks("labels", theirs="2")),
        (pod_of(shop), marks("labels", theirs="2")),
    ):
        assert patch(admin, path, body, dryRun="All").status == 200
    assert admin.call("DELETE", pod_of(shop), body={"dryRun": ["All"]}).status == 200


def test_the_api_server_finds_nothing_to_warn_of_in_the_policies(guarded: ControlPlane):
    api = guarded.transport()

    def checked() -> list[Json]:
        found = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies").body["items"]
        return [p for p in found if "typeChecking" in p.get("status", {})]

    there = [d for d in documents("**/*.yaml") if d["kind"] == "ValidatingAdmissionPolicy"]
    until(lambda: len(checked()) == len(there))
    assert {p["metadata"]["name"]: p["status"]["typeChecking"] for p in checked()} == {
        p["metadata"]["name"]: {} for p in checked()
    }


def test_a_webhook_that_changes_more_as_we_write_is_named_in_the_refusal(shop: Ground):
    """A policy that mutates stands for the webhook: to ours both look alike."""
    api, name = shop.api, shop.name
    mutates: Json = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": 'Object{metadata: Object.metadata{labels: {"seen": "1"}}}'
                    },
                }
            ],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    policies, bindings = (
        f"{ADMISSION}/mutatingadmissionpolic{end}" for end in ("ies", "ybindings")
    )
    try:
        shop.create(policies, mutates)
        shop.create(bindings, binding)
        path, body = pod_of(shop), marks("annotations", **{MOVED: "1"})
        plimsoll = shop.plane.transport("plimsoll")
        until(lambda: patch(plimsoll, path, body, dryRun="All").status == 403)
        answer = patch(plimsoll, path, body, dryRun="All")
        held(answer, "pods", "the label seen")
        assert "exempt the group from that webhook" in message_of(answer)
    finally:
        api.call("DELETE", f"{bindings}/{name}")
        api.call("DELETE", f"{policies}/{name}")
    until(lambda: patch(plimsoll, path, body, dryRun="All").status == 200)


# The doctor


@pytest.fixture(params=["our token", "an administrator as one of our group"])
def probe(request: pytest.FixtureRequest, guarded: ControlPlane) -> KubernetesProbe:
    if request.param == "our token":
        return KubernetesProbe(guarded.transport("plimsoll"), "it", SerialWorkers())
    admin, acting = guarded.transport(), as_member(guarded)
    return KubernetesProbe(admin, "it", SerialWorkers(), group=GROUP, acting=acting)


@pytest.mark.usefixtures("floors")
def test_the_doctor_sees_that_all_is_applied(shop: Ground, probe: KubernetesProbe):
    assert all(right.held for right in probe.rights())
    assert patch(shop.api, pod_of(shop), marks("labels", **{IGNORE: "true"})).status == 200
    try:
        trials = probe.trials()
    finally:
        assert patch(shop.api, pod_of(shop), marks("labels", **{IGNORE: None})).status == 200
    assert {t.policy for t in trials if not t.ours} == {
        f"plimsoll-{name}"
        for name in (
            "departures",
            "events",
            "floors",
            "guard",
            "history",
            "ignored",
            "lease",
            "nodes",
            "pods",
        )
    }
    for trial in trials:
        if not trial.ours:
            assert f"ValidatingAdmissionPolicy '{trial.policy}'" in trial.said
    assert {t.verdict for t in trials if not t.ours} == {TrialResult.BY_OUR_POLICY}
    assert {t.verdict for t in trials if t.ours} == {TrialResult.PASSED}
    queue = probe.queue()
    assert queue == Queue(uid=queue.used, used=queue.used, dangling=False)
    assert queue.uid is not None


def test_the_command_says_so(shop: Ground, guarded: ControlPlane):
    environment, _ = an_environment(registered=False)
    environment.transports["harbor"] = guarded.transport("plimsoll")
    environment.registry.add(
        Cluster(
            name="harbor",
            kind=ClusterKind.ENDPOINT,
            mode=Mode.ACT,
            region="us-east-1",
            endpoint=guarded.url,
            secret="plimsoll/harbor",
            added=environment.clock.now(),
        )
    )
    told = json.loads(run(environment, "doctor", "--cluster", "harbor", "--output", "json").stdout)[
        "findings"
    ]
    found = {finding["check"]: finding for finding in told}
    assert "v1.36" in found["cluster"]["says"]
    for check in ("cluster", "rights", "fields", "queue"):
        assert found[check]["state"] == "ok", found[check]


@pytest.mark.parametrize("name", ["nodes", "departures", "history", "lease"])
def test_the_doctor_sees_a_policy_that_is_not_bound(
    shop: Ground, probe: KubernetesProbe, name: str
):
    path = f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-{name}"
    assert shop.api.call("DELETE", path).status == 200

    def free() -> set[str]:
        tried = probe.trials()
        return {t.policy for t in tried if not t.ours and t.verdict is TrialResult.PASSED}

    try:
        until(lambda: bool(free()))
        assert free() == {f"plimsoll-{name}"}
    finally:
        install(shop.plane)
    until(lambda: not free())


def test_somebody_else_is_not_let_try_for_us(guarded: ControlPlane):
    with pytest.raises(Refused, match="nodes"):
        KubernetesProbe(guarded.transport("stranger"), "it", SerialWorkers()).trials()
    with pytest.raises(Refused, match="flowschemas"):
        KubernetesProbe(guarded.transport("stranger"), "it", SerialWorkers()).queue()
    acting = as_member(guarded, "stranger")
    with pytest.raises(Refused, match="only an administrator of the cluster"):
        KubernetesProbe(acting, "it", SerialWorkers(), group=GROUP, acting=acting).trials()
