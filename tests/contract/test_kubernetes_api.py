"""What `KubernetesCluster` promises, over the in-process transport and over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.domain.errors import (
    Blocked,
    Conflict,
    NotFound,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.kubernetes import (
    ClusterEvent,
    Node,
    NodeTerm,
    Pod,
    Ref,
    Requirement,
    Taint,
    about_node,
    names,
)
from plimsoll.domain.zones import has_shift_taint

from .conftest import T0, ContractRig, machine

type Json = dict[str, Any]

INTERRUPTION = Interruption(
    instance="i-0000000000000000a",
    launched=None,
    node="a",
    notices=(NoticeRecord(kind="spot-interruption", time=T0, id="1"),),
)
WEB = Ref("Deployment", "shop", "web")


def template(app: str, **spec: Any) -> Json:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {
            "containers": [
                {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
            ],
            **spec,
        },
    }


def workload(kind: str, name: str, replicas: int = 2, **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
            **spec,
        },
    }


def budget(name: str, app: str, **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


@pytest.fixture
def shop(rig: ContractRig) -> ContractRig:
    """Two nodes, a Deployment of two, and the namespaces."""
    for name in ("shop", names.NAMESPACE):
        rig.apply({"kind": "Namespace", "metadata": {"name": name}})
    for name in ("a", "b"):
        rig.join(machine(name))
    rig.apply(workload("Deployment", "web"))
    rig.wait(120)
    return rig


def node(rig: ContractRig, name: str = "a") -> Node:
    return next(n for n in rig.api.nodes() if n.name == name)


def pods(rig: ContractRig, app: str = "web") -> list[Pod]:
    return [p for p in rig.api.observe().pods if p.labels.get("app") == app]


def stored(rig: ContractRig, path: str) -> Json:
    return rig.get(path)


# Reading


def test_a_node_is_read_by_its_name_in_one_request(shop: ContractRig) -> None:
    shop.wire.asked.clear()
    found = shop.api.node("a")
    assert found is not None
    assert (found.name, found.instance, found.zone) == ("a", "i-0000000000000000a", "eu-west-1a")
    assert [(method, path) for method, path, *_ in shop.wire.asked] == [("GET", "/api/v1/nodes/a")]


def test_a_node_that_is_not_there_is_none(shop: ContractRig) -> None:
    assert shop.api.node("gone") is None


def test_an_observation_holds_what_a_plan_needs(shop: ContractRig) -> None:
    shop.apply(
        budget("web", "web", minAvailable=1),
        workload("StatefulSet", "db", 1, serviceName="db"),
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web-hpa", "namespace": "shop"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 2,
                "maxReplicas": 5,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv-1"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": names.ZONE,
                                        "operator": "In",
                                        "values": ["eu-west-1a"],
                                    }
                                ]
                            }
                        ]
                    }
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"volumeName": "pv-1", "accessModes": ["ReadWriteOnce"]},
        },
    )
    shop.wait(60)
    attachments = [
        {
            "metadata": {"name": f"attached-{volume}", "uid": volume, "resourceVersion": "1"},
            "spec": {"nodeName": "a", "source": {"persistentVolumeName": volume}},
            "status": {"attached": attached},
        }
        for volume, attached in (("pv-1", True), ("pv-2", False))
    ]
    shop.wire.at["/apis/storage.k8s.io/v1/volumeattachments"] = Response(
        status=200, body={"items": attachments}
    )
    seen = shop.api.observe()
    assert {n.name for n in seen.nodes} == {"a", "b"}
    web = seen.workload[WEB]
    assert (web.replicas, web.scaler, web.scheduling.requests.cpu) == (2, "web-hpa", 100)
    assert [p.serving for p in seen.of_workload[WEB]] == [True, True]
    (replica_set,) = (r for r in seen.replica_sets.values() if r.controller == WEB)
    assert replica_set.controller_uid == web.uid
    assert seen.current == {WEB: replica_set}
    assert Ref("StatefulSet", "shop", "db") in seen.workload
    assert [str(b.ref) for b in seen.budgets] == ["PodDisruptionBudget shop/web"]
    zone = Requirement(key=names.ZONE, operator="In", values=("eu-west-1a",))
    assert seen.claims["shop", "data"].node_terms == (NodeTerm(expressions=(zone,)),)
    assert seen.attached == {"a": frozenset({"pv-1"})}
    assert shop.warnings == []


def test_classes_and_drivers_say_where_pods_of_unbound_claims_can_run(shop: ContractRig) -> None:
    east = [{"matchLabelExpressions": [{"key": names.ZONE, "values": ["east"]}]}]
    driver = {"name": "ebs.csi.aws.com", "nodeID": "a", "allocatable": {"count": 25}}
    shop.apply(
        {
            "kind": "StorageClass",
            "metadata": {"name": "east"},
            "provisioner": driver["name"],
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": east,
        },
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"storageClassName": "east", "accessModes": ["ReadWriteOnce"]},
        },
        {"kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": [driver]}},
        {
            "kind": "Pod",
            "metadata": {"name": "early", "namespace": "shop"},
            "spec": {
                "containers": [{"name": "main", "image": "one"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}],
            },
        },
    )
    seen = shop.api.observe()
    zone = Requirement(key=names.ZONE, operator="In", values=("east",))
    assert seen.claims["shop", "data"].node_terms == (NodeTerm(expressions=(zone,)),)
    assert seen.claims["shop", "missing"].node_terms == ()
    assert seen.node["a"].volume_limits == {driver["name"]: 25}
    withheld = {"storageclasses", "csinodes"}
    shop.rights.granted = [g for g in shop.rights.granted if g.resource not in withheld]
    seen = shop.api._anew().observe()
    assert (seen.claims["shop", "data"].node_terms, seen.node["a"].volume_limits) == (None, {})


def test_affinity_names_the_namespaces_that_it_selects_by_their_labels(shop: ContractRig) -> None:
    shop.apply(
        {"kind": "Namespace", "metadata": {"name": "bank", "labels": {"team": "x"}}},
        {"kind": "Namespace", "metadata": {"name": "other"}},
    )
    term = {
        "topologyKey": names.HOSTNAME,
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "labelSelector": {},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    apart = template("alone")
    apart["spec"]["affinity"] = {"podAntiAffinity": required}
    shop.apply(workload("Deployment", "alone", 1, template=apart))
    shop.wait(30)
    (pod,) = pods(shop, "alone")
    assert [term.namespaces for term in pod.scheduling.anti_affinity] == [("bank",)]


def test_a_replica_set_of_its_own_is_a_workload_and_an_owned_one_is_not(shop: ContractRig) -> None:
    shop.apply(workload("ReplicaSet", "alone"))
    kinds = {r.kind: r.name for r in shop.api.observe().workload}
    assert kinds == {"Deployment": "web", "ReplicaSet": "alone"}


def test_the_newest_revision_is_named_after_a_rollout(shop: ContractRig) -> None:
    before = shop.api.observe().current[WEB]
    shop.apply(workload("Deployment", "web", template=template("web", priority=1)))
    shop.wait(120)
    seen = shop.api.observe()
    assert seen.current[WEB] != before
    assert {p.owner for p in seen.of_workload[WEB]} == {seen.current[WEB].ref}


def test_finished_pods_are_not_even_asked_for(shop: ContractRig) -> None:
    shop.wire.asked.clear()
    shop.api.observe()
    queries = [query for _, path, query, _ in shop.wire.asked if path == "/api/v1/pods"]
    assert queries == [
        {"limit": "500", "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    ]


def test_lists_come_in_pages(shop: ContractRig) -> None:
    for i in range(1_001):
        shop.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"c{i}", "namespace": "shop"},
                "spec": {"accessModes": ["ReadWriteOnce"]},
            }
        )
    shop.wire.asked.clear()
    assert len(shop.api.observe().claims) == 1_001
    asked = [q for _, path, q, _ in shop.wire.asked if path.endswith("persistentvolumeclaims")]
    assert [q.get("continue") is not None for q in asked] == [False, True, True]


def test_a_list_that_expires_half_way_is_read_again(shop: ContractRig) -> None:
    page = Response(status=200, body={"items": [], "metadata": {"continue": "x"}})
    shop.wire.instead = [page, Response(status=410, body={"reason": "Expired"})]
    assert len(shop.api.nodes()) == 2


def test_a_list_that_expires_twice_is_temporary(shop: ContractRig) -> None:
    shop.wire.instead = [Response(status=410), Response(status=410)]
    with pytest.raises(Temporary, match="expired"):
        shop.api.nodes()


def test_what_has_not_changed_is_parsed_once(shop: ContractRig) -> None:
    first, second = node(shop), node(shop)
    assert second is first
    shop.api.record(first, INTERRUPTION)
    assert node(shop).interruption == INTERRUPTION


def test_an_odd_object_is_left_out_and_told(shop: ContractRig) -> None:
    odd = {"metadata": {"name": "odd", "uid": "1", "resourceVersion": "1"}, "spec": {"taints": 7}}
    shop.wire.instead = [Response(status=200, body={"items": [odd]})]
    assert list(shop.api.nodes()) == []
    assert len(shop.warnings) == 1
    assert "odd" in shop.warnings[0]


# Nodes


def test_cordon_taint_and_record_are_one_patch(shop: ContractRig) -> None:
    before = node(shop)
    shop.wire.asked.clear()
    shop.api.cordon(before, INTERRUPTION)
    assert len(shop.wire.asked) == 1
    after = node(shop)
    assert after.unschedulable
    assert Taint(key=names.INTERRUPTION, value="spot-interruption") in after.taints
    assert after.interruption == INTERRUPTION


def test_cordon_keeps_the_taints_of_others_and_replaces_its_own(shop: ContractRig) -> None:
    other = Taint(key="dedicated", value="shop", effect="NoExecute")
    shop.apply(
        {
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"taints": [{"key": "dedicated", "value": "shop", "effect": "NoExecute"}]},
        }
    )
    shop.api.cordon(node(shop), INTERRUPTION)
    shop.wait(5)
    rebalance = NoticeRecord(kind="rebalance-recommendation", time=T0, id="2")
    shop.api.cordon(
        node(shop),
        Interruption(instance="i-0000000000000000a", launched=None, node="a", notices=(rebalance,)),
    )
    taints = node(shop).taints
    assert other in taints
    assert [t.value for t in taints if t.key == names.INTERRUPTION] == ["rebalance-recommendation"]


@pytest.mark.parametrize(
    "write",
    [
        lambda api, old: api.cordon(old, INTERRUPTION),
        lambda api, old: api.record(old, INTERRUPTION),
        lambda api, old: api.uncordon(old),
        lambda api, old: api.out_of_service(old),
    ],
    ids=["cordon", "record", "uncordon", "out_of_service"],
)
def test_a_node_that_changed_since_it_was_read_is_a_conflict(
    shop: ContractRig, write: Callable[[KubernetesCluster, Node], None]
) -> None:
    old = node(shop)
    shop.apply({"kind": "Node", "metadata": {"name": "a", "labels": {"new": "label"}}})
    with pytest.raises(Conflict):
        write(shop.api, old)
    assert node(shop).interruption is None
    assert not node(shop).taints


def test_release_takes_off_what_cordon_put_on(shop: ContractRig) -> None:
    before = node(shop)
    shop.api.cordon(before, replace(INTERRUPTION, cordoned=T0))
    shop.wait(5)
    shop.api.uncordon(node(shop))
    shop.wait(5)
    after = node(shop)
    assert (after.unschedulable, after.taints, after.interruption) == (False, (), None)
    assert after.annotations == before.annotations


@pytest.mark.parametrize("value", [names.EXCLUDED_BY_US, "karpenter"])
def test_release_returns_a_node_to_load_balancers_if_we_took_it_from_them(
    shop: ContractRig, value: str
) -> None:
    shop.api.cordon(node(shop), replace(INTERRUPTION, cordoned=T0))
    shop.wait(5)
    shop.api.label(node(shop), {names.EXCLUDED: value})
    shop.api.uncordon(node(shop))
    kept = None if value == names.EXCLUDED_BY_US else value
    assert node(shop).labels.get(names.EXCLUDED) == kept


def test_out_of_service_is_a_taint_of_its_own(shop: ContractRig) -> None:
    shop.api.cordon(node(shop), INTERRUPTION)
    shop.wait(5)
    shop.api.out_of_service(node(shop))
    keys = {t.key: (t.value, t.effect) for t in node(shop).taints}
    assert keys["node.kubernetes.io/out-of-service"] == ("nodeshutdown", "NoExecute")
    assert names.INTERRUPTION in keys


def test_a_node_that_is_gone_is_not_found(shop: ContractRig) -> None:
    gone = Node(
        name="gone",
        uid="1",
        resource_version="1",
        labels={},
        allocatable=node(shop).allocatable,
        created=T0,
    )
    with pytest.raises(NotFound, match="cluster shop: patch nodes gone"):
        shop.api.cordon(gone, INTERRUPTION)


# Workloads and pods


def release_one(shop: ContractRig) -> Pod:
    """Release a pod of web and return it was before."""
    pod = pods(shop)[0]
    shop.api.release(pod, shop.api.observe().current[WEB], "i-1@noon")
    return pod


def test_a_release_is_one_patch_and_another_pod_is_made_beside_the_released_one(
    shop: ContractRig,
) -> None:
    pod = release_one(shop)
    shop.wait(60)
    seen = shop.api.observe()
    found = seen.of_workload[WEB]
    assert len(found) == 3
    (released,) = (p for p in found if p.released)
    assert (released.uid, released.serving) == (pod.uid, True)
    assert released.annotations[names.RELEASED] == "i-1@noon"


def test_a_released_pod_is_controlled_by_the_deployment_and_keeps_its_replica_set_as_an_owner(
    shop: ContractRig,
) -> None:
    made = shop.api.observe().current[WEB]
    release_one(shop)
    (body,) = (b for _, _, _, b in shop.wire.asked if isinstance(b, dict) and "metadata" in b)
    named = {"apiVersion": "apps/v1", "blockOwnerDeletion": False}
    assert body["metadata"]["ownerReferences"] == [
        {
            **named,
            "kind": "Deployment",
            "name": "web",
            "uid": made.controller_uid,
            "controller": True,
        },
        {
            **named,
            "kind": "ReplicaSet",
            "name": made.ref.name,
            "uid": made.uid,
            "controller": False,
        },
    ]


def test_an_undone_release_leaves_the_pods_there_were(shop: ContractRig) -> None:
    release_one(shop)
    shop.wait(60)
    seen = shop.api.observe()
    (released,) = (p for p in seen.of_workload[WEB] if p.released)
    shop.api.undo_release(released, seen.current[WEB])
    shop.wait(60)
    found = shop.api.observe().of_workload[WEB]
    assert len(found) == 2
    assert not any(names.RELEASED in p.annotations for p in found)


def test_a_release_and_a_mark_tell_karpenter_and_both_are_taken_off_without_an_owner_s(
    shop: ContractRig,
) -> None:
    """The values are ages; only what was set by us goes again."""
    marked, other = pods(shop)
    assert marked.started is not None
    made = shop.api.observe().current[WEB]
    shop.api.release(marked, made, "i-1@noon", do_not_disrupt="90s")
    shop.api.do_not_disrupt(other, "60s")

    def found() -> dict[str, dict[str, str]]:
        told = {names.DO_NOT_DISRUPT, names.PROTECTED}
        seen = {p.uid: p.annotations for p in shop.api.observe().pods}
        return {
            uid: {key: value for key, value in seen[uid].items() if key in told}
            for uid in (marked.uid, other.uid)
        }

    assert found() == {
        pod.uid: {names.DO_NOT_DISRUPT: age, names.PROTECTED: age}
        for pod, age in ((marked, "90s"), (other, "60s"))
    }
    now = {p.uid: p for p in shop.api.observe().pods}
    shop.api.undo_release(now[marked.uid], made)
    shop.api.annotate_pod(now[other.uid], names.DO_NOT_DISRUPT, "true")
    shop.api.do_not_disrupt(next(p for p in pods(shop) if p.uid == other.uid), None)
    assert found() == {marked.uid: {}, other.uid: {names.DO_NOT_DISRUPT: "true"}}


def test_where_owners_may_not_be_changed_the_label_alone_is_taken_off_and_put_back(
    shop: ContractRig,
) -> None:
    message = (
        'pods "web" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>'
    )
    pod, made = pods(shop)[0], shop.api.observe().current[WEB]
    shop.wire.instead = [Response(status=403, body={"message": message})]
    shop.api.release(pod, made, "i-1@noon")
    (released,) = (p for p in shop.api.observe().of_workload[WEB] if p.released)
    assert (released.uid, released.serving) == (pod.uid, True)
    shop.api.undo_release(replace(released, owner=None), made)

    patches = [body for verb, _, _, body in shop.wire.asked if verb == "PATCH"]
    assert ["ownerReferences" in str(body) for body in patches] == [True, False, False]
    (back,) = (p for p in pods(shop) if p.uid == pod.uid)
    assert (back.labels, back.annotations) == (pod.labels, pod.annotations)


def test_a_pod_that_changed_since_it_was_read_is_not_released(shop: ContractRig) -> None:
    old = release_one(shop)
    with pytest.raises(Conflict):
        shop.api.release(old, shop.api.observe().current[WEB], "i-1@noon")


def test_a_pod_of_the_same_name_is_not_touched_for_another(shop: ContractRig) -> None:
    shop.apply(workload("StatefulSet", "db", 1, serviceName="db"))
    shop.wait(60)
    (old,) = pods(shop, "db")
    shop.api.delete(old, 1)
    shop.wait(120)
    (new,) = pods(shop, "db")
    assert new.name == old.name
    with pytest.raises((Conflict, NotFound)):
        shop.api.release(old, shop.api.observe().current[WEB], "i-1@noon")
    for verb in (shop.api.evict, shop.api.delete):
        with pytest.raises(Conflict):
            verb(old)
    assert names.RELEASED not in pods(shop, "db")[0].annotations
    assert [p.uid for p in pods(shop, "db") if p.deleting is None] == [new.uid]


def test_an_evicted_pod_keeps_its_own_grace_period(shop: ContractRig) -> None:
    pod = pods(shop)[0]
    shop.api.evict(pod)
    (interrupted,) = (p for p in pods(shop) if p.deleting is not None)
    assert interrupted.uid == pod.uid
    assert interrupted.deleting == shop.clock.now() + timedelta(seconds=30)


def test_an_evicted_pod_is_given_the_time_that_is_left(shop: ContractRig) -> None:
    shop.api.evict(pods(shop)[0], 7)
    (interrupted,) = (p for p in pods(shop) if p.deleting is not None)
    assert interrupted.deleting == shop.clock.now() + timedelta(seconds=7)


def test_a_budget_blocks_an_eviction_and_not_a_delete(shop: ContractRig) -> None:
    shop.apply(budget("web", "web", maxUnavailable=0))
    shop.wait(30)
    pod = pods(shop)[0]
    with pytest.raises(Blocked, match=f"create pods/eviction shop/{pod.name}"):
        shop.api.evict(pod)
    shop.api.delete(pod, 3)
    (interrupted,) = (p for p in pods(shop) if p.deleting is not None)
    assert interrupted.uid == pod.uid


def test_two_budgets_on_a_pod_are_refused_by_name(shop: ContractRig) -> None:
    shop.apply(budget("one", "web", maxUnavailable=1), budget("two", "web", maxUnavailable=1))
    shop.wait(30)
    with pytest.raises(Refused, match="two PodDisruptionBudgets"):
        shop.api.evict(pods(shop)[0])


def test_a_pod_that_is_gone_is_not_found(shop: ContractRig) -> None:
    pod = pods(shop)[0]
    shop.api.delete(pod, 0)
    shop.wait(60)
    for verb in (shop.api.evict, shop.api.delete):
        with pytest.raises(NotFound):
            verb(pod)


# The Lease


def lease(rig: ContractRig) -> Json:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.LEASE}"
    spec: Json = stored(rig, path)["spec"]
    return spec


def test_the_lease_is_taken_by_one_and_kept_from_the_other(shop: ContractRig) -> None:
    assert shop.api.acquire("one", 20)
    assert not shop.api.acquire("two", 20)
    spec = lease(shop)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("one", 20)
    assert re.fullmatch(r"2026-03-01T12:\d\d:\d\d\.\d{6}Z", spec["renewTime"])


def test_the_holder_renews_its_lease(shop: ContractRig) -> None:
    shop.api.acquire("one", 20)
    first = lease(shop)
    shop.wait(15)
    assert shop.api.acquire("one", 20)
    shop.wait(15)
    assert not shop.api.acquire("two", 20)
    renewed = lease(shop)
    assert renewed["acquireTime"] == first["acquireTime"]
    assert renewed["renewTime"] > first["renewTime"]
    assert renewed["leaseTransitions"] == first["leaseTransitions"]


@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("two", "one")])
def test_a_lease_that_ran_out_is_taken_over(shop: ContractRig, first: str, second: str) -> None:
    shop.api.acquire(first, 20)
    before = lease(shop)
    shop.wait(20)
    assert shop.api.acquire(second, 20)
    taken = lease(shop)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == (second, 1)
    assert taken["acquireTime"] > before["acquireTime"]
    assert not shop.api.acquire(first, 20)


def test_a_lease_that_was_given_back_is_free_at_once(shop: ContractRig) -> None:
    shop.api.acquire("one", 20)
    shop.api.release_lease("two")
    assert not shop.api.acquire("two", 20)
    shop.api.release_lease("one")
    assert shop.api.acquire("two", 20)


def test_giving_back_what_never_was_is_nothing(shop: ContractRig) -> None:
    shop.api.release_lease("one")

    assert shop.api.acquire("two", 20)


@pytest.mark.parametrize("exists", [True, False])
def test_of_two_who_reach_for_the_lease_one_gets_it(shop: ContractRig, *, exists: bool) -> None:
    if exists:
        shop.api.acquire("zero", 1)
        shop.wait(2)
    inner = shop.wire.inner

    class Race:
        """Lets somebody else be quicker between our read and our write."""

        def call(self, method: str, path: str, **more: Any) -> Response:
            answer = inner.call(method, path, **more)
            if method == "GET":
                shop.wire.inner = inner
                assert shop.api.acquire("quicker", 20)
            return answer

    shop.wire.inner = Race()
    assert not shop.api.acquire("slower", 20)
    assert lease(shop)["holderIdentity"] == "quicker"


def test_an_event_is_created_once_beside_what_it_is_about(shop: ContractRig) -> None:
    pod = pods(shop)[0]
    of_pod = ClusterEvent(
        about=Ref("Pod", pod.namespace, pod.name), uid=pod.uid, reason="Evicted", message="a test"
    )
    of_node = about_node("a", "i-1@noon", "Cordoned", "a test", warning=True)
    for event in (of_pod, of_node):
        shop.api.create_event(event)
        with pytest.raises(Conflict):
            shop.api.create_event(event)
    (told,) = stored(shop, "/api/v1/namespaces/shop/events")["items"]
    assert (told["type"], told["reason"], told["message"]) == ("Normal", "Evicted", "a test")
    assert told["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": pod.name,
        "uid": pod.uid,
    }
    (told,) = stored(shop, "/api/v1/namespaces/default/events")["items"]
    assert told["type"] == "Warning"
    assert told["involvedObject"]["uid"] == told["involvedObject"]["name"] == "a"


def test_a_cluster_without_our_namespace_says_how_to_make_it(rig: ContractRig) -> None:
    with pytest.raises(Refused, match="infra/cluster"):
        rig.api.acquire("one", 20)


# Refusals that a fake cluster does not make


def status(code: int, reason: str = "", **details: Any) -> Response:
    body = {"kind": "Status", "reason": reason, "message": f"{reason}.", "details": details}
    return Response(status=code, body=body)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(429, "TooManyRequests", retryAfterSeconds=7), Throttled),
        (status(403, "Forbidden"), Refused),
        (status(503, "ServiceUnavailable"), Temporary),
        (Response(status=502, body="<html>Bad Gateway"), Temporary),
        (Response(status=200, body="<html>a captive portal"), Temporary),
    ],
)
def test_any_refusal_to_list_nodes_ends_the_observation(
    shop: ContractRig, answer: Response, error: type[PlimsollError]
) -> None:
    shop.wire.at["/api/v1/nodes"] = answer
    with pytest.raises(error):
        shop.api.observe()


def test_an_api_server_that_is_away_is_temporary(shop: ContractRig) -> None:
    shop.fake_cluster.take_api_away(now=shop.clock.now())
    with pytest.raises(Temporary):
        shop.api.nodes()
    with pytest.raises(Temporary):
        shop.api.acquire("one", 20)
    shop.fake_cluster.bring_api_back(now=shop.clock.now())
    assert len(shop.api.nodes()) == 2


def test_the_taint_of_a_zonal_shift_comes_and_goes_beside_those_of_others(
    shop: ContractRig,
) -> None:
    shop.api.cordon(node(shop), INTERRUPTION)
    for tainted in (True, True, False):
        shop.wait(5)
        shop.api.taint(node(shop), tainted=tainted)
        assert has_shift_taint(node(shop)) is tainted
        assert names.INTERRUPTION in {taint.key for taint in node(shop).taints}
