"""What adding a cluster, or removing it, takes: numbered steps, each with the command that it stands for.

A plan is made from what was read, so a step that was done before is found done. Whoever carries it out needs
nothing but the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from plimsoll.domain.kubernetes import GROW
from plimsoll.domain.registry import Mode
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_cli.setup.access import GROW_TAGS, TaggedGroup
from plimsoll_cli.setup.manifests import Manifest, folder_of
from plimsoll_cli.setup.steps import (
    Apply,
    Delete,
    Deregister,
    Grant,
    LetGrow,
    Place,
    Register,
    Revoke,
    Seen,
    Step,
)

GRANTS: Final[Mapping[str | None, str]] = {
    None: f"the namespace plimsoll, the rights of the group {GROUP} and the policies that limit them to fields",
    "deletions": "the right to delete pods at their eviction deadline",
    "guard": "the right to make budgets for guarded workloads",
    "injection": "the right to keep the admission policy of on-demand floors up to date",
}
"""Overlay -> what its manifests are for; None: those that every cluster needs."""


def plan_add(place: Place, seen: Seen) -> tuple[Step, ...]:
    """Return the steps that add a cluster: rights before the registration, by which the functions begin to ask."""
    return (
        *(_apply(place, overlay, found) for overlay, found in seen.objects.items()),
        *(_grant(place, role, groups) for role, groups in seen.roles.items()),
        *(_let_grow(place, group, allowed=True) for group in seen.groups),
        _register(place, seen.mode),
    )


def plan_remove(place: Place, seen: Seen) -> tuple[Step, ...]:
    """Return the steps that remove a cluster.

    The registration goes first: functions that find no rights report errors, and those that know no cluster do not.
    """
    return (
        Step(
            what=f"forget {place.cluster.name}",
            why="the functions then ask it no more",
            command=place.stack.command("clusters", "remove", place.cluster.name),
            action=Deregister(),
            done=seen.mode is None,
        ),
        *(_let_grow(place, group, allowed=False) for group in seen.groups),
        *(_revoke(place, role, groups) for role, groups in seen.roles.items()),
        *_deletions(place, seen),
    )


def kept(place: Place, seen: Seen) -> Iterator[str]:
    """Yield what a removal leaves that has our name, and why."""
    for group in seen.tagged:
        remove = _tags_command(place, group, {GROW: "true"}, allowed=False)
        yield (
            f"the node group {group.name} keeps the tag {GROW}: somebody else set it, or plimsoll 0.3.0. To remove it: {remove}"
        )
    if seen.others:
        yield f"the namespace plimsoll stays, because it also holds {', '.join(seen.others)}"


def _register(place: Place, mode: Mode | None) -> Step:
    name = place.cluster.name
    new = mode is None
    return Step(
        what=f"register {name} in the mode observe" if new else f"register {name}",
        why="the functions then plan and report, and write nothing"
        if new
        else f"it stays in the mode {mode}, with its policy",
        command=_registration(place),
        action=Register(),
        done=not new,
    )


def _registration(place: Place) -> str:
    """Return the command that only registers the cluster; a CA certificate is named as a file of its own."""
    cluster = place.cluster
    words = ["clusters", "add", cluster.name]
    if cluster.endpoint is not None:
        words += ["--endpoint", cluster.endpoint]
        words += ["--ca", "ca.pem"] if cluster.ca is not None else []
        words += ["--secret", cluster.secret] if cluster.secret is not None else []
    words += ["--region", cluster.region] if cluster.region != place.stack.region else []
    return place.stack.command(*words)


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
    return Step(
        what=f"{'let' if allowed else 'no longer let'} Plimsoll grow the node group {group.name}",
        why=f"IAM checks the tag {GROW} at each request for nodes",
        command=_tags_command(place, group, GROW_TAGS, allowed=allowed),
        action=LetGrow(group, allowed),
        done=allowed and group.may_grow,
    )


def _tags_command(
    place: Place, group: TaggedGroup, tags: Mapping[str, str], *, allowed: bool
) -> str:
    if group.managed:
        words = ["tag-resource", "--tags", ",".join(f"{k}={v}" for k, v in tags.items())]
        if not allowed:
            words = ["untag-resource", "--tag-keys", *tags]
        return place.aws("eks", *words, "--resource-arn", group.resource)
    verb = "create-or-update-tags" if allowed else "delete-tags"
    found = (
        f"ResourceId={group.resource},ResourceType=auto-scaling-group,Key={key},Value={value},PropagateAtLaunch=false"
        for key, value in tags.items()
    )
    return place.aws("autoscaling", verb, "--tags", *found)


def _name(role: str) -> str:
    return role.rpartition("/")[2]
