"""What binds a pod, and what does not: quotas of a scope, volumes of its own, devices, its node, its budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.adapters.kubernetes.objects import parse_pod, parse_quota
from plimsoll.domain.actions import Evict, Grow, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.strategies import returning
from plimsoll.domain.kubernetes import Pod, Resources, Workload
from tests.support.builders import (
    ZONE_A,
    ZONE_B,
    a_budget,
    a_claim,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    pod_json,
    pods_of,
)
from tests.support.observations import DB, actions, interrupted, looked, noon, sets_of

SCRATCH = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
PEER = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "namespaces": ["other"]}
        ]
    }
}


def quota(spec: dict[str, Any], **hard: str) -> Any:
    return parse_quota(
        {
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "default"},
            "spec": spec,
            "status": {"hard": hard, "used": hard},
        }
    )


def releases(*pods: Pod, workload: Workload | None = None, **how: Any) -> int:
    """Return how many of the pods on an interrupted node are released at once."""
    workload = workload or a_deployment(replicas=len(pods))
    seen = looked([interrupted("spot"), a_node("od")], list(pods), [workload], **how)
    return len(actions(plan_drain(seen, noon(1)), Release))


# ResourceQuotas


@pytest.mark.parametrize(
    ("spec", "pod", "binds"),
    [
        ({}, {}, True),
        ({"scopes": ["NotTerminating"]}, {}, True),
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopes": ["BestEffort"]}, {"cpu": None, "memory": None}, True),
        ({"scopes": ["NotBestEffort"]}, {}, True),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {"affinity": PEER}, True),
        ({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True),
        ({"scopes": ["PriorityClass"]}, {}, False),
    ],
)
def test_a_quota_binds_the_pods_of_its_scopes_only(
    spec: dict[str, Any], pod: dict[str, Any], *, binds: bool
):
    assert releases(a_pod("web-0", node="spot", **pod), quotas=[quota(spec, pods="3")]) != binds


@pytest.mark.parametrize(
    ("operator", "values", "binds"),
    [("In", ["high"], True), ("NotIn", ["high"], False), ("In", ["low"], False)],
)
def test_a_quota_of_priority_classes_binds_the_pods_of_these(
    operator: str, values: list[str], *, binds: bool
):
    line = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    full = quota({"scopeSelector": {"matchExpressions": [line]}}, pods="3")
    assert releases(a_pod(node="spot", priorityClassName="high"), quotas=[full]) != binds


def test_pods_of_another_scope_take_nothing_of_a_quota():
    room = replace(
        quota({"scopes": ["NotBestEffort"]}), left=Resources(cpu=100, memory=2**30, pods=1)
    )
    small = a_pod("web-0", node="spot", cpu=None, memory=None)
    assert releases(small, a_pod("web-1", node="spot"), quotas=[room]) == 2


@pytest.mark.parametrize(("cpu_m", "released"), [(1000, 0), (500, 1), (100, 1)])
def test_a_quota_has_to_hold_what_the_template_of_a_resized_pod_asks_for(cpu_m: int, released: int):
    room = replace(quota({}), left=Resources(cpu=600, memory=2**40, pods=9))
    deployment = a_deployment(replicas=1)
    asks = replace(deployment.scheduling, requests=Resources(cpu=cpu_m))
    pod = a_pod("web-0", node="spot", cpu="500m")
    assert releases(pod, workload=replace(deployment, scheduling=asks), quotas=[room]) == released


@pytest.mark.parametrize(
    ("hard", "released"),
    [
        ({"requests.nvidia.com/gpu": "4"}, 0),
        ({"requests.ephemeral-storage": "4Gi"}, 0),
        ({"requests.storage": "4Gi"}, 1),
        ({"count/secrets": "4"}, 1),
        ({}, 1),
    ],
)
def test_a_quota_limits_what_it_names_and_nothing_else(hard: dict[str, str], released: int):
    asks = {"nvidia.com/gpu": "1", "ephemeral-storage": "1Gi", "cpu": "1"}
    containers = [{"name": "main", "resources": {"requests": asks}}]
    pod = a_pod("web-0", node="spot", containers=containers)
    assert releases(pod, quotas=[quota({}, **hard)]) == released


# Volumes, devices, nodes


def test_a_replacement_gets_new_ephemeral_volumes_in_any_zone():
    pod = a_pod("web-0", node="spot", volumes=SCRATCH)
    claims = {("default", "web-0-scratch"): a_claim("web-0-scratch", zone=ZONE_A)}
    seen = looked(
        [interrupted("spot", zone=ZONE_A), a_node("od", zone=ZONE_B)],
        [pod],
        [a_deployment(replicas=1)],
        claims=claims,
    )
    assert len(actions(plan_drain(seen, noon(1)), Release)) == 1


def test_a_pod_that_waits_goes_where_its_own_ephemeral_volume_was_made():
    assert a_pod("web-0", volumes=SCRATCH).scheduling.claims == ("web-0-scratch",)


def test_a_pod_that_claims_devices_is_never_taken_to_fit():
    devices = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    waiting = a_pod("web-1", owner=("ReplicaSet", "web-abc"), **devices)
    pods = [a_pod("web-0", node="spot", **devices), waiting]
    seen = looked(
        [interrupted("spot"), a_node("od")],
        pods,
        [a_deployment(replicas=2, template={"containers": [], **devices})],
        groups=[a_group()],
    )
    plan = plan_drain(seen, noon(1))
    assert actions(plan, Grow) == []
    assert any("cannot allocate all claims" in words for words in str(plan).split("\n"))


def test_a_pod_whose_template_names_its_node_stays_there_and_the_plan_says_so():
    pod = a_pod("web-0", node="spot")
    template = {"containers": [], "nodeName": "spot"}
    seen = looked(
        [interrupted("spot"), a_node("od")], [pod], [a_deployment(replicas=1, template=template)]
    )
    plan = plan_drain(seen, noon(110))
    assert [a for a in plan.actions if isinstance(a, Evict | Release)] == []
    assert "names the node" in str(plan)


def test_a_pod_that_stands_elsewhere_than_its_template_names_is_moved():
    template = {"containers": [], "nodeName": "od"}
    pod = a_pod("web-0", node="spot")
    assert releases(pod, workload=a_deployment(replicas=1, template=template)) == 1


# Containers


def test_the_ports_of_a_sidecar_are_taken_on_the_host():
    sidecar = {"name": "proxy", "restartPolicy": "Always", "ports": [{"hostPort": 15021}]}
    once = {"name": "setup", "ports": [{"hostPort": 80}]}
    assert a_pod(initContainers=[sidecar, once]).scheduling.host_ports == (("TCP", 15021, ""),)


def test_a_sidecar_that_sleeps_before_it_stops_may_need_the_whole_grace_period():
    hook = {"preStop": {"sleep": {"seconds": 60}}}
    sidecar = {"name": "proxy", "restartPolicy": "Always", "lifecycle": hook}
    assert a_pod(initContainers=[sidecar]).hook_seconds == 60
    assert a_pod(initContainers=[{"name": "setup", "lifecycle": hook}]).hook_seconds is None


@pytest.mark.parametrize(("policy", "seconds"), [("Always", None), ("OnFailure", 20)])
def test_a_sidecar_that_was_restarted_says_nothing_of_the_time_to_start(
    policy: str, seconds: int | None
):
    pod = pod_json(node="a", initContainers=[{"name": "proxy", "restartPolicy": policy}])
    pod["status"] = {
        "phase": "Running",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "2026-01-02T12:00:00Z",
            },
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T12:00:20Z"},
        ],
        "initContainerStatuses": [{"name": "proxy", "restartCount": 1}],
    }
    assert parse_pod(pod).start_seconds == seconds


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"resources": {}, "allocatedResources": {"cpu": "3"}}, 3000),
        ({"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "3"}}, 4000),
        ({"resources": {}, "allocatedResources": {"cpu": "1"}}, 2000),
        ({"allocatedResources": {"cpu": "3"}}, 2000),
    ],
)
def test_a_container_that_is_resized_takes_the_larger_of_what_it_asks_for_and_what_it_holds(
    status: dict[str, Any], cpu: int
):
    pod = pod_json(node="a", cpu="2")
    pod["status"]["containerStatuses"] = [{"name": "main", **status}]
    assert parse_pod(pod).scheduling.requests.cpu == cpu


@pytest.mark.parametrize(("reason", "cpu"), [("Deferred", 2000), ("Infeasible", 500)])
def test_a_resize_for_which_a_node_is_too_small_counts_for_nothing(reason: str, cpu: int):
    pod = pod_json(node="a", cpu="2")
    requests = {"cpu": "500m"}
    held = {"resources": {"requests": requests}, "allocatedResources": requests}
    pod["status"]["containerStatuses"] = [{"name": "main", **held}]
    pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    assert parse_pod(pod).scheduling.requests.cpu == cpu


# Budgets and ordinals


@pytest.mark.parametrize("leader", ["web-0", "web-1", "web-2"])
def test_the_budget_of_a_leader_keeps_no_other_member_from_leaving_in_time(leader: str):
    pods = [
        replace(p, labels={**p.labels, "role": "leader"}) if p.name == leader else p
        for p in pods_of("web", 3, node="spot", grace_seconds=300)
    ]
    stated = [replace(p, hook_seconds=0) for p in pods]
    kept = a_budget("leader", selector={"matchLabels": {"role": "leader"}}, minAvailable=1)
    web = a_deployment(replicas=3, strategy={"rollingUpdate": {"maxUnavailable": 1}})
    seen = looked([interrupted("spot"), a_node("od")], stated, [web], budgets=[kept])
    evicted = {a.pod.name for a in actions(plan_drain(seen, noon(1)), Evict)}
    assert evicted
    assert leader not in evicted


def test_the_next_member_of_a_stateful_set_has_the_ordinal_that_is_missing_from_its_start():
    pods = sets_of("db", ["od", "spot"], cpu="6")
    pods = [replace(p, name=f"db-{n}", uid=f"db-{n}") for n, p in zip((5, 7), pods, strict=True)]
    seen = looked(
        [interrupted("spot"), a_node("od")],
        pods,
        [a_stateful_set("db", replicas=3, ordinals={"start": 5})],
    )
    assert seen.workload[DB].first_ordinal == 5
    assert [pod.name for pod in returning(seen)] == ["db-6"]
