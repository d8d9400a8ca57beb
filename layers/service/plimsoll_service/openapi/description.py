"""Makes the OpenAPI document of the operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec

from plimsoll_service.openapi import agents, clusters, decisions, people
from plimsoll_service.openapi.operation import Operation
from plimsoll_service.wire.access import Problem

OPERATIONS: Final[Sequence[Operation]] = (
    *agents.OPERATIONS,
    *clusters.OPERATIONS,
    *decisions.OPERATIONS,
    *people.OPERATIONS,
)
"""All but that which returns this description."""
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "the version of the recommendation that was seen, in quotes",
    "schema": {"type": "string", "pattern": '^"[0-9]{1,15}"$'},
}
_REFUSALS: Final = (400, 401, 403, 404, 409, 412, 413, 415, 428, 429, 503)


@cache
def document() -> dict[str, Any]:
    """Return the document."""
    types = {t for o in OPERATIONS for t in (o.body, o.answer) if t is not None} | {Problem}
    ordered = sorted(types, key=lambda t: t.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(
            operation, named
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Plimsoll's optimisation service", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation, named: dict[type[msgspec.Struct], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 64,
                    "pattern": "^[A-Za-z0-9-]+$",
                    "description": f"the id of the {name}",
                },
            }
            for name in operation.parts
        ]
        + [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in operation.query.items()
        ]
        + ([_IF_MATCH] if operation.versioned else []),
        "responses": {
            str(operation.status): _json("application/json", named[operation.answer], "Done"),
            **{
                str(s): _json("application/problem+json", named[Problem], "Refused")
                for s in _REFUSALS
            },
        },
    }
    if operation.role is not None:
        found["security"] = [{"token": []}]
    if operation.body is not None:
        body = named[operation.body]
        if operation.compressed:
            body = {
                "type": "string",
                "format": "binary",
                "description": "gzip of the JSON document",
                "x-plimsoll-document": body,
            }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found


def _json(kind: str, schema: Any, words: str) -> dict[str, Any]:
    return {"description": words, "content": {kind: {"schema": schema}}}
