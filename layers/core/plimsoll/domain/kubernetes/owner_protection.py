"""Pods and nodes that their owners protect from disruption: no voluntary move touches them.

At an interruption they leave as all others do: their instance ends in any case.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes.durations import parse_duration
from plimsoll.domain.kubernetes.names import DO_NOT_DISRUPT, PROTECTED, SAFE_TO_EVICT
from plimsoll.domain.kubernetes.nodes import Node
from plimsoll.domain.kubernetes.pods import Pod


def left_by_karpenter(pod: Pod, now: datetime) -> bool:
    """Whether a pod tells Karpenter not to disrupt it, for good or at its present age."""
    said = pod.annotations.get(DO_NOT_DISRUPT, "")
    try:
        age = timedelta.max if said == "true" else parse_duration(said)
    except BadInput:
        return False
    return timedelta() < age and (pod.started is None or now - pod.started < age)


def why_node_protected(node: Node) -> str | None:
    """Return why a node is not removed without need; None where it may be."""
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"Node {node.name} is protected with {DO_NOT_DISRUPT}"
    return None


def why_protected(pod: Pod, node: Node | None, now: datetime) -> str | None:
    """Return why no voluntary move touches a pod on a node; None where one may.

    The annotation that Plimsoll itself sets for Karpenter protects from nothing here.
    """
    said = pod.annotations.get(DO_NOT_DISRUPT)
    if said != pod.annotations.get(PROTECTED) and left_by_karpenter(pod, now):
        return f"its owner protects it with {DO_NOT_DISRUPT}: {said}"
    if pod.annotations.get(SAFE_TO_EVICT) == "false":
        return f"its owner protects it with {SAFE_TO_EVICT}: false"
    return None if node is None else why_node_protected(node)
