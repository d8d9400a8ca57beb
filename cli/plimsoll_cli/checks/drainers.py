"""Who else drains nodes of the cluster: two that do it at once undo what replacing first is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from plimsoll.adapters.nodegroups.eks import LABEL
from plimsoll.domain.clusters import Mode
from plimsoll.domain.nodes import Node
from plimsoll_cli.checks.facts import Drainer, Facts, read_or_raise
from plimsoll_cli.checks.findings import Finding, fail, info, ok

NAME: Final = "app.kubernetes.io/name"
HANDLER: Final = "aws-node-termination-handler"
KARPENTER: Final = "karpenter"
GUARD_THEM: Final = "guard workloads that must not lose pods (plimsoll guard install)"
"""The cure beside whoever cannot be told not to drain."""
_QUEUE: Final = "INTERRUPTION_QUEUE"
"""https://karpenter.sh/docs/reference/settings/"""
_OF_SPOT_GROUPS: Final = (
    "EKS drains their nodes itself when AWS recommends to replace them or announces an interruption, and "
    "cannot be told not to"
)
"""https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-capacity-types"""


def drainers_of(pods: Sequence[Mapping[str, Any]]) -> Sequence[Drainer]:
    """Return the programs among pods that evict others when a node is interrupted.

    A pod that no API server would show is passed over.
    """
    found: dict[tuple[str, str], bool] = {}
    for pod in pods:
        with suppress(AttributeError, KeyError, TypeError):
            name = str(pod["metadata"]["labels"][NAME])
            key = name, str(pod["metadata"]["namespace"])
            found[key] = found.get(key, False) or name == HANDLER or _has_queue(pod)
    return [
        Drainer(name=name, namespace=namespace, drains=drains)
        for (name, namespace), drains in sorted(found.items())
    ]


def other_drainers(facts: Facts) -> Iterator[Finding]:
    """Name who evicts the pods of interrupted nodes besides us."""
    found, nodes = read_or_raise(facts.drainers), read_or_raise(facts.nodes)
    guards = read_or_raise(facts.guards)
    say = fail if facts.cluster.mode is Mode.ACT and not guards else info
    held = f". Budgets of the guard: {guards}, which it waits for" if guards else ""
    rivals = [drainer for drainer in found if drainer.drains]
    for rival in rivals:
        yield say(
            f"other drainers: {rival.name}",
            f"it runs in namespace {rival.namespace}, and evicts the pods of an interrupted node within seconds, "
            f"before their replacements are Ready{held}",
            "take settings.interruptionQueue out of its Helm values: it still provides nodes for Pending pods"
            if rival.name == KARPENTER
            else f"uninstall it, or {GUARD_THEM}, or leave this cluster in the mode observe",
        )
    managed = managed_spot(nodes)
    if managed:
        yield info(
            "other drainers: EKS",
            f"spot nodes of managed node groups: {managed}. {_OF_SPOT_GROUPS}{held}",
            f"{GUARD_THEM}, or use Auto Scaling groups of your own",
        )
    if not rivals and not managed:
        yield ok("other drainers", "nothing else that drains interrupted nodes was found")


def managed_spot(nodes: Sequence[Node]) -> int:
    """Return how many spot nodes EKS drains by itself."""
    return sum(node.capacity == "spot" and LABEL in node.labels for node in nodes)


def _has_queue(pod: Mapping[str, Any]) -> bool:
    """Whether Karpenter hears of interruptions."""
    settings = (e for c in pod["spec"]["containers"] for e in c.get("env") or ())
    return any(e.get("name") == _QUEUE and e.get("value") for e in settings)
