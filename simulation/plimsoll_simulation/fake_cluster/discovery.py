"""What a client asks before it works: versions, groups, resources, health, and what it may do.

Sources: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api,
https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.resources import TABLE, Resource

_VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0-fake",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_REVIEWS: Final = frozenset({"selfsubjectaccessreviews", "subjectaccessreviews"})


@cache
def discovered(path: str) -> Json | None:
    """Return a page of discovery; None when the path is about objects."""
    match path.strip("/").split("/"):
        case ["version"]:
            page: Json | None = _VERSION
        case ["readyz" | "livez" | "healthz", *_]:
            page = {"status": "ok"}
        case ["api"]:
            page = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = sorted({(r.group, r.version) for r in TABLE if r.group})
            kind = {"kind": "APIGroupList", "apiVersion": "v1"}
            page = {**kind, "groups": [_group(*g) for g in groups]}
        case ["apis", group]:
            versions = {r.version for r in TABLE if r.group == group}
            page = _group(group, versions.pop()) if versions else None
        case ["api", version]:
            page = _resources("", version)
        case ["apis", group, version]:
            page = _resources(group, version)
        case _:
            page = None
    return page


def reviewed(path: str, body: Any) -> Json | None:
    """Return an access review with its answer; None when what is posted is no review."""
    if (
        path.removeprefix("/apis/authorization.k8s.io/v1/") not in _REVIEWS
        or type(body) is not dict
    ):
        return None
    reason = "a fake cluster knows no rights"
    return {**body, "metadata": {}, "status": {"allowed": True, "reason": reason}}


def _group(group: str, version: str) -> Json:
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _resources(group: str, version: str) -> Json | None:
    lines = [r for r in TABLE if (r.group, r.version) == (group, version)]
    if not lines:
        return None
    resources = [_line(r) for r in lines]
    for line in lines:
        for part in ("status",) * line.status + ("scale",) * line.scale:
            verbs = ["get", "patch", "update"]
            resources.append({**_line(line), "name": f"{line.plural}/{part}", "verbs": verbs})
    if not group:
        pods = next(r for r in lines if r.plural == "pods")
        acts = (("eviction", "Eviction", "policy"), ("binding", "Binding", ""))
        for part, kind, of in acts:
            act = {"name": f"pods/{part}", "kind": kind, "group": of, "version": "v1"}
            resources.append({**_line(pods), **act, "verbs": ["create"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": lines[0].api_version,
        "resources": resources,
    }


def _line(resource: Resource) -> Json:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
