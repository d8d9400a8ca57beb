"""One cluster of a drill: the hollow cluster, the fleet behind it, and whoever measures both."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from plimsoll.domain.errors import BadInput
from plimsoll.domain.names import MIRROR, NAMESPACE, TEMPORARY
from plimsoll.drill.fleet import Fleet, Group
from plimsoll.drill.machines import Machine, node_object
from plimsoll.drill.manifests import WORKLOADS, Manifest
from plimsoll.drill.measure import Measurement
from plimsoll.drill.scenario import ClusterSpec, ScaleEntry, Selector
from plimsoll.drill.simulated.time import VirtualClock
from plimsoll.hollow.cluster import HollowCluster
from plimsoll.hollow.refusals import RefusedError
from plimsoll.hollow.resources import BY_KIND
from plimsoll.hollow.settings import Settings
from plimsoll.hollow.store import Change


class Stage:
    """Keeps cluster and fleet in step, and tells the measurement what happens."""

    def __init__(
        self, spec: ClusterSpec, *, seed: int, clock: VirtualClock, measurement: Measurement
    ) -> None:
        now = clock.now()
        self.name = spec.name
        self.spec = spec
        self._clock = clock
        self._measurement = measurement
        self._outages = 0
        self._lags: list[float] = []
        self._waiting: list[Machine] = []
        self.cluster = HollowCluster(
            now=now,
            seed=random.Random(f"{seed}/{spec.name}").getrandbits(32),  # noqa: S311 - no secret
            settings=Settings(pod_startup=spec.pods.startup, pod_stop=spec.pods.stop),
        )
        self.cluster.on_change(self._observe)
        for group in spec.node_groups:
            measurement.add_group(
                spec.name,
                group.name,
                capacity=group.capacity,
                price=group.price,
                stop=spec.pods.stop,
            )
        self.fleet = Fleet(spec.name, spec.node_groups, seed=seed, now=now)
        self.fleet.tell(self)
        clock.follow(self.fleet)
        clock.follow(self.cluster)

    def set_up(self, objects: Sequence[Manifest]) -> None:
        """Let the nodes of the start join, and apply what the scenario names.

        Raises:
            BadInput: the cluster refuses an object.
        """
        now = self._clock.now()
        self.fleet.step(now)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.cluster.apply([namespace], now=now)
        self.apply(objects)

    def apply(self, objects: Sequence[Manifest]) -> None:
        """Let the owner apply manifests: from now on they are what is declared.

        Raises:
            BadInput: the cluster refuses an object.
            ConnectionRefusedError: the API server is down.
        """
        now = self._clock.now()
        self._measurement.declare(now, self.name, [manifest.sent for manifest in objects])
        for manifest in objects:
            try:
                self.cluster.apply([manifest.sent], now=now)
            except RefusedError as refused:
                raise BadInput(f"{manifest.place}: {manifest} was refused: {refused}") from refused
        self._clock.touch(self.cluster)

    def scale(self, entry: ScaleEntry) -> None:
        """Let the owner declare another count.

        Raises:
            BadInput: the cluster refuses it.
            ConnectionRefusedError: the API server is down.
        """
        now = self._clock.now()
        plural = BY_KIND[entry.kind].plural
        answer = self.cluster.handle(
            "PATCH",
            f"/apis/apps/v1/namespaces/{entry.namespace}/{plural}/{entry.name}/scale",
            None,
            {"spec": {"replicas": entry.replicas}},
            "application/merge-patch+json",
            now=now,
            user="kubectl",
        )
        if answer.status >= 400:  # noqa: PLR2004 - refused
            raise BadInput(f"{entry.place}: the cluster refused it: {answer.body['message']}")
        self._measurement.scale(now, entry)
        self._clock.touch(self.cluster)

    def take_api_away(self) -> None:
        """Let the API server go down; outages may overlap."""
        self._outages += 1
        self.cluster.take_api_away(now=self._clock.now())
        self._clock.touch(self.cluster)

    def bring_api_back(self) -> None:
        """Let one outage end; nodes that could not register do so now."""
        self._outages -= 1
        if self._outages:
            return
        now = self._clock.now()
        self.cluster.bring_api_back(now=now)
        waiting, self._waiting = self._waiting, []
        for machine in waiting:
            if machine.gone is None:
                self.joined(machine, now)
        self._clock.touch(self.cluster)

    def slow_down(self, seconds: float) -> None:
        """Let every answer of the API server be late; the worst of several counts."""
        self._lags.append(seconds)

    def speed_up(self, seconds: float) -> None:
        """Let one slowness end."""
        self._lags.remove(seconds)

    def lag(self) -> float:
        """Return by how many seconds answers are late."""
        return max(self._lags, default=0.0)

    def refuse_capacity(self, selector: Selector, until: datetime) -> None:
        """Let EC2 have no capacity for the groups that a selector takes."""
        for group in self.spec.node_groups:
            if selector.takes_group(self.name, group):
                self.fleet.refuse(group.name, until)

    def unfinished(self) -> Iterator[str]:
        """Yield in words what the measurement cannot see, and what must be over in the end."""
        alive = {None, "", *(m.node for m in self.fleet.alive() if m.joined)}
        lost = sum(
            1
            for pod in self.cluster.store.all("pods")
            if pod["spec"].get("nodeName") not in alive and not _of_daemon(pod)
        )
        if lost:
            yield f"{lost} pods of {self.name} are on nodes that are gone"
        for kind in sorted(WORKLOADS):
            for obj in self.cluster.store.all(BY_KIND[kind].plural):
                if TEMPORARY in (obj["metadata"].get("annotations") or {}):
                    meta = obj["metadata"]
                    yield f"{kind} {meta['namespace']}/{meta['name']} is changed for a while"

    # What the fleet tells: see `plimsoll.drill.fleet.Side`.

    def asked(self, group: Group, now: datetime) -> None:
        """Somebody asked for more of a group."""
        self._measurement.capacity_asked(now, self.name, group.spec.name)

    def launched(self, machine: Machine, now: datetime) -> None:
        """A machine starts."""
        self._measurement.instance_started(
            now, self.name, machine.group.name, machine.id, node=machine.node, zone=machine.zone
        )

    def joined(self, machine: Machine, now: datetime) -> None:
        """A machine's node registers, as soon as there is an API server."""
        if self._outages:
            self._waiting.append(machine)
            return
        self.cluster.join(node_object(machine), now=now)
        self._clock.touch(self.cluster)

    def vanished(self, machine: Machine, now: datetime) -> None:
        """A machine is gone; pods that were to end at this very instant have ended."""
        self.cluster.step(now)
        self._measurement.gone(now, machine.id)
        self.cluster.vanish(machine.node, now=now)
        self._clock.touch(self.cluster)

    def _observe(self, change: Change) -> None:
        obj: dict[str, Any] = change.object
        match change.resource, change.type:
            case "pods", "DELETED":
                self._measurement.pod_removed(change.at, self.name, obj)
            case "pods", _:
                self._measurement.observe_pod(change.at, self.name, obj)
            case "nodes", "ADDED" | "MODIFIED":
                self._measurement.observe_node(change.at, self.name, obj)
            case _:
                pass


def _of_daemon(pod: Mapping[str, Any]) -> bool:
    """Whether a pod belongs to its node, and is collected with it at leisure."""
    owners = pod["metadata"].get("ownerReferences") or ()
    mirror = MIRROR in (pod["metadata"].get("annotations") or {})
    return mirror or any(owner["kind"] == "DaemonSet" for owner in owners)
