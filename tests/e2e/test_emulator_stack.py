"""The built template, deployed: what the stack does with notices that move nothing."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from threading import RLock
from typing import Any

import pytest
from botocore.exceptions import ClientError

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.kubernetes import CAPACITY_LABELS, INSTANCE_TYPE, MIN_ON_DEMAND
from plimsoll.domain.notices import canary_word
from plimsoll.domain.placement import Layout, label_key
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack
from tests.support.fake_clusters import a_deployment, a_node

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINISTACK = pytest.param("MiniStack", marks=[pytest.mark.emulator, pytest.mark.cluster])


@pytest.fixture(
    scope="module",
    params=[MINISTACK, pytest.param("LocalStack", marks=pytest.mark.localstack)],
)
def stack(request):
    if request.param == "LocalStack":
        yield request.getfixturevalue("localstack")
        return
    fleet = Fleet("harbor", [], seed=0, now=NOW)
    with (
        AwsFleet([fleet], clock=lambda: NOW, lock=RLock()) as aws,
        MiniStack(endpoints=aws.endpoints) as stack,
    ):
        stack.deploy(AcceptDrills="true", RedrivePrincipals=f"arn:aws:iam::{ACCOUNT}:root")
        yield stack


def put_spot_warning(stack, instance):
    answer = stack.client("events").put_events(
        Entries=[
            {
                "Source": "plimsoll.drill",
                "DetailType": "EC2 Spot Instance Interruption Warning",
                "Detail": json.dumps({"instance-id": instance, "instance-action": "terminate"}),
            }
        ]
    )
    assert answer["FailedEntryCount"] == 0


def send(stack, body):
    """Send as who puts notices back: nobody else may but the rules."""
    sqs = stack.client("sqs", role=stack.outputs["RedriveRole"])
    sqs.send_message(QueueUrl=stack.outputs["NoticesQueue"], MessageBody=body)


def within(seconds, look):
    """Return the first thing that a look finds."""
    end = time.time() + seconds
    while time.time() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    return None


def logged(stack, message):
    """Log lines of the functions with that message."""
    lines = stack.log.read_text().splitlines()
    said = [json.loads(line) for line in lines if line.startswith('{"level"')]
    return [line for line in said if line["message"] == message]


def dead_letters(stack):
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["NoticesDeadQueue"],
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
    )
    for message in answer.get("Messages", []):
        stack.client("sqs").delete_message(
            QueueUrl=stack.outputs["NoticesDeadQueue"], ReceiptHandle=message["ReceiptHandle"]
        )
    return answer.get("Messages")


def queue_is_empty(stack):
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.outputs["NoticesQueue"], AttributeNames=["All"]
    )["Attributes"]
    return (
        attributes["ApproximateNumberOfMessages"],
        attributes["ApproximateNumberOfMessagesNotVisible"],
    ) == ("0", "0")


@pytest.mark.parametrize(
    "body", ["this is not JSON", "[1, 2]", "x" * 300_000], ids=["words", "a list", "300 kB"]
)
def test_poison_reaches_the_dead_letter_queue_whole_and_with_its_reason(stack, body):
    send(stack, body)
    found: Any = within(20, lambda: dead_letters(stack))
    assert found, stack.complaints()
    [message] = found
    assert message["Body"] == body
    assert message["MessageAttributes"]["reason"]["StringValue"].startswith("BadInput: ")
    assert within(5, lambda: queue_is_empty(stack))


def test_a_notice_about_somebody_elses_instance_is_acknowledged_and_counted(stack):
    put_spot_warning(stack, "i-0123456789abcdef0")
    assert within(15, lambda: "NoticesNotOurs" in stack.log.read_text()), stack.complaints()
    assert within(5, lambda: queue_is_empty(stack))
    assert not dead_letters(stack)


def test_a_canary_goes_the_whole_way_and_is_written_down(stack):
    secret = stack.client("secretsmanager").get_secret_value(SecretId=stack.outputs["CanarySecret"])
    word = canary_word("ask-1", secret["SecretString"], datetime.now(UTC))
    entry = {
        "Source": "plimsoll.canary",
        "DetailType": "Plimsoll Canary",
        "Detail": json.dumps({"word": word}),
    }
    assert stack.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0
    key = {"interruption": {"S": "canary@ask-1"}}
    table = stack.outputs["ReportsTable"]
    database = stack.client("dynamodb")
    found = within(15, lambda: database.get_item(TableName=table, Key=key).get("Item"))
    assert found, stack.complaints()
    assert found["cluster"] == {"S": "*canaries"}


@pytest.mark.parametrize(
    "queue",
    [f"{kind}{dead}Queue" for kind in ("Notices", "WakeUps", "Resyncs") for dead in ("", "Dead")],
)
def test_not_even_the_owner_of_the_account_may_send(stack, queue):
    if stack.name == "LocalStack":
        pytest.skip("LocalStack enforces no policies: docs/develop/rigs.md")
    with pytest.raises(ClientError, match="AccessDenied"):
        stack.client("sqs").send_message(QueueUrl=stack.outputs[queue], MessageBody="{}")


def test_the_schedule_of_no_clusters_ends_well(stack):
    answer = stack.client("lambda").invoke(
        FunctionName=stack.outputs["ScheduleFunction"], Payload=b"{}"
    )
    assert "FunctionError" not in answer, stack.complaints()
    assert within(5, lambda: "ResyncFinished" in stack.log.read_text())


def test_a_wake_up_for_nobody_is_nothing_to_do(stack):
    record = {"messageId": "1", "body": json.dumps({"cluster": "nobody"}), "attributes": {}}
    answer = stack.client("lambda").invoke(
        FunctionName=stack.outputs["DrainsFunction"], Payload=json.dumps({"Records": [record]})
    )
    assert "FunctionError" not in answer, stack.complaints()
    message = "wake-up for a cluster that is not registered"
    assert within(60, lambda: logged(stack, message)), stack.complaints()


@pytest.fixture
def shop(stack):
    """A registered cluster with a node of each capacity, and a workload with an on-demand floor."""
    clock = SystemClock()
    cluster = FakeCluster(now=clock.now())
    for name, capacity in (("od-0", "on-demand"), ("m5-0", "spot"), ("c5-0", "spot")):
        labels = {CAPACITY_LABELS[0]: capacity, INSTANCE_TYPE: f"{name.partition('-')[0]}.large"}
        cluster.join(a_node(name, **labels), now=clock.now())
    web = a_deployment("web", 3)
    web["metadata"]["annotations"] = {MIN_ON_DEMAND: "1"}
    cluster.apply([web], now=clock.now())
    fleet = Fleet("shop", [], seed=0, now=NOW)
    with (
        AwsFleet([fleet], clock=clock.now, lock=RLock()) as aws,
        FakeApiServer(cluster) as server,
    ):
        Stack(stack, aws).register("shop", Access(url=server.url, token=server.token))
        yield cluster
        table = stack.outputs["ClustersTable"]
        stack.client("dynamodb").delete_item(TableName=table, Key={"cluster": {"S": "shop"}})


@pytest.fixture
def every_minute(stack):
    """The schedule of placement, at the fastest rate that EventBridge has."""
    events = stack.client("events")
    rules = events.list_rules()["Rules"]
    [rule] = [r for r in rules if r.get("ScheduleExpression") == "rate(5 minutes)"]
    events.put_rule(Name=rule["Name"], ScheduleExpression="rate(1 minute)", State="ENABLED")
    yield
    events.put_rule(Name=rule["Name"], ScheduleExpression="rate(5 minutes)", State="ENABLED")


@pytest.mark.usefixtures("every_minute")
@pytest.mark.parametrize(
    "stack",
    [MINISTACK, pytest.param("LocalStack", marks=[pytest.mark.localstack, pytest.mark.long])],
    indirect=True,
)
def test_the_schedule_runs_the_deployed_placement(stack, shop):
    def labelled():
        nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in shop.store.all("nodes")}
        values = {name: labels.get(label_key(Layout(1, 2))) for name, labels in nodes.items()}
        return values == {"od-0": "on-demand", "m5-0": "spot-2", "c5-0": "spot-1"}

    assert within(400, labelled), stack.complaints()
