"""AWS's answers about a drill's fleet, asked by the unchanged SDK."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import RLock

import boto3
import pytest
from botocore.exceptions import ClientError

from plimsoll_simulation.durations import Span
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
STARTUP = timedelta(seconds=70)


def group(name, kind, capacity, *, size, **more):
    return NodeGroupSpec(
        name=name,
        kind=kind,
        capacity=capacity,
        instance_type="m5.2xlarge",
        zones=("us-east-1a", "us-east-1b"),
        size=size,
        max=5,
        startup=Span(least=STARTUP, most=STARTUP),
        allocatable={"cpu": "7910m", "memory": "29Gi", "pods": "58"},
        **more,
    )


class FleetRig:
    """A fleet, its server and a clock that stands still until it is moved."""

    def __init__(self):
        self.now = START
        self.fleet = Fleet(
            "harbor",
            [
                group("base", "asg", "on-demand", size=2),
                group("spot-a", "asg", "spot", size=3),
                group(
                    "managed",
                    "eks-nodegroup",
                    "spot",
                    size=1,
                    taints=({"key": "gpu", "effect": "NoSchedule"},),
                ),
                group("fixed", "static", "on-demand", size=1),
            ],
            seed=7,
            now=START,
        )
        self.fleet.step(START)
        self.aws = AwsFleet([self.fleet], clock=lambda: self.now, lock=RLock())

    def client(self, service):
        return boto3.client(
            service,
            endpoint_url=self.aws.endpoints["EC2"],
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
        )

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)
        self.fleet.step(self.now)

    def instances(self, name):
        [described] = self.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=[name]
        )["AutoScalingGroups"]
        return {i["InstanceId"]: i for i in described["Instances"]}


@pytest.fixture
def rig():
    rig = FleetRig()
    with rig.aws:
        yield rig


@pytest.fixture
def autoscaling(rig):
    return rig.client("autoscaling")


@pytest.fixture
def ec2(rig):
    return rig.client("ec2")


@pytest.fixture
def eks(rig):
    return rig.client("eks")


def launch(autoscaling, name="spot-a", count=1, token="t", **more):
    return autoscaling.launch_instances(
        AutoScalingGroupName=name, RequestedCapacity=count, ClientToken=token, **more
    )


def test_a_spot_instance_says_so_and_names_its_cluster(rig, ec2):
    [machine, *_] = rig.fleet.groups["spot-a"].machines
    [reservation] = ec2.describe_instances(InstanceIds=[machine.id])["Reservations"]
    [instance] = reservation["Instances"]
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["State"]["Name"] == "running"
    assert instance["LaunchTime"] == START - timedelta(hours=6)
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1a"
    assert {"Key": "kubernetes.io/cluster/harbor", "Value": "owned"} in instance["Tags"]


def test_unknown_instances_are_an_error_that_names_them(ec2):
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound.*i-0nobody"):
        ec2.describe_instances(InstanceIds=["i-0nobody"])


def test_a_spot_request_tells_of_the_interruption_and_of_the_end(rig, ec2):
    [machine, *_] = rig.fleet.groups["spot-a"].machines

    def status():
        [request] = ec2.describe_spot_instance_requests(
            Filters=[{"Name": "instance-id", "Values": [machine.id]}]
        )["SpotInstanceRequests"]
        return request["Status"]["Code"]

    assert status() == "fulfilled"
    machine.notices.append(("spot-interruption", rig.now))
    rig.fleet.end(machine.id, rig.now + timedelta(seconds=120))
    assert status() == "marked-for-termination"
    rig.wait(120)
    assert status() == "instance-terminated-no-capacity"


def test_a_scheduled_event_stands_in_the_status(rig, ec2):
    [machine, *_] = rig.fleet.groups["base"].machines
    machine.notices.append(("health-scheduled-change", rig.now))
    rig.fleet.maintain(machine, rig.now + timedelta(hours=2))
    [status] = ec2.describe_instance_status(InstanceIds=[machine.id])["InstanceStatuses"]
    assert status["Events"][0]["Code"] == "instance-retirement"
    assert status["Events"][0]["NotBefore"] == START + timedelta(hours=2)


def test_a_group_tells_what_its_next_node_will_be(ec2, autoscaling):
    [spot] = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["spot-a"])[
        "AutoScalingGroups"
    ]
    tags = {tag["Key"]: tag["Value"] for tag in spot["Tags"]}
    prefix = "k8s.io/cluster-autoscaler/node-template/"
    assert tags[f"{prefix}resources/cpu"] == "7910m"
    assert tags[f"{prefix}label/node.kubernetes.io/capacity"] == "spot"
    [version] = ec2.describe_launch_template_versions(
        LaunchTemplateId=spot["LaunchTemplate"]["LaunchTemplateId"], Versions=["1"]
    )["LaunchTemplateVersions"]
    assert version["LaunchTemplateData"]["InstanceMarketOptions"]["MarketType"] == "spot"


def test_a_token_for_another_request_is_refused(autoscaling):
    launch(autoscaling, count=1)
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        launch(autoscaling, count=2)


@pytest.mark.parametrize(
    ("service", "call", "action"),
    [
        ("ec2", lambda c: c.describe_vpcs(), "ec2:DescribeVpcs"),
        ("autoscaling", lambda c: c.describe_policies(), "autoscaling:DescribePolicies"),
        ("eks", lambda c: c.list_clusters(), "eks:ListClusters"),
    ],
    ids=["ec2", "autoscaling", "eks"],
)
def test_an_action_that_nobody_answers_is_an_error_that_names_it(rig, service, call, action):
    with pytest.raises(ClientError, match=action) as raised:
        call(rig.client(service))
    assert raised.value.response["Error"]["Code"] in {"InvalidAction", "UnknownOperationException"}


def test_every_call_is_counted(rig, ec2):
    ec2.describe_instances()
    ec2.describe_instances()
    assert rig.aws.calls == {"ec2:DescribeInstances": 2}
