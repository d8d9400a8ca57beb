"""docs/reference/api.md: every request of the service's API, made from its OpenAPI document."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from inspect import getsource
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from plimsoll_cli.references.markdown import code, page, table, text
from plimsoll_service.openapi import OPERATIONS, Operation, document
from plimsoll_service.wire.clusters import WRITER
from plimsoll_service.wire.documents import MOST_COUNT

_ABOUT: Final = (
    "This page lists every request of the optimisation service, as `GET /v1/openapi.json` describes it. Agents sign their "
    "requests; people give an access token, which `plimsoll login` gets them. [The guide](../guides/optimizer.md#the-api) has "
    "the limits."
)
_LISTS: Final = (
    "## Lists\n\n"
    "A list takes `limit`, `after` and the filters that it names, and refuses any other parameter. `next` is the `after` of the "
    "following page; null: nothing follows. A page may be shorter than `limit`, and even empty, though another follows: read until "
    "`next` is null. Counts are of all rows that pass the filters. A column that nobody told is null, and never 0. *Written by* "
    "names the function that writes a column."
)
_WIRE: Final = "plimsoll_service.wire"
_REF: Final = "#/components/schemas/"


def _types() -> Mapping[str, type[Struct]]:
    return {t.__name__: t for t in _structs(Struct) if t.__module__.startswith(_WIRE)}


def render() -> str:
    """Return the page."""
    found = document()
    schemas: Mapping[str, Any] = found["components"]["schemas"]
    requests = [
        (
            f"[`{each.method} {each.path}`](#{each.name})",
            each.role.value if each.role else "anybody",
            text(each.summary),
        )
        for each in OPERATIONS
    ]
    return page(
        "API of the service",
        _ABOUT,
        "## Requests\n\n" + table(("request", "who may", "what it does"), requests),
        _LISTS,
        *(_operation(each, found["paths"][each.path][each.method.lower()]) for each in OPERATIONS),
        "## Types",
        *(_type(name, schema) for name, schema in sorted(schemas.items())),
    )


def _operation(operation: Operation, said: Mapping[str, Any]) -> str:
    answers = {status: each for status, each in said["responses"].items() if status != "default"}
    done = {s: a for s, a in answers.items() if s.startswith("2")}
    refused = ", ".join(f"`{status}`" for status in answers if status not in done)
    parts = [
        f"### {operation.name}",
        f"`{operation.method} {operation.path}`: {text(operation.summary)}.",
    ]
    rows = [
        (f"`{each['name']}`", each["in"], _kind(each["schema"]), _words(each["schema"]))
        for each in said["parameters"]
    ]
    if rows:
        parts.append(table(("parameter", "in", "type", "meaning"), rows))
    if "requestBody" in said:
        schema = said["requestBody"]["content"]["application/json"]["schema"]
        packed = "gzip of " if operation.compressed else ""
        parts.append(f"Body: {packed}{_kind(schema.get('x-plimsoll-document', schema))}.")
    for status, answer in done.items():
        kind = _kind(answer["content"]["application/json"]["schema"])
        parts.append(f"Answers `{status}` with {kind}. Refusals are {_link('Problem')}: {refused}.")
    return "\n\n".join(parts)


def _type(name: str, schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return (
            f"### {name}\n\n{text(schema.get('description', ''))}\n\nOne of {code(schema['enum'])}."
        )
    kind = _types()[name]
    if "prefixItems" in schema:
        fields = dict(zip(kind.__struct_fields__, schema["prefixItems"], strict=False))
        about = f"{schema['description']} A list, in this order:"
    else:
        fields, about = schema["properties"], schema["description"]
    meanings = _meanings(kind)
    written = any(WRITER in each for each in fields.values())
    rows = [
        (
            f"`{field}`",
            _kind(each),
            *([code([each[WRITER]])] if written else []),
            text(meanings.get(field, "")),
        )
        for field, each in fields.items()
    ]
    head = ("field", "type", *(["written by"] if written else []), "meaning")
    return "\n\n".join([f"### {name}", text(about), table(head, rows)])


def _meanings(kind: type[Struct]) -> Mapping[str, str]:
    """Return what the docstrings of the fields of a type say, those that it inherits included."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith(_WIRE):
            [tree] = ast.parse(getsource(each)).body
            for node, after in pairwise(ast.iter_child_nodes(tree)):
                match node, after:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(said))
                    ):
                        found[name] = said.partition("\nhttps://")[0]
                    case _:
                        pass
    return found


def _structs(above: type[Struct]) -> Iterator[type[Struct]]:
    for each in above.__subclasses__():
        yield each
        yield from _structs(each)


def _kind(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one line for each form of a schema
    """Return a type in words; one that has a section is linked."""
    match schema:
        case {"$ref": str(ref)}:
            return _link(ref.removeprefix(_REF))
        case {"anyOf": [*several]}:
            return " or ".join(dict.fromkeys(map(_kind, several)))
        case {"allOf": [one]}:
            return _kind(one)
        case {"enum": [*values]}:
            return " or ".join("null" if each is None else f"`{each}`" for each in values)
        case {"type": "array", "prefixItems": [*parts]}:
            return f"list of {', '.join(map(_kind, parts))}"
        case {"type": "array", "items": Mapping() as item}:
            return f"list of {_kind(item)}"
        case {"type": "object", "additionalProperties": Mapping() as value}:
            return f"map to {_kind(value)}"
        case {"format": str(form), "type": str()}:
            return {"date-time": "time", "byte": "base64"}.get(form, form)
        case {"type": str(kind)}:
            return f"{kind}{_bounds(schema)}"
        case _:
            return "any"


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most, usual = (schema.get(key) for key in ("minimum", "maximum", "default"))
    said = f" from {least} to {most}" if most is not None and most < MOST_COUNT else ""
    return f"{said}, {usual} by default" if said and usual else said


def _words(schema: Mapping[str, Any]) -> str:
    return text(str(schema.get("description", "")))


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"
