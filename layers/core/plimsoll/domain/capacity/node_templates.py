"""Nodes that do not exist yet, as a node group's template promises them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from plimsoll.domain.kubernetes import (
    Node,
    NodeTerm,
    Pod,
    Requirement,
    Resources,
    Scheduling,
    names,
    passes,
    satisfied,
    why_never,
)
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate, may_have
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot


def future_node(group: NodeGroup, template: NodeTemplate, zone: str, name: str) -> Node:
    """Return the node that a group would add in a zone, Ready and empty.

    It carries the zone labels that kubelet and volume drivers put on a node once it is there.
    """
    return Node(
        name=name,
        uid=name,
        resource_version="",
        labels={
            **template.labels,
            names.HOSTNAME: name,
            **dict.fromkeys(names.ZONE_LABELS, zone),
        },
        taints=tuple(taint for taint in template.taints if not passes(taint)),
        allocatable=template.allocatable,
        zone=zone,
        capacity=group.capacity,
        created=_NOT_YET,
    )


def template_for(template: NodeTemplate, scheduling: Scheduling) -> NodeTemplate:
    """Return the template with the labels and devices that its group would choose for a pod, of those that it may give.

    A label that is well known may have any value where nothing is said of it.
    https://karpenter.sh/docs/concepts/scheduling/#well-known-labels
    """
    if template.choices is None:
        return template
    template = _with_devices(template, scheduling.requests, template.choices)
    selector = tuple(
        Requirement(key=key, operator="In", values=(value,))
        for key, value in scheduling.node_selector.items()
    )
    terms = scheduling.node_terms or (NodeTerm(),)
    found = (_chosen(template, (*selector, *term.expressions)) for term in terms)
    return next((each for each in found if each is not None), template)


def _with_devices(
    template: NodeTemplate, requests: Resources, rules: Sequence[Requirement]
) -> NodeTemplate:
    """Return the template with the GPUs that a pod asks for, where the group has no such node and may make one.

    Nothing tells how large that node is: large enough for the pod beside what the others hold.
    """
    has = dict(template.allocatable.extended)
    asked = {
        name: amount
        for name, amount in requests.extended
        if amount and not has.get(name) and may_have(name, amount, rules)
    }
    if not asked:
        return template
    room = template.allocatable + Resources(cpu=requests.cpu, memory=requests.memory)
    return replace(
        template, allocatable=replace(room, extended=tuple(sorted((has | asked).items())))
    )


def _chosen(template: NodeTemplate, wanted: Sequence[Requirement]) -> NodeTemplate | None:
    """Return the template with labels that meet what is wanted; None where it cannot give them."""
    labels = dict(template.labels)
    for one in wanted:
        if one.key in {*names.ZONE_LABELS, names.HOSTNAME} or satisfied(one, labels):
            continue
        said = [rule for rule in template.choices or () if rule.key == one.key]
        if one.key in labels or not (said or one.key.startswith(_WELL_KNOWN)):
            return None
        both = [*said, *(other for other in wanted if other.key == one.key)]
        value = next(
            (v for v in _values(both) if all(satisfied(r, {one.key: v}) for r in both)), None
        )
        if value is None:
            return None
        labels[one.key] = value
    return replace(template, labels=labels)


_BOUNDS: Final = {"Gt": 1, "Gte": 0, "Lte": 0, "Lt": -1}
"""Operator -> how far from its bound the first number is that meets it."""


def _values(rules: Sequence[Requirement]) -> Iterator[str]:
    """Yield values of which one meets all rules, if any value does."""
    for rule in rules:
        if rule.operator == "In":
            yield from rule.values
        elif rule.operator in _BOUNDS:
            step = _BOUNDS[rule.operator]
            yield from (str(int(v) + step) for v in rule.values if v.isdecimal())
    yield ""


def could_serve(seen: Observation, wanted: Collection[Scheduling]) -> bool:
    """Whether any node or node group could take a pod of any of these, were there nothing else on it."""
    here = [
        replace(
            node,
            unschedulable=False,
            ready=True,
            taints=tuple(t for t in node.taints if not passes(t)),
        )
        for node in seen.nodes
    ]

    def could_be_on(node: Node, one: Scheduling) -> bool:
        return why_never(one, node) is None and one.requests.within(node.allocatable)

    return any(
        any(could_be_on(node, one) for node in here)
        or any(
            could_be_on(future_node(group, template_for(group.template, one), zone, ""), one)
            for group in seen.groups
            if group.template is not None
            for zone in group.zones
        )
        for one in wanted
    )


_WELL_KNOWN: Final = (
    "kubernetes.io/arch",
    "kubernetes.io/os",
    names.INSTANCE_TYPE,
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "karpenter.k8s.aws/",
    "eks.amazonaws.com/instance-",
)
_NOT_YET: Final = datetime.max.replace(tzinfo=UTC)


class Daemons:
    """One pod of every DaemonSet, to be put on future nodes: they take headroom there too.

    https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        """Take a sample of every DaemonSet whose pods are in the snapshot."""
        found: dict[str, Pod] = {}
        for name in snapshot.nodes:
            for pod in snapshot.on(name):
                if pod.of_daemon_set:
                    found.setdefault(str(pod.owner), pod)
        self._samples = tuple(
            replace(pod, scheduling=_anywhere(pod.scheduling), deleting=None)
            for _, pod in sorted(found.items())
        )

    def on(self, node: Node) -> Sequence[Pod]:
        """Return the daemon pods that a new node would get."""
        return [
            replace(pod, uid=f"{node.name}:{pod.owner}", node=node.name)
            for pod in self._samples
            if why_never(pod.scheduling, node) is None
        ]


def _anywhere(scheduling: Scheduling) -> Scheduling:
    """Take out the name of the node to which the DaemonSet controller bound a pod."""
    if scheduling.node_terms is None:
        return scheduling
    terms = tuple(
        NodeTerm(
            expressions=term.expressions,
            fields=tuple(f for f in term.fields if f.key != "metadata.name"),
        )
        for term in scheduling.node_terms
    )
    free = any(not term.expressions and not term.fields for term in terms)
    return replace(scheduling, node_terms=None if free else terms)
