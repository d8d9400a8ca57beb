"""Which pods stand where, by node and by namespace.

A plan of a large cluster asks about few of its nodes and namespaces. So the pods of a new snapshot are listed by these,
and indexed by uid only where somebody asks: an index of a million pods takes more than a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Self

from plimsoll.domain.kubernetes import BoundPods, Pod

type _Pods = dict[str, Pod] | Sequence[Pod]
"""By uid; a sequence where nobody has asked since the beginning. It never changes, so copies share it."""


class StandingPods:
    """Pods on nodes; a pod is known by its namespace and uid, a node by its name."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._on: dict[str, _Pods] = {}
        """By node."""
        self._within: dict[str, _Pods] = {}
        """By namespace."""
        self._elsewhere: dict[str, str] = {}
        """Uid of a pod that stands on another node than it names -> that other node."""

    def begin(self, bound: BoundPods) -> None:
        """Take the pods of a new snapshot, which has the nodes that they name; no two are of one uid."""
        self._within.update(bound.in_namespace)
        self._on.update(bound.on_node)

    @property
    def namespaces(self) -> Collection[str]:
        """The namespaces of all pods, and maybe some that have none."""
        return self._within.keys()

    def on(self, node_name: str) -> Mapping[str, Pod]:
        """Return the pods on a node, by uid.

        Raises:
            KeyError: there is no such node.
        """
        return _by_uid(self._on, node_name)

    def within(self, namespace: str) -> Mapping[str, Pod]:
        """Return the pods of a namespace, by uid."""
        self._within.setdefault(namespace, {})
        return _by_uid(self._within, namespace)

    def located(self, namespace: str) -> Iterator[tuple[Pod, str]]:
        """Yield the pods of a namespace, and the node of each."""
        return ((pod, self._home(pod)) for pod in self.within(namespace).values())

    def where(self, pod: Pod) -> str | None:
        """Return the node on which a pod stands."""
        held = self.within(pod.namespace).get(pod.uid)
        return None if held is None else self._home(held)

    def stand(self, pod: Pod, node_name: str) -> None:
        """Put a pod that stands nowhere on a node."""
        _by_uid(self._on, node_name)[pod.uid] = pod
        self._within.setdefault(pod.namespace, {})
        _by_uid(self._within, pod.namespace)[pod.uid] = pod
        if pod.node != node_name:
            self._elsewhere[pod.uid] = node_name

    def take_off(self, pod: Pod) -> tuple[Pod, str] | None:
        """Take a pod off, and return it as it stood, with its node; None where it stands nowhere."""
        held = self.within(pod.namespace).get(pod.uid)
        if held is None:
            return None
        name = self._home(held)
        del _by_uid(self._within, pod.namespace)[pod.uid], _by_uid(self._on, name)[pod.uid]
        self._elsewhere.pop(pod.uid, None)
        return held, name

    def add_node(self, name: str) -> None:
        """Add a node without pods."""
        self._on[name] = {}

    def remove_node(self, name: str) -> None:
        """Leave out a node that has no pods any more."""
        del self._on[name]

    def copy(self) -> Self:
        """Return pods that go on by themselves."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        self._on, self._within = _parted(self._on), _parted(self._within)
        self._elsewhere = self._elsewhere.copy()

    def _home(self, held: Pod) -> str:
        return self._elsewhere.get(held.uid, held.node or "")


def _by_uid(among: dict[str, _Pods], name: str) -> dict[str, Pod]:
    there = among[name]
    if not isinstance(there, dict):
        there = among[name] = {pod.uid: pod for pod in there}
    return there


def _parted(among: dict[str, _Pods]) -> dict[str, _Pods]:
    return {n: there.copy() if isinstance(there, dict) else there for n, there in among.items()}
