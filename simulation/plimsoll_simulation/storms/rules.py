"""What the responder may never write, judged by the state of the cluster just before the write.

Each rule returns its name and what is wrong. None asks the planner: whether a pod had to leave so early is for
`plimsoll_simulation.storms.compare` to say, by what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.interruptions import MARGIN
from plimsoll.domain.kubernetes import (
    GUARD,
    Pod,
    is_ignored,
)
from plimsoll.domain.observation import Observation
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_cluster.subresources import Request
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery

type Wrong = tuple[str, str]
WRITTEN: Final = timedelta(seconds=60)
"""How soon a notice is recorded on its node, also if the API server was away meanwhile."""
_NAMES_ITS_END: Final = frozenset(
    {"spot-interruption", "capacity-reservation-interruption", "health-scheduled-change"}
)
"""Notices that say when the instance goes; a lifecycle action does not say its hook's timeout."""


def judged(
    write: Request,
    rig_cluster: SimulatedRigCluster,
    delivery: NoticeDelivery,
    observe: Callable[[], Observation],
) -> list[Wrong]:
    """Return what is wrong with a write, before it happens.

    Args:
        write: what the responder sends.
        rig_cluster: the cluster that it writes to.
        delivery: which notices arrived.
        observe: observes the cluster itself, not what the responder last read of it.
    """
    plural = write.target.resource.plural
    namespace = write.target.namespace or ""
    if plural == "pods" and (write.target.subresource == "eviction" or write.method == "DELETE"):
        seen = observe()
        pod = next((p for p in seen.pods if (p.namespace, p.name) == (namespace, write.name)), None)
        return (
            [] if pod is None else list(_Removal(write, rig_cluster, delivery, seen, pod).wrong())
        )
    if plural == "poddisruptionbudgets":
        budget = rig_cluster.get(plural, namespace, write.name or "") or {"metadata": {}}
        if (budget["metadata"].get("labels") or {}).get(GUARD) == "true":
            return []
    if plural not in {"pods", "nodes", "leases", "events"}:
        return [("workload-written", f"{write.method} {plural} {namespace}/{write.name}")]
    return []


@dataclass(frozen=True, slots=True)
class _Removal:
    """An eviction or a delete of one pod."""

    write: Request
    rig_cluster: SimulatedRigCluster
    delivery: NoticeDelivery
    seen: Observation
    pod: Pod

    def wrong(self) -> Iterator[Wrong]:
        pod, node = self.pod, self.seen.node.get(self.pod.node or "")
        machine = None if pod.node is None else self.rig_cluster.fleet.on_node(pod.node)
        grace = self._grace()
        if machine is None or node is None or not machine.joined:
            return  # it died with its instance, which may be starting anew
        if is_ignored(pod.labels, pod.annotations):
            yield "ignored-removed", f"{pod} of {node.name}, which has opted out"
        if grace == 0:
            yield "forced-while-alive", f"{pod} of {node.name}, whose instance lives"
        if node.interruption is None and not pod.released:  # a released one may be surplus there
            yield (
                "left-healthy-node",
                f"{pod} of {node.name}, which has no record of an interruption",
            )
        deadline = None if node.interruption is None else node.interruption.deadline
        ends = self._announced(machine)
        if ends is not None and (deadline is None or deadline > ends):
            yield "deadline-too-late", f"{node.name} ends before the deadline of its record"
        deadline = self._told(deadline, machine)
        if grace is not None and deadline is not None:
            left = (deadline - self.write.now).total_seconds()
            if grace < min(pod.grace_seconds, max(1, int(left))):
                yield "cut-needlessly", f"{pod} gets {grace} s of {left:g} s left"

    @staticmethod
    def _told(deadline: datetime | None, machine: Machine) -> datetime | None:
        """Return the deadline that a plan goes by which has just read the lifecycle hooks of others."""
        if deadline is None:
            return None
        others = (end - MARGIN for hook, end in machine.held.items() if not hook.ours)
        return min((deadline, *others))

    def _announced(self, machine: Machine) -> datetime | None:
        """Return when an instance ends, if all notices that say so arrived long enough ago."""
        arrived = self.write.now - WRITTEN - self.delivery.slack
        told = all(kind in _NAMES_ITS_END and at < arrived for kind, at in machine.notices)
        known = machine.notices and self.delivery.all_arrived(machine.node)
        return machine.ends if told and known else None

    def _grace(self) -> int | None:
        body = self.write.body or {}
        options = body.get("deleteOptions", body)
        grace: int | None = options.get("gracePeriodSeconds")
        return grace
