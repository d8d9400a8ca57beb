"""Clients of another account, by a role that is assumed there: as moto plays the two accounts."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.ec2 import Ec2Instances
from tests.support.builders import NOON
from tests.support.cli_environment import a_cluster

from .conftest import FakeClock

OTHER = "210987654321"
ROLE = f"arn:aws:iam::{OTHER}:role/plimsoll-spoke-us-east-1"


def launched(aws: Aws) -> str:
    image = aws.ec2.describe_images()["Images"][0]["ImageId"]
    [instance] = aws.ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    return instance["InstanceId"]


def test_a_cluster_with_a_role_is_served_by_the_clients_of_its_account(moto_aws):
    quay = replace(a_cluster("quay"), role=ROLE, external_id="between-us-two")
    there = moto_aws.of_cluster(quay)
    assert there.sts.get_caller_identity()["Account"] == OTHER
    assert moto_aws.of_cluster(a_cluster()).sts.get_caller_identity()["Account"] != OTHER
    assert moto_aws.of_cluster(quay) is there


def test_each_account_knows_its_own_instances_only(moto_aws):
    quay = replace(a_cluster("quay"), role=ROLE, external_id="between-us-two")
    here, there = moto_aws.of_cluster(a_cluster()), moto_aws.of_cluster(quay)
    mine, theirs = launched(here), launched(there)
    assert set(Ec2Instances(here, FakeClock(NOON)).describe([mine, theirs])) == {mine}
    assert set(Ec2Instances(there, FakeClock(NOON)).describe([mine, theirs])) == {theirs}


def test_the_role_is_assumed_in_the_region_of_the_cluster_too(moto_aws):
    quay = replace(a_cluster("quay"), role=ROLE, external_id="between-us-two", region="eu-west-1")
    there = moto_aws.of_cluster(quay)
    assert there.region == "eu-west-1"
    assert there.sts.get_caller_identity()["Account"] == OTHER
