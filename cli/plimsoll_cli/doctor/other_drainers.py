"""Who else drains nodes of the cluster: two that do it at once undo what replacing first is for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from plimsoll.adapters.nodegroups.eks import LABEL
from plimsoll.domain.kubernetes import INTERRUPTION, Node
from plimsoll.domain.registry import Mode
from plimsoll_cli.doctor.facts import Drainer, Facts, read_or_raise
from plimsoll_cli.doctor.findings import Finding, fail, info, ok
from plimsoll_cli.doctor.karpenter_checks import karpenters_queue

NAME: Final = "app.kubernetes.io/name"
HANDLER: Final = "aws-node-termination-handler"
KARPENTER: Final = "karpenter"
AUTOSCALER: Final = "cluster-autoscaler"
_IMAGE: Final = re.compile(
    rf"(?:^|/)(?:{HANDLER}|{AUTOSCALER}|{KARPENTER}(?=/controller))(?=[:@/]|$)"
)
"""Of the programs' images, wherever they are copied to."""
_TAG: Final = re.compile(rf"/{KARPENTER}/controller:v?(\d{{1,4}})\.(\d{{1,4}})\b")
_MARKS: Final = re.compile(
    rf"(?P<{KARPENTER}>karpenter\.sh/disrupt(?:ed|ion)$)"
    r"|(?P<autoscaler>(?:ToBeDeletedBy|DeletionCandidateOf)ClusterAutoscaler$)"
    rf"|(?P<handler>{HANDLER}/)"
)
"""Keys of the taints and labels by which a program marks a node that it drains."""
_PROGRAMS: Final = {KARPENTER: KARPENTER, "autoscaler": AUTOSCALER, "handler": HANDLER}
_OF_CORDONS: Final = (
    "where a drain waits for guarded pods: plimsoll clusters set NAME --on foreign-cordon=move"
)
GUARD_THEM: Final = "guard workloads that must not lose pods (plimsoll guard install)"
"""The cure beside whoever cannot be told not to drain."""
_QUEUE: Final = "INTERRUPTION_QUEUE"
"""https://karpenter.sh/docs/reference/settings/"""
_OF_SPOT_GROUPS: Final = (
    "EKS drains their nodes itself when AWS recommends to replace them or announces an interruption, and "
    "cannot be told not to"
)
"""https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-capacity-types"""


def drainers_of(
    pods: Sequence[Mapping[str, Any]], deployments: Sequence[Mapping[str, Any]] = ()
) -> Sequence[Drainer]:
    """Return the programs that drain nodes: pods by their label, Deployments by their images.

    What no API server would show is passed over.
    """
    found: dict[tuple[str, str], Drainer] = {}
    for item in (*pods, *deployments):
        with suppress(AttributeError, KeyError, TypeError):
            spec = item["spec"]["template"]["spec"] if "template" in item["spec"] else item["spec"]
            name = (item["metadata"].get("labels") or {}).get(NAME)
            if name not in {HANDLER, KARPENTER, AUTOSCALER}:
                images = (_IMAGE.search(container["image"]) for container in spec["containers"])
                name = next((hit[0].strip("/") for hit in images if hit), None)
            if name is not None:
                key = str(name), str(item["metadata"]["namespace"])
                queue = _queue_of(spec)
                drains = name == HANDLER or queue is not None
                version = _version_of(spec)
                if key not in found or queue is not None:
                    found[key] = Drainer(
                        name=key[0], namespace=key[1], drains=drains, queue=queue, version=version
                    )
    return [found[key] for key in sorted(found)]


def other_drainers(facts: Facts) -> Iterator[Finding]:
    """Name who evicts the pods of interrupted nodes besides us."""
    found, nodes = read_or_raise(facts.drainers), read_or_raise(facts.nodes)
    guards = read_or_raise(facts.guards)
    say = fail if facts.cluster.mode is Mode.ACT and not guards else info
    held = (
        f". Budgets of the guard: {guards}, which it waits for: the mode act fits" if guards else ""
    )
    drainers_beside = [drainer for drainer in found if drainer.drains]
    for drainer in drainers_beside:
        if drainer.queue is not None:
            yield from karpenters_queue(facts, drainer, say, held)
            continue
        yield say(
            f"other drainers: {drainer.name}",
            f"it runs in namespace {drainer.namespace}, and evicts the pods of an interrupted node within seconds, "
            f"before their replacements are Ready{held}",
            f"uninstall it, or {GUARD_THEM}, or leave this cluster in the mode observe",
        )
    managed = managed_spot(nodes)
    if managed:
        yield info(
            "other drainers: EKS",
            f"spot nodes of managed node groups: {managed}. {_OF_SPOT_GROUPS}{held}",
            "guard workloads at a warning (plimsoll guard install --warned), and give StatefulSets a budget, or use Auto "
            "Scaling groups of your own",
        )
    for drainer in found:
        if drainer.name == AUTOSCALER:
            yield info(
                f"other drainers: {AUTOSCALER}",
                f"it runs in namespace {drainer.namespace}, and drains nodes that are little used, interrupted or not; "
                "it spares nodes with guarded pods. The mode act fits",
            )
    for who, count in sorted(read_or_raise(facts.marks).items()):
        yield info(
            f"drained now: {who}", f"nodes: {count}{held}", _OF_CORDONS if "cordon" in who else None
        )
    if not drainers_beside and not managed:
        yield ok(
            "other drainers",
            "nothing else that drains interrupted nodes was found: the mode act fits",
        )


def managed_spot(nodes: Sequence[Node]) -> int:
    """Return how many spot nodes EKS drains by itself."""
    return sum(node.capacity == "spot" and LABEL in node.labels for node in nodes)


def marks_of(nodes: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    """Return who drains nodes just now, as these say, and how many: programs, and field managers of cordons."""
    found = Counter[str]()
    for node in nodes:
        with suppress(AttributeError, KeyError, TypeError):
            spec, metadata = node.get("spec") or {}, node["metadata"]
            keys = [taint["key"] for taint in spec.get("taints") or ()]
            hits = [
                hit
                for key in (*keys, *(metadata.get("labels") or ()))
                if (hit := _MARKS.match(key))
            ]
            found.update({_PROGRAMS[str(hit.lastgroup)] for hit in hits})
            if spec.get("unschedulable") and not hits and INTERRUPTION not in keys:
                found[f"a cordon by {_cordoned_by(metadata)}"] += 1
    return found


def _cordoned_by(metadata: Mapping[str, Any]) -> str:
    """Return the field manager that owns the cordon of a node."""
    for entry in metadata.get("managedFields") or ():
        if "f:unschedulable" in (entry.get("fieldsV1") or {}).get("f:spec", {}):
            return str(entry["manager"])
    return "somebody who does not say"


def _queue_of(spec: Mapping[str, Any]) -> str | None:
    """Return the name of the queue from which Karpenter hears of interruptions."""
    settings = (e for c in spec["containers"] for e in c.get("env") or ())
    named = (e.get("value") for e in settings if e.get("name") == _QUEUE)
    return next((str(name) for name in named if name), None)


def _version_of(spec: Mapping[str, Any]) -> tuple[int, int] | None:
    hits = (_TAG.search(container["image"]) for container in spec["containers"])
    return next(((int(hit[1]), int(hit[2])) for hit in hits if hit), None)
