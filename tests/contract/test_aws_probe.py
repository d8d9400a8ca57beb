"""What the doctor asks of AWS. Over moto, and over botocore's own stubs where moto knows nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.canaries import Canaries
from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import BadInput, NotFound, Refused
from plimsoll.domain.notices import Canary, parse
from plimsoll_cli.probes.aws import AwsProbe, Direct, Target, decision
from plimsoll_cli.probes.iam_requests import Case, Place, Request
from plimsoll_cli.stack import RESERVES, Stack, describe, roles
from tests.support.builders import a_group
from tests.support.cli_environment import a_cluster

ACCOUNT = "123456789012"
HARBOR = a_cluster()
TRUST = {"Version": "2012-10-17", "Statement": []}
TEMPLATE = json.dumps(
    {
        "Resources": {
            name: {
                "Type": "AWS::IAM::Role",
                "Properties": {"RoleName": f"the-{name}", "AssumeRolePolicyDocument": TRUST},
            }
            for name in ("NoticesRole", "SweepRole", "RedriveRole")
        }
    }
)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield Aws("us-east-1")


def probe_of(aws: Aws, **outputs: str) -> AwsProbe:
    stack = Stack(
        name="plimsoll",
        account=ACCOUNT,
        region="us-east-1",
        status="CREATE_COMPLETE",
        outputs=outputs,
        parameters={},
    )
    return AwsProbe(aws, stack, SystemClock())


def test_how_long_a_queue_holds_messages_back_is_read_by_its_name(aws: Aws):
    boto3.client("sqs").create_queue(QueueName="harbor", Attributes={"DelaySeconds": "15"})
    assert probe_of(aws).queue_delay(HARBOR, "harbor") == 15
    with pytest.raises(NotFound, match="DelaySeconds of the queue pier"):
        probe_of(aws).queue_delay(HARBOR, "pier")


def test_a_canary_on_the_bus_is_one_that_we_can_read(aws: Aws):
    events, sqs = boto3.client("events"), boto3.client("sqs")
    queue = sqs.create_queue(QueueName="notices")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    pattern = {"source": ["plimsoll.canary"], "detail-type": ["Plimsoll Canary"]}
    events.put_rule(Name="canaries", EventPattern=json.dumps(pattern))
    events.put_targets(
        Rule="canaries", Targets=[{"Id": "notices", "Arn": arn["Attributes"]["QueueArn"]}]
    )
    secret = boto3.client("secretsmanager").create_secret(Name="canaries", SecretString="key")
    Canaries(aws, secret["ARN"], SystemClock()).send("ask-1")
    (message,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    event = {
        "account": ACCOUNT,
        "id": "event",
        **json.loads(message["Body"]),
    }  # moto leaves some out
    (notice,) = parse(event, received=datetime.now(UTC))
    assert isinstance(notice, Canary)
    assert notice.name("key", datetime.now(UTC)) == "ask-1"
    assert notice.name("another", datetime.now(UTC)) is None


DENIED = "is not authorized to perform: sqs:sendmessage on resource: q"


@pytest.mark.parametrize(
    ("said", "direct"),
    [
        (f"{DENIED} with an explicit deny in a resource-based policy", Direct.BY_THE_QUEUE),
        (f"{DENIED} because no identity-based policy allows it", Direct.OTHERWISE),
        (None, Direct.TAKEN),
    ],
    ids=["by the queue", "otherwise", "taken"],
)
def test_a_message_past_the_rules_is_one_that_moves_nothing(
    aws: Aws, said: str | None, direct: Direct
):
    queue = boto3.client("sqs").create_queue(QueueName="notices")["QueueUrl"]
    probe = probe_of(aws, NoticesQueue=queue)
    if said is None:
        assert probe.send_past_the_rules("ask-1", datetime.now(UTC)) is direct
        (message,) = aws.sqs.receive_message(QueueUrl=queue)["Messages"]
        (notice,) = parse(message["Body"], received=datetime.now(UTC))
        assert isinstance(notice, Canary)
        return
    with Stubber(aws.sqs) as stub:
        stub.add_client_error("send_message", "AccessDenied", said)
        assert probe.send_past_the_rules("ask-1", datetime.now(UTC)) is direct


def test_how_rules_deliver_is_read_from_eventbridge(aws: Aws):
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:dead"
    target = {
        "Id": "notices",
        "Arn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:notices",
        "RetryPolicy": {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 185},
        "DeadLetterConfig": {"Arn": arn},
    }
    rule = {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "Name": "spot",
            "EventPattern": {"source": ["aws.ec2"]},
            "Targets": [target],
        },
    }
    boto3.client("cloudformation").create_stack(
        StackName="plimsoll", TemplateBody=json.dumps({"Resources": {"Spot": rule}})
    )
    (found,) = probe_of(aws).targets()
    assert found == Target(rule="spot", seconds=300, dead_letters=arn)


def test_a_canary_that_the_bus_does_not_take_is_refused(aws: Aws):
    boto3.client("secretsmanager").create_secret(Name="canaries", SecretString="key")
    answer = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "NotToday", "ErrorMessage": "no"}]}
    with Stubber(aws.events) as stub:
        stub.add_response("put_events", answer)
        with pytest.raises(Refused, match="NotToday: no"):
            Canaries(aws, "canaries", SystemClock()).send("ask-1")


def test_of_auto_scaling_groups_it_is_read_which_processes_are_suspended(aws: Aws):
    client = boto3.client("autoscaling")
    client.create_launch_configuration(
        LaunchConfigurationName="it", ImageId="ami-12c6146b", InstanceType="m5.large"
    )
    client.create_auto_scaling_group(
        AutoScalingGroupName="base",
        LaunchConfigurationName="it",
        MinSize=0,
        MaxSize=1,
        AvailabilityZones=["us-east-1a"],
    )
    client.suspend_processes(AutoScalingGroupName="base", ScalingProcesses=["Launch"])
    groups = [a_group("base"), a_group("managed", kind="eks-nodegroup"), a_group("gone")]
    found = probe_of(aws).group_settings(HARBOR, groups)
    assert set(found) == {"base"}
    assert found["base"].suspended == {"Launch"}


def test_the_roles_of_a_stack_are_those_of_its_functions(aws: Aws):
    boto3.client("cloudformation").create_stack(
        StackName="plimsoll", TemplateBody=TEMPLATE, Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    assert describe(aws, "plimsoll").status == "CREATE_COMPLETE"
    prefix = f"arn:aws:iam::{ACCOUNT}:role"
    assert roles(aws, "plimsoll") == [f"{prefix}/the-NoticesRole", f"{prefix}/the-SweepRole"]
    with Stubber(aws.eks) as eks:
        eks.add_response("describe_cluster", {"cluster": {"name": "harbor"}})
        known = {"accessEntry": {"kubernetesGroups": ["plimsoll"]}}
        eks.add_response("describe_access_entry", known)
        eks.add_client_error("describe_access_entry", "ResourceNotFoundException", "none")
        found = probe_of(aws).unknown_roles(HARBOR)
    assert found == [f"{prefix}/the-SweepRole"]


def test_a_role_in_another_group_is_a_stranger(aws: Aws):
    boto3.client("cloudformation").create_stack(
        StackName="plimsoll", TemplateBody=TEMPLATE, Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    with Stubber(aws.eks) as eks:
        eks.add_response("describe_cluster", {"cluster": {"name": "harbor"}})
        for _ in range(2):
            entry = {"accessEntry": {"kubernetesGroups": ["viewers"]}}
            eks.add_response("describe_access_entry", entry)
        assert len(probe_of(aws).unknown_roles(HARBOR)) == 2


def test_a_cluster_that_is_not_there_is_not_a_cluster_of_strangers(aws: Aws):
    with pytest.raises(NotFound, match="nowhere"):
        probe_of(aws).unknown_roles(replace(HARBOR, name="nowhere"))


def test_a_cluster_without_access_entries_is_sent_to_its_config_map(aws: Aws):
    config = {"accessConfig": {"authenticationMode": "CONFIG_MAP"}}
    with Stubber(aws.eks) as eks:
        eks.add_response("describe_cluster", {"cluster": config})
        with pytest.raises(Refused, match="aws-auth"):
            probe_of(aws).unknown_roles(HARBOR)


def test_a_stack_that_is_not_there_has_no_roles(aws: Aws):
    with pytest.raises(BadInput, match="nowhere does not exist"):
        roles(aws, "nowhere")


def test_to_a_cluster_in_another_account_comes_the_role_that_is_assumed_there(aws: Aws):
    role = "arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1"
    quay = replace(a_cluster("quay"), role=role, external_id="between-us-two")
    with Stubber(aws.of_cluster(quay).eks) as eks:
        eks.add_response("describe_cluster", {"cluster": {"name": "quay"}})
        eks.add_client_error("describe_access_entry", "ResourceNotFoundException", "none")
        assert probe_of(aws).unknown_roles(quay) == [role]


@pytest.mark.parametrize("said", ["allowed", "implicitDeny", "explicitDeny"])
def test_iam_simulates_one_request_of_a_deployed_role(said):
    iam = boto3.client(
        "iam", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="a"
    )
    place = Place(
        partition="aws",
        region="us-east-1",
        account=ACCOUNT,
        stack="plimsoll",
        names={"DrainsRole": "plimsoll-DrainsRole-1"},
    )
    group = "arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:*:autoScalingGroupName/a"
    request = Request(
        action="autoscaling:SetDesiredCapacity",
        resource=group,
        context={"aws:ResourceTag/plimsoll.dev/grow": "true"},
    )
    with Stubber(iam) as stub:
        stub.add_response(
            "simulate_principal_policy",
            {"EvaluationResults": [{"EvalActionName": request.action, "EvalDecision": said}]},
            {
                "PolicySourceArn": f"arn:aws:iam::{ACCOUNT}:role/plimsoll-DrainsRole-1",
                "ActionNames": ["autoscaling:SetDesiredCapacity"],
                "ResourceArns": [group],
                "ContextEntries": [
                    {
                        "ContextKeyName": "aws:ResourceTag/plimsoll.dev/grow",
                        "ContextKeyValues": ["true"],
                        "ContextKeyType": "string",
                    }
                ],
            },
        )
        case = Case(role="DrainsRole", request=request, allowed=True)
        assert decision(iam, place, case) == said
        stub.assert_no_pending_responses()


def test_what_is_reserved_for_the_functions_is_read_beside_the_quota(aws: Aws):
    limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 990}
    probe = probe_of(aws, **{name: f"the-{name}" for name in RESERVES["usual"]})
    reserve_of = {"FunctionName": "the-NoticesFunction", "ReservedConcurrentExecutions": 10}
    with Stubber(aws.client("lambda")) as stub:
        stub.add_response("put_function_concurrency", {}, reserve_of)
        probe.reserve("NoticesFunction", 10)
        stub.add_response("get_account_settings", {"AccountLimit": limit}, {})
        for name in RESERVES["usual"]:
            said = {"ReservedConcurrentExecutions": 10} if name == "NoticesFunction" else {}
            stub.add_response("get_function_concurrency", said, {"FunctionName": f"the-{name}"})
        found = probe.concurrency()
    assert (found.quota, found.unreserved) == (1000, 990)
    assert found.reserved == {**dict.fromkeys(RESERVES["usual"]), "NoticesFunction": 10}
