"""Node groups of both kinds, over moto; LaunchInstances, which moto does not know, is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.adapters.nodegroups.account import TEMPLATE_KEPT, Account
from plimsoll.adapters.nodegroups.asg import hooks_of
from plimsoll.adapters.nodegroups.launches import Launches, launches_of
from plimsoll.domain.errors import BadInput, Conflict, NotFound, Refused, Temporary, Throttled
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node, Resources, Taint
from plimsoll.domain.node_groups import NodeGroup, NotGrown

from .conftest import REGION, T0, Answers, FakeClock, refused

OWNED = "kubernetes.io/cluster/shop"
OPTED_IN = {OWNED: "owned", "plimsoll.dev/grow": "true"}
TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
GIB = 2**30


@pytest.fixture
def groups(moto_aws: Aws, clock: FakeClock, warnings: list[str]) -> AwsNodeGroups:
    # moto stumbles over a cluster that it does not know; EKS says so.
    unknown = refused("ResourceNotFoundException", "No cluster found for name: shop.", 404)
    Answers(moto_aws, "eks", "ListNodegroups", unknown)
    return AwsNodeGroups(moto_aws, "shop", clock, api=empty, warn=warnings.append)


class Empty:
    """A cluster that serves no API of any kind of node group."""

    def call(self, *_request: object, **_more: object) -> Response:
        return Response(status=404, body={"reason": "NotFound", "message": "no such resource"})


def empty() -> Requests:
    return Requests(transport=Empty(), cluster="shop")


def template(aws: Aws, name: str = "machines", **data: Any) -> dict[str, str]:
    data = {"InstanceType": "m5.large", "ImageId": "ami-12c6146b"} | data
    aws.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)  # type: ignore[arg-type] # typed by name
    return {"LaunchTemplateName": name, "Version": "$Latest"}


def asg(aws: Aws, name: str = "web", tags: Mapping[str, str] | None = None, **more: Any) -> None:
    arguments: dict[str, Any] = {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 10,
        "DesiredCapacity": 0,
        "AvailabilityZones": [f"{REGION}a", f"{REGION}b"],
        "Tags": [
            {"Key": key, "Value": value, "PropagateAtLaunch": True}
            for key, value in (OPTED_IN if tags is None else tags).items()
        ],
    } | more
    if not {"LaunchTemplate", "MixedInstancesPolicy"} & set(more):
        arguments["LaunchTemplate"] = template(aws, f"lt-{name}")
    aws.autoscaling.create_auto_scaling_group(**arguments)


def node(name: str, instance: str | None, **more: Any) -> Node:
    known: dict[str, Any] = {
        "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": f"{REGION}a",
            "node.kubernetes.io/instance-type": "m5.large",
            "team": "shop",
        },
        "allocatable": Resources(cpu=1900, memory=7 * GIB, pods=29),
        "created": T0,
    }
    return Node(name=name, uid=name, resource_version="1", instance=instance, **(known | more))


def the_group(groups: AwsNodeGroups, *nodes: Node) -> NodeGroup:
    (group,) = groups.list(nodes)
    return group


def desired(aws: Aws, name: str = "web") -> int:
    (found,) = aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return found["DesiredCapacity"]


# Which groups there are


def test_groups_are_found_by_either_tag_and_no_others(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    asg(moto_aws, "owned")
    asg(moto_aws, "scaled", {"k8s.io/cluster-autoscaler/shop": "owned"})
    asg(moto_aws, "other", {"kubernetes.io/cluster/other": "owned"})
    asg(moto_aws, "managed", {OWNED: "owned", "eks:nodegroup-name": "x"})
    asg(moto_aws, "untagged", {})
    assert [(g.kind, g.name) for g in groups.list([])] == [("asg", "owned"), ("asg", "scaled")]


@pytest.mark.parametrize(("owner", "found"), [("shop", ["web"]), ("other", [])])
def test_a_group_that_clusters_share_is_that_of_the_one_that_owns_it(
    moto_aws: Aws, groups: AwsNodeGroups, owner: str, found: list[str]
) -> None:
    shared = {f"kubernetes.io/cluster/{name}": "shared" for name in ("other", "shop")}
    asg(moto_aws, tags=shared | {f"kubernetes.io/cluster/{owner}": "owned"})
    assert [group.name for group in groups.list([])] == found


def test_groups_are_read_page_by_page(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    launch = template(moto_aws)
    for i in range(60):
        asg(moto_aws, f"g{i:02}", LaunchTemplate=launch)
    assert len(groups.list([])) == 60


def test_a_group_says_its_sizes_zones_and_instances(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    asg(moto_aws, DesiredCapacity=3, MinSize=1)
    group = the_group(groups)
    assert (group.desired, group.min_size, group.max_size, group.addable_nodes) == (3, 1, 10, 7)
    assert group.zones == (f"{REGION}a", f"{REGION}b")
    assert len(group.instances) == 3
    assert group.zone_of.keys() == group.instances
    assert {*group.zone_of.values()} <= {*group.zones}
    assert group.instance_types == ("m5.large",)
    assert (group.capacity, group.launchable) == ("on-demand", True)


def test_instances_on_their_way_out_are_not_the_groups_any_more(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    states = ("InService", "Pending:Wait", "Terminating:Wait", "Standby", "Warmed:Stopped")
    found = {
        "AutoScalingGroupName": "web",
        "MinSize": 0,
        "MaxSize": 9,
        "DesiredCapacity": 2,
        "AvailabilityZones": ["z"],
        "Instances": [{"InstanceId": f"i-{s}", "LifecycleState": s} for s in states],
    }
    Answers(moto_aws, "autoscaling", "DescribeAutoScalingGroups", {"AutoScalingGroups": [found]})
    assert the_group(groups).instances == {"i-InService", "i-Pending:Wait"}


def mixed(launch: dict[str, str], *types: str, **distribution: Any) -> dict[str, Any]:
    return {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": launch,
            "Overrides": [{"InstanceType": t} for t in types],
        },
        "InstancesDistribution": distribution,
    }


@pytest.mark.parametrize(
    ("distribution", "capacity", "launchable"),
    [
        ({"OnDemandPercentageAboveBaseCapacity": 0}, "spot", True),
        (
            {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
            "spot",
            False,
        ),
        ({"OnDemandPercentageAboveBaseCapacity": 50}, "spot", False),
        ({"OnDemandPercentageAboveBaseCapacity": 100}, "on-demand", True),
        ({}, "on-demand", True),
    ],
)
def test_a_mix_is_on_demand_only_when_all_of_it_is_and_launched_at_once_unless_it_is_both(
    moto_aws: Aws,
    groups: AwsNodeGroups,
    distribution: dict[str, int],
    capacity: str,
    *,
    launchable: bool,
) -> None:
    policy = mixed(template(moto_aws), "m5.large", "c5.large", **distribution)
    asg(moto_aws, MixedInstancesPolicy=policy)
    group = the_group(groups)
    assert (group.capacity, group.launchable) == (capacity, launchable)
    assert group.instance_types == ("m5.large", "c5.large")


def test_a_launch_template_may_ask_for_spot(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    launch = template(moto_aws, InstanceMarketOptions={"MarketType": "spot"})
    asg(moto_aws, LaunchTemplate=launch)
    assert the_group(groups).capacity == "spot"


def test_a_tag_tells_the_capacity_where_the_template_cannot_be_read(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws, tags={OWNED: "owned", f"{TEMPLATE}/label/karpenter.sh/capacity-type": "spot"})
    Answers(moto_aws, "ec2", "DescribeLaunchTemplateVersions", refused("UnauthorizedOperation"))
    assert the_group(groups).capacity == "spot"


def test_a_launch_template_is_read_once_in_a_while(
    moto_aws: Aws, groups: AwsNodeGroups, clock: FakeClock
) -> None:
    asg(moto_aws)
    asked = Answers(moto_aws, "ec2", "DescribeLaunchTemplateVersions", None)
    groups.list([])
    groups.list([])
    assert asked.calls == 1
    clock.sleep(TEMPLATE_KEPT.total_seconds())
    groups.list([])
    assert asked.calls == 2


def test_each_version_of_a_launch_template_is_read_for_itself(
    moto_aws: Aws, clock: FakeClock
) -> None:
    name = template(moto_aws)["LaunchTemplateName"]
    moto_aws.ec2.create_launch_template_version(
        LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "c5.large"}
    )
    account = Account(moto_aws, clock)

    types = [
        account.launch_template({"LaunchTemplateName": name} | version)["InstanceType"]
        for version in ({}, {"Version": "2"}, {"Version": "1"}, {"Version": "$Latest"})
    ]
    assert types == ["m5.large", "c5.large", "m5.large", "c5.large"]


@pytest.mark.parametrize(("suspended", "headroom"), [("Launch", 0), ("AZRebalance", 8)])
def test_a_group_that_may_not_launch_has_no_headroom(
    moto_aws: Aws, groups: AwsNodeGroups, suspended: str, headroom: int
) -> None:
    asg(moto_aws, DesiredCapacity=2)
    moto_aws.autoscaling.suspend_processes(AutoScalingGroupName="web", ScalingProcesses=[suspended])
    group = the_group(groups)
    assert (group.addable_nodes, group.launches) == (headroom, headroom > 0)


def test_instances_of_a_warm_pool_are_counted_and_come_by_a_larger_size_only(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws)
    (found,) = moto_aws.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    warm = {"WarmPoolConfiguration": {"PoolState": "Stopped"}, "WarmPoolSize": 3}
    Answers(
        moto_aws, "autoscaling", "DescribeAutoScalingGroups", {"AutoScalingGroups": [found | warm]}
    )
    group = the_group(groups)
    assert (group.warm, group.launchable) == (3, False)


def test_a_group_says_whether_it_replaces_instances_by_itself(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws, "calm")
    asg(moto_aws, "rebalancing", CapacityRebalance=True)
    assert [group.rebalances for group in groups.list([])] == [False, True]


# What a new node will be like


def test_a_new_node_is_like_the_old_ones_but_for_name_zone_and_state(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws, DesiredCapacity=2)
    first, second = sorted(the_group(groups).instances)
    mine = Taint(key="dedicated", value="shop")
    passing = (
        Taint(key="plimsoll.dev/interruption", value="spot-interruption"),
        Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
    )
    small = Resources(cpu=1500, memory=6 * GIB, pods=29)
    group = the_group(
        groups,
        node("a", first, taints=(mine, *passing), created=T0 + timedelta(hours=1)),
        node("b", second, taints=(mine,), allocatable=small),
        node("stranger", "i-stranger", allocatable=Resources(cpu=1, memory=1, pods=1)),
    )
    assert group.template is not None
    assert group.template.labels == {
        "node.kubernetes.io/instance-type": "m5.large",
        "team": "shop",
    }
    assert group.template.taints == (mine,)
    assert group.template.allocatable == small


def test_tags_and_the_instance_type_tell_of_a_group_without_nodes(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    tags = {
        OWNED: "owned",
        f"{TEMPLATE}/label/team": "shop",
        f"{TEMPLATE}/taint/dedicated": "shop:NoSchedule",
        f"{TEMPLATE}/resources/ephemeral-storage": "20Gi",
    }
    asg(moto_aws, tags=tags)
    told = the_group(groups).template
    assert told is not None
    assert told.labels == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/capacity": "on-demand",
        "node.kubernetes.io/instance-type": "m5.large",
        "team": "shop",
    }
    assert told.taints == (Taint(key="dedicated", value="shop", effect="NoSchedule"),)
    # m5.large: 2 cores, 8 GiB, 3 interfaces with 10 addresses each.
    assert (told.allocatable.cpu, told.allocatable.pods) == (1930, 29)
    assert 6.5 * GIB < told.allocatable.memory < 7 * GIB
    assert told.allocatable.extended == (("ephemeral-storage", 20 * GIB),)


def test_tags_alone_are_enough_when_they_name_cpu_and_memory(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    tags = {
        OWNED: "owned",
        f"{TEMPLATE}/resources/cpu": "4",
        f"{TEMPLATE}/resources/memory": "16Gi",
    }
    asg(moto_aws, tags=tags)
    Answers(moto_aws, "ec2", "DescribeInstanceTypes", refused("UnauthorizedOperation"))
    told = the_group(groups).template
    assert told is not None
    assert (told.allocatable.cpu, told.allocatable.memory) == (4000, 16 * GIB)


def test_nothing_to_go_by_is_no_template(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    asg(moto_aws)
    Answers(moto_aws, "ec2", "DescribeInstanceTypes", refused("UnauthorizedOperation"))
    assert the_group(groups).template is None


def test_of_several_instance_types_the_smallest_is_counted_on(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws, MixedInstancesPolicy=mixed(template(moto_aws), "m5.xlarge", "c5.large"))
    told = the_group(groups).template
    assert told is not None
    assert told.allocatable.cpu == 1930
    assert told.allocatable.memory < 4 * GIB
    assert "node.kubernetes.io/instance-type" not in told.labels


REQUIREMENTS = {"VCpuCount": {"Min": 2, "Max": 4}, "MemoryMiB": {"Min": 4096}}
MEETING = {"InstanceTypes": [{"InstanceType": t} for t in ("m5.xlarge", "c5.large")]}
BY_ATTRIBUTES = "GetInstanceTypesFromInstanceRequirements"


def by_requirements(launch: dict[str, str]) -> dict[str, Any]:
    """A mixed-instances policy that takes whatever meets requirements."""
    policy = mixed(launch)
    policy["LaunchTemplate"]["Overrides"] = [{"InstanceRequirements": REQUIREMENTS}]
    return policy


def test_of_all_types_that_meet_requirements_the_smallest_is_counted_on(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws, MixedInstancesPolicy=by_requirements(template(moto_aws)))
    asked = Answers(moto_aws, "ec2", BY_ATTRIBUTES, MEETING)
    group = the_group(groups)
    assert group.instance_types == ("m5.xlarge", "c5.large")
    assert group.template is not None
    assert group.template.allocatable.cpu == 1930
    assert group.template.labels["kubernetes.io/arch"] == "amd64"
    groups.list([])
    assert asked.asked == [
        {
            "ArchitectureTypes": ["x86_64"],  # that of the image
            "VirtualizationTypes": ["hvm"],
            "InstanceRequirements": REQUIREMENTS,
        }
    ]


def test_requirements_of_a_launch_template_whose_image_is_not_known_take_every_architecture(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws)
    data = {"InstanceRequirements": REQUIREMENTS, "ImageId": "resolve:ssm:/images/node"}
    found = {"LaunchTemplateVersions": [{"LaunchTemplateData": data}]}
    Answers(moto_aws, "ec2", "DescribeLaunchTemplateVersions", found)
    asked = Answers(moto_aws, "ec2", BY_ATTRIBUTES, MEETING)
    assert the_group(groups).instance_types == ("m5.xlarge", "c5.large")
    assert [*asked.asked[0]["ArchitectureTypes"]] == ["x86_64", "arm64"]


def test_requirements_that_may_not_be_resolved_are_told_and_leave_what_the_group_has(
    moto_aws: Aws, groups: AwsNodeGroups, warnings: list[str]
) -> None:
    asg(moto_aws, MixedInstancesPolicy=by_requirements(template(moto_aws)), DesiredCapacity=0)
    Answers(moto_aws, "ec2", BY_ATTRIBUTES, refused("UnauthorizedOperation"))
    launched: Any = {"LaunchTemplateVersions": [{"LaunchTemplateData": {}}]}
    Answers(moto_aws, "ec2", "DescribeLaunchTemplateVersions", launched)
    assert the_group(groups).template is None
    assert any(BY_ATTRIBUTES in warning for warning in warnings)


@pytest.mark.parametrize("enabled", [True, False])
def test_branch_interfaces_are_counted_on_where_nodes_of_the_cluster_have_them(
    moto_aws: Aws, groups: AwsNodeGroups, *, enabled: bool
) -> None:
    asg(moto_aws)
    pod_eni = "vpc.amazonaws.com/pod-eni"
    has = Resources(cpu=1900, memory=7 * GIB, pods=29, extended=((pod_eni, 9),) if enabled else ())
    group = the_group(groups, node("of another group", "i-other", allocatable=has))
    assert group.template is not None
    assert dict(group.template.allocatable.extended).get(pod_eni) == (9 if enabled else None)


def test_a_weighted_group_is_never_chosen(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    policy = mixed(template(moto_aws), "m5.large")
    policy["LaunchTemplate"]["Overrides"][0]["WeightedCapacity"] = "2"
    asg(moto_aws, MixedInstancesPolicy=policy)
    assert the_group(groups).template is None


# Growing an Auto Scaling group


def launched(*ids: str, errors: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": "web",
        "Instances": [{"InstanceIds": list(ids)}] if ids else [],
        "Errors": [{"ErrorCode": code, "ErrorMessage": "no"} for code in errors],
    }


def test_instances_are_launched_at_once_in_the_zone_that_was_chosen(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws)
    asked = Answers(moto_aws, "autoscaling", "LaunchInstances", launched("i-1", "i-2"))
    assert groups.grow(the_group(groups), 2, f"{REGION}b", "token") == 2
    assert asked.asked == [
        {
            "AutoScalingGroupName": "web",
            "RequestedCapacity": 2,
            "ClientToken": "token",
            "AvailabilityZones": [f"{REGION}b"],
            "RetryStrategy": "none",
        }
    ]
    assert desired(moto_aws) == 0


def test_a_zone_that_is_left_open_is_the_same_for_the_same_token(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws)
    asked = Answers(moto_aws, "autoscaling", "LaunchInstances", launched("i-1"))
    group = the_group(groups)
    for token in ("one", "one", "two", "three", "four", "five"):
        groups.grow(group, 1, None, token)
    zones = [a["AvailabilityZones"] for a in asked.asked]
    assert zones[0] == zones[1]
    assert len({tuple(z) for z in zones}) == 2


def test_what_was_launched_is_promised_and_no_more(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    asg(moto_aws)
    answer = launched("i-1", errors=("InsufficientInstanceCapacity",))
    Answers(moto_aws, "autoscaling", "LaunchInstances", answer)
    assert groups.grow(the_group(groups), 3, None, "token") == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (launched(errors=("InsufficientInstanceCapacity",)), NotGrown),
        (launched(errors=("RequestThrottled",)), Throttled),
        (launched(), Refused),
        (refused("Throttling"), Throttled),
        (refused("LimitExceeded"), NotGrown),
        (refused("ResourceContention", status=409), Conflict),
        (refused("IdempotentCallInProgress", status=409), Conflict),
        (refused("InternalFailure", status=500), Temporary),
    ],
)
def test_a_refused_launch_is_named_and_not_asked_for_in_another_way(
    moto_aws: Aws, groups: AwsNodeGroups, answer: dict[str, Any], error: type[Exception]
) -> None:
    asg(moto_aws)
    Answers(moto_aws, "autoscaling", "LaunchInstances", answer)
    with pytest.raises(error, match="launch 1 instances of web"):
        groups.grow(the_group(groups), 1, None, "token")
    assert desired(moto_aws) == 0


def test_an_endpoint_that_knows_no_launches_is_asked_once(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    asg(moto_aws)
    asked = Answers(moto_aws, "autoscaling", "LaunchInstances", refused("InvalidAction"))
    assert groups.grow(the_group(groups), 1, None, "one") == 1
    assert groups.grow(the_group(groups), 1, None, "two") == 1
    assert (desired(moto_aws), asked.calls) == (2, 1)


@pytest.mark.parametrize("code", ["ValidationError", "IdempotentParameterMismatch"])
def test_a_group_that_cannot_launch_this_way_or_not_with_this_token_is_raised(
    moto_aws: Aws, groups: AwsNodeGroups, code: str
) -> None:
    asg(moto_aws)
    asked = Answers(moto_aws, "autoscaling", "LaunchInstances", refused(code))
    for token in ("one", "two"):
        groups.grow(the_group(groups), 1, None, token)
    assert (desired(moto_aws), asked.calls) == (2, 2)


@pytest.mark.parametrize(
    "answer", [refused("AccessDenied"), launched(errors=("UnauthorizedOperation",))]
)
def test_a_missing_right_to_launch_costs_no_capacity_and_is_told(
    moto_aws: Aws, groups: AwsNodeGroups, warnings: list[str], answer: dict[str, Any]
) -> None:
    asg(moto_aws)
    Answers(moto_aws, "autoscaling", "LaunchInstances", answer)
    assert groups.grow(the_group(groups), 2, None, "token") == 2
    assert desired(moto_aws) == 2
    assert len(warnings) == 1
    assert "The desired capacity is raised instead" in warnings[0]


def raised(moto_aws: Aws, groups: AwsNodeGroups, **more: Any) -> NodeGroup:
    """A group that can only be grown by its desired capacity."""
    shares = {"OnDemandPercentageAboveBaseCapacity": 50}
    asg(moto_aws, MixedInstancesPolicy=mixed(template(moto_aws), "m5.large", **shares), **more)
    return the_group(groups)


def test_a_group_grows_to_its_maximum_and_then_refuses(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    group = raised(moto_aws, groups, DesiredCapacity=9)
    assert groups.grow(group, 3, None, "token") == 1
    assert desired(moto_aws) == 10
    with pytest.raises(Refused, match="asg web is at its maximum of 10"):
        groups.grow(the_group(groups), 1, None, "another")


def test_a_group_that_is_gone_is_not_found(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    group = raised(moto_aws, groups)
    moto_aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="web")
    with pytest.raises(NotFound, match="web"):
        groups.grow(group, 1, None, "token")


def test_an_unknown_kind_is_bad_input(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    group = replace(raised(moto_aws, groups), kind="mainframe")
    with pytest.raises(BadInput, match="mainframe"):
        groups.grow(group, 1, None, "token")


# EKS managed node groups


def managed(aws: Aws, name: str = "pool", **more: Any) -> None:
    aws.eks.create_cluster(
        name="shop",
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": ["subnet-1"]},
    )
    Answers(aws, "eks", "ListNodegroups", {"nodegroups": [name]})
    arguments: dict[str, Any] = {
        "clusterName": "shop",
        "nodegroupName": name,
        "nodeRole": "arn:aws:iam::123456789012:role/node",
        "subnets": ["subnet-1"],
        "scalingConfig": {"minSize": 1, "maxSize": 4, "desiredSize": 1},
        "instanceTypes": ["m5.large"],
        "capacityType": "SPOT",
        "labels": {"team": "shop"},
        "taints": [{"key": "dedicated", "value": "shop", "effect": "NO_SCHEDULE"}],
    } | more
    aws.eks.create_nodegroup(**arguments)


def size(aws: Aws, name: str = "pool") -> int:
    group = aws.eks.describe_nodegroup(clusterName="shop", nodegroupName=name)["nodegroup"]
    return group["scalingConfig"]["desiredSize"]


def test_a_cluster_that_eks_does_not_know_has_no_managed_groups(groups: AwsNodeGroups) -> None:
    assert groups.list([]) == []


def test_a_managed_group_tells_what_its_nodes_will_be_like(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws)
    group = the_group(groups)
    assert (group.kind, group.name, group.capacity) == ("eks-nodegroup", "pool", "spot")
    assert (group.desired, group.min_size, group.max_size) == (1, 1, 4)
    assert not group.launchable
    assert group.template is not None
    assert group.template.labels["team"] == "shop"
    assert group.template.labels["eks.amazonaws.com/nodegroup"] == "pool"
    assert group.template.labels["eks.amazonaws.com/capacityType"] == "SPOT"
    assert group.template.taints == (Taint(key="dedicated", value="shop", effect="NoSchedule"),)
    assert group.template.allocatable.cpu == 1930
    assert dict(group.template.allocatable.extended) == {"ephemeral-storage": 17 * GIB}


def test_the_auto_scaling_group_behind_a_managed_one_is_believed(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws)
    described = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")
    (behind,) = described["nodegroup"]["resources"]["autoScalingGroups"]
    tags = {OWNED: "owned", "eks:nodegroup-name": "pool"}
    asg(moto_aws, behind["name"], tags, DesiredCapacity=3)
    group = the_group(groups)
    assert (group.kind, group.desired, len(group.instances)) == ("eks-nodegroup", 3, 3)
    assert group.zones == (f"{REGION}a", f"{REGION}b")
    assert groups.grow(group, 1, None, "token") == 1
    assert size(moto_aws) == 4


def test_a_size_that_eks_is_setting_counts_before_its_auto_scaling_group_has_it(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws, scalingConfig={"minSize": 1, "maxSize": 4, "desiredSize": 3})
    told = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    (behind,) = told["resources"]["autoScalingGroups"]
    asg(moto_aws, behind["name"], {"eks:nodegroup-name": "pool"}, DesiredCapacity=1)
    assert the_group(groups).desired == 1
    Answers(moto_aws, "eks", "DescribeNodegroup", {"nodegroup": {**told, "status": "UPDATING"}})
    assert the_group(groups).desired == 3


def test_a_managed_group_grows_through_eks_under_its_token(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws)
    asked = Answers(moto_aws, "eks", "UpdateNodegroupConfig", None)
    group = the_group(groups)
    assert groups.grow(group, 2, None, "token") == 2
    assert groups.grow(group, 2, None, "token") == 2
    assert size(moto_aws) == 3
    assert asked.asked == [
        {
            "clusterName": "shop",
            "nodegroupName": "pool",
            "scalingConfig": {"desiredSize": 3},
            "clientRequestToken": "token",
        }
    ]


@pytest.mark.parametrize(
    ("code", "error"),
    [("ResourceInUseException", Conflict), ("InvalidRequestException", Refused)],
)
def test_what_eks_refuses_is_named_for_what_comes_next(
    moto_aws: Aws, groups: AwsNodeGroups, code: str, error: type[Exception]
) -> None:
    managed(moto_aws)
    Answers(moto_aws, "eks", "UpdateNodegroupConfig", refused(code))
    with pytest.raises(error, match="raise the desired size of node group pool to 2"):
        groups.grow(the_group(groups), 1, None, "token")


def test_health_issues_refuse_what_a_managed_group_was_asked_for(
    moto_aws: Aws, groups: AwsNodeGroups, warnings: list[str]
) -> None:
    managed(moto_aws)
    told = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    issue = {
        "code": "AsgInstanceLaunchFailures",
        "message": "Could not launch Spot Instances. UnfulfillableCapacity - none of it.",
        "resourceIds": ["asg"],
    }
    Answers(
        moto_aws, "eks", "DescribeNodegroup", {"nodegroup": {**told, "health": {"issues": [issue]}}}
    )
    assert [refusal.kind for refusal in the_group(groups).refusals] == ["insufficient-capacity"]
    here = node("a", "i-1", labels={"eks.amazonaws.com/nodegroup": "pool"})
    (behind,) = told["resources"]["autoScalingGroups"]
    owned = {"AutoScalingGroupName": behind["name"], "Instances": [{"InstanceId": "i-1"}]}
    account = Account(moto_aws, FakeClock(T0))
    known = launches_of(account, [owned], 1, [here], warnings.append, health=[issue])
    assert known["refusals"] == ()  # nothing is missing: the issue is of the past


def test_a_health_issue_from_before_a_request_refuses_nothing_of_it(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws)
    told = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    issue = {"code": "AsgInstanceLaunchFailures", "message": "none", "resourceIds": ["asg"]}
    stale = {**told, "status": "UPDATING", "health": {"issues": [issue]}}
    Answers(moto_aws, "eks", "DescribeNodegroup", {"nodegroup": stale})
    assert the_group(groups).refusals == ()


@pytest.mark.parametrize("behind", [1, 2])
def test_an_old_health_issue_refuses_nothing_that_was_just_asked_of_auto_scaling_groups(
    moto_aws: Aws, warnings: list[str], behind: int
) -> None:
    groups = [{"AutoScalingGroupName": f"asg-{n}", "Instances": []} for n in range(behind)]
    issue = {"code": "AsgInstanceLaunchFailures", "message": "none", "resourceIds": ["asg-0"]}
    Answers(moto_aws, "autoscaling", "DescribeScalingActivities", {"Activities": []})
    account = Account(moto_aws, FakeClock(T0))
    known = launches_of(account, groups, 1, [], warnings.append, health=[issue])
    assert known["refusals"] == ()
    gone = launches_of(account, [], 1, [], warnings.append, health=[issue])
    assert [refusal.kind for refusal in gone["refusals"]] == ["other"]


def test_an_empty_managed_group_of_a_windows_image_gives_windows_nodes(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws, amiType="WINDOWS_CORE_2022_x86_64")
    template = the_group(groups).template
    assert template is not None
    assert template.labels["kubernetes.io/os"] == "windows"


def test_the_disk_of_an_empty_managed_group_is_that_of_its_launch_template(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    managed(moto_aws)
    told = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    (behind,) = told["resources"]["autoScalingGroups"]
    asg(moto_aws, behind["name"], {"eks:nodegroup-name": "pool"}, DesiredCapacity=0)
    data = {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100}}]}
    found = {"LaunchTemplateVersions": [{"LaunchTemplateData": data}]}
    Answers(moto_aws, "ec2", "DescribeLaunchTemplateVersions", found)
    without_size = {key: value for key, value in told.items() if key != "diskSize"}
    Answers(moto_aws, "eks", "DescribeNodegroup", {"nodegroup": without_size})
    template = the_group(groups).template
    assert template is not None
    assert dict(template.allocatable.extended) == {"ephemeral-storage": 89 * GIB}


def behind_empty(aws: Aws, data: dict[str, Any], *, overrides: Any = None, **more: Any) -> None:
    """Make a managed group without nodes whose types EKS does not name, with an Auto Scaling group behind it."""
    managed(aws, **more)
    told = aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    (behind,) = told["resources"]["autoScalingGroups"]
    launch = template(aws, "eks-made")
    policy = {"MixedInstancesPolicy": mixed(launch, *overrides)} if overrides else {}
    asg(
        aws,
        behind["name"],
        {"eks:nodegroup-name": "pool"},
        **policy or {"LaunchTemplate": launch},
    )
    Answers(
        aws,
        "ec2",
        "DescribeLaunchTemplateVersions",
        {"LaunchTemplateVersions": [{"LaunchTemplateData": data}]},
    )
    unnamed = {key: value for key, value in told.items() if key != "instanceTypes"}
    Answers(aws, "eks", "DescribeNodegroup", {"nodegroup": unnamed})


@pytest.mark.parametrize(
    ("data", "overrides", "types"),
    [
        ({"InstanceType": "m5.large"}, None, ("m5.large",)),
        ({}, ("m5.large", "m5.xlarge"), ("m5.large", "m5.xlarge")),
        ({"InstanceRequirements": REQUIREMENTS}, None, ("m5.xlarge", "c5.large")),
    ],
    ids=["launch template", "overrides", "attributes"],
)
def test_the_types_of_an_empty_managed_group_stand_in_its_launch_template(
    moto_aws: Aws,
    groups: AwsNodeGroups,
    data: dict[str, Any],
    overrides: tuple[str, ...] | None,
    types: tuple[str, ...],
) -> None:
    behind_empty(moto_aws, data, overrides=overrides, amiType="AL2023_x86_64_STANDARD")
    asked = Answers(moto_aws, "ec2", BY_ATTRIBUTES, MEETING)
    group = the_group(groups)
    assert group.instance_types == types
    assert group.template is not None
    assert group.template.allocatable.cpu == 1930
    assert group.template.labels["team"] == "shop"
    assert [a["ArchitectureTypes"] for a in asked.asked] == [["x86_64"]] * asked.calls


def test_the_owners_launch_template_tells_where_no_auto_scaling_group_can_be_read(
    moto_aws: Aws, groups: AwsNodeGroups
) -> None:
    own = template(moto_aws, InstanceType="m5.xlarge")
    managed(moto_aws)
    told = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")["nodegroup"]
    used = {"name": own["LaunchTemplateName"], "version": "1"}
    unnamed = {**told, "instanceTypes": [], "launchTemplate": used}
    Answers(moto_aws, "eks", "DescribeNodegroup", {"nodegroup": unnamed})
    assert the_group(groups).instance_types == ("m5.xlarge",)


# Launches


def test_launches_and_their_failures_are_read_while_nodes_are_on_the_way(
    moto_aws: Aws, warnings: list[str]
) -> None:
    said = [
        {
            "ActivityId": str(number),
            "AutoScalingGroupName": "web",
            "Cause": "At 2026-03-01T11:59:58Z an instance was started in response to a difference "
            "between desired and actual capacity, increasing the capacity from 1 to 2.",
            "Description": description,
            "StartTime": T0 + timedelta(seconds=number),
            "StatusCode": code,
            "StatusMessage": f"We currently do not have sufficient {instance_type} capacity in the "
            f"Availability Zone you requested ({REGION}a)." * (code == "Failed"),
        }
        for number, description, code, instance_type in (
            (5, "Launching a new EC2 instance from warm pool: i-2", "InProgress", ""),
            (5, "Launching a new EC2 instance into warm pool: i-3", "InProgress", ""),
            (4, "Terminating EC2 instance: i-0", "Failed", "m5.large"),
            (3, "Launching a new EC2 instance.  Status Reason: none", "Failed", "m5.large"),
            (2, "Launching a new EC2 instance.  Status Reason: none", "Failed", "c5.large"),
            (1, "Launching a new EC2 instance.  Status Reason: none", "Failed", "m5.large"),
            (0, "Launching a new EC2 instance: i-1", "Successful", ""),
        )
    ]
    Answers(moto_aws, "autoscaling", "DescribeScalingActivities", {"Activities": said})

    def read(desired: int) -> Launches:
        instances = [{"InstanceId": "i-1", "LifecycleState": "InService"}]
        group = {"AutoScalingGroupName": "web", "Instances": instances}
        account = Account(moto_aws, FakeClock(T0))
        return launches_of(account, [group], desired, [node("a", "i-1")], warnings.append)

    known = read(2)
    assert known["launched"] == {"i-1": T0, "i-2": T0 + timedelta(seconds=5)}
    assert [(r.kind, r.at - T0, r.zone, r.instance_type) for r in known["refusals"]] == [
        ("insufficient-capacity", timedelta(seconds=3), f"{REGION}a", "m5.large"),
        ("insufficient-capacity", timedelta(seconds=2), f"{REGION}a", "c5.large"),
    ]
    assert known["asked"] == T0 + timedelta(seconds=5)
    assert read(3)["asked"] is None  # of the third nothing tells
    nothing: Launches = {"asked": None, "launched": {}, "refusals": ()}
    assert read(1) == nothing

    Answers(moto_aws, "autoscaling", "DescribeScalingActivities", refused("AccessDenied"))
    assert read(2) == nothing
    assert "describe the scaling activities of web" in warnings[0]


# Lifecycle actions


def running(aws: Aws, tags: Mapping[str, str] | None = None) -> str:
    """Make a group with one instance, whose id is returned."""
    asg(aws, tags=tags, DesiredCapacity=1)
    (instance,) = aws.autoscaling.describe_auto_scaling_instances()["AutoScalingInstances"]
    return instance["InstanceId"]


HOOK = LifecycleHook(
    group="web",
    name="drain",
    timeout=timedelta(seconds=300),
    longest=timedelta(hours=48),
    ours=False,
)


@pytest.mark.parametrize(
    ("name", "metadata", "ours"),
    [
        ("plimsoll-terminate", "", True),
        ("drain", '{"plimsoll.dev/complete": true}', True),
        ("drain", "cluster=shop", False),
    ],
)
def test_hooks_are_read_while_an_instance_waits_for_them(
    moto_aws: Aws, warnings: list[str], name: str, metadata: str, *, ours: bool
) -> None:
    said = [
        {
            "LifecycleHookName": hook,
            "AutoScalingGroupName": "web",
            "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
            "HeartbeatTimeout": 300,
            "GlobalTimeout": 172_800,
            "NotificationMetadata": metadata,
        }
        for hook, transition in ((name, "TERMINATING"), ("start", "LAUNCHING"))
    ]
    Answers(moto_aws, "autoscaling", "DescribeLifecycleHooks", {"LifecycleHooks": said})

    def read(*nodes: Node, state: str = "Terminating:Wait") -> Any:
        instances = [{"InstanceId": "i-1", "LifecycleState": state}]
        group = {"AutoScalingGroupName": "web", "Instances": instances}
        return hooks_of(Account(moto_aws, FakeClock(T0)), [group], nodes, warnings.append)

    mine = node("a", "i-1")
    assert read(mine) == ({"i-1"}, (replace(HOOK, name=name, ours=ours),))
    assert read(mine, state="InService") == read(node("b", "i-2")) == (frozenset(), ())

    for hook, timeout in zip(said, (300, 7200), strict=True):
        del hook["GlobalTimeout"]
        hook |= {"HeartbeatTimeout": timeout, "LifecycleTransition": said[0]["LifecycleTransition"]}
    Answers(moto_aws, "autoscaling", "DescribeLifecycleHooks", {"LifecycleHooks": said})
    assert [hook.longest for hook in read(mine)[1]] == [100 * HOOK.timeout, timedelta(hours=48)]

    Answers(moto_aws, "autoscaling", "DescribeLifecycleHooks", refused("AccessDenied"))
    assert read(mine) == ({"i-1"}, ())
    assert "describe the lifecycle hooks of web" in warnings[0]


@pytest.mark.parametrize(
    ("operation", "tell", "more"),
    [
        ("CompleteLifecycleAction", "complete_lifecycle", {"LifecycleActionResult": "CONTINUE"}),
        ("RecordLifecycleActionHeartbeat", "heartbeat", {}),
    ],
)
def test_a_hook_is_told_by_instance_and_an_action_that_is_over_is_not_found(
    moto_aws: Aws, groups: AwsNodeGroups, operation: str, tell: str, more: dict[str, str]
) -> None:
    instance = running(moto_aws)
    asked = Answers(moto_aws, "autoscaling", operation, {})
    getattr(groups, tell)(HOOK, instance)
    wanted = {"AutoScalingGroupName": "web", "LifecycleHookName": "drain", "InstanceId": instance}
    assert asked.asked == [wanted | more]

    said = "No active Lifecycle Action found with instance ID i-1"
    Answers(moto_aws, "autoscaling", operation, refused("ValidationError", said))
    with pytest.raises(NotFound, match="No active Lifecycle Action"):
        getattr(groups, tell)(HOOK, instance)


@pytest.mark.parametrize("act", ["complete_lifecycle", "heartbeat", "terminate"])
def test_an_instance_whose_tags_name_another_cluster_is_not_touched(
    moto_aws: Aws, groups: AwsNodeGroups, act: str
) -> None:
    instance = running(moto_aws, tags={"kubernetes.io/cluster/other": "owned"})
    never = Answers(moto_aws, "autoscaling", "CompleteLifecycleAction", {})
    how: dict[str, Any] = {"decrement": True} if act == "terminate" else {"hook": HOOK}
    with pytest.raises(Refused, match=f"the tags of {instance} name cluster other"):
        getattr(groups, act)(instance=instance, **how)
    assert never.calls == 0
    assert desired(moto_aws) == 1


# Renewing


@pytest.mark.parametrize(("said", "may"), [("true", True), ("false", False), (None, False)])
def test_only_the_owners_tags_let_a_group_grow_and_be_renewed_where_iam_reads_them(
    moto_aws: Aws, groups: AwsNodeGroups, said: str | None, *, may: bool
) -> None:
    grow = {"plimsoll.dev/grow": said} if said else {}
    renew = {"plimsoll.dev/renew": said} if said else {}
    asg(moto_aws, tags={OWNED: "owned"} | grow | renew)
    managed(moto_aws, tags=grow | {"plimsoll.dev/renew": "true"})
    own, pool = groups.list([])
    assert (own.may_grow, own.renew, own.addable_nodes > 0) == (may, may, may)
    assert (pool.may_grow, pool.renew, pool.addable_nodes > 0) == (may, False, may)
    described = moto_aws.eks.describe_nodegroup(clusterName="shop", nodegroupName="pool")
    (behind,) = described["nodegroup"]["resources"]["autoScalingGroups"]
    asg(moto_aws, behind["name"], {"eks:nodegroup-name": "pool"} | renew)
    _, pool = groups.list([])
    assert (pool.may_grow, pool.renew) == (may, may)


@pytest.mark.parametrize("left", [2, 1])
def test_a_terminated_instance_is_replaced_by_its_group_or_missed_no_longer(
    moto_aws: Aws, groups: AwsNodeGroups, left: int
) -> None:
    asg(moto_aws, DesiredCapacity=2)
    before = the_group(groups).instances
    gone = min(before)

    groups.terminate(gone, decrement=left < len(before))

    after = the_group(groups).instances
    assert gone not in after
    assert len(after) == desired(moto_aws) == left


def test_an_instance_of_no_group_cannot_be_renewed(moto_aws: Aws, groups: AwsNodeGroups) -> None:
    instance = running(moto_aws)
    unknown = refused("ValidationError", "Instance Id not found - No managed instance found")
    Answers(moto_aws, "autoscaling", "TerminateInstanceInAutoScalingGroup", unknown)

    with pytest.raises(NotFound, match="No managed instance"):
        groups.terminate(instance, decrement=False)
    with pytest.raises(NotFound, match="EC2 does not know"):
        groups.terminate("i-0123456789abcdef0", decrement=True)
