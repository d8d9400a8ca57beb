"""Programs that drain nodes, as pods, Deployments and nodes of a cluster tell of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.adapters.nodegroups.eks import LABEL
from plimsoll.domain.kubernetes import INTERRUPTION, Node

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
_QUEUE: Final = "INTERRUPTION_QUEUE"
"""https://karpenter.sh/docs/reference/settings/"""
LEAST_SECONDS: Final = 10
"""What Plimsoll may need to mark the pods of a notice, with a cold start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainer:
    """A program in the cluster that is known to drain nodes."""

    name: str
    namespace: str
    queue: str | None = None
    """Name of the queue from which Karpenter hears of interruptions."""
    version: tuple[int, int] | None = None
    """Major and minor, where the tag of its image names them."""

    @property
    def drains(self) -> bool:
        """Whether it is set to evict pods of interrupted nodes."""
        return self.name == HANDLER or self.queue is not None


def holds_back(delay_seconds: int) -> bool:
    """Whether a queue leaves Plimsoll the time to mark the pods of a notice before Karpenter hears of it."""
    return delay_seconds >= LEAST_SECONDS


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
                if key not in found or queue is not None:
                    found[key] = Drainer(
                        name=key[0], namespace=key[1], queue=queue, version=_version_of(spec)
                    )
    return [found[key] for key in sorted(found)]


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
