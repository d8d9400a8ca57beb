"""Required affinity and anti-affinity between pods.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
and the plugin InterPodAffinity of kube-scheduler. Three surprises: anti-affinity also binds pods
that come later and have none themselves; with several affinity terms only a pod that matches all
of them counts, for each; and the first pod of a group that wants to stand with itself may go
anywhere that has the topology keys.

A namespaceSelector is held against a namespace's name alone: `with_namespaces` has put names in place of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from copy import copy
from typing import Self

from plimsoll.domain.kubernetes import (
    NAMESPACE_NAME,
    Node,
    Pod,
    PodTerm,
    matches,
    selector_key,
)
from plimsoll.domain.scheduling.topology_counts import DomainOf, FilterReason, TopologyCounts


def admitted(term: PodTerm, namespace: str, pod: Pod) -> bool:
    """Whether a pod is one of those that a term of a pod in `namespace` speaks of."""
    return _in_namespaces(term, namespace, pod.namespace) and matches(term.selector, pod.labels)


def affinity_filter(pod: Pod, topology_counts: TopologyCounts) -> Iterator[FilterReason]:
    """Yield what the pod's own affinity and anti-affinity demand of a node."""
    namespace, terms = pod.namespace, pod.scheduling.affinity
    if terms:
        together = tuple(_key(term, namespace) for term in terms)
        counts = {
            term.topology_key: topology_counts(
                ("affinity", together, term.topology_key),
                lambda p: all(admitted(t, namespace, p) for t in terms),
                term.topology_key,
                _by(term.topology_key),
            ).count
            for term in terms
        }
        alone = not any(any(count.values()) for count in counts.values())
        first = alone and all(admitted(term, namespace, pod) for term in terms)

        def near(node: Node) -> str | None:
            for key, count in counts.items():
                domain = node.labels.get(key)
                if domain is None or not (first or count.get(domain)):
                    return "node(s) didn't match pod affinity rules"
            return None

        yield near
    for term in pod.scheduling.anti_affinity:
        yield _apart(term, namespace, topology_counts)


def _apart(term: PodTerm, namespace: str, topology_counts: TopologyCounts) -> FilterReason:
    key = term.topology_key
    count = topology_counts(
        ("anti-affinity", _key(term, namespace)),
        lambda p: admitted(term, namespace, p),
        key,
        _by(key),
    ).count

    def apart(node: Node) -> str | None:
        if count.get(node.labels.get(key, "")):
            return "node(s) didn't match pod anti-affinity rules"
        return None

    return apart


class AntiAffinityIndex:
    """The anti-affinity of the pods that are placed, which keeps others out of their domains."""

    def __init__(self) -> None:
        self._terms: defaultdict[str | None, dict[Hashable, tuple[PodTerm, str]]] = defaultdict(
            dict
        )
        """By the only namespace whose pods a term speaks of, and by None where there may be several."""
        self._count: dict[Hashable, dict[str, int]] = {}

    def change(self, pod: Pod, node: Node, by: int) -> None:
        """Put up (1) or take down (-1) what a pod on a node demands of others."""
        for term in pod.scheduling.anti_affinity:
            domain = node.labels.get(term.topology_key)
            if domain is None:
                continue
            key = _key(term, pod.namespace)
            own = not term.namespaces and term.namespace_selector is None
            self._terms[pod.namespace if own else None][key] = (term, pod.namespace)
            count = self._count.setdefault(key, {})
            count[domain] = count.get(domain, 0) + by

    def filter_reasons(self, pod: Pod) -> Iterator[FilterReason]:
        """Yield the fences that hold for a pod."""
        for speaking_of in (pod.namespace, None):
            for key, (term, namespace) in self._terms.get(speaking_of, {}).items():
                if admitted(term, namespace, pod):
                    yield self._fence(term.topology_key, self._count[key])

    def copy(self) -> Self:
        """Return fences that go on by themselves."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        terms = {namespace: terms.copy() for namespace, terms in self._terms.items()}
        self._terms = defaultdict(dict, terms)
        self._count = {key: count.copy() for key, count in self._count.items()}

    @staticmethod
    def _fence(topology_key: str, count: dict[str, int]) -> FilterReason:
        def fence(node: Node) -> str | None:
            if count.get(node.labels.get(topology_key, "")):
                return "node(s) didn't satisfy existing pods anti-affinity rules"
            return None

        return fence


def _in_namespaces(term: PodTerm, own: str, namespace: str) -> bool:
    wide = term.namespace_selector
    if not term.namespaces and wide is None:
        return namespace == own
    return namespace in term.namespaces or (
        wide is not None and matches(wide, {NAMESPACE_NAME: namespace})
    )


def _by(topology_key: str) -> DomainOf:
    return lambda node: node.labels.get(topology_key)


def _key(term: PodTerm, namespace: str) -> Hashable:
    wide = term.namespace_selector
    return (
        namespace,
        term.topology_key,
        selector_key(term.selector),
        term.namespaces,
        None if wide is None else selector_key(wide),
    )
