"""What the agent tells of a cluster, out of the objects that the API server lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec
import pytest

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, MissingRights, Temporary
from plimsoll_agent.calls import TOLD
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.taint_forwarder import _interrupted
from plimsoll_agent.wire_values import word
from plimsoll_service.wire.snapshot import (
    MOST_CONTAINERS,
    Amounts,
    Bounds,
    Container,
    ContainerUsage,
    LimitRanges,
    Owner,
    Restarted,
    Snapshot,
    Usage,
    Workload,
    decode,
    encode,
)
from plimsoll_service.wire.taints import FORWARDED
from tests.support.builders import NOON, node_json, pod_json, pod_spec_json
from tests.support.cli_environment import StillClock

CREATED = "2026-01-02T10:00:00Z"
METRICS = "/apis/metrics.k8s.io/v1beta1"
SECRET = "hunter2"


class Listed:
    """An API server that lists what it was given, by path; 404 for every other kind."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists
        self.refused: dict[str, int] = {}

    def call(self, method: str, path: str, **request: Any) -> Response:
        if path == "/version":
            return Response(status=200, body={"gitVersion": "v1.36.3"})
        kind = path.rpartition("/")[2]
        key = f"used_{kind}" if path.startswith(METRICS) else kind
        if key in self.refused:
            return Response(status=self.refused[key], body={"message": "no"})
        if key not in self.lists:
            return Response(status=404, body={"message": "no such kind"})
        content = msgspec.json.encode({"items": self.lists[key], "metadata": {}})
        return Response(status=200, content=content)


def an_object(name: str, *, namespace: str = "shop", owner: Any = None, **parts: Any) -> Any:
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
    }
    meta |= {"creationTimestamp": CREATED, "annotations": parts.pop("annotations", {})}
    meta |= {"labels": parts.pop("labels", {})}
    if owner is not None:
        kind, of = owner
        reference = {"kind": kind, "name": of, "uid": f"uid-{of}", "controller": True}
        meta["ownerReferences"] = [reference]
    return {"metadata": meta, **parts}


def a_template(**spec: Any) -> Any:
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec_json(cpu="500m", **spec)}


def a_pod(name: str, owner: tuple[str, str] | None, **spec: Any) -> Any:
    pod = pod_json(name, namespace="shop", node="node-1", owner=owner, **spec)
    if owner is not None:
        pod["metadata"]["ownerReferences"][0]["uid"] = f"uid-{owner[1]}"
    return pod


def with_statuses(pod: Any) -> Any:
    killed = {"terminated": {"reason": "OOMKilled", "finishedAt": CREATED}}
    pod["status"]["containerStatuses"] = [{"name": "main", "restartCount": 1, "lastState": killed}]
    return pod


def used_by(container: str, cpu: str) -> Any:
    return {"name": container, "usage": {"cpu": cpu, "memory": "64Mi"}}


LIMITS: Final = {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "2"}}


def a_shop() -> Listed:
    web = {"replicas": 3, "template": a_template(), "selector": {}}
    service = {"type": "LoadBalancer"}
    balanced = {"loadBalancer": {"ingress": [{"hostname": "a.elb.amazonaws.com"}]}}
    return Listed(
        nodes=[node_json(labels={"team": SECRET}, annotations={"note": SECRET})],
        pods=[
            with_statuses(a_pod("web-1", ("ReplicaSet", "web-abc"))),
            a_pod("nightly-1", ("Job", "nightly-7")),
        ],
        namespaces=[an_object("shop", annotations={"plimsoll.dev/min-on-demand": "20%"})],
        deployments=[an_object("web", spec=web, status={"readyReplicas": 2})],
        replicasets=[an_object("web-abc", owner=("Deployment", "web"), spec=web)],
        jobs=[an_object("nightly-7", owner=("CronJob", "nightly"))],
        cronjobs=[an_object("nightly", spec={"jobTemplate": {"spec": {"template": a_template()}}})],
        poddisruptionbudgets=[
            an_object(
                "web", spec={"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
            )
        ],
        horizontalpodautoscalers=[
            an_object(
                "web",
                spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9},
            )
        ],
        services=[
            an_object("shop", spec=service, status=balanced),
            an_object("inner", spec={"type": "ClusterIP"}),
        ],
        endpointslices=[
            an_object(
                "shop-x",
                labels={"kubernetes.io/service-name": "shop"},
                endpoints=[{"conditions": {"ready": True}}, {"conditions": {"ready": False}}],
            )
        ],
        used_nodes=[an_object("node-1", usage={"cpu": "1500m", "memory": "1Gi"})],
        used_pods=[
            an_object("web-1", containers=[used_by("main", "250m"), used_by("proxy", "50m")])
        ],
        limitranges=[an_object("limits", spec={"limits": [LIMITS]})],
    )


def snapshot_of(server: Listed, warnings: list[str] | None = None) -> Snapshot:
    heard: list[str] = [] if warnings is None else warnings
    requests = Requests(transport=server, cluster="harbor")
    seen = ClusterReader(requests, SerialWorkers(), StillClock(), heard.append).read()
    found = full_snapshot(seen, cluster_id="c-1", epoch="e-1", sequence=1, now=NOON)
    assert decode(encode(found)) == found  # the service takes it
    return found


def test_pods_are_told_under_the_workload_that_its_owner_wrote() -> None:
    web, nightly = snapshot_of(a_shop()).pods
    assert web.owner == Owner(kind="Deployment", name="web", uid="uid-web")
    assert nightly.owner == Owner(kind="CronJob", name="nightly", uid="uid-nightly")


def test_a_workload_is_told_with_its_counts_its_pods_and_the_floor_of_its_namespace() -> None:
    web = snapshot_of(a_shop()).workloads[0]
    assert (web.kind, web.replicas, web.ready) == ("Deployment", 3, 2)
    assert web.requests == Amounts(cpu_m=500, memory=64 * 2**20)
    requests, limits = Amounts(cpu_m=500, memory=64 * 2**20), Amounts(cpu_m=2000)
    assert web.template == (Container(name="main", requests=requests, limits=limits),)
    assert web.annotations == {"plimsoll.dev/min-on-demand": "20%"}


def test_budgets_autoscalers_and_load_balancers_are_joined_by_uid() -> None:
    found = snapshot_of(a_shop())
    assert found.budgets[0].workloads == ("uid-web", "uid-nightly")
    assert found.autoscalers[0].workload == "uid-web"
    (balancer,) = found.load_balancers
    assert (balancer.name, balancer.provisioned, balancer.ready_endpoints) == ("shop", True, 1)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, "web-vpa"),
        ({"updatePolicy": {"updateMode": "InPlaceOrRecreate"}}, "web-vpa"),
        ({"updatePolicy": {"updateMode": "Initial"}}, "web-vpa"),
        ({"updatePolicy": {"updateMode": "Off"}}, ""),
        ({"targetRef": {"kind": "StatefulSet", "name": "web"}}, ""),
    ],
)
def test_a_workload_is_told_with_the_vertical_autoscaler_that_writes_its_requests(
    spec: Any, told: str
) -> None:
    server = a_shop()
    target = {"targetRef": {"kind": "Deployment", "name": "web"}}
    server.lists["verticalpodautoscalers"] = [an_object("web-vpa", spec={**target, **spec})]
    assert snapshot_of(server).workloads[0].vertical_scaler == told


@pytest.mark.parametrize(
    ("source", "ebs"),
    [
        ({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0a1"}}, "vol-0a1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0a1"}}, "vol-0a1"),
        ({"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-2"}}, ""),
        ({"csi": {"volumeHandle": "vol-0a1; reboot"}}, ""),
        ({"nfs": {"server": "files"}}, ""),
    ],
)
def test_a_volume_is_told_with_its_id_in_ebs_and_the_time_of_its_release(
    source: Any, ebs: str
) -> None:
    server = a_shop()
    spec = {"capacity": {"storage": "8Gi"}, "persistentVolumeReclaimPolicy": "Retain", **source}
    status = {"phase": "Released", "lastPhaseTransitionTime": "2026-01-02T11:00:00Z"}
    server.lists["persistentvolumes"] = [an_object("pv-1", spec=spec, status=status)]
    (volume,) = snapshot_of(server).volumes
    assert (volume.ebs, volume.reclaim) == (ebs, "Retain")
    assert volume.since == datetime(2026, 1, 2, 11, tzinfo=UTC)


def test_usage_is_told_of_each_container_and_as_their_sum() -> None:
    node, pod = snapshot_of(a_shop()).usage
    assert node == Usage(uid="node-node-1", cpu_m=1500, memory=2**30)
    containers = [("main", 250), ("proxy", 50)]
    assert pod == Usage(
        uid="pod-shop-web-1",
        cpu_m=300,
        memory=2**27,
        containers=tuple(
            ContainerUsage(name=name, cpu_m=cpu, memory=2**26) for name, cpu in containers
        ),
    )


def test_of_a_pod_with_very_many_containers_only_their_sum_is_told() -> None:
    server = a_shop()
    many = [used_by(f"c-{number}", "10m") for number in range(MOST_CONTAINERS + 1)]
    server.lists["used_pods"][0]["containers"] = many
    _, pod = snapshot_of(server).usage
    assert (pod.cpu_m, pod.containers) == (210, ())


# --- Containers ------------------------------------------------------------------------------------


def told_template(server: Listed) -> tuple[Container, ...]:
    return snapshot_of(server).workloads[0].template


def spec_of(server: Listed) -> Any:
    return server.lists["deployments"][0]["spec"]["template"]["spec"]


def test_sidecars_are_told_beside_containers_and_other_init_containers_are_not() -> None:
    server = a_shop()
    asks = {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}}
    spec_of(server)["initContainers"] = [
        {"name": "migrate", **asks},
        {"name": "proxy", "restartPolicy": "Always", **asks},
    ]
    _, proxy = told_template(server)
    assert proxy == Container(
        name="proxy",
        sidecar=True,
        requests=Amounts(cpu_m=100, memory=2**30),  # a limit without a request is one
        limits=Amounts(cpu_m=1000, memory=2**30),
    )


def test_containers_are_not_told_where_the_pod_as_a_whole_requests_or_they_are_too_many() -> None:
    whole, many = a_shop(), a_shop()
    spec_of(whole)["resources"] = {"requests": {"cpu": "2"}}
    spec_of(many)["containers"] *= MOST_CONTAINERS + 1
    assert told_template(whole) == told_template(many) == ()


def ended(reason: str, at: str | None = CREATED) -> Any:
    return {"terminated": {"reason": reason, "finishedAt": at, "exitCode": 137}}


def a_status(name: str = "main", restarts: int = 1, **states: Any) -> Any:
    return {"name": name, "restartCount": restarts, **states}


def told_restarts(*statuses: Any, **more: Any) -> tuple[Restarted, ...]:
    server = a_shop()
    server.lists["pods"][0]["status"] |= {"containerStatuses": list(statuses), **more}
    return snapshot_of(server).pods[0].restarted


AT: Final = datetime(2026, 1, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (a_status(restarts=0, state={"running": {}}), None),
        (a_status(lastState=ended("Error")), ("Error", AT)),
        (a_status(lastState=ended("OOMKilled")), ("OOMKilled", AT)),
        (a_status(restarts=0, state=ended("OOMKilled")), ("OOMKilled", AT)),
        (a_status(state=ended("Error"), lastState=ended("OOMKilled")), ("OOMKilled", AT)),
        (a_status(lastState={}), ("", None)),
        (
            a_status(lastState=ended("ContainerStatusUnknown", None)),
            ("ContainerStatusUnknown", None),
        ),
        (a_status(restarts=0, state=ended("Completed")), None),
    ],
    ids=[
        "runs",
        "error",
        "killed",
        "not restarted yet",
        "killed before",
        "forgotten",
        "unknown",
        "done",
    ],
)
def test_containers_that_ended_are_told_with_how_they_ended(status: Any, told: Any) -> None:
    found = [(each.reason, each.at) for each in told_restarts(status)]
    assert found == ([] if told is None else [told])


def test_sidecars_that_ended_are_told_too() -> None:
    (proxy,) = told_restarts(
        initContainerStatuses=[a_status("proxy", lastState=ended("OOMKilled"))]
    )
    assert (proxy.name, proxy.restarts, proxy.reason) == ("proxy", 1, "OOMKilled")


def test_of_very_many_containers_those_that_were_oom_killed_are_told_first() -> None:
    statuses = [a_status(f"a-{number}", lastState=ended("Error")) for number in range(30)]
    found = told_restarts(*statuses, a_status("z", lastState=ended("OOMKilled")))
    assert (found[0].name, len(found)) == ("z", MOST_CONTAINERS)


# --- LimitRanges -----------------------------------------------------------------------------------


def limited_by(*limits: list[Any]) -> Workload:
    server = a_shop()
    server.lists["limitranges"] = [
        an_object(f"limits-{number}", spec={"limits": items}) for number, items in enumerate(limits)
    ]
    return snapshot_of(server).workloads[0]


def test_a_namespace_without_limit_ranges_allows_everything() -> None:
    assert limited_by().limit_ranges == LimitRanges()


def test_the_limit_range_of_its_namespace_is_told_with_a_workload() -> None:
    container = {
        "type": "Container",
        "min": {"cpu": "100m", "memory": "64Mi"},
        "max": {"cpu": "4", "memory": "0"},
        "maxLimitRequestRatio": {"cpu": "1.5", "memory": "2"},
    }
    claim = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    found = limited_by([container, {"type": "Pod", "max": {"memory": "2Gi"}}, claim])
    assert found.limit_ranges == LimitRanges(
        container=Bounds(
            least=Amounts(cpu_m=100, memory=2**26),
            most=Amounts(cpu_m=4000, memory=1),
            ratio=Amounts(cpu_m=1500, memory=2000),
        ),
        pod=Bounds(most=Amounts(memory=2**31)),
    )


def test_of_several_limit_ranges_all_hold_and_those_of_other_namespaces_do_not() -> None:
    server = a_shop()
    items = [{"max": {"cpu": "3"}}, {"max": {"cpu": "2"}}, {"min": {"cpu": "1"}}]
    server.lists["limitranges"] = [
        an_object(f"l-{n}", namespace=where, spec={"limits": [{"type": "Container", **item}]})
        for n, (where, item) in enumerate(zip(["shop", "shop", "dock"], items, strict=True))
    ]
    found = snapshot_of(server).workloads[0].limit_ranges
    assert found == LimitRanges(container=Bounds(most=Amounts(cpu_m=2000)))


def test_defaults_are_told_where_a_container_states_nothing() -> None:
    defaults = {
        "type": "Container",
        "default": {"cpu": "2", "memory": "1Gi"},
        "defaultRequest": {"cpu": "1", "memory": "512Mi"},
    }
    (main,) = limited_by([defaults]).template
    assert main.requests == Amounts(cpu_m=500, memory=2**26)  # its own
    assert main.limits == Amounts(cpu_m=2000, memory=2**30)
    server = a_shop()
    server.lists["limitranges"] = [an_object("limits", spec={"limits": [defaults]})]
    del spec_of(server)["containers"][0]["resources"]
    assert told_template(server)[0].requests == Amounts(cpu_m=1000, memory=2**29)


@pytest.mark.parametrize("spec", [{"limits": [{"max": {"cpu": "many"}}]}, {"limits": 7}])
def test_a_limit_range_that_cannot_be_read_leaves_its_namespace_unknown(spec: Any) -> None:
    server = a_shop()
    server.lists["limitranges"] = [an_object("limits", spec=spec)]
    server.lists["deployments"] += [an_object("pier", namespace="dock", spec={"selector": {}})]
    found = snapshot_of(server)
    assert [w.limit_ranges for w in found.workloads if w.kind == "Deployment"] == [
        None,
        LimitRanges(),
    ]


def test_without_the_right_to_list_limit_ranges_none_are_known_until_it_comes() -> None:
    server, warnings = a_shop(), list[str]()
    server.refused["limitranges"] = 403
    requests = Requests(transport=server, cluster="harbor")
    reader = ClusterReader(requests, SerialWorkers(), StillClock(), warnings.append)
    known = []
    for _ in range(2):
        found = full_snapshot(reader.read(), cluster_id="c", epoch="e", sequence=1, now=NOON)
        known.append(found.workloads[0].limit_ranges is not None)
        server.refused.clear()
    assert known == [False, True]
    assert any("limitranges" in words for words in warnings)


def test_nothing_but_the_allowed_fields_leaves_the_cluster() -> None:
    server = a_shop()
    container = server.lists["pods"][0]["spec"]["containers"][0]
    container |= {"env": [{"name": "A", "value": SECRET}], "args": [SECRET], "command": [SECRET]}
    server.lists["pods"][0]["metadata"]["annotations"] = {"note": SECRET}
    server.lists["pods"][0]["metadata"]["labels"] = {"note": SECRET}
    server.lists["deployments"][0]["metadata"]["annotations"] = {"last-applied": SECRET}
    server.lists["deployments"][0]["spec"]["template"]["spec"]["containers"][0] |= container
    assert SECRET not in msgspec.json.encode(snapshot_of(server)).decode()


@pytest.mark.parametrize("kind", ["cronjobs", "services", "endpointslices", "used_pods"])
@pytest.mark.parametrize("status", [403, 404])
def test_a_kind_that_is_missing_or_not_granted_costs_itself_only(kind: str, status: int) -> None:
    server, warnings = a_shop(), list[str]()
    server.refused[kind] = status
    assert len(snapshot_of(server, warnings).pods) == 2
    assert any(str(status) in words for words in warnings)


@pytest.mark.parametrize(("status", "error"), [(403, MissingRights), (503, Temporary)])
def test_without_pods_there_is_no_snapshot(status: int, error: type[Exception]) -> None:
    server = a_shop()
    server.refused["pods"] = status
    with pytest.raises(error):
        snapshot_of(server)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"uid": ""}},
        {"metadata": {"creationTimestamp": "yesterday"}},
        {"spec": {"restartPolicy": "Sometimes"}},
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "many"}}}]}},
    ],
)
def test_an_object_that_the_service_would_refuse_costs_itself_only(change: Any) -> None:
    server, warnings = a_shop(), list[str]()
    for part, fields in change.items():
        server.lists["pods"][0][part] |= fields
    assert [pod.name for pod in snapshot_of(server, warnings).pods] == ["nightly-1"]
    assert any("web-1" in words for words in warnings)


def test_what_a_pod_demands_of_its_place_is_told_and_that_there_is_more() -> None:
    own = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    other = own | {"labelSelector": {"matchLabels": {"app": "cart"}}}
    placing = []
    for terms in ([own], [own, other]):
        server = a_shop()
        anti = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec = server.lists["deployments"][0]["spec"]["template"]["spec"]
        spec["affinity"] = {"podAntiAffinity": anti}
        placing.append(snapshot_of(server).workloads[0].placing)
    assert [p.apart for p in placing] == [("kubernetes.io/hostname",)] * 2
    assert [p.unstated for p in placing] == [False, True]


def test_every_kind_that_the_agent_reads_is_in_its_table_of_calls() -> None:
    server = a_shop()
    asked = set()
    answer = server.call

    def call(method: str, path: str, **request: Any) -> Response:
        asked.add(path)
        return answer(method, path, **request)

    server.call = call  # type: ignore[method-assign]
    snapshot_of(server)
    usage = {f"{METRICS}/nodes", f"{METRICS}/pods", "/version"}
    assert asked - usage == {call.path() for call in TOLD}


HOSTILE: Final[tuple[Any, ...]] = (
    None,
    -1,
    2**70,
    1e308,
    True,
    "",
    "x" * 5000,
    "\x00",
    "9" * 40,
    [],
    {},
    [[]],
    [None] * 2000,
    {"a": {}},
)


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, as its container and its key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places_in(inner)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_a_tenant_writes_the_service_takes_what_is_told_of_the_others(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        server = a_shop()
        kind = random.choice(sorted(server.lists))
        obj = random.choice(server.lists[kind])
        container, key = random.choice(list(places_in(obj)))
        container[key] = random.choice(HOSTILE)
        told = snapshot_of(server)
        others = {"pods", "replicasets", "deployments", "cronjobs", "jobs", "namespaces"} - {kind}
        if len(others) == 6:
            assert [pod.name for pod in told.pods] == ["web-1", "nightly-1"], (kind, key)
            assert [w.name for w in told.workloads] == ["web", "nightly"], (kind, key)


@pytest.mark.parametrize("instance", ["i-1", "i-0123456789"])
def test_a_node_of_no_instance_is_left_out_of_the_forwarded_taints(instance: str):
    taint = {"key": FORWARDED[0], "value": "", "effect": "NoSchedule"}
    with pytest.raises(BadInput, match="no instance"):
        _interrupted(node_json("a", instance=instance, taints=(taint,)))
    known = "i-0123456789abcdef0"
    assert _interrupted(node_json("a", instance=known, taints=(taint,))) == known


def test_a_reason_or_a_version_that_is_no_word_is_not_told():
    assert word("OOMKilled") == "OOMKilled"
    assert word("v1.36.0-eks-2d5f260") == "v1.36.0-eks-2d5f260"
    assert [word(text) for text in ("a b", "\x1b[31m", "x" * 65)] == [""] * 3
