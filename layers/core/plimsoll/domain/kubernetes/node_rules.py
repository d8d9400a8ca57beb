"""The scheduler's predicates between a pod template and a node, whatever stands on the node.

They depend on the two objects alone, so a snapshot asks once for each template and node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from plimsoll.domain.kubernetes import names
from plimsoll.domain.kubernetes.nodes import Node, Taint
from plimsoll.domain.kubernetes.pods import NodeTerm, Scheduling, Toleration
from plimsoll.domain.kubernetes.selectors import satisfied

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable")
_INTERRUPTED: Final = Taint(key=names.INTERRUPTION)
_NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready")
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})

_OF_START_UP: Final = (
    "ebs.csi.aws.com/",
    "efs.csi.aws.com/",
    "node.cloudprovider.kubernetes.io/",
    "karpenter.sh/unregistered",
    *(
        f"{kind}-taint.cluster-autoscaler.kubernetes.io/"
        for kind in ("ignore", "startup", "status")
    ),
)
_OF_STATE: Final = (
    names.PREFIX,
    "node.kubernetes.io/",
    "node.eks.amazonaws.com/",
    "aws-node-termination-handler/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
"""Beginnings of taints that tell of a node's state: ours, and those of its coming and going."""

WRONG_NODE: Final = "node(s) didn't match Pod's node affinity/selector"


def why_never(scheduling: Scheduling, node: Node) -> str | None:
    """Say in the scheduler's words why pods of a template never fit on a node as it is now."""
    # In the order of kube-scheduler's filters: it names the first one that refuses a node.
    # https://github.com/kubernetes/kubernetes/blob/master/pkg/scheduler/apis/config/v1/default_plugins.go
    if node.unschedulable and not tolerated(UNSCHEDULABLE, scheduling.tolerations):
        return "node(s) were unschedulable"
    taint = untolerated(taints_of(node), scheduling.tolerations)
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not node_selected(scheduling, node):
        return WRONG_NODE
    return "cannot allocate all claims" if scheduling.devices else None


def taints_of(node: Node) -> Iterable[Taint]:
    """Yield a node's taints, with those the node controller adds a moment after it changed.

    https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-not-ready
    """
    yield from node.taints
    if node.unschedulable:
        yield UNSCHEDULABLE
    if not node.ready:
        yield _NOT_READY


def starts_up(node: Node) -> bool:
    """Whether a node has a taint that an agent takes off once it runs there."""
    return any(map(_of_start_up, node.taints))


def passes(taint: Taint) -> bool:
    """Whether a taint tells of the state of one node: the next one of its group is open without it."""
    return taint.key.startswith(_OF_STATE) or _of_start_up(taint)


def _of_start_up(taint: Taint) -> bool:
    """Agents of CNI and CSI name theirs `…/agent-not-ready`, controllers of clouds `…/uninitialized`.

    https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#how-can-i-use-startup-taints
    """
    return taint.key.startswith(_OF_START_UP) or taint.key.endswith(("not-ready", "/uninitialized"))


def untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: frozenset[str] = _HARD,
) -> Taint | None:
    """Return the first taint of these effects that nothing tolerates.

    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations):
            return taint
    return None


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Whether any toleration is for this taint: an empty key or effect stands for every one."""
    return any(
        (not t.effect or t.effect == taint.effect)
        and (t.key == taint.key or (not t.key and t.operator == "Exists"))
        and (t.operator == "Exists" or (t.operator == "Equal" and t.value == taint.value))
        for t in tolerations
    )


def tolerates_interruption(tolerations: Sequence[Toleration]) -> bool:
    """Whether pods may start on an interrupted node: they tolerate its cordon and our taint, whatever its value."""
    return tolerated(UNSCHEDULABLE, tolerations) and tolerated(_INTERRUPTED, tolerations)


def node_selected(scheduling: Scheduling, node: Node) -> bool:
    """Whether node selector and required node affinity hold.

    Any one term of the affinity is enough; a list without terms, and a term that says nothing,
    select no node.
    https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
    """
    for key, value in scheduling.node_selector.items():
        if node.labels.get(key) != value:
            return False
    terms = scheduling.node_terms
    return terms is None or any(holds(term, node) for term in terms)


def holds(term: NodeTerm, node: Node) -> bool:
    """Whether all that a term of node affinity says holds; one that says nothing never does."""
    if not term.expressions and not term.fields:
        return False
    fields = {"metadata.name": node.name}
    return all(satisfied(e, node.labels) for e in term.expressions) and all(
        satisfied(f, fields) for f in term.fields
    )
