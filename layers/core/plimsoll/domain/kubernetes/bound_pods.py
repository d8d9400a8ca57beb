"""The pods that are bound to nodes: by node, by namespace, and what they request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from plimsoll.domain.kubernetes.pods import Pod
from plimsoll.domain.kubernetes.quantities import Resources, total_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPods:
    """Pods that name a node and are not finished. Nothing of it ever changes, so snapshots share it."""

    on_node: Mapping[str, Sequence[Pod]]
    in_namespace: Mapping[str, Sequence[Pod]]
    requests: Mapping[str, Resources]
    """Node -> what its pods request together."""
    affecting: Sequence[Pod]
    """Those with host ports, anti-affinity or a PodGroup: where others fit depends on more than what they request."""

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Self:
        """List the bound ones of some pods."""
        # All lists in one pass: each pass over a million pods takes a tenth of a second or more.
        on_node: defaultdict[str, list[Pod]] = defaultdict(list)
        in_namespace: defaultdict[str, list[Pod]] = defaultdict(list)
        requests: defaultdict[str, list[Resources]] = defaultdict(list)
        affecting: list[Pod] = []
        for pod in pods:
            node = pod.node
            if node is None or pod.finished:
                continue
            scheduling = pod.scheduling
            on_node[node].append(pod)
            in_namespace[pod.namespace].append(pod)
            requests[node].append(scheduling.requests)
            if pod.group is not None or scheduling.host_ports or scheduling.anti_affinity:
                affecting.append(pod)
        return cls(
            on_node=on_node,
            in_namespace=in_namespace,
            requests={name: total_resources(amounts) for name, amounts in requests.items()},
            affecting=affecting,
        )

    def only_on(self, nodes: Collection[str]) -> Self:
        """Return the pods on some of the nodes.

        Mostly a few nodes are gone, so only the namespaces of their pods are listed again.
        """
        out = [name for name in self.on_node if name not in nodes]
        if not out:
            return self
        namespaces = {pod.namespace for name in out for pod in self.on_node[name]}
        fewer = {
            namespace: [pod for pod in self.in_namespace[namespace] if pod.node in nodes]
            for namespace in namespaces
        }
        return type(self)(
            on_node={name: pods for name, pods in self.on_node.items() if name in nodes},
            in_namespace={**self.in_namespace, **fewer},
            requests={name: amount for name, amount in self.requests.items() if name in nodes},
            affecting=[pod for pod in self.affecting if pod.node in nodes],
        )
