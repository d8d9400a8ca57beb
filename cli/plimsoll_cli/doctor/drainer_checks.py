"""Who else drains nodes of the cluster: two that do it at once undo what replacing first is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Mode
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, skipped
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.drainers import AUTOSCALER, Drainer, holds_back, managed_spot

RIGHT_SECONDS: Final = 15
MOST_SECONDS: Final = 30
"""What Karpenter has left of two minutes, and a node that ends without a notice is missed for that long."""
DURATIONS_SINCE: Final = (1, 12)
"""The version of Karpenter from which `karpenter.sh/do-not-disrupt` may be a duration."""
CHECK: Final = "Karpenter's queue"
GUARD_THEM: Final = "guard workloads that must not lose pods (plimsoll guard install)"
"""The cure beside whoever cannot be told not to drain."""
_OF_SPOT_GROUPS: Final = (
    "EKS drains their nodes itself when AWS recommends to replace them or announces an interruption, and "
    "cannot be told not to"
)
"""https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-capacity-types"""


def other_drainers(installation: Installation) -> Iterator[Finding]:
    """Name who evicts the pods of interrupted nodes besides us."""
    found, nodes = installation.probe.drainers(), installation.nodes()
    guards = installation.probe.guards()
    say = fail if installation.cluster.mode is Mode.ACT and not guards else info
    held = (
        f". Budgets of the guard: {guards}, which it waits for: the mode act fits" if guards else ""
    )
    drainers_beside = [drainer for drainer in found if drainer.drains]
    for drainer in drainers_beside:
        if drainer.queue is not None:
            yield from _karpenters_queue(installation, drainer, drainer.queue, say, held)
            continue
        yield say(
            f"it runs in namespace {drainer.namespace}, and evicts the pods of an interrupted node within seconds, "
            f"before their replacements are Ready{held}",
            f"uninstall it, or {GUARD_THEM}, or leave this cluster in the mode observe",
            f"other drainers: {drainer.name}",
        )
    managed = managed_spot(nodes)
    if managed:
        yield info(
            f"spot nodes of managed node groups: {managed}. {_OF_SPOT_GROUPS}{held}",
            "guard workloads at a warning (plimsoll guard install --warned), and give StatefulSets a budget, or use Auto "
            "Scaling groups of your own",
            about="other drainers: EKS",
        )
    for drainer in found:
        if drainer.name == AUTOSCALER:
            yield info(
                f"it runs in namespace {drainer.namespace}, and drains nodes that are little used, interrupted or not; "
                "it spares nodes with guarded pods. The mode act fits",
                about=f"other drainers: {AUTOSCALER}",
            )
    move = installation.stack.command(
        "clusters", "set", installation.cluster.name, "--on", "foreign-cordon=move"
    )
    for who, count in sorted(installation.probe.marks().items()):
        yield info(
            f"nodes: {count}{held}",
            f"where a drain waits for guarded pods: {move}" if "cordon" in who else None,
            about=f"drained now: {who}",
        )
    if not drainers_beside and not managed:
        yield ok(
            "nothing else that drains interrupted nodes was found: the mode act fits",
        )


def _karpenters_queue(
    installation: Installation,
    karpenter: Drainer,
    name: str,
    say: Callable[[str, str, str], Finding],
    held: str,
) -> Iterator[Finding]:
    """Say whether Karpenter's interruption queue holds messages back for as long as is right.

    Args:
        installation: whose account has the queue.
        karpenter: one that reads a queue.
        name: of the queue.
        say: makes the finding where it does not.
        held: what holds it back else, in words.
    """
    cure = (
        f"set DelaySeconds of the queue {name} to {RIGHT_SECONDS}, in the code that makes it too: see "
        "docs/guides/beside-karpenter.md"
    )
    try:
        delay = installation.aws.queue_delay(installation.cluster, name)
    except PlimsollError as error:
        yield skipped(error, f"look at it yourself: {cure}", about=CHECK)
    else:
        if not holds_back(delay):
            yield say(
                f"{name} delivers messages after {delay} s. Karpenter in namespace {karpenter.namespace} then evicts the "
                f"pods of an interrupted node before Plimsoll has released them{held}",
                cure,
                CHECK,
            )
        elif delay > MOST_SECONDS:
            yield info(
                f"{name} holds messages back for {delay} s. An interrupted node counts against the limits of its NodePool "
                "for that long, and so does one that ended without a notice",
                cure,
                about=CHECK,
            )
        else:
            yield ok(f"{name} holds messages back for {delay} s: the mode act fits", about=CHECK)
    if karpenter.version is not None and karpenter.version < DURATIONS_SINCE:
        yield say(
            f"{karpenter.version[0]}.{karpenter.version[1]} reads no duration in karpenter.sh/do-not-disrupt, and evicts "
            "released pods",
            "update Karpenter to 1.12 or newer, or guard workloads (plimsoll guard install)",
            "Karpenter's version",
        )
