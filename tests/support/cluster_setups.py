"""What adding a cluster changes, in memory: objects that were applied, access entries, and tags of node groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from plimsoll.domain.errors import MissingRights
from plimsoll.domain.registry import Cluster
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_cli.setup.access import EksCluster, TaggedGroup
from plimsoll_cli.setup.manifests import Manifest, named

ROLES = [f"arn:aws:iam::111122223333:role/plimsoll-{name}Role-1" for name in ("Notices", "Drains")]


@dataclass
class MemoryObjects:
    """Implements `plimsoll_cli.setup.objects.ClusterObjects`."""

    objects: dict[str, Manifest] = field(default_factory=dict)
    refused: str | None = None
    """The name of an object that may not be written."""
    strangers: Sequence[str] = ()

    def holds(self, obj: Manifest) -> bool:
        return self.objects.get(named(obj)) == obj

    def exists(self, obj: Manifest) -> bool:
        return named(obj) in self.objects

    def apply(self, obj: Manifest) -> None:
        self._check(obj)
        self.objects[named(obj)] = obj

    def delete(self, obj: Manifest) -> None:
        self._check(obj)
        self.objects.pop(named(obj), None)

    def others(self) -> Sequence[str]:
        return self.strangers

    def _check(self, obj: Manifest) -> None:
        if named(obj) == self.refused:
            raise MissingRights(f"cluster harbor: {named(obj)}: 403")


def harbor_in_eks(**parts: object) -> EksCluster:
    found = EksCluster(url="https://harbor.example.com", ca="PEM of harbor", entries=True)
    return replace(found, **parts)  # type: ignore[arg-type] # as the test says


@dataclass
class MemoryAccess:
    """Implements `plimsoll_cli.setup.access.ClusterAccess`."""

    clusters: Mapping[str, EksCluster] = field(default_factory=lambda: {"harbor": harbor_in_eks()})
    entries: dict[str, Sequence[str]] = field(default_factory=dict)
    """Role -> the groups of its access entry."""
    groups: list[TaggedGroup] = field(default_factory=list)
    refused: str | None = None
    """The role whose access entry may not be written."""

    def find(self, cluster: Cluster) -> EksCluster | None:
        return self.clusters.get(cluster.name)

    def roles(self, cluster: Cluster) -> Sequence[str]:
        return ROLES

    def groups_of(self, cluster: Cluster, role: str) -> Sequence[str] | None:
        found = self.entries.get(role)
        return None if found is None else tuple(found)

    def grant(self, cluster: Cluster, role: str) -> None:
        if role == self.refused:
            raise MissingRights(f"put {role} into the group {GROUP}: AccessDenied")
        self.entries[role] = [*dict.fromkeys([*self.entries.get(role, ()), GROUP])]

    def revoke(self, cluster: Cluster, role: str) -> None:
        left = [group for group in self.entries.pop(role, ()) if group != GROUP]
        if left:
            self.entries[role] = left

    def node_groups(self, cluster: Cluster) -> Sequence[TaggedGroup]:
        return self.groups

    def let_grow(self, cluster: Cluster, group: TaggedGroup, *, allowed: bool) -> None:
        self.groups = [
            replace(g, may_grow=allowed, set_by_add=allowed) if g.name == group.name else g
            for g in self.groups
        ]
