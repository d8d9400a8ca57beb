"""The template as CloudFormation would render it: names and ARNs in the place of its functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tests.package.template import template

PARTITION, REGION, ACCOUNT, STACK = "aws", "us-east-1", "123456789012", "plimsoll"
_PSEUDO: Final = {
    "AWS::Partition": PARTITION,
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
_ARNS: Final = {
    "AWS::SQS::Queue": f"arn:{PARTITION}:sqs:{REGION}:{ACCOUNT}:{{}}",
    "AWS::DynamoDB::Table": f"arn:{PARTITION}:dynamodb:{REGION}:{ACCOUNT}:table/{{}}",
    "AWS::Events::Rule": f"arn:{PARTITION}:events:{REGION}:{ACCOUNT}:rule/{{}}",
    "AWS::IAM::Role": f"arn:{PARTITION}:iam::{ACCOUNT}:role/{{}}",
    "AWS::Logs::LogGroup": f"arn:{PARTITION}:logs:{REGION}:{ACCOUNT}:log-group:{{}}:*",
    "AWS::SecretsManager::Secret": f"arn:{PARTITION}:secretsmanager:{REGION}:{ACCOUNT}:secret:{{}}",
    "AWS::SNS::Topic": f"arn:{PARTITION}:sns:{REGION}:{ACCOUNT}:{{}}",
}
_GONE: Final = object()
"""AWS::NoValue."""


def arn(name: str) -> str:
    """Return the ARN of a resource of the template."""
    resource = template()["Resources"][name]
    said = resource.get("Properties", {}).get("LogGroupName")
    return _ARNS[resource["Type"]].format(_Rendering({}).of(said) or f"{STACK}-{name}")


@cache
def _resources(parameters: frozenset[tuple[str, str]]) -> Mapping[str, Any]:
    rendering = _Rendering(dict(parameters))
    found: Mapping[str, Any] = rendering.of(
        {
            name: resource
            for name, resource in template()["Resources"].items()
            if "Condition" not in resource or rendering.condition(resource["Condition"])
        }
    )
    return found


def rendered(kind: str, **parameters: str) -> Mapping[str, Any]:
    """Return the properties of the resources of one type under these parameters, by logical id."""
    found = _resources(frozenset(parameters.items()))
    return {name: r["Properties"] for name, r in found.items() if r["Type"] == kind}


def of_every_function(**parameters: str) -> Mapping[str, Any]:
    """Return the properties that all functions share under these parameters."""
    found: Mapping[str, Any] = _Rendering(parameters).of(template()["Globals"]["Function"])
    return found


class _Rendering:
    """Carries out CloudFormation's functions."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        defaults = {n: p["Default"] for n, p in template()["Parameters"].items()}
        self._parameters: Mapping[str, Any] = {**defaults, **parameters}

    def of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [found for item in value if (found := self.of(item)) is not _GONE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            [(name, argument)] = value.items()
            if name == "Condition" and isinstance(argument, str):
                return self.condition(argument)
            if name == "Ref" or name.startswith("Fn::"):
                return getattr(self, f"_{name.removeprefix('Fn::').lower()}")(argument)
        inner = {key: self.of(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not _GONE}

    def condition(self, name: str) -> bool:
        return bool(self.of(template()["Conditions"][name]))

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _GONE
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name in self._parameters:
            found = self._parameters[name]
            listed = template()["Parameters"][name]["Type"].startswith("CommaDelimitedList")
            return str(found).split(",") if listed else found
        is_topic = template()["Resources"][name]["Type"] == "AWS::SNS::Topic"
        return arn(name) if is_topic else f"{STACK}-{name}"

    def _getatt(self, path: list[str]) -> str:
        return arn(path[0]) if path[1] in {"Arn", "Id"} else f"{STACK}-{path[0]}"

    def _sub(self, argument: Any) -> str:
        text, names = argument if isinstance(argument, list) else (argument, {})

        def found(match: re.Match[str]) -> str:
            name = match[1]
            if name in names:
                return str(self.of(names[name]))
            head, _, attribute = name.partition(".")
            return str(self._getatt([head, attribute]) if attribute else self._ref(name))

        return re.sub(r"\$\{([^}!]+)\}", found, text)

    def _if(self, argument: list[Any]) -> Any:
        return self.of(argument[1 if self.condition(argument[0]) else 2])

    def _equals(self, argument: list[Any]) -> bool:
        first, second = self.of(argument)
        return bool(first == second)

    def _not(self, argument: list[Any]) -> bool:
        return not self.of(argument)[0]

    def _or(self, argument: list[Any]) -> bool:
        return any(self.of(argument))

    def _join(self, argument: list[Any]) -> str:
        return str(argument[0]).join(self.of(argument[1]))

    def _select(self, argument: list[Any]) -> Any:
        return self.of(argument[1])[argument[0]]

    def _split(self, argument: list[Any]) -> list[str]:
        return str(self.of(argument[1])).split(argument[0])

    def _findinmap(self, argument: list[Any]) -> Any:
        name, first, second = self.of(argument)
        return template()["Mappings"][name][first][second]
