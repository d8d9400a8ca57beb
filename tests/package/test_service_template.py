"""The stack of the optimisation service: what it declares is what its code serves, needs and may do."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from functions.api import app
from functions.api_requests import FROM_ADDRESS_PER_MINUTE
from functions.authorizer import policy
from plimsoll.domain.errors import BadInput
from plimsoll.domain.notices import SERVICE_SOURCE, TAINT_DETAIL_TYPE
from plimsoll.domain.registry import QUEUE_CHANGE_DETAIL_TYPE
from plimsoll_cli.probes.iam_requests import Request
from plimsoll_service.adapters.members import MEMBERS, SUBJECTS
from plimsoll_service.config import Config
from plimsoll_service.domain.access import Grant, PersonRole, Principal, Role, granted_by_key
from plimsoll_service.domain.access.people import MOST_GROUPS
from plimsoll_service.domain.access.tenancy import (
    document_key,
    leading_key,
    session_policy,
    snapshot_key,
)
from plimsoll_service.domain.advice.advice_requests import CLOCKS_APART
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.domain.snapshots.rollups import Span
from plimsoll_service.openapi import OPERATIONS, document
from tests.package.template import ROOT, listed, template
from tests.support.iam_evaluator import Decision, decide

SERVICE = template("service.yaml")
RESOURCES: dict[str, Any] = SERVICE["Resources"]
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/documents"
AUDIT = "arn:aws:dynamodb:us-east-1:123456789012:table/audit"
BUCKET = "arn:aws:s3:::snapshots"
FUNCTION_ROLES = (
    "AuthorizerRole",
    "SignInRole",
    "ApiRole",
    "MetricsRole",
    "AdviceRole",
    "AdviceScheduleRole",
    "ConsoleRole",
)


REACHABLE = {"ApiFunction", "AuthorizerFunction", "ConsoleFunction", "SignInFunction"}
"""Functions that anybody can call."""
SCREENS = {
    (event["Properties"]["Method"], event["Properties"]["Path"])
    for event in RESOURCES["ConsoleFunction"]["Properties"]["Events"].values()
}


def of(kind: str) -> dict[str, Any]:
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == kind}


def statements(role: str) -> list[dict[str, Any]]:
    """What a role may, on a rig or in production, without conditional policies."""
    return [
        statement["Fn::If"][1] if "Fn::If" in statement else statement
        for held in RESOURCES[role]["Properties"]["Policies"]
        if "Fn::If" not in held
        for statement in held["PolicyDocument"]["Statement"]
    ]


# --- Routes ----------------------------------------------------------------------------------------


def declared() -> dict[tuple[str, str], bool]:
    """Method and path of each event -> whether a token is asked for."""
    told = [
        event["Properties"]
        for function in ("ApiFunction", "SignInFunction")
        for event in RESOURCES[function]["Properties"]["Events"].values()
    ]
    return {(e["Method"], e["Path"]): e.get("Auth", {}).get("Authorizer") != "NONE" for e in told}


def test_each_path_of_the_template_is_routed_and_each_route_declared():
    routed = {(method, path) for path, methods in app.routes.items() for method in methods}
    assert routed == set(declared())


def test_the_description_of_the_api_tells_of_each_route_and_of_who_may_ask():
    told = {(o.method, o.path): o.role is not None for o in OPERATIONS}
    told["GET", "/v1/openapi.json"] = False
    assert told == declared()
    paths = document()["paths"]
    described = {(m.upper(), path) for path, methods in paths.items() for m in methods}
    assert described == {(o.method, o.path) for o in OPERATIONS}


def test_the_names_of_the_operations_are_those_of_the_views():
    views = {methods[o.method].view_name for o in OPERATIONS for methods in [app.routes[o.path]]}
    assert views == {o.name for o in OPERATIONS}


def test_no_answer_of_the_authorizer_is_kept_so_that_whoever_is_revoked_is_out_at_once():
    auth = RESOURCES["Api"]["Properties"]["Auth"]
    assert auth["DefaultAuthorizer"] == "Holder"
    assert auth["Authorizers"]["Holder"]["Identity"]["ReauthorizeEvery"] == 0


def test_what_waits_for_the_issuer_takes_no_request_of_an_agent_along():
    """A slow issuer, and a flood of sign-ins, stay within a function and a reserve of their own."""
    said = {name: RESOURCES[name]["Properties"] for name in ("SignInFunction", "ApiFunction")}
    paths = {
        name: {event["Properties"]["Path"] for event in each["Events"].values()}
        for name, each in said.items()
    }
    assert paths["SignInFunction"] == {"/v1/issuer", "/v1/devices", "/v1/sessions"}
    assert said["SignInFunction"]["Timeout"] <= 29, "API Gateway waits no longer"


def test_who_needs_no_token_has_a_rate_of_its_own():
    """Else whoever floods these routes takes the rate of all."""
    settings = {
        (each["HttpMethod"], each["ResourcePath"].replace("~1", "/").removeprefix("/")): each
        for each in RESOURCES["Api"]["Properties"]["MethodSettings"]
    }
    anonymous = {route for route, has_token in declared().items() if not has_token} | SCREENS
    assert settings.keys() == {("*", "*"), *anonymous}
    for route in anonymous:
        assert settings[route]["ThrottlingRateLimit"] <= 50
        assert settings[route]["MetricsEnabled"]


def test_the_schedule_of_the_advice_reads_the_index_of_members_and_not_what_anybody_can_add():
    scans = [s["Resource"] for s in statements("AdviceScheduleRole") if "Scan" in str(s["Action"])]
    assert scans == [{"Fn::Sub": f"${{MembersTable.Arn}}/index/{SUBJECTS}"}]
    indexes = RESOURCES["MembersTable"]["Properties"]["GlobalSecondaryIndexes"]
    assert {index["IndexName"] for index in indexes} == {SUBJECTS, MEMBERS}
    # Nobody chooses a subject: it is written of those who were let in.
    assert all("subject" in str(index["KeySchema"]) for index in indexes)


def test_a_firewall_stands_before_what_needs_no_token_unless_it_is_turned_off():
    assert SERVICE["Parameters"]["WafRequestsPerAddress"]["Default"] >= 5 * FROM_ADDRESS_PER_MINUTE
    assert SERVICE["Conditions"]["HasWaf"] == {
        "Fn::Not": [{"Fn::Equals": [{"Ref": "WafRequestsPerAddress"}, 0]}]
    }
    (rule,) = RESOURCES["WebAcl"]["Properties"]["Rules"]
    scope = rule["Statement"]["RateBasedStatement"]["ScopeDownStatement"]
    counted = [each["ByteMatchStatement"] for each in scope["OrStatement"]["Statements"]]
    without_token = {o.path for o in OPERATIONS if o.role is None and o.method == "POST"}
    assert {each["SearchString"] for each in counted} == without_token | {"/console/sign-in/"}
    firewall = {name for name, each in RESOURCES.items() if "WAFv2" in each["Type"]}
    assert firewall == {"WebAcl", "WebAclOfApi"}
    assert {RESOURCES[name]["Condition"] for name in firewall} == {"HasWaf"}


# --- What a token opens ----------------------------------------------------------------------------

ARN = "arn:aws:execute-api:us-east-1:123456789012:api1/live/GET/v1/anything"


def holder(role: Role, subject: str) -> Principal:
    return Principal(
        subject=subject,
        tenant="acme",
        role=role,
        name="shop",
        kid="k",
        public_key=b"k" * 32,
        cluster_uid="u",
        grants=granted_by_key(role),
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("cluster", ["a-mine", "a-other"])
def test_a_token_opens_the_paths_of_its_role_and_an_agents_only_its_own_cluster(
    operation, role, cluster
):
    """The policy does not know the path that was asked: what is kept of it holds for any other."""
    said = policy(holder(role, "a-mine"), ARN)
    path = operation.path.format(**dict.fromkeys(operation.parts, "1") | {"cluster": cluster})
    request = Request(
        action="execute-api:Invoke",
        resource=f"arn:aws:execute-api:us-east-1:123456789012:api1/live/{operation.method}{path}",
    )
    decision = decide([said["policyDocument"]], request)
    own = role is Role.PERSON or cluster == "a-mine"
    if operation.role is role:
        assert (decision is Decision.ALLOWED) is own
    elif role is Role.AGENT:
        assert decision is not Decision.ALLOWED
    # a person's token passes the gate of an agent's reads, and is refused behind it


DECIDE = {"accept_recommendation", "dismiss_recommendation", "cancel_recommendation"}
ADMINISTER = {"list_members", "read_audit", "read_people", "end_access", "make_token"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("role", PersonRole)
def test_a_role_opens_what_it_is_for_and_what_the_roles_before_it_open(operation, role):
    if operation.role is not Role.PERSON:
        return
    person = replace(holder(Role.PERSON, "u-1"), grants=(Grant(role=role),))
    path = operation.path.format(**dict.fromkeys(operation.parts, "1"))
    request = Request(
        action="execute-api:Invoke",
        resource=f"arn:aws:execute-api:us-east-1:123456789012:api1/live/{operation.method}{path}",
    )
    least = PersonRole.VIEWER
    if operation.name in DECIDE:
        least = PersonRole.OPERATOR
    elif operation.name in ADMINISTER:
        least = PersonRole.ADMIN
    decision = decide([policy(person, ARN)["policyDocument"]], request)
    assert (decision is Decision.ALLOWED) is (role.rank >= least.rank)


def test_a_policy_of_most_bindings_fits_what_api_gateway_takes():
    """8 KiB: https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"""
    clusters = [frozenset(f"a-{n:024x}" for n in range(20)) for _ in range(MOST_GROUPS)]
    grants = tuple(Grant(role=PersonRole.OPERATOR, clusters=each) for each in clusters)
    said = policy(replace(holder(Role.PERSON, "u-1"), grants=grants), ARN)
    assert len(json.dumps(said)) < 8192


# --- Tenants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["GetItem", "PutItem", "DeleteItem", "Query"])
@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        (leading_key("acme", "a-1"), True),
        (leading_key("acme", ""), True),
        (leading_key("globex", "a-1"), False),
        (leading_key("acme-2", "a-1"), False),
        ("acme", False),
    ],
)
def test_a_session_of_one_tenant_reaches_no_row_of_another(action, key, allowed):
    said = json.loads(session_policy("acme", table=TABLE, audit=AUDIT, bucket=BUCKET))
    request = Request(
        action=f"dynamodb:{action}", resource=TABLE, context={"dynamodb:LeadingKeys": key}
    )
    assert (decide([said], request) is Decision.ALLOWED) is allowed


@pytest.mark.parametrize("action", ["Scan", "BatchGetItem", "UpdateItem", "PartiQLSelect"])
def test_a_session_may_not_ask_without_a_leading_key(action):
    """ForAllValues holds where there is no key at all, so what may go without one is not allowed."""
    said = json.loads(session_policy("acme", table=TABLE, audit=AUDIT, bucket=BUCKET))
    request = Request(action=f"dynamodb:{action}", resource=TABLE)
    assert decide([said], request) is Decision.NOT_ALLOWED


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        (snapshot_key("acme", "a-1", "e-1", 1), True),
        (snapshot_key("globex", "a-1", "e-1", 1), False),
        (snapshot_key("acme-2", "a-1", "e-1", 1), False),
        (snapshot_key("globex", "acme", "e-1", 1), False),
        (document_key("acme", "a-1", "x", None), True),
        *((document_key("acme", "a-1", "x", span.kept), True) for span in Span),
        *((document_key("globex", "acme", "x", span.kept), False) for span in Span),
        (document_key("globex", "acme", "x", None), False),
    ],
)
@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject"])
def test_a_session_of_one_tenant_reaches_no_object_of_another(action, key, allowed):
    said = json.loads(session_policy("acme", table=TABLE, audit=AUDIT, bucket=BUCKET))
    request = Request(action=action, resource=f"{BUCKET}/{key}")
    assert (decide([said], request) is Decision.ALLOWED) is allowed


@pytest.mark.parametrize("tenant", ["*", "a*", "acme#", "a/b", ""])
def test_no_policy_is_made_for_a_name_that_would_match_others(tenant):
    with pytest.raises(BadInput):
        session_policy(tenant, table=TABLE, audit=AUDIT, bucket=BUCKET)


def test_a_session_may_nothing_that_the_role_of_tenants_may_not():
    [rows, audit, objects] = statements("TenantRole")
    asked = json.loads(session_policy("acme", table=TABLE, audit=AUDIT, bucket=BUCKET))["Statement"]
    assert set(asked[0]["Action"]) == set(rows["Action"])
    assert set(asked[1]["Action"]) == set(audit["Action"])
    assert set(asked[2]["Action"]) == set(objects["Action"])


WRITES = ("PutItem", "UpdateItem", "DeleteItem")


@pytest.mark.parametrize("action", [*WRITES, "BatchWriteItem", "Query"])
@pytest.mark.parametrize("tenant", ["acme", "acme-2", "globex"])
def test_a_session_adds_and_reads_audit_rows_of_its_own_tenant_and_changes_none(action, tenant):
    said = json.loads(session_policy("acme", table=TABLE, audit=AUDIT, bucket=BUCKET))
    request = Request(
        action=f"dynamodb:{action}", resource=AUDIT, context={"dynamodb:LeadingKeys": tenant}
    )
    allowed = tenant == "acme" and action in {"PutItem", "Query"}
    assert (decide([said], request) is Decision.ALLOWED) is allowed


def test_no_role_of_the_stack_updates_or_deletes_an_audit_row():
    for role in (name for name, each in RESOURCES.items() if each["Type"] == "AWS::IAM::Role"):
        for statement in statements(role):
            if "AuditTable" in json.dumps(statement["Resource"]) or statement["Resource"] == "*":
                may = {a for a in listed(statement["Action"]) if a.startswith("dynamodb:")}
                assert may <= {"dynamodb:PutItem", "dynamodb:Query"}, role


@pytest.mark.parametrize("role", FUNCTION_ROLES)
def test_no_function_reaches_the_data_of_tenants_by_its_own_role(role):
    for statement in statements(role):
        said = json.dumps(statement["Resource"])
        assert "DocumentsTable" not in said
        assert "AuditTable" not in said
        assert "SnapshotsBucket" not in said
        assert not any(action.startswith("s3:") for action in listed(statement["Action"]))


def test_only_those_who_work_for_tenants_may_assume_their_role():
    trusted = RESOURCES["TenantRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    [statement] = trusted
    assert statement["Principal"]["AWS"] == [
        {"Fn::GetAtt": [role, "Arn"]}
        for role in ("ApiRole", "ConsoleRole", "MetricsRole", "AdviceRole")
    ]


MAY_OF_MEMBERS = {
    ("AuthorizerRole", "GetItem", "member"),
    ("ApiRole", "GetItem", "member"),
    ("ApiRole", "GetItem", "invitation"),
    ("ApiRole", "PutItem", "member"),
    ("ApiRole", "UpdateItem", "count"),
    ("ApiRole", "UpdateItem", "once"),
    ("SignInRole", "UpdateItem", "count"),
}


@pytest.mark.parametrize("kind", ["member", "invitation", "count", "once"])
@pytest.mark.parametrize("action", ["GetItem", "PutItem", "UpdateItem"])
@pytest.mark.parametrize("role", ["AuthorizerRole", "ApiRole", "SignInRole"])
def test_of_the_members_a_function_reaches_the_rows_that_it_works_with(role, action, kind):
    """The API lets in whom an operator invited; it cannot invite, and counts are no members."""
    held = [s for s in statements(role) if s["Resource"] == {"Fn::GetAtt": ["MembersTable", "Arn"]}]
    request = Request(
        action=f"dynamodb:{action}",
        resource=TABLE,
        context={"dynamodb:LeadingKeys": f"{kind}#a"},
    )
    decision = decide([{"Statement": [{**s, "Resource": TABLE} for s in held]}], request)
    assert (decision is Decision.ALLOWED) is ((role, action, kind) in MAY_OF_MEMBERS)


MAY_OF_PEOPLE = {
    ("AuthorizerRole", "Query", "#groups"),
    ("AuthorizerRole", "GetItem", "acme"),
    ("AuthorizerRole", "UpdateItem", "acme"),
    ("SignInRole", "Query", "#groups"),
    ("SignInRole", "PutItem", "acme"),
    ("ApiRole", "Query", "#groups"),
    ("ApiRole", "Query", "acme"),
    ("ApiRole", "PutItem", "acme"),
    ("ApiRole", "DeleteItem", "acme"),
    ("ConsoleRole", "Query", "#groups"),
    *(
        ("ConsoleRole", action, "acme")
        for action in ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")
    ),
}


@pytest.mark.parametrize("partition", ["#groups", "acme"])
@pytest.mark.parametrize("action", ["GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize("role", FUNCTION_ROLES)
def test_no_function_binds_a_group_and_each_does_with_sessions_what_it_is_for(
    role, action, partition
):
    held = [s for s in statements(role) if s["Resource"] == {"Fn::GetAtt": ["PeopleTable", "Arn"]}]
    request = Request(
        action=f"dynamodb:{action}",
        resource=TABLE,
        context={"dynamodb:LeadingKeys": partition},
    )
    decision = decide([{"Statement": [{**s, "Resource": TABLE} for s in held]}], request)
    assert (decision is Decision.ALLOWED) is ((role, action, partition) in MAY_OF_PEOPLE)


# --- Keys, variables, alarms -----------------------------------------------------------------------


@pytest.mark.parametrize("table", ["MembersTable", "PeopleTable", "DocumentsTable", "AuditTable"])
def test_nobody_deletes_a_table_in_passing_and_each_can_be_restored(table: str):
    said = RESOURCES[table]["Properties"]
    assert said["DeletionProtectionEnabled"]
    assert said["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]


def test_copies_of_a_tenant_that_was_removed_end_when_the_security_page_says():
    """DynamoDB keeps recovery copies for 35 days where a table names no other period."""
    for table in of("AWS::DynamoDB::Table").values():
        recovery = table["PointInTimeRecoverySpecification"]
        assert recovery.get("RecoveryPeriodInDays", 35) == 35
    assert "VersioningConfiguration" not in RESOURCES["SnapshotsBucket"]["Properties"]
    dead = of("AWS::SQS::Queue")["ArrivalsDeadQueue"]["MessageRetentionPeriod"] // 86400
    logs = SERVICE["Parameters"]["LogRetentionDays"]["Default"]
    page = (ROOT / "docs/operate/security.md").read_text("utf-8")
    said = re.search(
        r"recovery copies of the tables for (\d+) days, names in dead letters for (\d+) and in logs for `LogRetentionDays` \((\d+)\)",
        page,
    )
    assert said is not None
    assert [int(days) for days in said.groups()] == [35, dead, logs]


@pytest.mark.parametrize("key", ["InstructionKey", "SecondInstructionKey"])
def test_only_the_advice_may_sign_instructions(key: str):
    said = RESOURCES[key]["Properties"]["KeyPolicy"]["Statement"]
    may_sign = [
        s["Principal"]["AWS"]
        for s in said
        if any(a in {"kms:*", "kms:Sign", "kms:S*", "*"} for a in listed(s["Action"]))
    ]
    assert may_sign == [{"Fn::GetAtt": ["AdviceRole", "Arn"]}]
    for role in FUNCTION_ROLES:
        for statement in statements(role):
            assert not any(a.startswith("kms:") for a in listed(statement["Action"])), role


def test_what_anybody_can_reach_holds_no_key_of_instructions_in_production():
    """The secret of a rig stands behind a condition that production does not fulfil."""
    assert RESOURCES["RigInstructionSecret"]["Condition"] == "OnRig"
    for role in ("ApiRole", "AuthorizerRole", "MetricsRole"):
        for held in RESOURCES[role]["Properties"]["Policies"]:
            for statement in held.get("PolicyDocument", {}).get("Statement", []):
                if "Fn::If" in statement:
                    assert statement["Fn::If"][0] == "OnRig"
                elif "RigInstructionSecret" in json.dumps(statement):
                    pytest.fail(f"{role} reads the key of instructions")


def test_of_events_the_api_may_put_taints_and_changes_of_queues_only_but_on_a_rig():
    (statement,) = (s for s in statements("ApiRole") if s["Action"] == "events:PutEvents")
    on_rig, nothing, condition = statement["Condition"]["Fn::If"]
    assert (on_rig, nothing) == ("OnRig", {"Ref": "AWS::NoValue"})
    assert condition == {
        "StringEquals": {
            "events:source": SERVICE_SOURCE,
            "events:detail-type": [TAINT_DETAIL_TYPE, QUEUE_CHANGE_DETAIL_TYPE],
        }
    }


def test_the_variables_are_the_fields_of_the_settings():
    said = SERVICE["Globals"]["Function"]["Environment"]["Variables"]
    ours = {name.lower() for name in said if not name.startswith("POWERTOOLS_")}
    assert ours | {"aws_region"} == {field.name for field in fields(Config)}


def test_a_missing_variable_is_named():
    with pytest.raises(BadInput, match="MEMBERS_TABLE"):
        Config.from_env({})


def test_no_alarm_goes_by_what_a_caller_without_a_token_can_cause():
    """Refused tokens are errors of the authorizer, and what exceeds a cap is a fault to API Gateway.

    Of the rest, AWS counts queues that no stranger may send to and functions that they start; our own
    metrics leave strangers out, as tests of the functions show.
    """
    for name, alarm in of("AWS::CloudWatch::Alarm").items():
        (dimension,) = alarm["Dimensions"]
        match alarm["Namespace"]:
            case "AWS/SQS":
                assert dimension["Value"]["Fn::GetAtt"][0] in SENDERS, name
            case "AWS/Lambda":
                assert dimension["Value"]["Ref"] not in REACHABLE, name
            case "Plimsoll":
                assert alarm["MetricName"] in set(ServiceMetric), name
            case other:
                pytest.fail(f"{name}: {other}")


def test_each_queue_with_work_has_an_alarm_on_its_age():
    waiting = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in of("AWS::CloudWatch::Alarm").values()
        if alarm["MetricName"] == "ApproximateAgeOfOldestMessage"
    }
    assert waiting == {"ArrivalsQueue", "AdviceQueue"}
    age, queue = RESOURCES["AdviceWaiting"]["Properties"], of("AWS::SQS::Queue")["AdviceQueue"]
    assert age["Threshold"] < queue["MessageRetentionPeriod"], "it rings before a request is gone"


# --- Concurrency -----------------------------------------------------------------------------------


def test_what_requests_start_is_capped_and_what_queues_start_is_bounded():
    """The pool of the account is an interruption's too."""
    for name, function in of("AWS::Serverless::Function").items():
        if name in REACHABLE:
            reserved, cap, nothing = function["ReservedConcurrentExecutions"]["Fn::If"]
            assert (reserved, nothing) == ("Reserved", {"Ref": "AWS::NoValue"})
            assert cap["Fn::FindInMap"][1] == {"Ref": "Size"}
        else:
            (event,) = function["Events"].values()
            assert event["Type"] == "Schedule" or "ScalingConfig" in event["Properties"], name
    assert SERVICE["Parameters"]["ReserveConcurrency"]["Default"] == "true"


def test_each_alarm_has_a_heading_on_the_page():
    page = (ROOT / "docs" / "operate" / "alarms.md").read_text(encoding="utf-8")
    for alarm in of("AWS::CloudWatch::Alarm"):
        assert f"### {alarm}\n" in page


def test_a_request_for_advice_outlives_its_function_and_not_its_successors():
    queue, function = (
        of("AWS::SQS::Queue")["AdviceQueue"],
        RESOURCES["AdviceFunction"]["Properties"],
    )
    assert queue["VisibilityTimeout"] > function["Timeout"]
    assert function["Events"]["Requests"]["Properties"]["BatchSize"] == 1
    assert queue["DelaySeconds"] > CLOCKS_APART.total_seconds(), "the first of a burst answers it"
    schedule = RESOURCES["AdviceScheduleFunction"]["Properties"]["Events"]["EveryFiveMinutes"]
    assert schedule["Properties"]["Schedule"] == "rate(5 minutes)"
    assert queue["MessageRetentionPeriod"] >= 2 * queue["VisibilityTimeout"]


SENDERS = {
    "ArrivalsQueue": {"ApiRole", "RedriveRole"},
    "ArrivalsDeadQueue": {"MetricsRole"},
    "AdviceQueue": {"ApiRole", "ConsoleRole", "MetricsRole", "AdviceScheduleRole"},
    "AdviceDeadQueue": set[str](),
}


@pytest.mark.parametrize("queue", SENDERS)
def test_nobody_else_may_send_to_a_queue(queue):
    """The policy of the queue refuses whom it does not name, and the roles of those that it names may send."""
    [statement] = RESOURCES[f"{queue}Policy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    said = statement["Condition"].get("ArnNotEquals", {}).get("aws:PrincipalArn", [])
    named = {each["Fn::GetAtt"][0] for each in said if "Fn::GetAtt" in each}
    on_rig = [each["Fn::If"][0] for each in said if "Fn::If" in each]
    assert named == SENDERS[queue]
    assert set(on_rig) <= {"OnRig"}
    for role in (*FUNCTION_ROLES, "RedriveRole"):
        target = {"Fn::GetAtt": [queue, "Arn"]}
        sends = any(
            s["Resource"] == target and "sqs:SendMessage" in json.dumps(s["Action"])
            for s in statements(role)
        )
        assert sends is (role in SENDERS[queue]), role


@pytest.mark.parametrize("span", [*Span])
def test_the_bucket_keeps_a_rollup_as_long_as_it_is_read(span):
    assert deleted_after(document_key("acme", "a-1", "x", span.kept)) >= span.kept.days


def test_the_bucket_keeps_what_never_expires_and_what_outlives_every_rule():
    for needed in (None, timedelta(days=402)):
        assert deleted_after(document_key("acme", "a-1", "x", needed)) == math.inf


def test_the_bucket_deletes_snapshots_and_what_a_rollup_no_longer_needs():
    days = SERVICE["Parameters"]["SnapshotDays"]["Default"]
    assert deleted_after(snapshot_key("acme", "a-1", "e-1", 1)) == days
    assert deleted_after(document_key("acme", "a-1", "x", timedelta(hours=1))) <= 3


def deleted_after(key: str) -> float:
    """Return after how many days the bucket deletes an object; a tenant's name is no part of a rule."""
    rules = RESOURCES["SnapshotsBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    found = [rule["ExpirationInDays"] for rule in rules if key.startswith(rule["Prefix"])]
    default = SERVICE["Parameters"]["SnapshotDays"]["Default"]
    return min((default if isinstance(each, dict) else each for each in found), default=math.inf)


def test_each_queue_outlives_its_source_and_its_worker():
    queues = of("AWS::SQS::Queue")
    source, dead = queues["ArrivalsQueue"], queues["ArrivalsDeadQueue"]
    worker = RESOURCES["MetricsFunction"]["Properties"]
    assert source["VisibilityTimeout"] >= 6 * worker["Timeout"]
    assert worker["Events"]["Arrivals"]["Properties"]["BatchSize"] == 1, "a tenant waits for itself"
    assert dead["MessageRetentionPeriod"] > source["MessageRetentionPeriod"]
    kept = SERVICE["Parameters"]["SnapshotDays"]["Default"] * 86400
    assert kept > dead["MessageRetentionPeriod"], "a snapshot goes before the message that names it"
    assert all(queue["MaximumMessageSize"] == 1048576 for queue in queues.values())
