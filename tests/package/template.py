"""The template as plain values: CloudFormation's short tags become its long functions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".aws-sam" / "build"


class _Loader(yaml.CSafeLoader):
    """Reads `!Ref`, `!GetAtt` and the rest."""


def _tag(loader, suffix, node):
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    match node:
        case yaml.ScalarNode():
            value = loader.construct_scalar(node)
            return {name: value.split(".") if suffix == "GetAtt" else value}
        case yaml.SequenceNode():
            return {name: loader.construct_sequence(node, deep=True)}
        case _:
            return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _tag)


@cache
def template(name: str = "template.yaml") -> Any:
    return yaml.load((ROOT / name).read_text(), _Loader)


def resources(kind, of: str = "template.yaml") -> dict[str, Any]:
    """Resources of one type: logical id -> the resource."""
    return {k: r for k, r in template(of)["Resources"].items() if r["Type"] == kind}


def requests_for_tables(of: str = "template.yaml") -> dict[str, Any]:
    """What CreateTable takes for each table, by logical id; the caller adds the name."""
    taken = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    return {
        name: {key: table["Properties"][key] for key in taken if key in table["Properties"]}
        for name, table in resources("AWS::DynamoDB::Table", of).items()
    }


def functions() -> dict[str, Any]:
    return resources("AWS::Serverless::Function")


def statements():
    """All statements of all roles: (role, statement), conditional policies included."""
    for role, resource in resources("AWS::IAM::Role").items():
        for policy in resource["Properties"]["Policies"]:
            for part in policy.get("Fn::If", [None, policy])[1:2]:
                for statement in part["PolicyDocument"]["Statement"]:
                    yield role, statement.get("Fn::If", [None, statement])[1]


def listed(value):
    """A value that may stand alone, as a list; of a choice, what a stack without drills gets."""
    if isinstance(value, dict) and "Fn::If" in value:
        return listed(value["Fn::If"][2])
    return value if isinstance(value, list) else [value]
