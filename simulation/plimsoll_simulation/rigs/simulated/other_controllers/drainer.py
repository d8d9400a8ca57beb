"""What all that drain have in common: a node is marked, its pods are evicted, a refused one later again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.domain.kubernetes import MIRROR
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_cluster.conditions import controller_of, is_deleting, is_finished
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import (
    Json,
    OtherController,
)

HEARD: Final = timedelta(milliseconds=500)
"""From an event to whoever reads it from a queue of its own."""
TAKEN_UP: Final = timedelta(seconds=5)
"""How soon whoever handles an event has begun with it. One that a budget refuses may wait for ever."""
KUBECTL_RETRY: Final = timedelta(seconds=5)
"""How soon `kubectl drain` tries a refused eviction again. Source: k8s.io/kubectl/pkg/drain/drain.go"""
CORDON: Final = {"spec": {"unschedulable": True}}
_REFUSED: Final = 400
_NOT_FOUND: Final = 404

type Life = tuple[str, int]
"""One launch of one instance."""


@dataclass(slots=True)
class Drain:
    """The drain of one node."""

    machine: Machine
    began: datetime
    emptied: datetime | None = None
    refused: dict[str, int] = field(default_factory=dict)
    """Uid of a pod -> how often its eviction was refused."""
    again: dict[str, datetime] = field(default_factory=dict)
    """When it is tried again."""


@dataclass(slots=True)
class Drainer[C: RigCluster = RigCluster](OtherController[C]):
    """Empties nodes through the Eviction API, which lets a PodDisruptionBudget refuse."""

    drains: dict[Life, Drain] = field(default_factory=dict)

    @abstractmethod
    def chosen(self) -> Iterable[Machine]:
        """Return the instances whose nodes are to be drained; those under way need not be among them."""

    def mark(self, node: Json) -> Json | None:
        """Return the patch that keeps new pods off a node; None where it needs none."""
        return None if node["spec"].get("unschedulable") else CORDON

    def pause(self, refused: int) -> timedelta:  # noqa: ARG002 - some wait longer each time
        """Return how long after its last refusal an eviction is tried again."""
        return KUBECTL_RETRY

    def leaves(self, pod: Json) -> bool:
        """Whether a pod is evicted, and waited for."""
        owner = controller_of(pod)
        return (owner is None or owner["kind"] != "DaemonSet") and MIRROR not in annotations_of(pod)

    def evictable(self, pods: Collection[Json]) -> Iterable[Json]:
        """Return those of the pods that leave which are evicted now."""
        return pods

    def after(self, drain: Drain) -> None:
        """Go on with a node that is empty; called at each look."""

    @property
    def delay(self) -> timedelta:
        """How long its queue holds a message back."""
        return timedelta()

    @property
    @override
    def under_way(self) -> bool:
        now = self.clock.now()
        fresh = any(
            now - time < self.delay + TAKEN_UP
            for machine in self.rig_cluster.fleet.alive()
            for _, time in machine.notices
        )
        return fresh or any(
            drain.emptied is None and drain.machine.gone is None and not drain.refused
            for drain in self.drains.values()
        )

    @override
    def look(self) -> None:
        for machine in self.chosen():
            life = machine.id, machine.launches
            if life not in self.drains:
                self.drains[life] = Drain(machine, self.clock.now())
        for drain in list(self.drains.values()):
            self.advance(drain)

    def advance(self, drain: Drain) -> None:
        """Go on with a drain."""
        name = drain.machine.node
        node = self.rig_cluster.get("nodes", "", name)
        if drain.machine.gone is not None or node is None:
            return
        if (patch := self.mark(node)) is not None and drain.emptied is None:
            self.send("PATCH", f"/api/v1/nodes/{name}", patch)
        pods = [
            pod
            for pod in self.rig_cluster.on_node(name)
            if not is_finished(pod) and self.leaves(pod)
        ]
        if not pods:
            drain.emptied = drain.emptied or self.clock.now()
            self.after(drain)
            return
        if drain.emptied is None:
            for pod in list(self.evictable(pods)):
                self._evict(drain, pod)

    def _evict(self, drain: Drain, pod: Json) -> None:
        uid, now = pod["metadata"]["uid"], self.clock.now()
        if is_deleting(pod) or drain.again.get(uid, now) > now:
            return
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        answer = self.send("POST", path, body)
        if answer.status >= _REFUSED and answer.status != _NOT_FOUND:
            drain.refused[uid] = drain.refused.get(uid, 0) + 1
            drain.again[uid] = now + self.pause(drain.refused[uid])

    def told(self, kinds: Collection[str]) -> Iterator[Machine]:
        """Yield the running instances of which an event of one of these kinds has arrived."""
        heard = self.clock.now() - HEARD - self.delay
        for machine in self.rig_cluster.fleet.alive():
            if any(kind in kinds and time <= heard for kind, time in machine.notices):
                yield machine


def annotations_of(pod: Json) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = look(pod, "metadata", "annotations", default={}) or {}
    return found
