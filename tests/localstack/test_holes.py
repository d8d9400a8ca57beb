"""Where LocalStack is not like AWS, as `docs/develop/rigs.md` says: what would be green here for nothing.

When one of these fails after an update, LocalStack became better, and the page is to be changed.
"""

from __future__ import annotations

import json
import time

import boto3
import pytest
from botocore.exceptions import ClientError

from plimsoll_testbed.rigs.emulated.emulator import REGION

pytestmark = pytest.mark.localstack


def test_a_role_may_do_what_its_policies_do_not_allow(localstack):
    name = localstack.outputs["SweepFunction"]
    role = localstack.client("lambda").get_function(FunctionName=name)["Configuration"]["Role"]
    key = localstack.client("sts").assume_role(RoleArn=role, RoleSessionName="trial")["Credentials"]
    resync = boto3.client(
        "sqs",
        endpoint_url=localstack.url,
        region_name=REGION,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
        aws_session_token=key["SessionToken"],
    )
    forbidden = resync.send_message(
        QueueUrl=localstack.outputs["WakeUpsDeadQueue"], MessageBody="the resync may not write here"
    )
    assert forbidden["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_everybody_may_speak_as_aws(localstack):
    answer = localstack.client("events").put_events(
        Entries=[{"Source": "aws.health", "DetailType": "none of ours", "Detail": "{}"}]
    )
    assert answer["FailedEntryCount"] == 0


def test_the_json_of_a_message_is_written_anew_between_queue_and_function(localstack):
    sqs, body = localstack.client("sqs"), '{"b": 1.0,  "a": [1,2]}'
    sqs.send_message(QueueUrl=localstack.outputs["NoticesQueue"], MessageBody=body)
    end = time.monotonic() + 60
    found: list[str] = []
    while not found and time.monotonic() < end:
        answer = sqs.receive_message(
            QueueUrl=localstack.outputs["NoticesDeadQueue"], WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            found.append(message["Body"])
            sqs.delete_message(
                QueueUrl=localstack.outputs["NoticesDeadQueue"],
                ReceiptHandle=message["ReceiptHandle"],
            )
    assert found == ['{"b": 1.0, "a": [1, 2]}'], localstack.complaints()
    assert json.loads(found[0]) == json.loads(body)


@pytest.mark.parametrize(
    ("service", "operation"),
    [("autoscaling", "describe_auto_scaling_groups"), ("eks", "list_clusters")],
)
def test_it_has_neither_auto_scaling_nor_eks_so_the_fleet_answers_for_them(
    localstack, service, operation
):
    with pytest.raises(ClientError, match=r"not included|not yet been emulated"):
        getattr(localstack.client(service), operation)()
    assert {"AUTO_SCALING", "EKS", "EC2"} <= set(localstack.endpoints)


def test_logs_go_to_a_group_of_its_own_choice(localstack):
    groups = localstack.client("logs").describe_log_streams(logGroupName="/plimsoll/drill/notices")
    assert groups["logStreams"] == []
