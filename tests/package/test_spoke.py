"""infra/spoke.yaml beside the hub's template: what is forwarded is taken, and what is assumed may be."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from plimsoll_cli.probes.iam_requests import Request
from plimsoll_cli.stack import CLUSTER_ROLES
from tests.package.rendered import ACCOUNT, rendered
from tests.package.template import listed, template
from tests.support.iam_evaluator import Decision, decide

SPOKE = "infra/spoke.yaml"
OTHER = "210987654321"


def spoke(kind: str) -> dict[str, Any]:
    found = template(SPOKE)["Resources"]
    return {name: r["Properties"] for name, r in found.items() if r["Type"] == kind}


def rights_of(role: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        s.get("Fn::If", [None, s])[1]
        for p in role["Policies"]
        for s in p["PolicyDocument"]["Statement"]
    ]


def test_all_that_is_forwarded_is_taken_by_a_rule_of_the_hub_in_the_name_of_that_account():
    hub = rendered("AWS::Events::Rule", SpokeAccounts=OTHER)
    for name, rule in spoke("AWS::Events::Rule").items():
        for kind in rule["EventPattern"]["detail-type"]:
            takes = [
                r["EventPattern"] for r in hub.values() if kind in r["EventPattern"]["detail-type"]
            ]
            assert takes, f"{name}: nobody takes {kind}"
            assert OTHER in takes[0]["account"]
            assert takes[0].get("detail") == rule["EventPattern"].get("detail")
            assert set(takes[0]["source"]) <= set(rule["EventPattern"]["source"])


def test_without_spokes_nobody_else_is_heard():
    rules = rendered("AWS::Events::Rule").values()
    assert {a for rule in rules for a in rule["EventPattern"]["account"]} == {ACCOUNT}
    assert rendered("AWS::Events::EventBusPolicy") == {}
    roles = rendered("AWS::IAM::Role").values()
    assert not [s for role in roles for s in rights_of(role) if s["Action"] == "sts:AssumeRole"]


def test_spokes_may_send_what_aws_says_and_no_event_of_ours():
    [policy] = rendered("AWS::Events::EventBusPolicy", SpokeAccounts=OTHER).values()
    said = policy["Statement"]
    assert said["Principal"] == {"AWS": [OTHER]}
    sources = said["Condition"]["StringEquals"]["events:source"]
    assert all(source.startswith("aws.") for source in sources)
    forwarded = {
        s for r in spoke("AWS::Events::Rule").values() for s in r["EventPattern"]["source"]
    }
    assert set(sources) == forwarded


def test_the_functions_may_assume_the_role_of_a_spoke_and_no_other():
    roles = rendered("AWS::IAM::Role", SpokeAccounts=OTHER)
    name = spoke("AWS::IAM::Role")["Role"]["RoleName"]["Fn::Sub"].replace(
        "${AWS::Region}", "eu-west-1"
    )
    for logical in ("NoticesRole", "DrainsRole", "SweepRole", "PlacementRole"):
        [may] = [s for s in rights_of(roles[logical]) if s["Action"] == "sts:AssumeRole"]
        assert fnmatch.fnmatchcase(f"arn:aws:iam::{OTHER}:role/{name}", may["Resource"])
        assert not fnmatch.fnmatchcase(f"arn:aws:iam::{OTHER}:role/admin", may["Resource"])
    assert not [s for s in rights_of(roles["ScheduleRole"]) if s["Action"] == "sts:AssumeRole"]


def test_the_role_asks_for_the_external_id_and_for_one_of_the_four_roles_of_the_hub():
    [trust] = spoke("AWS::IAM::Role")["Role"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"]["StringEquals"] == {"sts:ExternalId": {"Ref": "ExternalId"}}
    *functions, people = trust["Condition"]["ArnLike"]["aws:PrincipalArn"]
    trusted = {f["Fn::Sub"].rpartition("role/")[2] for f in functions}
    assert trusted == {f"${{HubStack}}-{role}-*" for role in CLUSTER_ROLES}
    assert people == {"Fn::If": ["HasPeople", {"Ref": "People"}, {"Ref": "AWS::NoValue"}]}


@pytest.mark.parametrize("role", CLUSTER_ROLES)
def test_a_role_of_that_name_in_an_account_that_is_no_spoke_is_not_assumed(role: str):
    held = rendered("AWS::IAM::Role", SpokeAccounts=f"{OTHER},222222222222")[role]["Policies"]
    policies = [policy["PolicyDocument"] for policy in held]
    for account, decision in {
        OTHER: Decision.ALLOWED,
        "222222222222": Decision.ALLOWED,
        "333333333333": Decision.NOT_ALLOWED,
    }.items():
        request = Request(
            action="sts:AssumeRole",
            resource=f"arn:aws:iam::{account}:role/plimsoll-spoke-us-east-1",
            context={"aws:ResourceAccount": account},
        )
        assert decide(policies, request) is decision, account


def test_events_are_forwarded_for_rules_of_the_spokes_stack_and_no_others():
    [trust] = spoke("AWS::IAM::Role")["Forward"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    source = trust["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Sub"]
    assert source.endswith("events:${AWS::Region}:${AWS::AccountId}:rule/${AWS::StackName}-*")
    names = {rule.get("Name") for rule in spoke("AWS::Events::Rule").values()}
    assert names == {None}, (
        "CloudFormation names a rule by the stack only where the template does not"
    )


def test_the_role_of_a_spoke_may_what_notices_drain_and_resync_may_in_their_own_account():
    def of(found: list[dict[str, Any]]) -> dict[str, Any]:
        services = ("arc-zonal-shift:", "ec2:", "autoscaling:", "eks:", "servicequotas:")
        return {
            action: s.get("Condition")
            for s in found
            for action in listed(s["Action"])
            if action.startswith(services)
        }

    own = [
        s
        for role in ("NoticesRole", "DrainsRole", "SweepRole")
        for p in rendered("AWS::IAM::Role")[role]["Policies"]
        if p["PolicyName"] in {"notices", "drains", "resync"}
        for s in p["PolicyDocument"]["Statement"]
    ]
    assert of(rights_of(spoke("AWS::IAM::Role")["Role"])) == of(own)


def test_of_queues_the_role_reads_only_those_that_the_parameter_names_and_without_it_none():
    held = spoke("AWS::IAM::Role")["Role"]["Policies"][0]["PolicyDocument"]["Statement"]
    [(condition, statement, none)] = [s["Fn::If"] for s in held if "Fn::If" in s]
    assert (condition, none) == ("HasQueue", {"Ref": "AWS::NoValue"})
    assert statement["Action"] == ["sqs:GetQueueUrl", "sqs:GetQueueAttributes"]
    assert statement["Resource"]["Fn::Sub"].endswith(":${AWS::AccountId}:${InterruptionQueue}")
    assert template(SPOKE)["Parameters"]["InterruptionQueue"]["Default"] == ""
    assert not [s for s in held if "Fn::If" not in s and "sqs:" in str(s["Action"])]
