"""What bounds the launches of an account, as AWS and moto tell it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.limits import AwsLimits
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.domain.capacity import QUOTA_CODE, VcpuQuota
from plimsoll.domain.errors import Refused

from .conftest import REGION, T0, Answers, FakeClock, refused
from .test_nodegroups import empty


def instance(kind: str, *, cores: int = 2, spot: bool = False) -> dict[str, Any]:
    found = {"InstanceType": kind, "CpuOptions": {"CoreCount": cores, "ThreadsPerCore": 2}}
    return {**found, "InstanceLifecycle": "spot"} if spot else found


def test_the_quota_counts_vcpus_of_on_demand_instances_of_the_standard_families(moto_aws: Aws):
    running = [
        instance("m5.large", cores=1),
        instance("c7i-flex.xlarge"),
        instance("im4gn.large", cores=1),
        instance("m5.large", spot=True),
        instance("g5.xlarge"),
        instance("hpc6a.48xlarge"),
        instance("mac1.metal"),
    ]
    with Stubber(moto_aws.servicequotas) as quotas, Stubber(moto_aws.ec2) as ec2:
        quotas.add_response(
            "get_service_quota",
            {"Quota": {"Value": 64.0}},
            {"ServiceCode": "ec2", "QuotaCode": QUOTA_CODE},
        )
        ec2.add_response("describe_instances", {"Reservations": [{"Instances": running}]})
        assert AwsLimits(moto_aws).quota() == VcpuQuota(limit=64, used=2 + 4 + 2)


def test_a_quota_that_may_not_be_read_is_refused_by_name(moto_aws: Aws):
    with Stubber(moto_aws.servicequotas) as quotas:
        quotas.add_client_error("get_service_quota", "AccessDeniedException", "no")
        with pytest.raises(Refused, match="GetServiceQuota"):
            AwsLimits(moto_aws).quota()


def test_free_addresses_are_those_of_the_subnets_that_exist(moto_aws: Aws):
    vpc = moto_aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    small, large = (
        moto_aws.ec2.create_subnet(VpcId=vpc, CidrBlock=block)["Subnet"]["SubnetId"]
        for block in ("10.0.0.0/28", "10.0.1.0/24")
    )
    limits = AwsLimits(moto_aws)
    assert limits.free_addresses([small, large, "subnet-0"]) == {small: 11, large: 251}
    assert limits.free_addresses([]) == {}


def test_an_image_that_was_deregistered_is_not_there(moto_aws: Aws):
    known = moto_aws.ec2.describe_images()["Images"][0]["ImageId"]
    limits = AwsLimits(moto_aws)
    assert set(limits.images([known, "ami-00000000000000000"])) == {known}
    assert not limits.images([])


def test_a_group_says_its_subnets_and_the_image_of_its_launch_template(moto_aws: Aws):
    vpc = moto_aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = moto_aws.ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=f"{REGION}a"
    )["Subnet"]["SubnetId"]
    image = moto_aws.ec2.describe_images()["Images"][0]["ImageId"]
    moto_aws.ec2.create_launch_template(
        LaunchTemplateName="base",
        LaunchTemplateData={"ImageId": image, "InstanceType": "m5.large"},
    )
    moto_aws.autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="base",
        MinSize=0,
        MaxSize=3,
        VPCZoneIdentifier=subnet,
        LaunchTemplate={"LaunchTemplateName": "base", "Version": "$Latest"},
        Tags=[{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}],
    )
    Answers(moto_aws, "eks", "ListNodegroups", refused("ResourceNotFoundException", "x", 404))
    (group,) = AwsNodeGroups(moto_aws, "shop", FakeClock(T0), api=empty).list([])
    assert (group.subnets, group.image) == ((subnet,), image)
