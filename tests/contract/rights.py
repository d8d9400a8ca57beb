"""The rights in `infra/cluster/rbac.yaml`, enforced as an API server would.

Requests are read here independently of the table that makes them, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from plimsoll.adapters.kubernetes import Response

CLUSTER = Path(__file__).parents[2] / "infra" / "cluster"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Asked:
    """A request in the words of RBAC."""

    verb: str
    group: str
    resource: str
    namespace: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, method: str, path: str, query: Mapping[str, str] | None = None) -> Asked:
        parts = path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, *sub = [*rest, None] if len(rest) == 1 else rest
        read = "watch" if "watch" in (query or {}) else "list" if name is None else "get"
        verb = VERBS.get(method) or read
        return cls(verb, group, "/".join([str(plural), *map(str, sub)]), namespace, name)

    @property
    def right(self) -> tuple[str, str, str]:
        return self.verb, self.group, self.resource


@dataclass(frozen=True)
class Grant:
    """One verb on one resource; `namespace` None is the whole cluster."""

    verb: str
    group: str
    resource: str
    namespace: str | None
    names: frozenset[str] = frozenset()

    def covers(self, asked: Asked) -> bool:
        return (
            (self.verb, self.group, self.resource) == asked.right
            and self.namespace in {None, asked.namespace}
            and (not self.names or asked.name in self.names)
        )


OF_QUEUES = ("batch", "batch-access")
"""Folders for the planner of the queues and for whoever uses them."""


def resources() -> list[str]:
    """The files that one command applies, in its order."""
    listed: list[str] = yaml.safe_load((CLUSTER / "kustomization.yaml").read_text())["resources"]
    return listed


def documents(files: str = "rbac.yaml") -> list[dict[str, Any]]:
    """Return the manifests of some files, but for the queues': these have a group of their own."""
    found = sorted(f for f in CLUSTER.glob(files) if f.parent.name not in OF_QUEUES)
    return [d for file in found for d in yaml.safe_load_all(file.read_text()) if d]


def everything() -> list[dict[str, Any]]:
    return [document for file in resources() for document in documents(file)]


def grants() -> list[Grant]:
    return granted(documents("**/rbac.yaml"))


def granted_by(file: Path) -> list[Grant]:
    """What the roles of one file grant."""
    return granted([d for d in yaml.safe_load_all(file.read_text()) if d])


def granted(found: list[dict[str, Any]]) -> list[Grant]:
    return [
        Grant(
            verb,
            group,
            resource,
            document["metadata"].get("namespace"),
            frozenset(rule.get("resourceNames", ())),
        )
        for document in found
        if document["kind"] in {"ClusterRole", "Role"}
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


@dataclass
class Rights:
    """Answers 403 to whatever is not granted, and remembers what was asked."""

    granted: list[Grant] = field(default_factory=grants)
    used: set[tuple[str, str, str]] = field(default_factory=set)

    def refuse(
        self, method: str, path: str, query: Mapping[str, str] | None = None
    ) -> Response | None:
        if not path.startswith(("/api/", "/apis/")):
            return None  # /version and its like are everybody's: the role system:public-info-viewer
        asked = Asked.of(method, path, query)
        self.used.add(asked.right)
        if any(grant.covers(asked) for grant in self.granted):
            return None
        body: Mapping[str, Any] = {"kind": "Status", "reason": "Forbidden", "message": str(asked)}
        return Response(status=403, body=body)
