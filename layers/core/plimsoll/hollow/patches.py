"""The three kinds of patch.

* merge patch: RFC 7396; lists are replaced whole;
* JSON patch: RFC 6902;
* strategic merge patch: as a merge patch, but lists of some names are merged by a key of their
  items. Which ones is written in the `patchMergeKey` tags of k8s.io/api. `spec.taints` of a Node
  is **not** among them: it is atomic, so a strategic patch replaces all taints.

Source: https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.hollow.edits import Json
from plimsoll.hollow.refusals import bad_request, unsupported_media

MERGE_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SETS = frozenset({"finalizers", "podCIDRs"})


def patched(obj: Json, patch: Any, content_type: str) -> Json:
    """Return the object with the patch applied.

    Raises:
        RefusedError: 400 a patch that cannot be applied; 415 another kind of patch.
    """
    kind = content_type.partition(";")[0].strip()
    if kind == "application/json-patch+json":
        if not isinstance(patch, list):
            raise bad_request("a JSON patch is a list of operations")
        for operation in patch:
            obj = _operate(obj, operation)
        return obj
    if not isinstance(patch, dict):
        raise bad_request("a patch is an object")
    if kind == "application/merge-patch+json":
        return merged(obj, patch)
    if kind == "application/strategic-merge-patch+json":
        return _strategic(obj, patch)
    raise unsupported_media(kind)


def merged(obj: Any, patch: Json) -> Json:
    """Apply a merge patch: null takes away, objects are merged, all else is replaced."""
    result: Json = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key), value)
        else:
            result[key] = value
    return result


def _strategic(obj: Any, patch: Json) -> Json:
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    result: Json = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _strategic(result.get(key), value)
        elif isinstance(value, list) and key in _SETS:
            have = result.get(key) or []
            result[key] = [*have, *(item for item in value if item not in have)]
        elif isinstance(value, list) and (by := _merge_key(key, value)):
            result[key] = _merge_items(result.get(key) or [], value, by)
        else:
            result[key] = value
    return result


def _merge_key(field: str, items: list[Any]) -> str | None:
    if field == "ports":  # of a container, or of a Service
        return "containerPort" if any("containerPort" in item for item in items) else "port"
    return MERGE_KEYS.get(field)


def _merge_items(have: list[Json], patch: list[Json], by: str) -> list[Json]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    result = list(have)
    for item in patch:
        if by not in item:
            raise bad_request(f"an item of a list merged by {by!r} does not have it")
        at = next((i for i, old in enumerate(result) if old.get(by) == item[by]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(_strategic({}, item))
        else:
            result[at] = _strategic(result[at], item)
    return result


def _operate(obj: Json, operation: Json) -> Any:
    try:
        op, path = operation["op"], _pointer(operation["path"])
        match op:
            case "add" | "replace":
                return _set(obj, path, operation["value"], insert=op == "add")
            case "remove":
                return _unset(obj, path)
            case "test":
                if _get(obj, path) != operation["value"]:
                    raise bad_request(f"testing value {operation['path']} failed")
                return obj
            case "copy" | "move":
                source = _pointer(operation["from"])
                value = _get(obj, source)
                rest = _unset(obj, source) if op == "move" else obj
                return _set(rest, path, value, insert=True)
            case _:
                raise bad_request(f"Unexpected kind: {op}")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise bad_request(
            f"the JSON patch operation {operation} does not fit the object"
        ) from error


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _get(obj: Any, path: list[str]) -> Any:
    for part in path:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    return obj


def _set(obj: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(obj, list):
        at = len(obj) if part == "-" else int(part)
        if rest:
            return [*obj[:at], _set(obj[at], rest, value, insert=insert), *obj[at + 1 :]]
        if not insert and at >= len(obj):
            raise IndexError(at)
        return [*obj[:at], value, *obj[at if insert else at + 1 :]]
    if not rest and not insert and part not in obj:
        raise KeyError(part)
    return {**obj, part: _set(obj[part], rest, value, insert=insert) if rest else value}


def _unset(obj: Any, path: list[str]) -> Any:
    part, rest = path[0], path[1:]
    if isinstance(obj, list):
        at = int(part)
        if at >= len(obj):
            raise IndexError(at)
        return [*obj[:at], *([_unset(obj[at], rest)] if rest else []), *obj[at + 1 :]]
    inner = obj[part]
    if rest:
        return {**obj, part: _unset(inner, rest)}
    return {k: v for k, v in obj.items() if k != part}
