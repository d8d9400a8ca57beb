"""What the first node of a group would have, which pods are demand, and what goes away by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.nodegroups.asg import capacity_of, disk_gib
from plimsoll.adapters.nodegroups.templates import from_instance_types, from_nodes, from_tags
from plimsoll.domain.actions import Grow
from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import Pod, Requirement, Resources, Taint
from plimsoll.domain.node_groups import Expectation, NodeGroup, expected_nodes
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, a_deployment, a_group, a_node, a_pod
from tests.support.observations import actions, interrupted, looked, noon

LARGE = {
    "InstanceType": "m5.large",
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 8192},
}
GIB = 2**30
ARCH = "kubernetes.io/arch"
CPUS = "karpenter.k8s.aws/instance-cpu"
CATEGORY = "karpenter.k8s.aws/instance-category"
FAMILY = "karpenter.k8s.aws/instance-family"
COUNT = "karpenter.k8s.aws/instance-gpu-count"
TYPE = "node.kubernetes.io/instance-type"


def grown(group: NodeGroup, pod: Pod) -> int:
    plan = plan_growth(ClusterSnapshot([], []), [pod], [group], upcoming={}, now=NOON)
    return sum(growth.add for growth in plan.growths)


@pytest.mark.parametrize(
    ("disk", "amount", "nodes"), [(20, "16Gi", 1), (20, "18Gi", 0), (80, "60Gi", 1)]
)
def test_an_empty_group_is_asked_for_pods_that_request_ephemeral_storage(
    disk: int, amount: str, nodes: int
):
    asks = {"cpu": "1", "ephemeral-storage": amount}
    pod = a_pod(containers=[{"name": "main", "resources": {"requests": asks}}])
    template = from_instance_types([LARGE], {}, disk_gib=disk)
    assert grown(replace(a_group(), template=template), pod) == nodes


def test_a_group_of_which_tags_tell_runs_linux_and_has_a_volume():
    tags = {
        f"k8s.io/cluster-autoscaler/node-template/resources/{n}": "4" for n in ("cpu", "memory")
    }
    told = from_tags(tags, None)
    assert told is not None
    assert told.labels == {"kubernetes.io/os": "linux"}
    assert dict(told.allocatable.extended)["ephemeral-storage"] == 17 * GIB


def test_the_chips_of_an_instance_type_are_known_before_their_plugin_reports():
    chips = [{"Count": 2, "CoreInfo": {"Count": 2}}]
    told = from_instance_types([{**LARGE, "NeuronInfo": {"NeuronDevices": chips}}], {})
    assert told is not None
    devices = dict(told.allocatable.extended)
    assert (devices["aws.amazon.com/neuron"], devices["aws.amazon.com/neuroncore"]) == (2, 4)


def test_a_node_whose_device_plugin_has_not_reported_hides_no_device_of_its_group():
    known = from_nodes([a_node("a", extended={"nvidia.com/gpu": "4"}), a_node("b")])
    assert known is not None
    assert dict(known.allocatable.extended) == {"nvidia.com/gpu": 4}


@pytest.mark.parametrize(
    "key",
    [
        "node.cilium.io/agent-not-ready",
        "ignore-taint.cluster-autoscaler.kubernetes.io/gpu",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
        "efs.csi.aws.com/agent-not-ready",
        "node.cluster.x-k8s.io/uninitialized",
    ],
)
def test_a_taint_of_the_start_up_bars_no_group_and_lets_its_node_be_waited_for(key: str):
    taint = Taint(key=key, effect="NoExecute")
    assert grown(a_group(taints=[taint]), a_pod()) == 1
    node = replace(a_node("new"), taints=(taint,))
    group = a_group(desired=1, instances=[node.instance or ""])
    assert expected_nodes(group, [node], NOON).upcoming == 1


def test_a_node_is_waited_for_ten_minutes_after_it_was_ready_until_its_device_plugin_reports():
    node = replace(
        a_node("new"),
        created=NOON - timedelta(minutes=12),
        ready_since=NOON - timedelta(minutes=10),
    )
    instance = node.instance or ""
    group = a_group(desired=1, instances=[instance])
    group = replace(group, launched={instance: NOON - timedelta(minutes=13)})
    assert group.template is not None
    large = replace(group.template.allocatable, extended=(("nvidia.com/gpu", 1),))
    group = replace(group, template=replace(group.template, allocatable=large))
    assert expected_nodes(group, [node], NOON) == Expectation(upcoming=1)
    assert expected_nodes(group, [node], NOON + timedelta(seconds=1)).upcoming == 0
    ready = replace(node, allocatable=large)
    assert expected_nodes(group, [ready], NOON).upcoming == 0
    slices = replace(large, extended=(("nvidia.com/mig-1g.10gb", 7),))
    assert expected_nodes(group, [replace(node, allocatable=slices)], NOON).upcoming == 0
    failed = {"nvidia.com/mig.config.state": "failed"}
    assert expected_nodes(group, [replace(node, labels=failed)], NOON).upcoming == 0


def rule(operator: str, *values: str, key: str = ARCH) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("rules", "selector", "nodes"),
    [
        ([rule("In", "amd64", "arm64")], {ARCH: "arm64"}, 1),
        ([rule("Exists")], {ARCH: "arm64"}, 1),
        ([], {ARCH: "arm64"}, 1),
        ([rule("NotIn", "arm64")], {ARCH: "arm64"}, 0),
        ([rule("In", "amd64", "arm64")], {ARCH: "riscv64"}, 0),
        ([rule("Gt", "3", key=CPUS)], {}, 1),
        (
            [rule("Gt", "3", key=CPUS)],
            {CPUS: "8"},
            1,
        ),
        ([rule("Gte", "8", key=CPUS)], {CPUS: "8"}, 1),
        ([rule("Gte", "8", key=CPUS)], {CPUS: "7"}, 0),
        ([rule("Lte", "8", key=CPUS)], {CPUS: "8"}, 1),
        ([rule("Lte", "8", key=CPUS)], {CPUS: "9"}, 0),
        ([rule("Lte", "8", key=CPUS)], {CPUS: "many"}, 0),
        ([], {"team": "shop"}, 0),
        ([rule("Exists", key="team")], {"team": "shop"}, 1),
    ],
)
def test_a_node_pool_gives_every_label_that_its_requirements_allow(
    rules: list[Requirement], selector: dict[str, str], nodes: int
):
    group = a_group()
    assert group.template is not None
    pool = replace(group, template=replace(group.template, choices=tuple(rules)))
    assert grown(pool, a_pod(nodeSelector=selector)) == nodes


def a_pool(*rules: Requirement) -> NodeGroup:
    """A NodePool without nodes: the largest node of the cluster stands in, which has no GPU."""
    group = a_group("gpu", kind="karpenter")
    assert group.template is not None
    template = replace(group.template, choices=rules)
    return replace(group, template=template, provisions=True)


def a_gpu_pod(amount: int = 1, *, device: str = "nvidia.com/gpu", cpu: str = "30") -> Pod:
    asks = {"cpu": cpu, device: str(amount)}
    return a_pod("inf-0", node="gpu-1", containers=[{"name": "c", "resources": {"requests": asks}}])


@pytest.mark.parametrize(
    ("rules", "takes"),
    [
        ([], True),
        ([rule("In", "g5", "g6", key=FAMILY)], True),
        ([rule("In", "g5", key="eks.amazonaws.com/instance-family")], True),
        ([rule("In", "g", "p", key=CATEGORY)], True),
        ([rule("In", "g5.12xlarge", key=TYPE)], True),
        ([rule("Gt", "0", key=COUNT)], True),
        ([rule("Gte", "2", key=COUNT)], True),
        ([rule("In", "nvidia", key="karpenter.k8s.aws/instance-gpu-manufacturer")], True),
        ([rule("NotIn", "g5", key=FAMILY)], True),
        ([rule("In", "c5", "m5", key=FAMILY)], False),
        ([rule("In", "g4ad", key=FAMILY)], False),  # of AMD
        ([rule("In", "c", "m", "r", key=CATEGORY)], False),
        ([rule("In", "c5.large", key=TYPE)], False),
        ([rule("DoesNotExist", key=COUNT)], False),
        ([rule("Lte", "1", key=COUNT)], False),
        ([rule("In", "amd", key="karpenter.k8s.aws/instance-gpu-manufacturer")], False),
    ],
)
def test_a_node_pool_without_gpu_nodes_makes_one_for_a_pod_if_its_requirements_allow(
    rules: list[Requirement], *, takes: bool
):
    pod = a_gpu_pod(2)
    groups = [a_pool(*rules)]
    plan = plan_growth(ClusterSnapshot([], []), [pod], groups, upcoming={}, now=NOON)
    assert (pod.uid in plan.placed) == takes
    if not takes:
        assert "gpu: its nodes are not known to have nvidia.com/gpu" in plan.unplaceable[pod.uid]


@pytest.mark.parametrize(("family", "takes"), [("inf2", True), ("trn1", True), ("g5", False)])
def test_chips_come_with_families_of_their_own(family: str, *, takes: bool):
    pod = a_gpu_pod(device="aws.amazon.com/neuron")
    groups = [a_pool(rule("In", family, key=FAMILY))]
    plan = plan_growth(ClusterSnapshot([], []), [pod], groups, upcoming={}, now=NOON)
    assert (pod.uid in plan.placed) == takes


def gpu_group() -> NodeGroup:
    """A managed group of GPU nodes that may grow."""
    group = a_group("gpu-managed")
    assert group.template is not None
    large = Resources(cpu=48_000, memory=2**38, pods=110, extended=(("nvidia.com/gpu", 4),))
    return replace(group, template=replace(group.template, allocatable=large))


@pytest.mark.parametrize(("closed", "bought"), [(None, 0), ("it is not Ready (no AMI)", 1)])
def test_no_gpu_node_is_bought_where_karpenter_makes_one(closed: str | None, bought: int):
    pool = replace(a_pool(rule("In", "g5", key=FAMILY)), closed=closed)
    gone = interrupted("gpu-1", extended={"nvidia.com/gpu": "1"})
    pods = [a_gpu_pod(cpu="1")]
    seen = looked([gone], pods, [a_deployment("inf", replicas=1)], groups=[pool, gpu_group()])
    assert sum(g.add for g in actions(plan_drain(seen, noon(1)), Grow)) == bought
    alone = looked([gone], pods, [a_deployment("inf", replicas=1)], groups=[pool])
    waits = " ".join(
        word for words in plan_drain(alone, noon(1)).waiting.values() for word in words
    )
    assert (f"gpu: {closed}" in waits) == (closed is not None)


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [({}, 1), ({"schedulerName": "volcano"}, 0), ({"schedulingGates": [{"name": "g"}]}, 0)],
)
def test_only_pods_that_kube_scheduler_would_place_are_demand(spec: dict[str, Any], nodes: int):
    waiting = a_pod("batch", owner=("Job", "batch"), cpu="7", **spec)
    web = a_pod("web-0", node="spot", cpu="7")
    seen = looked(
        [interrupted("spot")], [web, waiting], [a_deployment(replicas=1)], groups=[a_group()]
    )
    assert sum(g.add for g in actions(plan_drain(seen, noon(1)), Grow)) == 1 + nodes


@pytest.mark.parametrize(
    "labels",
    [
        {"karpenter.sh/capacity-type": "reserved"},
        {"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"},
    ],
)
def test_a_node_of_reserved_capacity_is_no_spot_node(labels: dict[str, str]):
    assert a_node(capacity=None, labels=labels).capacity == "on-demand"


def test_an_auto_scaling_group_of_a_capacity_block_is_no_spot_group():
    data = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
    assert capacity_of({}, data, {}) == "on-demand"


@pytest.mark.parametrize(("os", "nodes"), [("windows", 1), ("linux", 0)])
def test_an_empty_group_whose_tags_say_windows_is_asked_for_windows_pods(os: str, nodes: int):
    tags = {"k8s.io/cluster-autoscaler/node-template/label/kubernetes.io/os": "windows"}
    template = from_tags(tags, from_instance_types([LARGE], {}))
    pod = a_pod(nodeSelector={"kubernetes.io/os": os})
    assert grown(replace(a_group(), template=template), pod) == nodes


@pytest.mark.parametrize(
    ("volumes", "gib"),
    [([{"Ebs": {"VolumeSize": 80}}, {"Ebs": {"VolumeSize": 8}}], 80), ([{"VirtualName": "x"}], 20)],
)
def test_the_disk_of_a_launch_template_is_its_largest_volume(volumes: list[Any], gib: int):
    assert disk_gib({"BlockDeviceMappings": volumes}) == gib
