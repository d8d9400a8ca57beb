"""What CloudFormation says of a stack, and the command line over it. Over moto."""

from __future__ import annotations

import json

import boto3
import pytest
from click.testing import CliRunner
from moto import mock_aws

from plimsoll.adapters.aws import Aws
from plimsoll.domain.errors import BadInput, Refused, Temporary
from plimsoll_cli import main
from plimsoll_cli.stack import describe
from tests.package.template import requests_for_tables

TEMPLATE = json.dumps(
    {
        "Parameters": {"KillSwitch": {"Type": "String", "Default": "false"}},
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {"ClustersTable": {"Value": "clusters-123"}},
    }
)


@pytest.fixture(autouse=True)
def aws_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")


@mock_aws
def test_outputs_and_parameters_of_a_stack_are_read():
    boto3.client("cloudformation").create_stack(StackName="plimsoll", TemplateBody=TEMPLATE)
    stack = describe(Aws(), "plimsoll")
    assert stack.output("ClustersTable") == "clusters-123"
    assert stack.parameters["KillSwitch"] == "false"
    assert stack.region == "us-east-1"


@mock_aws
def test_an_output_that_is_missing_is_named_with_the_cure():
    boto3.client("cloudformation").create_stack(StackName="other", TemplateBody=TEMPLATE)
    with pytest.raises(BadInput, match=r"has no output NodesTable.*--stack"):
        describe(Aws(), "other").output("NodesTable")


@mock_aws
def test_a_stack_that_is_not_there_is_named_with_its_region_and_the_cure():
    with pytest.raises(BadInput, match=r"no stack nowhere in us-east-1.*--stack"):
        describe(Aws(), "nowhere")


def test_no_region_is_said_with_the_cure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(Refused, match="AWS_DEFAULT_REGION"):
        describe(Aws(), "plimsoll")


def test_no_credentials_are_said_with_the_cure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(Refused, match="aws configure"):
        describe(Aws(), "plimsoll")


def test_an_endpoint_that_cannot_be_reached_may_be_tried_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(Temporary, match="describe"):
        describe(Aws(), "plimsoll")


@mock_aws
def test_the_command_line_finds_the_registry_by_the_outputs_of_the_stack():
    tables = requests_for_tables()
    for name, request in tables.items():
        boto3.client("dynamodb").create_table(TableName=f"the-{name}", **request)
    outputs = {name: {"Value": f"the-{name}"} for name in tables}
    template = json.dumps({**json.loads(TEMPLATE), "Outputs": outputs})
    boto3.client("cloudformation").create_stack(StackName="plimsoll", TemplateBody=template)

    def plimsoll(*args: str) -> str:
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0, result.output
        return result.stdout

    plimsoll("clusters", "add", "harbor")
    plimsoll("clusters", "set", "harbor", "--mode", "act", "--yes")
    (harbor,) = json.loads(plimsoll("clusters", "list", "--output", "json"))["clusters"]
    assert (harbor["name"], harbor["mode"], harbor["region"]) == ("harbor", "act", "us-east-1")
    plimsoll("clusters", "remove", "harbor", "--force")
    assert json.loads(plimsoll("clusters", "list", "--output", "json"))["clusters"] == []
