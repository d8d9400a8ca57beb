"""Label and field selectors as they stand in a request's query, and the pages of a list.

Sources: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api,
https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/,
https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from plimsoll.domain.pods import Requirement, Selector
from plimsoll.domain.selectors import matches
from plimsoll.hollow.edits import Json
from plimsoll.hollow.refusals import bad_request
from plimsoll.hollow.store import Key

type Test = Callable[[Json], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_PART = re.compile(r",(?![^(]*\))")

FIELDS: Mapping[str, tuple[str, str]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.unschedulable": ("spec", "unschedulable"),
    "status.phase": ("status", "phase"),
    "involvedObject.name": ("involvedObject", "name"),
}
"""Every field that can be selected by. The real server knows fewer for most kinds."""


@lru_cache(maxsize=512)
def parse_labels(text: str) -> Selector:
    """Read a label selector such as `app=web,tier in (a, b),!old`."""
    parts = [p.strip() for p in _PART.split(text) if p.strip()]
    return Selector(requirements=tuple(_requirement(part) for part in parts))


def _requirement(part: str) -> Requirement:
    if shape := _SET.match(part):
        values = tuple(v.strip() for v in shape["values"].split(","))
        return Requirement(
            key=shape["key"], operator="In" if shape["op"] == "in" else "NotIn", values=values
        )
    for sign, operator in (("!=", "NotIn"), ("==", "In"), ("=", "In")):
        key, found, value = part.partition(sign)
        if found:
            return Requirement(key=key.strip(), operator=operator, values=(value.strip(),))
    if part.startswith("!"):
        return Requirement(key=part[1:].strip(), operator="DoesNotExist")
    if " " in part:
        raise bad_request(f"unable to parse requirement: {part!r}")
    return Requirement(key=part, operator="Exists")


def test_of(query: Mapping[str, str]) -> Test:
    """Return what an object must pass to be selected.

    Raises:
        RefusedError: 400, a selector that is not one.
    """
    return _test_of(query.get("labelSelector") or "", query.get("fieldSelector") or "")


@lru_cache(maxsize=512)
def _test_of(labels: str, fields: str) -> Test:
    """Read both selectors into as few tests as there are: each runs once for every object."""
    tests: list[Test] = []
    if labels:
        selector = parse_labels(labels)
        tests.append(lambda obj: matches(selector, obj["metadata"].get("labels") or {}))
    unwanted: dict[tuple[str, str], set[str]] = {}
    for part in filter(None, fields.split(",")):
        field, sign, value = (
            re.split(r"(!=|==|=)", part, maxsplit=1) if "=" in part else (part, "", "")
        )
        path = FIELDS.get(field.strip())
        if path is None or not sign:
            raise bad_request(f'field label not supported: "{field}"')
        if sign == "!=":
            unwanted.setdefault(path, set()).add(value.strip())
        else:
            tests.append(_field(path, {value.strip()}, wanted=True))
    tests += (_field(path, values, wanted=False) for path, values in unwanted.items())
    match tests:
        case []:
            return lambda _: True
        case [only]:
            return only
        case _:
            return lambda obj: all(test(obj) for test in tests)


def _field(path: tuple[str, str], values: Collection[str], *, wanted: bool) -> Test:
    part, key = path

    def test(obj: Json) -> bool:
        found = (obj.get(part) or {}).get(key)
        if isinstance(found, bool):
            found = str(found).lower()
        return ((found or "") in values) is wanted

    return test


def continue_after(key: Key, revision: int) -> str:
    """Return the token with which a list goes on behind a key."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": list(key)})
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_continue(token: str) -> Key:
    """Read a token.

    Raises:
        RefusedError: 400, it is none of ours.
    """
    try:
        namespace, name = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))["start"]
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("continue key is not valid: it was not made by this server") from error
    return str(namespace), str(name)
