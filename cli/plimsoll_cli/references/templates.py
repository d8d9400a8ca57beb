"""docs/reference/iam.md: the roles of the templates, with the comments that stand beside their rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, override

import yaml

from plimsoll_cli.references.markdown import code, page, table, text

STACKS: Final = ("template.yaml", "service.yaml", "batch.yaml")
_ROLES: Final = (
    *STACKS,
    "infra/spoke.yaml",
    "infra/reports.yaml",
    "infra/fis/spot-interruption.yaml",
)
_ABOUT: Final = (
    "Every IAM role that the templates make, statement by statement, as a stack without drills has it. *Why* is the comment "
    "beside the statement in the template. No action has a wildcard. [Security](../operate/security.md) says "
    "what each right could be misused for, and what limits it."
)
_PSEUDO: Final = {"AWS::Partition": "aws", "AWS::Region": "REGION", "AWS::AccountId": "ACCOUNT"}
_COMMENT: Final = re.compile(r"(?:^|\s)#\s(.*)$")
WHY: Final = "#"
"""Key of the comments beside a resource or a statement."""


class _Loader(yaml.CSafeLoader):
    """Reads CloudFormation's short tags as plain values, and comments beside what they explain."""

    lines: list[str]

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = {key.value: value for key, value in node.value}
        if not keys.keys() & {"Effect", "Type"}:
            return super().construct_mapping(node, deep)
        first = last = node.start_mark.line
        while re.match(r"\s*#\s", self.lines[first - 1]):
            first -= 1
        if "Effect" in keys:
            # Where a value ends, but for an alias, whose value stands elsewhere.
            ends = [v.end_mark.line for v in keys.values() if isinstance(v, yaml.ScalarNode)]
            last = max(
                *(key.start_mark.line for key, _ in node.value),
                *(e for e in ends if e <= node.end_mark.line),
            )
        said = [
            match[1] for line in self.lines[first : last + 1] if (match := _COMMENT.search(line))
        ]
        return {**super().construct_mapping(node, deep), WHY: " ".join(said)}


def _tag(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    match node:
        case yaml.ScalarNode():
            value = loader.construct_scalar(node)
            return f"${{{value}}}" if suffix in {"Ref", "GetAtt"} else value
        case yaml.SequenceNode():
            items = loader.construct_sequence(node, deep=True)
            return items[-1] if suffix == "Split" else {suffix: items}
        case _:
            return {suffix: None}


_Loader.add_multi_constructor("!", _tag)


@cache
def loaded(root: Path, name: str) -> Any:
    """Return a template as plain values."""
    source = (root / name).read_text("utf-8")
    loader = _Loader(source)
    loader.lines = source.splitlines()
    return loader.get_single_data()


def render(root: Path) -> str:
    """Return the page."""
    return page(
        "IAM roles", _ABOUT, *(_section(name, loaded(root, name)["Resources"]) for name in _ROLES)
    )


def _section(template: str, resources: dict[str, Any]) -> str:
    parts = [f"## {template}"]
    for name, resource in resources.items():
        if resource["Type"] in {"AWS::IAM::Role", "AWS::IAM::Policy"}:
            rows = [_row(*found) for found in _statements(resource, "")]
            parts += [f"### {name}", text(f"{_holders(name, resources)} {resource[WHY]}")]
            parts += [table(("actions", "resources", "only if", "why"), rows)]
    return "\n\n".join(parts)


def _holders(name: str, resources: dict[str, Any]) -> str:
    properties = resources[name]["Properties"]
    if "Roles" in properties:
        return f"Also held by {', '.join(map(_value, properties['Roles']))}."
    functions = [
        f"`{user}`"
        for user, other in resources.items()
        if other.get("Properties", {}).get("Role") == f"${{{name}.Arn}}"
    ]
    trust = properties["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]
    return f"Assumed by {', '.join(functions) or _value(trust)}."


def _statements(value: Any, given: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the statements in a value that allow something, each with the stack's condition for it."""
    match value:
        case {"If": [condition, then, otherwise]}:
            yield from _statements(then, condition)
            yield from _statements(otherwise, given)
        case {"Effect": _, "Resource": _}:
            yield value, given
        case dict() | list():
            for inner in value.values() if isinstance(value, dict) else value:
                yield from _statements(inner, given)
        case _:
            return


def _row(statement: dict[str, Any], given: str) -> tuple[str, str, str, str]:
    limits = [
        f"`{key}` {'is not' if 'Not' in operator else 'is'} `{_value(wanted)}`"
        for operator, keys in _chosen(statement.get("Condition", {})).items()
        for key, wanted in keys.items()
    ]
    given = f"the stack has `{given}`" if given else ""
    actions, resources = (map(_value, _listed(statement[key])) for key in ("Action", "Resource"))
    why = re.sub(r"(?<=[.]\s)[a-z]|^[a-z]", lambda m: m[0].upper(), statement[WHY])
    return code(actions), code(resources), ", ".join(filter(None, [given, *limits])), text(why)


def _chosen(value: Any) -> Any:
    """Return of a choice what a stack without drills gets."""
    if isinstance(value, dict) and "If" in value:
        _, then, otherwise = value["If"]
        return _chosen(then if otherwise == "${AWS::NoValue}" else otherwise)
    return value


def _listed(value: Any) -> list[Any]:
    value = _chosen(value)
    return value if isinstance(value, list) else [value]


def _value(value: Any) -> str:
    """Return a resource, a principal or what a condition wants, as short as it can be read."""
    match _chosen(value):
        case dict() as inner:
            return ", ".join(_value(said) for said in inner.values())
        case list() as several:
            return " or ".join(map(_value, several))
        case said:
            known = re.sub(r"\$\{(AWS::\w+)\}", lambda m: _PSEUDO.get(m[1], m[0]), str(said))
            return re.sub(r"\$\{(?:AWS::)?(\w+)(?:\.\w+)?\}", r"\1", known)
