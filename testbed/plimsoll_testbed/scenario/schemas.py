"""Checks documents against JSON Schemas, and says what is wrong in people's words.

The schema is the one source: it validates, editors complete from it, and the reference is made from
it. A `title` on a pattern says in words what the pattern allows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from plimsoll_testbed.model.declared import FieldPath
from plimsoll_testbed.scenario.problems import Problems, listed, rename, shown
from plimsoll_testbed.scenario.yamlfiles import Document

_TYPES: Mapping[str, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


@cache
def schema(name: str) -> Mapping[str, Any]:
    """Return one of the schemas that ship with this package, by file name."""
    text = resources.files("plimsoll_testbed.scenario").joinpath(name).read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@cache
def validator(name: str, definition: str | None = None) -> Draft202012Validator:
    """Return the validator of a schema, or of one of its definitions."""
    whole = schema(name)
    if definition is None:
        return Draft202012Validator(whole)
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": whole["$defs"]})


def check_shape(checker: Draft202012Validator, document: Document, problems: Problems) -> bool:
    """Note what a document has wrong, and whether it is sound."""
    before = len(problems)
    for error in checker.iter_errors(document.value):
        _translate(error, document, problems)
    return len(problems) == before


def _translate(error: ValidationError, document: Document, problems: Problems) -> None:
    path = tuple(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    rules: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    match error.validator:
        case "additionalProperties":
            _unknown(value, path, rules, document, problems)
        case "required":
            for name in rule:
                if name not in value:
                    problems.add(
                        document.place(*path, name),
                        found="nothing",
                        allowed=_allowed(rules.get("properties", {}).get(name, {})),
                        cure=f"Add {name}",
                    )
        case "anyOf":
            choices = [name for option in rule for name in option["required"]]
            problems.add(
                document.place(*path),
                found=shown(value),
                allowed=f"exactly one of {listed(choices)}",
                cure=_meant(value, choices) or "Say what should be there",
            )
        case _:
            problems.add(
                document.place(*path),
                found=shown(value),
                allowed=_allowed(rules),
                cure=_cure(str(error.validator), value, rules),
            )


def _unknown(
    value: Any,
    path: FieldPath,
    rules: Mapping[str, Any],
    document: Document,
    problems: Problems,
) -> None:
    known = list(rules.get("properties", {}))
    for name in value:
        if name not in known:
            problems.add(
                document.place(*path, name),
                found=f"the unknown field {shown(name)}",
                allowed=listed(known),
                cure=rename(name, known, "Remove it"),
            )


def _meant(instance: Any, choices: list[str]) -> str | None:
    for name in instance if isinstance(instance, dict) else ():
        cure = rename(name, choices, "")
        if cure:
            return f"{cure} instead of {name}"
    return None


def _allowed(rules: Mapping[str, Any]) -> str:
    """Return in words what a schema allows; references are not followed but by their names."""
    if "$ref" in rules:
        name = str(rules["$ref"]).rpartition("/")[2]
        target = schema("kinds.json")["$defs"].get(name)
        return _allowed(target) if target else name
    if "const" in rules:
        return str(rules["const"])
    if "enum" in rules:
        return ", ".join(map(str, rules["enum"]))
    if "title" in rules and rules.get("type") != "object":
        return str(rules["title"])
    kinds = rules.get("type", "object")
    text = " or ".join(_TYPES[k] for k in ([kinds] if isinstance(kinds, str) else kinds))
    limits = {
        "minimum": "at least {}",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "minLength": "at least {} long",
        "maxLength": "at most {} long",
        "minItems": "at least {} of them",
        "minProperties": "at least {} field",
    }
    bounds = [form.format(rules[rule]) for rule, form in limits.items() if rule in rules]
    if rules.get("uniqueItems"):
        bounds.append("each once")
    return ", ".join([text, *bounds])


def _cure(broken: str, value: Any, rules: Mapping[str, Any]) -> str:
    cure = "Correct the value"
    match broken:
        case "enum" if isinstance(value, str):
            cure = rename(value, [str(v) for v in rules["enum"]], "Choose one of these")
        case "const":
            cure = f"Write {rules['const']}"
        case "uniqueItems":
            cure = "Remove what stands twice"
        case "type" if value is None:
            cure = "Give it a value, or remove the line"
        case "type" if rules["type"] == "string" and isinstance(value, bool | int | float):
            plain = not isinstance(value, bool) and "a duration" in rules.get("title", "")
            text = str(value).lower()
            cure = f"Add the unit: {text}s for seconds" if plain else f'Put it in quotes: "{text}"'
        case "type" if rules["type"] == "array" and not isinstance(value, dict):
            cure = f"Put it in brackets: [{value}]"
    return cure
