"""Label and field selectors as they stand in a request's query, and the pages of a list.

Sources: https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/,
https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import matches, parse_labels
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.refusals import bad_request
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.store import Key

type Test = Callable[[Json], bool]

_EVERY: Mapping[str, str] = {"metadata.name": "", "metadata.namespace": ""}
_NAME_ONLY: Mapping[str, str] = {"metadata.name": ""}
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "pods": {
        **_EVERY,
        "spec.nodeName": "",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.nominatedNodeName": "",
    },
    "nodes": {"metadata.name": "", "spec.unschedulable": "false"},
    "namespaces": {"metadata.name": "", "status.phase": ""},
    "secrets": {**_EVERY, "type": "Opaque"},
    "services": {**_EVERY, "spec.clusterIP": "", "spec.type": "ClusterIP"},
    "jobs": {**_EVERY, "status.successful": "0"},
    "events": {
        **_EVERY,
        **dict.fromkeys(
            (
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "reason",
                "type",
            ),
            "",
        ),
    },
}
"""The fields that a kind can be selected by, with what they are where they are not there.

Source: AddFieldLabelConversionFunc in k8s.io/kubernetes/pkg/apis. Pod addresses are left out.
"""


def test_of(resource: str, query: Mapping[str, str]) -> Test:
    """Return what an object of a kind must pass to be selected.

    Raises:
        RefusedError: 400, a selector that is not one.
    """
    return _test_of(resource, query.get("labelSelector") or "", query.get("fieldSelector") or "")


@lru_cache(maxsize=512)
def _test_of(resource: str, labels: str, fields: str) -> Test:
    """Read both selectors into as few tests as there are: each runs once for every object."""
    tests: list[Test] = []
    if labels:
        try:
            selector = parse_labels(labels)
        except BadInput as error:
            raise bad_request(str(error)) from error
        tests.append(lambda obj: matches(selector, obj["metadata"].get("labels") or {}))
    known = _FIELDS.get(resource, _EVERY if BY_PLURAL[resource].namespaced else _NAME_ONLY)
    unwanted: dict[str, set[str]] = {}
    for part in filter(None, fields.split(",")):
        field, sign, value = (
            re.split(r"(!=|==|=)", part, maxsplit=1) if "=" in part else (part, "", "")
        )
        if field not in known or not sign:
            raise bad_request(f'field label not supported: "{field}"')
        if sign == "!=":
            unwanted.setdefault(field, set()).add(value)
        else:
            tests.append(_field(field, known[field], {value}, wanted=True))
    tests += (_field(f, known[f], values, wanted=False) for f, values in unwanted.items())
    match tests:
        case []:
            return lambda _: True
        case [only]:
            return only
        case _:
            return lambda obj: all(test(obj) for test in tests)


def _field(field: str, absent: str, values: Collection[str], *, wanted: bool) -> Test:
    path = field.split(".")

    def test(obj: Json) -> bool:
        found = look(obj, *path)
        if isinstance(found, bool):
            found = str(found).lower()
        return (str(found or absent) in values) is wanted

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
