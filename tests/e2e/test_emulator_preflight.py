"""The deployed stack warns before a storm, once, and says once that it is cured."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from threading import RLock

import pytest

from plimsoll.domain.kubernetes import CAPACITY_LABELS
from plimsoll.domain.registry import ResyncRequest
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.emulator import REGION
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack
from tests.support.fake_clusters import a_node

pytestmark = [pytest.mark.emulator, pytest.mark.cluster]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BASE = NodeGroupSpec(
    name="base",
    kind="asg",
    capacity="on-demand",
    instance_type="m6i.xlarge",
    zones=(f"{REGION}a",),
    size=0,
    max=0,
    allocatable={"cpu": "4", "memory": "16Gi"},
)


def told(emulator, queue):
    """Return the subjects of the messages that came, and take them."""
    sqs, subjects = emulator.client("sqs"), []
    while found := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for message in found:
            subjects.append(json.loads(message["Body"])["Subject"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return subjects


def test_the_deployed_preflight_warns_once_and_says_once_that_it_is_cured():
    fleet, clock = Fleet("shop", [BASE], seed=0, now=NOW), lambda: NOW
    cluster = FakeCluster(now=NOW)
    cluster.join(a_node("spot-0", **{CAPACITY_LABELS[0]: "spot"}), now=NOW)
    with (
        AwsFleet([fleet], clock=clock, lock=RLock()) as aws,
        MiniStack(endpoints=aws.endpoints) as emulator,
        FakeApiServer(cluster) as server,
    ):
        sns, sqs = emulator.client("sns"), emulator.client("sqs")
        topic = sns.create_topic(Name="reports")["TopicArn"]
        queue = sqs.create_queue(QueueName="reports")["QueueUrl"]
        asked = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        arn = asked["Attributes"]["QueueArn"]
        policy = {
            "Version": "2012-10-17",
            "Statement": {
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": arn,
            },
        }
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps(policy)})
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        emulator.deploy(AcceptDrills="true", ReportTopic=topic)
        Stack(emulator, aws).register("shop", Access(url=server.url, token=server.token))

        def an_hour():
            request = ResyncRequest(
                cluster="shop", label="shop", until="2999-01-01T00:00:00+00:00", preflight=True
            )
            record = {"messageId": "1", "body": request.message()}
            answer = emulator.client("lambda").invoke(
                FunctionName=emulator.outputs["SweepFunction"],
                Payload=json.dumps({"Records": [record]}),
            )
            said = json.loads(answer["Payload"].read())
            assert said == {"batchItemFailures": []}, emulator.complaints()
            return told(emulator, queue)

        assert an_hour() == ["shop: 1 short before a storm"]
        assert an_hour() == []
        group = fleet.group("base")
        group.spec = group.spec.model_copy(update={"max": 9})
        assert an_hour() == ["shop: nothing is short any more before a storm"]
        assert an_hour() == []
