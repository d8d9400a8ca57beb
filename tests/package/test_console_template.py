"""The hosted console in the stack of the service: its routes, and what its roles may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.console import app
from functions.console_requests import PREFIX
from plimsoll_cli.probes.iam_requests import Request
from plimsoll_console.hosted.routes import ROUTES
from plimsoll_service.bootstrap import READER
from tests.package.template import listed, template
from tests.support.iam_evaluator import Decision, decide

RESOURCES: dict[str, Any] = template("service.yaml")["Resources"]
CONSOLE = RESOURCES["ConsoleFunction"]["Properties"]
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/t"
NO_SCREEN = ("GET", f"{PREFIX}/{{page+}}")
"""The gateway's own route for every other path: Chalice knows none that is greedy, and answers with a page."""


def statements(role: str) -> list[dict[str, Any]]:
    held = RESOURCES[role]["Properties"]["Policies"]
    plain = [policy for policy in held if "Fn::If" not in policy]
    return [
        statement["Fn::If"][1] if "Fn::If" in statement else statement
        for policy in plain
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def on(resource: str, role: str = "ConsoleRole") -> list[dict[str, Any]]:
    """The statements of a role about a resource, as if it were TABLE."""
    held = [each for each in statements(role) if resource in json.dumps(each["Resource"])]
    return [{"Statement": [{**each, "Resource": TABLE} for each in held]}]


def test_each_screen_is_declared_and_each_path_of_the_template_is_a_screen():
    declared = {
        (event["Properties"]["Method"], event["Properties"]["Path"])
        for event in CONSOLE["Events"].values()
    }
    routed = {(method, path) for path, methods in app.routes.items() for method in methods}
    assert declared == routed | {NO_SCREEN}
    assert {(r.method, f"{PREFIX}{r.path.rstrip('/')}") for r in ROUTES} <= routed


def test_the_gateway_asks_for_no_token_since_a_page_leads_to_the_sign_in():
    for name, event in CONSOLE["Events"].items():
        assert event["Properties"]["Auth"] == {"Authorizer": "NONE"}, name


def test_the_console_has_a_layer_a_role_and_a_reserve_of_its_own():
    others = [
        each["Properties"]
        for name, each in RESOURCES.items()
        if each["Type"] == "AWS::Serverless::Function" and name != "ConsoleFunction"
    ]
    assert CONSOLE["Layers"] == [{"Ref": "ConsoleLayer"}]
    assert not [each for each in others if "ConsoleLayer" in json.dumps(each)]
    assert not [each for each in others if each["Role"] == CONSOLE["Role"]]
    assert CONSOLE["ReservedConcurrentExecutions"]["Fn::If"][0] == "Reserved"


@pytest.mark.parametrize("kind", ["member", "invitation", "once"])
@pytest.mark.parametrize("action", ["GetItem", "PutItem", "UpdateItem"])
def test_of_members_it_only_counts(action: str, kind: str):
    request = Request(
        action=f"dynamodb:{action}", resource=TABLE, context={"dynamodb:LeadingKeys": f"{kind}#a"}
    )
    assert decide(on("MembersTable"), request) is Decision.NOT_ALLOWED


def test_it_reaches_no_data_of_tenants_no_key_and_no_token_by_its_own_role():
    said = json.dumps(statements("ConsoleRole"))
    for name in ("DocumentsTable", "AuditTable", "SnapshotsBucket", "TokenSecret", "Instruction"):
        assert name not in said


@pytest.mark.parametrize(
    ("role", "function", "tables", "policy"),
    [
        ("InterruptionReaderRole", "ConsoleRole", [0, 2, 1], "ForInterruptions"),
        ("ReportsReaderRole", "ApiRole", [0, 2], "ForReports"),
    ],
)
def test_an_interruption_stack_is_read_by_a_role_that_reads_nothing_else(
    role: str, function: str, tables: list[int], policy: str
):
    """Of its tables, in the order of InterruptionTables: clusters, frames, reports."""
    held = statements(role)
    read = [each["Resource"]["Fn::Sub"][1]["Table"]["Fn::Select"][0] for each in held]
    assert read == tables
    assert {action for s in held for action in listed(s["Action"])} == {
        "dynamodb:Scan",
        "dynamodb:Query",
    }
    (names,) = (s for s in held if s["Action"] == "dynamodb:Scan")
    assert names["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["cluster", "agent"]},
        "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }
    (trust,) = RESOURCES[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": {"Fn::GetAtt": [function, "Arn"]}}
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": READER}}
    assert RESOURCES[policy]["Properties"]["Roles"] == [{"Ref": function}]
    for name in (role, policy):
        assert RESOURCES[name]["Condition"] == "HasInterruptionTables"
