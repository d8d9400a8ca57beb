"""Topology spread: the hard constraints (DoNotSchedule) of a pod.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
and the plugin PodTopologySpread of kube-scheduler. Surprises: only nodes that have the keys of all
hard constraints are counted; the policies decide which nodes are counted, not where the pod may go;
pods that are terminating are not counted; an empty selector counts none of the pods that are there
(`countPodsMatchSelector`); a node without the key never fits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from plimsoll.domain.kubernetes import (
    Node,
    Pod,
    Requirement,
    Scheduling,
    Selector,
    SpreadConstraint,
    matches,
    node_selected,
    selector_key,
    taints_of,
    untolerated,
)
from plimsoll.domain.scheduling.topology_counts import DomainOf, TopologyCounts

_SKEWED = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class SpreadFilter:
    """A filter of nodes, for one constraint: a domain with more than `most` pods takes none."""

    key: str
    count: Mapping[str, int]
    most: int

    def __call__(self, node: Node) -> str | None:
        """Say why a node will not do."""
        domain = node.labels.get(self.key)
        if domain is None:
            return f"{_SKEWED} (missing required label)"
        return None if self.admits(domain) else _SKEWED

    def admits(self, domain: str) -> bool:
        """Whether a domain takes one more."""
        return self.count.get(domain, 0) <= self.most


def spread_filters(pod: Pod, topology_counts: TopologyCounts) -> Iterator[SpreadFilter]:
    """Yield what the pod's hard spread constraints demand of a node."""
    hard = [c for c in pod.scheduling.spread if c.hard]
    keys = tuple(sorted({c.topology_key for c in hard}))
    for constraint in hard:
        yield _filter(pod, constraint, keys, topology_counts)


def _filter(
    pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...], topology_counts: TopologyCounts
) -> SpreadFilter:
    selector, namespace = _selector(constraint, pod), pod.namespace
    says = bool(selector.labels or selector.requirements)
    divided = (constraint.topology_key, keys, _counted_nodes(constraint, pod.scheduling))
    topology_count = topology_counts(
        ("spread", namespace, selector_key(selector), divided),
        lambda p: says and p.deleting is None and matches(selector, p.labels),
        divided,
        _domain(constraint, keys, pod.scheduling),
        namespace,
    )
    key, count = constraint.topology_key, topology_count.count
    lowest = min(count.values(), default=0)
    # With fewer domains than minDomains, kube-scheduler takes the lowest count as 0.
    if len(count) < (constraint.min_domains or 1):
        lowest = 0
    # The pod itself counts only if its own selector matches it.
    most = constraint.max_skew + lowest - (1 if matches(selector, pod.labels) else 0)
    return SpreadFilter(key, count, most)


def _selector(constraint: SpreadConstraint, pod: Pod) -> Selector:
    """Narrow the selector to the pod's own values of matchLabelKeys.

    The API server has done so already in a pod that it stored; doing it again changes nothing.
    """
    own = tuple(
        Requirement(key=key, operator="In", values=(pod.labels[key],))
        for key in constraint.match_label_keys
        if key in pod.labels
    )
    if not own:
        return constraint.selector
    return Selector(
        labels=constraint.selector.labels, requirements=constraint.selector.requirements + own
    )


def _domain(
    constraint: SpreadConstraint, keys: tuple[str, ...], scheduling: Scheduling
) -> DomainOf:
    by_affinity = constraint.node_affinity_policy == "Honor"
    by_taints = constraint.node_taints_policy == "Honor"

    def domain(node: Node) -> str | None:
        if any(key not in node.labels for key in keys):
            return None
        if by_affinity and not node_selected(scheduling, node):
            return None
        if by_taints and untolerated(taints_of(node), scheduling.tolerations) is not None:
            return None
        return node.labels[constraint.topology_key]

    return domain


def _counted_nodes(constraint: SpreadConstraint, scheduling: Scheduling) -> Hashable:
    """Return what decides which nodes are counted, so that templates that agree share a count."""
    by_affinity = constraint.node_affinity_policy == "Honor"
    return (
        (tuple(sorted(scheduling.node_selector.items())), scheduling.node_terms)
        if by_affinity
        else None,
        scheduling.tolerations if constraint.node_taints_policy == "Honor" else None,
    )
