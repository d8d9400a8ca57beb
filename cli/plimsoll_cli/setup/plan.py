"""What adding a cluster, or removing it, takes: numbered steps, each with the command that it stands for.

A plan is made from what was read, so a step that was done before is found done. Whoever carries it out needs
nothing but the steps.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.kubernetes import GROW
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_cli.setup.access import TaggedGroup
from plimsoll_cli.setup.manifests import Manifest, folder_of

GRANTS: Final[Mapping[str | None, str]] = {
    None: f"the namespace plimsoll, the rights of the group {GROUP} and the policies that limit them to fields",
    "deletions": "the right to delete pods at their eviction deadline",
    "guard": "the right to make budgets for guarded workloads",
    "injection": "the right to keep the admission policy of on-demand floors up to date",
}
"""Overlay -> what its manifests are for; None: those that every cluster needs."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Give a cluster these objects."""

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete these objects."""

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """Put a role into the group of the manifests."""

    role: str


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take a role out of that group."""

    role: str


@dataclass(frozen=True, slots=True)
class LetGrow:
    """Allow or forbid Plimsoll to grow a node group."""

    group: TaggedGroup
    allowed: bool


@dataclass(frozen=True, slots=True)
class Register:
    """Let the functions of the stack know the cluster."""


@dataclass(frozen=True, slots=True)
class Deregister:
    """Let them forget it."""


type Action = Apply | Delete | Grant | Revoke | LetGrow | Register | Deregister


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change, and whether it is already as it should be."""

    what: str
    why: str
    command: str
    """The command line that it stands for."""
    action: Action
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The cluster that a plan is for, and how commands name it."""

    cluster: Cluster
    context: str

    @property
    def kubectl(self) -> str:
        """How commands for its API server begin."""
        return f"kubectl --context {shlex.quote(self.context)}"

    def aws(self, *words: str) -> str:
        """Return a command of the AWS CLI in the region of the cluster."""
        return shlex.join(["aws", *words, "--region", self.cluster.region])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of a cluster and its account."""

    objects: Mapping[str | None, Sequence[tuple[Manifest, bool]]]
    """Overlay -> its objects, each with whether the cluster has it: as its manifest says, or at all for a removal."""
    roles: Mapping[str, Sequence[str] | None]
    """Role that comes to the cluster -> the groups of its access entry; None: it has none."""
    groups: Sequence[TaggedGroup] = ()
    """Those whose tag shall change."""
    untagged: Sequence[str] = ()
    """The names of others that Plimsoll may not grow."""
    mode: Mode | None
    """The mode in which the cluster is registered; None: it is not."""
    others: Sequence[str] = ()
    """What else lies in the namespace `plimsoll`."""


def plan_add(place: Place, seen: Seen, register: str) -> tuple[Step, ...]:
    """Return the steps that add a cluster: rights before the registration, by which the functions begin to ask.

    Args:
        place: the cluster.
        seen: what was read of it.
        register: the command that registers the cluster and does nothing else.
    """
    return (
        *(_apply(place, overlay, found) for overlay, found in seen.objects.items()),
        *(_grant(place, role, groups) for role, groups in seen.roles.items()),
        *(_let_grow(place, group, allowed=True) for group in seen.groups),
        _register(place, seen.mode, register),
    )


def plan_remove(place: Place, seen: Seen) -> tuple[Step, ...]:
    """Return the steps that remove a cluster.

    The registration goes first: functions that find no rights report errors, and those that know no cluster do not.
    """
    return (
        Step(
            what=f"forget {place.cluster.name}",
            why="the functions then ask it no more",
            command=f"plimsoll clusters remove {place.cluster.name}",
            action=Deregister(),
            done=seen.mode is None,
        ),
        *(_let_grow(place, group, allowed=False) for group in seen.groups),
        *(_revoke(place, role, groups) for role, groups in seen.roles.items()),
        *_deletions(place, seen),
    )


def kept(seen: Seen) -> str | None:
    """Say why a removal keeps the namespace; None: nothing else lies in it."""
    if not seen.others:
        return None
    return f"the namespace plimsoll stays, because it also holds {', '.join(seen.others)}"


def _register(place: Place, mode: Mode | None, command: str) -> Step:
    name = place.cluster.name
    new = mode is None
    return Step(
        what=f"register {name} in the mode observe" if new else f"register {name}",
        why="the functions then plan and report, and write nothing"
        if new
        else f"it stays in the mode {mode}, with its policy",
        command=command,
        action=Register(),
        done=not new,
    )


def _apply(place: Place, overlay: str | None, found: Sequence[tuple[Manifest, bool]]) -> Step:
    missing = sum(not there for _, there in found)
    return Step(
        what=f"apply {folder_of(overlay)} ({missing} of {len(found)} objects to change)",
        why=GRANTS[overlay],
        command=f"{place.kubectl} apply --server-side --force-conflicts -k {folder_of(overlay)}",
        action=Apply(tuple(obj for obj, _ in found)),
        done=not missing,
    )


def _deletions(place: Place, seen: Seen) -> Iterator[Step]:
    """Yield the deletions in the reverse order of what was applied: first the rights of the overlays."""
    for overlay, found in reversed([*seen.objects.items()]):
        mine = [
            (obj, there) for obj, there in found if not (obj["kind"] == "Namespace" and seen.others)
        ]
        there = sum(there for _, there in mine)
        yield Step(
            what=f"delete {folder_of(overlay)} ({there} of {len(mine)} objects to delete)",
            why=GRANTS[overlay],
            command=f"{place.kubectl} delete --ignore-not-found -k {folder_of(overlay)}",
            action=Delete(tuple(obj for obj, _ in reversed(mine))),
            done=not there,
        )


def _grant(place: Place, role: str, groups: Sequence[str] | None) -> Step:
    verb = "create-access-entry" if groups is None else "update-access-entry"
    wanted = dict.fromkeys([*(groups or ()), GROUP])
    return Step(
        what=f"put {_name(role)} into the group {GROUP}",
        why="a function with this role then has the rights of the manifests",
        command=_entry(place, verb, role, "--kubernetes-groups", *wanted),
        action=Grant(role),
        done=groups is not None and GROUP in groups,
    )


def _revoke(place: Place, role: str, groups: Sequence[str] | None) -> Step:
    left = [group for group in groups or () if group != GROUP]
    command = (
        _entry(place, "update-access-entry", role, "--kubernetes-groups", *left)
        if left
        else _entry(place, "delete-access-entry", role)
    )
    return Step(
        what=f"take {_name(role)} out of the group {GROUP}",
        why="no function needs it there any more",
        command=command,
        action=Revoke(role),
        done=GROUP not in (groups or ()),
    )


def _entry(place: Place, verb: str, role: str, *words: str) -> str:
    return place.aws(
        "eks", verb, "--cluster-name", place.cluster.name, "--principal-arn", role, *words
    )


def _let_grow(place: Place, group: TaggedGroup, *, allowed: bool) -> Step:
    if group.managed:
        words = ["tag-resource", "--tags", f"{GROW}=true"]
        if not allowed:
            words = ["untag-resource", "--tag-keys", GROW]
        command = place.aws("eks", *words, "--resource-arn", group.resource)
    else:
        verb = "create-or-update-tags" if allowed else "delete-tags"
        tag = f"ResourceId={group.resource},ResourceType=auto-scaling-group,Key={GROW},Value=true,PropagateAtLaunch=false"
        command = place.aws("autoscaling", verb, "--tags", tag)
    return Step(
        what=f"{'let' if allowed else 'no longer let'} Plimsoll grow the node group {group.name}",
        why=f"IAM checks the tag {GROW} at each request for nodes",
        command=command,
        action=LetGrow(group, allowed),
        done=group.may_grow is allowed,
    )


def _name(role: str) -> str:
    return role.rpartition("/")[2]


def is_registered(there: Cluster | None, cluster: Cluster) -> bool:
    """Whether a cluster is registered and reached in the way that is asked for, whatever its mode and policy."""
    return there is not None and all(
        getattr(there, part) == getattr(cluster, part)
        for part in ("kind", "region", "endpoint", "ca", "secret", "role", "external_id")
    )


def is_same_cluster(server: str, ca: str | None, url: str, expected: str) -> bool:
    """Whether a kubeconfig leads to the cluster at a URL.

    Either the addresses are equal, or the certificate authorities are: each EKS cluster has one of its own, and a
    tunnel or a proxy to a private endpoint has another address.

    Args:
        server: the address in the kubeconfig.
        ca: the CA certificate that it trusts, in PEM; None: it names none.
        url: the address of the cluster.
        expected: the CA certificate of the cluster, in PEM; "" where it is not known.
    """
    if server.rstrip("/").lower() == url.rstrip("/").lower():
        return True
    return bool(expected.strip()) and ca is not None and ca.strip() == expected.strip()


def unproven(cluster: Cluster, server: str) -> str | None:
    """Say what nothing proves about a cluster that is no EKS cluster; None: its registered address is the context's."""
    if cluster.kind is ClusterKind.EKS or is_same_cluster(server, None, cluster.endpoint or "", ""):
        return None
    return f"Not proven: nothing proves that the context ({server}) and the endpoint ({cluster.endpoint}) are one cluster."
