"""What the service puts on the bus is taken by the rule of the interruption path, and read there."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.domain.errors import Temporary
from plimsoll.domain.notices import InterruptionTaint, parse
from plimsoll.domain.registry import agent_of
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.bus import EventBridgeBus
from tests.contract.conftest import Answers
from tests.package.rendered import rendered
from tests.package.template import template

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def aws(moto_aws: Aws) -> ServiceAws:
    return ServiceAws("us-east-1")


def delivered(
    aws: ServiceAws, rule: dict[str, Any], say: Callable[[EventBridgeBus], None]
) -> list[Any]:
    """A queue behind a rule of a template, and what came into it."""
    url = aws.sqs.create_queue(QueueName="notices")["QueueUrl"]
    arn = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    pattern = {k: v for k, v in rule["EventPattern"].items() if k != "account"}  # moto has its own
    aws.events.put_rule(Name="taints", EventPattern=json.dumps(pattern))
    queue = arn["Attributes"]["QueueArn"]
    aws.events.put_targets(Rule="taints", Targets=[{"Id": "notices", "Arn": queue}])
    say(EventBridgeBus(aws=aws))
    return aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])


def test_the_interruption_path_reads_what_the_service_forwards(aws: ServiceAws):
    rule = rendered("AWS::Events::Rule", AcceptDrills="false")["InterruptionTaints"]
    seen = ["i-0123456789abcdef0", "i-0123456789abcdef1"]
    [message] = delivered(aws, rule, lambda bus: bus.forward("a-shop", seen))
    event = json.loads(message["Body"]) | {"account": "123456789012"}  # which moto leaves out
    said = parse(event, received=NOW)
    assert [(n.agent, n.instance) for n in said if isinstance(n, InterruptionTaint)] == [
        ("a-shop", "i-0123456789abcdef0"),
        ("a-shop", "i-0123456789abcdef1"),
    ]


def test_the_queues_read_what_the_service_says_of_them(aws: ServiceAws):
    rule = template("batch.yaml")["Resources"]["QueueChanges"]["Properties"]
    messages = delivered(aws, rule, lambda bus: bus.queue_changed("a-shop"))
    assert [agent_of(message["Body"]) for message in messages] == ["a-shop"]


def test_an_entry_that_the_bus_refuses_is_no_success(aws: ServiceAws):
    refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}
    Answers(aws, "events", "PutEvents", refused)
    with pytest.raises(Temporary, match="ThrottlingException"):
        EventBridgeBus(aws=aws).forward("a-shop", ["i-0123456789abcdef0"])
