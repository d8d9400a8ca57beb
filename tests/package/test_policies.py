"""What IAM and SQS let through, by an evaluator of policies: first that it judges as AWS's pages say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput
from plimsoll_cli.probes.iam_requests import FUNCTIONS, Case, Place, Request, cases
from plimsoll_cli.stack import CLUSTER_ROLES
from tests.package.rendered import ACCOUNT, PARTITION, REGION, STACK, arn, rendered
from tests.package.template import listed, template
from tests.support.iam_evaluator import Decision, decide

ALLOWED, DENIED, NOT_ALLOWED = Decision
ROLE, QUEUE = "arn:aws:iam::123456789012:role/a", "arn:aws:sqs:us-east-1:123456789012:q"


def judged(condition: dict[str, Any], context: dict[str, str], **more: Any) -> Decision:
    statement = {"Effect": "Allow", "Action": "sqs:*", "Resource": "*", "Condition": condition}
    request = Request(action="sqs:SendMessage", resource=QUEUE, context=context)
    return decide([{"Statement": [statement | more]}], request)


# --- The evaluator ---------------------------------------------------------------------------------

OPERATORS = "reference_policies_elements_condition_operators"
SETS = "reference_policies_condition-single-vs-multi-valued-context-keys"
LOGIC = "reference_policies_evaluation-logic"


@pytest.mark.parametrize(
    ("page", "condition", "context", "holds"),
    [
        # StringEquals is "Exact matching, case sensitive"
        (OPERATORS, {"StringEquals": {"k": "true"}}, {"k": "true"}, True),
        (OPERATORS, {"StringEquals": {"k": "true"}}, {"k": "True"}, False),
        (OPERATORS, {"StringEquals": {"k": "a*"}}, {"k": "ab"}, False),
        # StringLike knows "multi-character match wildcards (*) and single-character match wildcards (?)" too
        (OPERATORS, {"StringLike": {"k": "a*c?"}}, {"k": "a--cd"}, True),
        (OPERATORS, {"StringLike": {"k": "a*c?"}}, {"k": "ac"}, False),
        # "Context key names are not case-sensitive"
        (OPERATORS, {"StringEquals": {"AWS:K": "x"}}, {"aws:k": "x"}, True),
        # Several values of a key are alternatives; of a negated operator, none may match.
        (OPERATORS, {"StringEquals": {"k": ["x", "y"]}}, {"k": "y"}, True),
        (OPERATORS, {"StringNotEquals": {"k": ["x", "y"]}}, {"k": "y"}, False),
        (OPERATORS, {"StringNotEquals": {"k": ["x", "y"]}}, {"k": "z"}, True),
        # Several keys and several operators must all hold.
        (OPERATORS, {"StringEquals": {"k": "x", "l": "y"}}, {"k": "x", "l": "z"}, False),
        (OPERATORS, {"StringEquals": {"k": "x"}, "Bool": {"l": "true"}}, {"k": "x"}, False),
        # "If the key … is not present in the request context, the values do not match and the
        # condition is false. If the policy condition requires that the key is not matched … true."
        (OPERATORS, {"StringEquals": {"k": "x"}}, {}, False),
        (OPERATORS, {"ArnNotEquals": {"aws:PrincipalArn": ROLE}}, {}, True),
        (OPERATORS, {"Bool": {"aws:ViaAWSService": "true"}}, {}, False),
        # With IfExists, "If the key is not present, evaluate the condition element as true."
        (OPERATORS, {"BoolIfExists": {"k": "false"}}, {}, True),
        (OPERATORS, {"BoolIfExists": {"k": "false"}}, {"k": "true"}, False),
        # ForAllValues "returns true if there are no context keys in the request"
        (SETS, {"ForAllValues:StringLike": {"k": "a#*"}}, {"k": "a#b"}, True),
        (SETS, {"ForAllValues:StringLike": {"k": "a#*"}}, {"k": "ab#c"}, False),
        (SETS, {"ForAllValues:StringLike": {"k": "a#*"}}, {}, True),
        (OPERATORS, {"Bool": {"k": "true"}}, {"k": "True"}, True),
        # "ArnEquals and ArnLike behave identically"; "Each of the six colon-delimited components of
        # the ARN is checked separately and each can include" wildcards.
        (OPERATORS, {"ArnEquals": {"k": "arn:aws:iam::*:role/a"}}, {"k": ROLE}, True),
        (OPERATORS, {"ArnLike": {"k": "arn:*"}}, {"k": ROLE}, False),
        (OPERATORS, {"ArnEquals": {"k": "arn:aws:iam::*:role/b"}}, {"k": ROLE}, False),
    ],
)
def test_a_condition_holds_as_the_page_of_aws_says(page, condition, context, holds):
    assert (judged(condition, context) is ALLOWED) is holds, page


@pytest.mark.parametrize(
    ("statements", "decision"),
    [
        # "By default, all requests are implicitly denied"
        ([], NOT_ALLOWED),
        ([("Allow", "sqs:sendmessage", "*")], ALLOWED),
        ([("Allow", "sqs:Send*", QUEUE[:-1] + "?")], ALLOWED),
        ([("Allow", "sqs:SendMessage", QUEUE + "2")], NOT_ALLOWED),
        ([("Allow", "sqs:ReceiveMessage", "*")], NOT_ALLOWED),
        # "An explicit deny … overrides any allows", whatever the order
        ([("Deny", "sqs:SendMessage", "*"), ("Allow", "sqs:*", "*")], DENIED),
        ([("Allow", "sqs:*", "*"), ("Deny", "sqs:SendMessage", QUEUE)], DENIED),
    ],
)
def test_statements_together_decide_as_the_page_of_aws_says(statements, decision):
    policy = {
        "Statement": [{"Effect": e, "Action": [a], "Resource": [r]} for e, a, r in statements]
    }
    request = Request(action="sqs:SendMessage", resource=QUEUE)
    assert decide([policy], request) is decision, LOGIC


@pytest.mark.parametrize(
    "more",
    [
        {"NotAction": "sqs:*"},
        {"Principal": {"AWS": "*"}},
        {"Condition": {"Null": {"k": "true"}}},
        {"Condition": {"ForAnyValue:StringEquals": {"k": "true"}}},
    ],
)
def test_what_the_evaluator_does_not_know_it_does_not_judge(more):
    with pytest.raises(BadInput, match="not judged here"):
        judged({}, {}, **more)


# --- The roles of the functions ----------------------------------------------------------------------

QUEUES = sorted(rendered("AWS::SQS::Queue"))
PLACE = Place(
    partition=PARTITION,
    region=REGION,
    account=ACCOUNT,
    stack=STACK,
    names={name: f"{STACK}-{name}" for name in (*QUEUES, *rendered("AWS::DynamoDB::Table"))}
    | {name: arn(name) for name in rendered("AWS::SecretsManager::Secret")},
)
CASES = cases(PLACE)


def policies_of(role: str, **parameters: str) -> list[Any]:
    held = rendered("AWS::IAM::Role", **parameters)[role]["Policies"]
    return [policy["PolicyDocument"] for policy in held]


def said(case: Case) -> str:
    verdict = "may" if case.allowed else "may-not"
    about = "-".join(case.request.context.values())
    return f"{case.role}-{verdict}-{case.request.action}-{case.request.resource}-{about}"


@pytest.mark.parametrize("case", CASES, ids=said)
def test_a_role_may_do_what_its_function_does_and_nothing_beside_it(case: Case):
    assert (decide(policies_of(case.role), case.request) is ALLOWED) is case.allowed


def test_every_right_of_a_function_is_asked_for_and_so_is_a_neighbour_of_it():
    """Rights that know no resource have no neighbour."""
    for role in FUNCTIONS:
        held = {
            action: statement
            for policy in policies_of(role)
            for statement in policy["Statement"]
            for action in listed(statement["Action"])
        }
        asked = {c.request.action for c in CASES if c.role == role and c.allowed}
        assert asked == set(held), role
        refused = {c.request.action for c in CASES if c.role == role and not c.allowed}
        services = {action.partition(":")[0] for action in refused}
        narrow = {action for action, s in held.items() if s["Resource"] != "*" or "Condition" in s}
        assert {action.partition(":")[0] for action in narrow} <= services, role


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:reports"


@pytest.mark.parametrize(
    ("secret", "decision"), [("plimsoll/lab-AbCdEf", ALLOWED), ("db-AbCdEf", NOT_ALLOWED)]
)
@pytest.mark.parametrize("role", CLUSTER_ROLES)
def test_a_customers_key_decrypts_the_secrets_of_clusters_and_no_others(role, secret, decision):
    about = {"kms:EncryptionContext:SecretARN": PLACE.arn("secretsmanager", f"secret:{secret}")}
    request = Request(action="kms:Decrypt", resource=KEY, context=about)
    assert decide(policies_of(role, SecretsKey=KEY), request) is decision
    assert decide(policies_of(role), request) is NOT_ALLOWED


def test_only_drain_resync_and_placement_announce_and_only_to_the_topic_that_was_given():
    for role in FUNCTIONS:
        own = ALLOWED if role in {"DrainsRole", "SweepRole", "PlacementRole"} else NOT_ALLOWED
        policies = policies_of(role, ReportTopic=TOPIC)
        assert decide(policies, Request(action="sns:Publish", resource=TOPIC)) is own
        other = Request(action="sns:Publish", resource=TOPIC + "2")
        assert decide(policies, other) is NOT_ALLOWED


# --- Who may send to the queues ----------------------------------------------------------------------


def send(
    queue: str, *, context: dict[str, str] | None = None, service: str | None = None
) -> Decision:
    """What a queue's policy decides on a message to it."""
    [policy] = [
        found["PolicyDocument"]
        for found in rendered("AWS::SQS::QueuePolicy").values()
        if found["Queues"] == [f"{STACK}-{queue}"]
    ]
    request = Request(action="sqs:SendMessage", resource=arn(queue), context=context or {})
    return decide([policy], request, service=service)


def by_role(name: str) -> dict[str, Any]:
    own = name in rendered("AWS::IAM::Role")
    principal = arn(name) if own else f"arn:aws:iam::{ACCOUNT}:{name}"
    return {"context": {"aws:PrincipalArn": principal, "aws:PrincipalIsAWSService": "false"}}


def by_service(service: str, source: str) -> dict[str, Any]:
    context = {"aws:SourceArn": source, "aws:PrincipalIsAWSService": "true"}
    return {"service": service, "context": context}


SENDERS = {
    "NoticesQueue": {"RedriveRole"},
    "NoticesDeadQueue": {"RedriveRole", "NoticesRole"},
    "WakeUpsQueue": {"NoticesRole", "DrainsRole", "SweepRole", "PlacementRole"},
    "WakeUpsDeadQueue": set(),
    "ResyncsQueue": {"ScheduleRole"},
    "ResyncsDeadQueue": set(),
}
PEOPLE = ("role/admin", "user/ann", "root", "role/plimsoll-NoticesRole-of-another-stack")


@pytest.mark.parametrize("queue", QUEUES)
def test_each_queue_names_its_senders_and_denies_all_others(queue):
    roles = {*rendered("AWS::IAM::Role"), *PEOPLE}
    denied = {role for role in roles if send(queue, **by_role(role)) is DENIED}
    assert denied == roles - SENDERS[queue]
    assert send(queue) is DENIED, "a request without a signature"


def rules() -> Iterator[str]:
    yield from rendered("AWS::Events::Rule")


@pytest.mark.parametrize("queue", ["NoticesQueue", "NoticesDeadQueue"])
def test_of_aws_only_the_rules_of_this_stack_send_notices_and_what_they_could_not_deliver(queue):
    assert {send(queue, **by_service("events.amazonaws.com", arn(rule))) for rule in rules()} == {
        ALLOWED
    }
    stranger = arn("InstanceNotices") + "2"
    assert send(queue, **by_service("events.amazonaws.com", stranger)) is NOT_ALLOWED
    for service in ("sns.amazonaws.com", "s3.amazonaws.com", "lambda.amazonaws.com"):
        assert send(queue, **by_service(service, arn("InstanceNotices"))) is NOT_ALLOWED


@pytest.mark.parametrize("queue", sorted(SENDERS.keys() - {"NoticesQueue", "NoticesDeadQueue"}))
def test_no_service_of_aws_sends_wake_ups_or_resyncs(queue):
    rule = arn("InstanceNotices")
    assert send(queue, **by_service("events.amazonaws.com", rule)) is NOT_ALLOWED


@pytest.mark.parametrize("name", ["template.yaml", "service.yaml"])
def test_nobody_may_put_messages_back_but_those_whom_a_parameter_names(name: str):
    """A trust in the whole account lets in everybody who may assume roles there."""
    stack = template(name)
    assert stack["Parameters"]["RedrivePrincipals"]["Default"] == ""
    empty = {"Fn::Equals": [{"Ref": "RedrivePrincipals"}, ""]}
    assert stack["Conditions"]["NobodyRedrives"] == empty
    trust = stack["Resources"]["RedriveRole"]["Properties"]["AssumeRolePolicyDocument"]
    [statement] = trust["Statement"]
    assert statement["Effect"] == {"Fn::If": ["NobodyRedrives", "Deny", "Allow"]}
    condition, _, named = statement["Principal"]["AWS"]["Fn::If"]
    assert (condition, named) == (
        "NobodyRedrives",
        {"Fn::Split": [",", {"Ref": "RedrivePrincipals"}]},
    )


def test_who_may_put_notices_back_may_do_nothing_else():
    policies = policies_of("RedriveRole")
    task = Request(action="sqs:StartMessageMoveTask", resource=arn("NoticesDeadQueue"))
    assert decide(policies, task) is ALLOWED
    back = Request(action="sqs:SendMessage", resource=arn("NoticesQueue"))
    assert decide(policies, back) is ALLOWED
    for action, queue in (
        ("sqs:SendMessage", "WakeUpsQueue"),
        ("sqs:ReceiveMessage", "NoticesQueue"),
        ("sqs:StartMessageMoveTask", "NoticesQueue"),
        ("sqs:SetQueueAttributes", "NoticesDeadQueue"),
    ):
        assert decide(policies, Request(action=action, resource=arn(queue))) is NOT_ALLOWED
