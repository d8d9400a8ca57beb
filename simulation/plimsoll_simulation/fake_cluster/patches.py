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

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.refusals import bad_request, unfit, unsupported_media

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
        RefusedError: 400 it is no patch; 422 a JSON patch that does not fit; 415 another kind.
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
            result[key] = [*value, *(item for item in have if item not in value)]
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
    named = []
    for item in patch:
        if by not in item:
            raise bad_request(f"an item of a list merged by {by!r} does not have it")
        at = next((i for i, old in enumerate(result) if old.get(by) == item[by]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
            continue
        named.append(item[by])
        if at is None:
            result.append(_strategic({}, item))
        else:
            result[at] = _strategic(result[at], item)
    return _in_order(result, named, [old.get(by) for old in have], by)


def _in_order(items: list[Json], named: list[Any], before: list[Any], by: str) -> list[Json]:
    """Put what the patch names in its order, and before what it does not name and did not follow.

    Source: normalizeElementOrder in k8s.io/apimachinery/pkg/util/strategicpatch. The surprise: a
    new item stands before the old ones.
    """
    left = [item for item in items if item.get(by) not in named]
    right = sorted((i for i in items if i.get(by) in named), key=lambda i: named.index(i[by]))
    result: list[Json] = []
    while left and right:
        old, new = left[0].get(by), right[0].get(by)
        first = old in before and new in before and before.index(old) < before.index(new)
        result.append((left if first else right).pop(0))
    return [*result, *left, *right]


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
                    raise unfit()
                return obj
            case "copy" | "move":
                source = _pointer(operation["from"])
                value = _get(obj, source)
                rest = _unset(obj, source) if op == "move" else obj
                return _set(rest, path, value, insert=True)
            case _:
                raise unfit()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise unfit() from error


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
    # The real server's library adds what `replace` does not find in an object.
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
