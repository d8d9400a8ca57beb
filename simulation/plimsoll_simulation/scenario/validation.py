"""Holds documents against models, and says in people's words what is wrong.

What is allowed is read from the JSON Schema of the model: a `title` there says in words what a
pattern allows. The same schema serves editors and the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, override

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, core_schema

from plimsoll_simulation.declared import Contradiction, Declared, FieldPath
from plimsoll_simulation.scenario.problems import Problems, listed, nearest, rename, shown
from plimsoll_simulation.scenario.yamlfiles import Document

type Rules = Mapping[str, Any]

_TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} long",
    "maxLength": "at most {} long",
    "minItems": "at least {} of them",
    "minProperties": "at least {} field",
    "uniqueItems": "each once",
}


class _Schema(GenerateJsonSchema):
    """JSON Schema without titles that only repeat names, and without null: no field takes it."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    @override
    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


@cache
def schema(model: type[Declared]) -> Rules:
    """Return the JSON Schema of a model."""
    return model.model_json_schema(schema_generator=_Schema)


def resolved(rules: Rules, whole: Rules) -> Rules:
    """Return rules with their reference followed; what stands beside the reference wins."""
    if "$ref" not in rules:
        return rules
    target = whole["$defs"][rules["$ref"].rpartition("/")[2]]
    return resolved({**target, **{k: v for k, v in rules.items() if k != "$ref"}}, whole)


def validate[M: Declared](
    model: type[M], document: Document, problems: Problems, *, folder: Path = Path()
) -> M | None:
    """Return what a document declares, or None where `problems` says what is wrong with it.

    Args:
        model: what it has to be.
        document: what was read.
        problems: where to note what is wrong.
        folder: what paths in it are relative to.
    """
    before = len(problems)
    try:
        made = model.model_validate(document.value, by_alias=True, by_name=False, context=folder)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            if not _follows_from_another(details):
                _explain(details, schema(model), document, problems)
        return None
    for wrong in _contradictions(made):
        again = wrong.first and f"; it first stands on line {document.place(*wrong.first).line}"
        problems.add(
            document.place(*wrong.path),
            found=f"{wrong.found}{again or ''}",
            allowed=wrong.allowed,
            cure=wrong.cure,
        )
    return made if len(problems) == before else None


def _contradictions(model: Declared) -> Iterator[Contradiction]:
    """Yield what contradicts itself in a model and in those it holds."""
    yield from model.contradictions()
    for name, field in type(model).model_fields.items():
        if name in model.model_fields_set:
            for path, inner in _models(getattr(model, name)):
                at = (str(field.validation_alias), *path)
                yield from (each.under(*at) for each in _contradictions(inner))


def _models(value: Any) -> Iterator[tuple[FieldPath, Declared]]:
    match value:
        case Declared():
            yield (), value
        case tuple():
            yield from (((i,), item) for i, item in enumerate(value) if isinstance(item, Declared))
        case dict():
            yield from (((k,), item) for k, item in value.items() if isinstance(item, Declared))
        case _:
            pass


def _follows_from_another(error: ErrorDetails) -> bool:
    """Whether it only says that a field, or an item of a list, is wrong which has an error of its own."""
    if error["type"] == "too_short":  # items that are wrong are not counted
        return bool(len(error["input"]) >= error["ctx"]["min_length"])
    return error["type"] == "default_factory_not_called"


def _explain(error: ErrorDetails, whole: Rules, document: Document, problems: Problems) -> None:
    path, rules, parent = _locate(error["loc"], whole)
    value: Any = error["input"]
    if error["type"] == "missing":
        found, allowed, cure = "nothing", words_for(rules, whole), f"Add {path[-1]}"
    elif path and isinstance(path[-1], str) and not rules:
        name, known = path[-1], list(parent.get("properties", ()))
        found, allowed = f"the unknown field {shown(name)}", listed(known)
        cure = rename(name, known, "Remove it")
    else:
        found, allowed = shown(value), words_for(rules, whole)
        cure = _cure(value, resolved(rules, whole), whole)
    problems.add(document.place(*path), found=found, allowed=allowed, cure=cure)


def _locate(loc: tuple[str | int, ...], whole: Rules) -> tuple[FieldPath, Rules, Rules]:
    """Return the path that an error names, the rules there, and those of what holds it."""
    path: FieldPath = ()
    rules, parent = whole, whole
    for part in loc:
        rules = resolved(rules, whole)
        if "oneOf" in rules:  # the part names the one of the choices that was tried
            rules = whole["$defs"][part]
        elif part == "[key]":
            rules = parent["propertyNames"]
        elif isinstance(part, int):
            path, rules, parent = (*path, part), rules["items"], rules
        else:
            more = rules.get("additionalProperties")
            inner = rules.get("properties", {}).get(part, more if isinstance(more, dict) else {})
            path, rules, parent = (*path, part), inner, rules
    return path, rules, parent


def words_for(rules: Rules, whole: Rules) -> str:
    """Return in words what rules allow."""
    rules = resolved(rules, whole)
    if "oneOf" in rules:
        return f"exactly one of {listed(choices(rules, whole))}"
    if "const" in rules:
        return str(rules["const"])
    if "enum" in rules:
        return ", ".join(map(str, rules["enum"]))
    if "title" in rules and rules.get("type") != "object":
        return str(rules["title"])
    kinds = rules.get("type", "object")
    text = " or ".join(_TYPES[k] for k in ([kinds] if isinstance(kinds, str) else kinds))
    return ", ".join([text, *limits(rules)])


def limits(rules: Rules) -> list[str]:
    """Return in words how many, how large or how long."""
    return [form.format(rules[name]) for name, form in _LIMITS.items() if name in rules]


def choices(rules: Rules, whole: Rules) -> list[str]:
    """Return the fields of which a mapping has exactly one: each stands first in the schema of its choice."""
    options = [resolved(option, whole) for option in rules["oneOf"]]
    shared = set.intersection(*(set(option["properties"]) for option in options))
    return [next(f for f in option["required"] if f not in shared) for option in options]


def _cure(value: Any, rules: Rules, whole: Rules) -> str:  # noqa: PLR0911 - one line for each mistake
    match value, rules:
        case None, _:
            return "Give it a value, or remove the line"
        case str(), {"enum": allowed}:
            return rename(value, allowed, "Choose one of these")
        case _, {"const": only}:
            return f"Write {only}"
        case ((bool() | int() | float()), {"type": "string"}):
            text = str(value).lower()
            if "a duration" in rules.get("title", "") and not isinstance(value, bool):
                return f"Add the unit: {text}s for seconds"
            return f'Put it in quotes: "{text}"'
        case ((str() | int() | float()), {"type": "array"}):
            return f"Put it in brackets: [{value}]"
        case ((list() | tuple()), {"uniqueItems": True}) if len(value) > len(set(map(str, value))):
            return "Remove what stands twice"
        case dict(), {"oneOf": _}:
            known = choices(rules, whole)
            meant = ((nearest(name, known), name) for name in value)
            renamed = (f"Write {near} instead of {name}" for near, name in meant if near)
            return next(renamed, "Say what should be there")
        case _:
            return "Correct the value"
