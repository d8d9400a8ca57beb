"""Pods that tolerate the cordon and the taint of an interrupted node, for example by `operator: Exists` without a key.

kube-scheduler may place the replacement of such a pod on the node that the pod left, and often does: a node that is
drained has the most headroom. Nothing but its owner can keep it away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.disruptions.opt_outs import why_opted_out
from plimsoll.domain.kubernetes import (
    Pod,
    Ref,
    is_recreated,
    tolerates_interruption,
)
from plimsoll.domain.observation import Observation, leaves

NAME_TOLERATIONS: Final = (
    "tolerate named taints in its template, not every taint (operator: Exists without a key)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerantWorkload:
    """A workload whose pods may return to an interrupted node, and how many of them would have to leave one."""

    workload: Ref
    pods: int

    @property
    def says(self) -> str:
        """What follows for its pods, in words."""
        return (
            f"{self.pods} of its pods tolerate the taints of interrupted nodes: a replacement may start on the same "
            "node, and end with it"
        )

    @property
    def cure(self) -> str:
        """What its owner can change."""
        return NAME_TOLERATIONS


def tolerant_workloads(seen: Observation, nodes: Collection[str]) -> Iterator[TolerantWorkload]:
    """Yield the workloads with tolerant pods on these nodes, by name; not those whose owners opted out."""
    counts = Counter(
        seen.workload_of(pod)
        for name in nodes
        for pod in seen.on_node.get(name, ())
        if leaves(pod) and may_return(pod) and why_opted_out(seen, pod) is None
    )
    for workload, count in sorted(counts.items()):
        yield TolerantWorkload(workload=workload, pods=count)


def may_return(pod: Pod) -> bool:
    """Whether the replacement of a pod may start on the interrupted node that the pod leaves."""
    return is_recreated(pod) and tolerates_interruption(pod.scheduling.tolerations)
