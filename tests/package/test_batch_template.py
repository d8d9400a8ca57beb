"""The stack of the queues: what it declares is what its code needs, and no more."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

from functions.batch import END_SECONDS
from plimsoll.domain.errors import BadInput
from plimsoll.domain.notices import SERVICE_SOURCE, TABLE
from plimsoll.domain.registry import QUEUE_CHANGE_DETAIL_TYPE
from plimsoll_batch.config import Config
from plimsoll_batch.services.queues import PLAN_SECONDS
from plimsoll_batch.services.scale_up import KIND
from tests.package.template import ROOT, listed, statements, template

BATCH = template("batch.yaml")
RESOURCES: dict[str, Any] = BATCH["Resources"]
RIGHTS = {
    "BatchRole": {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "eks:DescribeCluster",
        "secretsmanager:GetSecretValue",
    },
    "ScheduleRole": {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "dynamodb:Scan",
        "sqs:SendMessage",
    },
    "EventsRole": {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "dynamodb:BatchGetItem",
        "dynamodb:Scan",
        "sqs:SendMessage",
    },
}
SENDERS = {
    "WakeUpsQueue": {"ScheduleRole", "EventsRole"},
    "WakeUpsDeadQueue": set[str](),
    "EventsQueue": set[str](),
}


def of(kind: str) -> dict[str, Any]:
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == kind}


@pytest.mark.parametrize("role", RIGHTS)
def test_a_role_may_do_what_its_function_does_and_nothing_to_everything(role):
    [policy] = (p for p in RESOURCES[role]["Properties"]["Policies"] if "Fn::If" not in p)
    statements = policy["PolicyDocument"]["Statement"]
    assert {a for s in statements for a in listed(s["Action"])} == RIGHTS[role]
    assert all(s["Resource"] != "*" for s in statements)


def added(condition: str) -> list[dict[str, Any]]:
    """The statements of the policy that a parameter adds."""
    policies = {
        role: [p["Fn::If"] for p in RESOURCES[role]["Properties"]["Policies"] if "Fn::If" in p]
        for role in RIGHTS
    }
    assert {role for role, each in policies.items() if each} == {"BatchRole"}
    assert {each[0] for each in policies["BatchRole"]} == {"Grows", "KnowsTimes", "HasSecretsKey"}
    [[_, policy, otherwise]] = (each for each in policies["BatchRole"] if each[0] == condition)
    assert otherwise == {"Ref": "AWS::NoValue"}
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def growth() -> list[dict[str, Any]]:
    return added("Grows")


def test_observed_times_are_read_where_a_parameter_names_their_table_and_never_written():
    assert BATCH["Parameters"]["TimesTable"]["Default"] == ""
    named = {"Fn::Not": [{"Fn::Equals": [{"Ref": "TimesTable"}, ""]}]}
    assert BATCH["Conditions"]["KnowsTimes"] == named
    [statement] = added("KnowsTimes")
    assert statement["Action"] == "dynamodb:BatchGetItem"
    assert statement["Resource"]["Fn::Sub"].endswith(":table/${TimesTable}")


def test_a_customers_key_decrypts_the_secrets_of_clusters_and_no_others():
    assert BATCH["Parameters"]["SecretsKey"]["Default"] == ""
    assert BATCH["Conditions"]["HasSecretsKey"] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "SecretsKey"}, ""]}]
    }
    [statement] = added("HasSecretsKey")
    assert statement["Action"] == "kms:Decrypt"
    assert statement["Resource"] == {"Ref": "SecretsKey"}
    secrets = statement["Condition"]["StringLike"]["kms:EncryptionContext:SecretARN"]["Fn::Sub"]
    assert secrets.endswith(":${AWS::Region}:${AWS::AccountId}:secret:plimsoll/*")


@pytest.mark.parametrize("role", RIGHTS)
def test_every_right_of_a_role_is_bound_to_the_region_of_its_stack(role):
    for held in RESOURCES[role]["Properties"]["Policies"]:
        policy = held["Fn::If"][1] if "Fn::If" in held else held
        for statement in policy["PolicyDocument"]["Statement"]:
            for resource in re.findall(r"arn:[^'\"]+", json.dumps(statement["Resource"])):
                assert "${AWS::Region}" in resource


def test_groups_are_asked_only_where_a_parameter_says_so_and_their_owners_by_a_tag():
    assert BATCH["Parameters"]["GrowGroups"]["Default"] == "false"
    assert BATCH["Conditions"]["Grows"] == {"Fn::Equals": [{"Ref": "GrowGroups"}, "true"]}
    writes = {
        action: statement
        for statement in growth()
        for action in listed(statement["Action"])
        if not re.search(r":(Describe|List|Get|Query)", action)
    }
    by_tag = {"StringEquals": {"aws:ResourceTag/plimsoll.dev/grow": "true"}}
    asks = {
        "autoscaling:SetDesiredCapacity",
        "autoscaling:LaunchInstances",
        "eks:UpdateNodegroupConfig",
    }
    assert writes.keys() == asks | {"ec2:CreateFleet", "dynamodb:PutItem"}
    assert all(writes[action]["Condition"] == by_tag for action in asks)
    assert writes["ec2:CreateFleet"]["Condition"] == {"Bool": {"aws:ViaAWSService": "true"}}


def test_of_the_reports_the_planner_reads_and_writes_its_own_alone():
    [statement] = (s for s in growth() if "dynamodb:PutItem" in listed(s["Action"]))
    own = {"dynamodb:LeadingKeys": [f"{KIND}@*"]}
    assert statement["Condition"] == {"ForAllValues:StringLike": own}


def test_groups_are_read_with_the_rights_of_the_interruption_path_and_no_more():
    reads = {
        a
        for s in growth()
        for a in listed(s["Action"])
        if re.search(":(Describe|List|GetInstance)", a)
    }
    core = {a for _, s in statements() for a in listed(s["Action"])}
    assert reads < core
    everything = [a for s in growth() if s["Resource"] == "*" for a in listed(s["Action"])]
    assert all(a in reads or a == "ec2:CreateFleet" for a in everything)


def test_growing_needs_the_tables_of_the_other_stack():
    [rule] = BATCH["Rules"].values()
    assert rule["RuleCondition"] == BATCH["Conditions"]["Grows"]
    assert {"PoolsTable", "ReportsTable"} == set(
        re.findall("\\w+Table", str(rule["Assertions"][0]["Assert"]))
    )


@pytest.mark.parametrize("queue", SENDERS)
def test_nobody_else_may_send_to_a_queue(queue):
    said = RESOURCES[f"{queue}Policy"]["Properties"]["PolicyDocument"]["Statement"]
    [statement] = (s for s in said if s["Effect"] == "Deny")
    assert statement["Principal"] == "*"
    others = statement["Condition"].get("ArnNotEquals", {}).get("aws:PrincipalArn", [])
    let_in = {each["Fn::GetAtt"][0] for each in others if "Fn::If" not in each}
    assert let_in == SENDERS[queue]
    assert all(each["Fn::If"][0] == "Drills" for each in others if "Fn::If" in each)


def test_only_the_rules_of_this_stack_put_events_into_its_queue():
    said = RESOURCES["EventsQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    [statement] = (s for s in said if s["Effect"] == "Allow")
    sources = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert {each["Fn::GetAtt"][0] for each in sources} == set(of("AWS::Events::Rule"))


def test_an_event_that_failed_comes_back_while_it_is_worth_something():
    function, queue = RESOURCES["EventsFunction"]["Properties"], RESOURCES["EventsQueue"]
    seconds = queue["Properties"]["VisibilityTimeout"]
    assert function["Timeout"] < seconds
    assert queue["Properties"]["MessageRetentionPeriod"] > 5 * seconds


def test_the_rules_take_what_the_function_reads():
    taken = {
        name: (listed(rule["EventPattern"]["source"]), rule["EventPattern"]["detail-type"])
        for name, rule in of("AWS::Events::Rule").items()
    }
    assert taken["QueueChanges"] == ([SERVICE_SOURCE], [QUEUE_CHANGE_DETAIL_TYPE])
    sources, types = taken["InstanceNotices"]
    assert set(types) <= {kind for source, kind in TABLE if source in sources}


def test_the_variables_are_the_fields_of_the_settings():
    said = BATCH["Globals"]["Function"]["Environment"]["Variables"]
    ours = {name.lower() for name in said if not name.startswith("POWERTOOLS_")}
    assert ours | {"aws_region"} == {field.name for field in fields(Config)}


@pytest.mark.parametrize("rate", ["", "0", "-1", "many"])
def test_a_rate_that_is_none_is_refused_by_name(rate):
    said = {field.name.upper(): "x" for field in fields(Config)}
    said |= {"ACCEPT_DRILLS": "false", "GROW_GROUPS": "false"}
    with pytest.raises(BadInput, match="PODS_PER_SECOND"):
        Config.from_env(said | {"PODS_PER_SECOND": rate})


def test_every_handler_is_there():
    for function in of("AWS::Serverless::Function").values():
        module, _, name = function["Handler"].rpartition(".")
        assert callable(getattr(import_module(module), name))


def test_each_alarm_has_a_heading_on_the_page():
    page = (ROOT / "docs" / "operate" / "alarms.md").read_text(encoding="utf-8")
    for alarm in of("AWS::CloudWatch::Alarm"):
        assert f"### {alarm}\n" in page


def test_a_planner_ends_before_the_next_wake_up_comes():
    function, queue = RESOURCES["BatchFunction"]["Properties"], RESOURCES["WakeUpsQueue"]
    assert PLAN_SECONDS + END_SECONDS < function["Timeout"] < 60
    assert queue["Properties"]["VisibilityTimeout"] > function["Timeout"]


def test_it_shares_no_role_with_the_interruption_path():
    assert "ImportValue" not in json.dumps(BATCH)
