"""What the template and the code promise each other."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import fields
from datetime import timedelta
from importlib.metadata import version

import pytest

from plimsoll.config import Config
from plimsoll.domain.notices import CANARY_DETAIL_TYPE, CANARY_SOURCE, SERVICE_SOURCE
from plimsoll.domain.registry import RESYNC_EVERY
from plimsoll.domain.registry.resyncs import PREFLIGHT_EVERY
from plimsoll.domain.reports import Metric
from plimsoll.observability import NAMESPACE
from plimsoll.services import retry_policy
from plimsoll_cli.doctor.stack_checks import DELIVERY_SECONDS
from plimsoll_cli.stack import CLUSTER_ROLES
from tests.package.rendered import ACCOUNT, REGION, STACK, of_every_function, rendered
from tests.package.template import ROOT, functions, listed, resources, statements, template

READ_BY_POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL"}
READ_BY_LAMBDA = {"AWS_LAMBDA_EXEC_WRAPPER"}
READ_BY_THE_LAYER = {"OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_TIMEOUT"}
SET_BY_LAMBDA = {"AWS_REGION": REGION}


def test_every_environment_variable_is_a_field_of_the_configuration_and_the_other_way_round():
    given = set(template()["Globals"]["Function"]["Environment"]["Variables"])
    read = {field.name.upper() for field in fields(Config)}
    assert (
        given - READ_BY_POWERTOOLS - READ_BY_LAMBDA - READ_BY_THE_LAYER
        == read - SET_BY_LAMBDA.keys()
    )


def test_no_function_has_variables_of_its_own():
    assert not any("Environment" in f["Properties"] for f in functions().values())


def test_every_handler_exists():
    for function in functions().values():
        module, _, name = function["Properties"]["Handler"].rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_every_function_knows_the_name_of_every_table():
    config = Config.from_env({**of_every_function()["Environment"]["Variables"], **SET_BY_LAMBDA})
    assert config.tables == {name: f"{STACK}-{name}" for name in rendered("AWS::DynamoDB::Table")}


def test_every_queue_is_encrypted_and_states_its_message_size():
    for queue in resources("AWS::SQS::Queue").values():
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert queue["Properties"]["MaximumMessageSize"] == 1024 * 1024


def test_a_dead_letter_queue_keeps_messages_longer_than_its_source():
    queues = resources("AWS::SQS::Queue")
    for queue in queues.values():
        redrive = queue["Properties"].get("RedrivePolicy")
        if redrive:
            dead = queues[redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]["Properties"]
            assert dead["MessageRetentionPeriod"] > queue["Properties"]["MessageRetentionPeriod"]


def queue_of(event):
    return resources("AWS::SQS::Queue")[event["Properties"]["Queue"]["Fn::GetAtt"][0]]["Properties"]


def sqs_events():
    for name, function in functions().items():
        for event in function["Properties"]["Events"].values():
            if event["Type"] == "SQS":
                yield name, function["Properties"], event


def test_messages_outlive_the_function_that_handles_them():
    for name, function, event in sqs_events():
        assert queue_of(event)["VisibilityTimeout"] > function["Timeout"], name


def test_only_failed_messages_come_back():
    for name, _, event in sqs_events():
        assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name


def test_what_is_reserved_covers_what_queues_may_start():
    for name, function, event in sqs_events():
        reserved = function["ReservedConcurrentExecutions"]["Fn::If"][1]
        assert event["Properties"]["ScalingConfig"]["MaximumConcurrency"] == reserved, name


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("NoticesQueue", retry_policy.NOTICES),
        ("WakeUpsQueue", retry_policy.WAKE_UPS),
        ("ResyncsQueue", retry_policy.RESYNCS),
    ],
)
def test_queues_deliver_as_the_retry_policy_says(name, policy):
    queue = resources("AWS::SQS::Queue")[name]["Properties"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == policy.attempts
    assert queue["VisibilityTimeout"] == policy.visibility_seconds


def test_a_resync_is_asked_for_as_often_as_a_request_says_and_ends_before_the_next():
    events = functions()["ScheduleFunction"]["Properties"]["Events"]
    assert {name: event["Properties"]["Schedule"] for name, event in events.items()} == {
        "EveryMinute": "rate(1 minute)",
        "EveryHour": "rate(1 hour)",
        "Canary": "rate(15 minutes)",
    }
    assert (timedelta(minutes=1), timedelta(hours=1)) == (RESYNC_EVERY, PREFLIGHT_EVERY)
    assert json.loads(events["EveryHour"]["Properties"]["Input"]) == {"ask": "preflight"}
    assert json.loads(events["Canary"]["Properties"]["Input"]) == {"ask": "canary"}
    assert functions()["SweepFunction"]["Properties"]["Timeout"] < RESYNC_EVERY.total_seconds()


# --- Tables --------------------------------------------------------------------------------------


def test_nobody_deletes_a_table_in_passing_that_outlives_the_stack():
    for name, table in resources("AWS::DynamoDB::Table").items():
        kept = table["DeletionPolicy"].startswith("Retain")
        assert table["Properties"].get("DeletionProtectionEnabled", False) is kept, name


def test_each_table_but_the_index_that_a_minute_rebuilds_can_be_restored():
    recovered = {
        name
        for name, table in rendered("AWS::DynamoDB::Table").items()
        if table.get("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    }
    assert recovered == rendered("AWS::DynamoDB::Table").keys() - {"NodesTable"}


# --- Rules ---------------------------------------------------------------------------------------


def rules(*, drills):
    return rendered("AWS::Events::Rule", AcceptDrills=str(drills).lower())


def patterns(*, drills):
    return [(name, rule["EventPattern"]) for name, rule in rules(drills=drills).items()]


def matches(pattern, event):
    return all(
        matches(wanted, event.get(key, {}))
        if isinstance(wanted, dict)
        else event.get(key) in wanted
        for key, wanted in pattern.items()
    )


EVENTS = {
    path.stem: json.loads(path.read_text()) for path in (ROOT / "tests/events").glob("*.json")
}
ON_THE_BUS = {name: event for name, event in EVENTS.items() if "detail-type" in event}
LEFT_TO_THE_RESYNC = {"state-change-running"}
NEVER_A_DRILL = {"canary", "interruption-taint"}


@pytest.mark.parametrize("name", sorted(ON_THE_BUS))
@pytest.mark.parametrize("drill", [False, True], ids=["by AWS", "in a drill"])
def test_exactly_one_rule_takes_each_event(name, drill):
    event = ON_THE_BUS[name] | {"account": ACCOUNT}
    if drill:
        event["source"] = "plimsoll.drill"
    taken = [rule for rule, pattern in patterns(drills=drill) if matches(pattern, event)]
    nobody = name in LEFT_TO_THE_RESYNC or (drill and name in NEVER_A_DRILL)
    assert len(taken) == (0 if nobody else 1)


@pytest.mark.parametrize("name", sorted(ON_THE_BUS))
def test_no_rule_takes_an_event_of_another_account(name):
    event = ON_THE_BUS[name] | {"account": "999988887777"}
    assert not [rule for rule, pattern in patterns(drills=True) if matches(pattern, event)]


def test_what_is_not_delivered_within_five_minutes_is_kept():
    for name, rule in rules(drills=False).items():
        [target] = rule["Targets"]
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == DELIVERY_SECONDS, name
        assert target["DeadLetterConfig"]["Arn"].endswith("NoticesDeadQueue"), name


def test_drills_are_let_in_only_where_the_parameter_says_so():
    assert template()["Parameters"]["AcceptDrills"]["Default"] == "false"
    ours = {CANARY_SOURCE, SERVICE_SOURCE}  # neither moves anything by itself
    for _, pattern in patterns(drills=False):
        assert all(s.startswith("aws.") or s in ours for s in pattern["source"])


def test_the_scheduled_canary_is_taken_by_a_rule_and_may_be_nothing_else():
    event = {"source": CANARY_SOURCE, "detail-type": CANARY_DETAIL_TYPE, "account": ACCOUNT}
    assert [rule for rule, pattern in patterns(drills=False) if matches(pattern, event)] == [
        "Canaries"
    ]
    [(role, only)] = [
        (name, statement["Condition"])
        for name, role in rendered("AWS::IAM::Role").items()
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "events:PutEvents"
    ]
    assert role == "ScheduleRole"
    assert only["StringEquals"] == {
        "events:source": CANARY_SOURCE,
        "events:detail-type": CANARY_DETAIL_TYPE,
    }


def test_the_secret_of_canaries_is_generated_and_readers_of_the_stack_see_its_name_only():
    [(name, secret)] = rendered("AWS::SecretsManager::Secret").items()
    assert secret["GenerateSecretString"]["PasswordLength"] == 64
    assert "SecretString" not in secret
    given = template()["Globals"]["Function"]["Environment"]["Variables"]["CANARY_SECRET"]
    assert given == {"Fn::GetAtt": [name, "Id"]}
    assert "resolve:secretsmanager" not in (ROOT / "template.yaml").read_text()
    readers = {role for role, s in statements() if s["Resource"] == given}
    assert readers == {"NoticesRole", "ScheduleRole"}


# --- Roles ---------------------------------------------------------------------------------------

PLATFORM = {  # what Lambda itself does in a function's name
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
    "ec2:CreateFleet",  # by LaunchInstances
    "kms:Decrypt",  # by GetSecretValue, where the owner's key encrypts
}
BY_PEOPLE = {  # with the rights of who types it
    "dynamodb:DeleteItem",  # `plimsoll clusters remove`
    "eks:DescribeAccessEntry",  # `plimsoll doctor`
}
NOT_OURS = {"RedriveRole"}  # people take it, and no function
CALL = re.compile(
    r"(?:aws(?:\(\))?\.|(?=sts\(\)))([a-z0-9_]+)(?:\(\))?\.(?:get_paginator\(\s*\"(\w+)\"|([a-z]+_\w+|[a-z]+(?=\()))"
)
BY_BATCH = {"SendMessageBatch": "SendMessage"}  # a batch needs the right to the single call


def calls():
    """`service:Action` for every AWS call that an adapter makes."""
    found = set()
    for path in (ROOT / "layers/core/plimsoll/adapters").rglob("*.py"):
        if path.name == "aws.py":  # makes the clients, calls none
            continue
        for service, paginated, called in CALL.findall(path.read_text()):
            action = "".join(word.title() for word in (paginated or called).split("_"))
            found.add(f"{service.replace('_', '-')}:{BY_BATCH.get(action, action)}")
    return {call for call in found if not call.startswith("session:")}


def test_the_roles_hold_the_rights_that_the_code_uses_and_no_others():
    held = {a for role, s in statements() if role not in NOT_OURS for a in listed(s["Action"])}
    assert held - PLATFORM == calls() - BY_PEOPLE


def test_every_function_has_a_role_of_its_own():
    roles = [f["Properties"]["Role"]["Fn::GetAtt"][0] for f in functions().values()]
    assert sorted(roles) == sorted(set(resources("AWS::IAM::Role")) - NOT_OURS)


def test_no_right_is_written_with_a_wildcard():
    assert not [a for _, s in statements() for a in listed(s["Action"]) if "*" in a]


def test_every_wildcard_resource_has_a_reason_beside_it():
    lines = (ROOT / "template.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        if re.search(r"Resource: (\"\*\"|!Sub arn:.*\*)", line):
            near = " ".join(lines[number - 3 : number + 1])
            assert "#" in near, f"template.yaml:{number + 1}: {line.strip()}"


def test_the_roles_that_come_to_clusters_are_those_of_the_functions():
    roles = {f["Properties"]["Role"]["Fn::GetAtt"][0] for f in functions().values()}
    assert {*CLUSTER_ROLES, "ScheduleRole"} == roles


def test_the_stack_says_the_version_of_the_package():
    assert template()["Outputs"]["Version"]["Value"] == version("plimsoll")


# --- Alarms --------------------------------------------------------------------------------------


def test_every_alarm_has_a_heading_in_the_runbook_and_every_heading_an_alarm():
    runbook = (ROOT / "docs/operate/alarms.md").read_text()
    [chapter] = re.findall(r"^## Alarms$(.*?)(?=^## |\Z)", runbook, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^### (\w+)$", chapter, re.MULTILINE)) == set(
        resources("AWS::CloudWatch::Alarm")
    )


def test_alarms_on_our_metrics_name_metrics_that_exist():
    for name, alarm in resources("AWS::CloudWatch::Alarm").items():
        properties = alarm["Properties"]
        if not properties["Namespace"].startswith("AWS/"):
            assert properties["Namespace"] == NAMESPACE, name
            assert properties["MetricName"] in set(Metric), name


def test_functions_export_opentelemetry_only_where_a_layer_for_it_is_named():
    layer = "arn:aws:lambda:us-east-1:901920570463:layer:aws-otel-python-amd64-ver-1-32-0:2"
    plain, exporting = of_every_function(), of_every_function(TelemetryLayer=layer)
    told = exporting["Environment"]["Variables"]
    assert told.keys() - plain["Environment"]["Variables"] == READ_BY_LAMBDA | READ_BY_THE_LAYER
    assert told["AWS_LAMBDA_EXEC_WRAPPER"] == "/opt/otel-instrument"
    assert float(told["OTEL_EXPORTER_OTLP_TIMEOUT"]) <= 1  # an answer waits for the export
    assert exporting["Layers"] == [*plain["Layers"], layer]
    assert all("Layers" not in each["Properties"] for each in functions().values())
