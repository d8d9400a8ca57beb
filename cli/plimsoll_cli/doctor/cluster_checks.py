"""The cluster: does it answer, does it let us, does the resync see it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.domain.errors import BadInput, NotFound, PlimsollError
from plimsoll.domain.observation import INDEX_REFRESH, LONGEST_LULL
from plimsoll.domain.registry import ClusterKind, Mode
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, skipped
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.kubernetes import Right

STALE: Final = INDEX_REFRESH + LONGEST_LULL
"""How old an entry of the index gets at most: what says the same is written again after `INDEX_REFRESH`."""
_WITHHELD: Final = {
    "deletions": "no budget is overruled at an eviction deadline, and pods of dead instances stay until the "
    "cluster's own garbage collection",
    "guard": "no budget is made for workloads that opted in by plimsoll.dev/guard, nor deleted",
    "injection": "the admission policy of `plimsoll install-policy`, where there is one, is neither "
    "told of floors nor proven",
}
NEW: Final = timedelta(minutes=2)
"""How long a node may be missing from the index, because no resync has seen it yet."""


def answers(installation: Installation) -> Iterator[Finding]:
    """Say whether the API server answers, and takes the token."""
    endpoint = installation.cluster.kind is ClusterKind.ENDPOINT
    try:
        version = installation.version()
    except PlimsollError as error:
        if isinstance(error, NotFound) and not endpoint:
            name = installation.cluster.name
            remove = installation.stack.command("clusters", "remove", name, "--force")
            yield fail(str(error), f"if it is no more: {remove}")
        elif isinstance(error, NotFound | BadInput) and endpoint:
            cure = f"put a token that the cluster takes into {installation.cluster.secret}"
            yield fail(str(error), cure)
        else:
            cure = "ask as somebody whom the cluster knows, from where it can be reached"
            yield skipped(error, f"{cure}; if the node index is fresh, the functions do")
    else:
        whose = "the token that the functions use" if endpoint else "your own identity"
        yield ok(f"its API server answers to {whose}: {version}")


def access(installation: Installation) -> Iterator[Finding]:
    """Say whether an EKS cluster knows the roles of the stack. Other clusters take a token."""
    if installation.cluster.kind is not ClusterKind.EKS:
        return
    found = installation.aws.unknown_roles(installation.cluster)
    if found:
        yield fail(
            f'not in the group "plimsoll": {", ".join(found)}',
            f"for each: aws eks create-access-entry --cluster-name {installation.cluster.name} "
            "--kubernetes-groups plimsoll --principal-arn ARN",
        )
    else:
        yield ok('every role of the stack is in the group "plimsoll"')


def rights(installation: Installation) -> Iterator[Finding]:
    """Say which verbs are held and which are missing, and so whether our manifests are applied."""
    found = installation.probe.rights()
    missing = [right for right in found if not right.held]
    unwatched = [right for right in missing if right.verb == "watch"]
    if unwatched and len(missing) < len(found):
        missing = [right for right in missing if right not in unwatched]
        yield info(
            f"not all are held ({_listed(unwatched)}): a drain lists these again each second",
            installation.apply(),
            about="rights to watch",
        )
    said = _listed(missing)
    if not missing:
        yield ok(f"all {len(found) - len(unwatched)} are held, as infra/cluster grants them")
    elif len(missing) == len(found):
        yield fail(
            "none is held: infra/cluster is not applied, or its bindings do not name us",
            f'{installation.apply(None)}, and put the identity into the group "plimsoll"',
        )
    elif all(_overlay(right) for right in missing):
        for overlay in sorted({_overlay(right) for right in missing}):
            withheld = _listed([right for right in missing if _overlay(right) == overlay])
            yield info(
                f"not all are held ({withheld}): {_WITHHELD[overlay]}",
                f"if that is not meant: {installation.apply(overlay)}",
                about=f"rights of {overlay}",
            )
    elif installation.cluster.mode is Mode.OBSERVE and all(right.writes for right in missing):
        yield info(
            f"enough to observe, and not to act: missing {said}",
            f"before --mode act: {installation.apply()}",
        )
    else:
        yield fail(f"{len(found) - len(missing)} are held; missing: {said}", installation.apply())


def _overlay(right: Right) -> str:
    """Return the overlay that grants a right; "" where infra/cluster itself does."""
    asked = f"{right.verb} {right.resource}"
    return next((name for name, calls in OVERLAYS.items() if asked in map(str, calls)), "")


def index(installation: Installation) -> Iterator[Finding]:
    """Say whether the node index is fresh, which shows that the resync reaches the cluster."""
    instances = {n.instance: n.created for n in installation.nodes() if n.instance}
    entries = installation.index.find([*instances])
    wanted = [i for i, created in instances.items() if created + NEW <= installation.now]
    if not wanted:
        yield info("no node of the cluster is an EC2 instance of some minutes")
        return
    known = [entries[i] for i in wanted if i in entries]
    fresh = [
        e
        for e in known
        if e.cluster == installation.cluster.name and installation.now - e.seen <= STALE
    ]
    says = f"{len(fresh)} of {len(wanted)} nodes are as a resync of the last {STALE.seconds // 60} minutes saw them"
    if len(fresh) == len(wanted):
        yield ok(f"{says}: the functions reach the cluster")
        return
    if not known and installation.now - installation.cluster.added < NEW:
        yield info(f"{says}: it was registered just now", "ask again in two minutes")
        return
    if known:
        oldest = min(e.seen for e in known)
        says = f"{says}; the oldest entry is of {oldest:%Y-%m-%dT%H:%M:%SZ}"
    yield fail(
        says,
        'in the log group of sweep: filter message = "cluster not resynced" | fields because; see '
        "ResyncErrors in docs/operate/alarms.md",
    )


def _listed(missing: Sequence[Right]) -> str:
    return ", ".join(
        f"{r.verb} {r.resource}{f' in {r.only_in}' if r.only_in else ''}" for r in missing
    )
