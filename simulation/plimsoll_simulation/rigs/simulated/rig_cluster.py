"""A fake cluster as the cluster of a drill: in process, and in the drill's own time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, override

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_simulation.fake_aws.machines import Machine, node_object
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.rig_cluster import MERGE, OWNER, Json, RigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.manifests import Manifest

_AGAIN: Final = timedelta(seconds=1)
"""How soon a kubelet tries again while the API server is down."""


class SimulatedRigCluster(RigCluster):
    """One fake cluster of a drill."""

    def __init__(  # noqa: PLR0913 - what a cluster is made of
        self,
        spec: ClusterSpec,
        *,
        seed: int,
        scheduler_seed: int = 0,
        clock: VirtualClock,
        measurement: Measurement,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.cluster = FakeCluster(
            now=clock.now(),
            seed=random.Random(f"{seed}/{spec.name}").getrandbits(32) + scheduler_seed,  # noqa: S311 - no secret
            settings=Settings(
                pod_startup=spec.pods.startup,
                pod_stop=spec.pods.stop,
                volume_detach=spec.pods.detach,
            ),
        )
        self.cluster.state.bindings = {
            _maker(of): list(nodes) for of, nodes in spec.bindings.items()
        }
        super().__init__(
            spec,
            seed=seed,
            clock=clock,
            measurement=measurement,
            store=self.cluster.store,
            indexes=self.cluster.state.indexes,
            say=say,
        )
        self._outages = 0
        self._lags: list[float] = []
        self._waiting: list[Machine] = []
        clock.follow(self.cluster)

    @override
    def set_up(self, objects: Sequence[Manifest]) -> None:
        now = self._clock.now()
        self.fleet.step(now)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.cluster.apply([namespace], now=now)
        self.label_nodes(objects)
        self.apply(objects)

    def begin(self) -> None:
        """Leave every pod to the scheduler from now on."""
        self.cluster.state.bindings.clear()

    @override
    def take_api_away(self, until: datetime) -> None:
        self._outages += 1
        self.cluster.take_api_away(now=self._clock.now())
        self._clock.touch(self.cluster)
        self._clock.at(until, self._bring_api_back)

    def _bring_api_back(self) -> None:
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

    @override
    def slow_down(self, seconds: float, until: datetime) -> None:
        self._lags.append(seconds)
        self._clock.at(until, partial(self._lags.remove, seconds))

    def lag(self) -> float:
        """Return by how many seconds answers are late."""
        return max(self._lags, default=0.0)

    @override
    def joined(self, machine: Machine, now: datetime) -> None:
        if self._outages:
            self._waiting.append(machine)
            return
        node = node_object(machine)
        if self.started is not None and machine.group.devices_after:
            self._clock.at(now + machine.group.devices_after, partial(self._report, machine))
            node = {**node, "status": {k: _plain(of) for k, of in node["status"].items()}}
        self.cluster.join(node, now=now)
        self._clock.touch(self.cluster)

    def _report(self, machine: Machine) -> None:
        """Let the device plugins of a node report, as soon as there is an API server."""
        if self._outages:
            self._clock.at(self._clock.now() + _AGAIN, partial(self._report, machine))
        elif machine.gone is None:
            status = {"status": node_object(machine)["status"]}
            path = f"/api/v1/nodes/{machine.node}/status"
            self.call("PATCH", path, status, MERGE, user="kubelet")

    @override
    def vanished(self, machine: Machine, now: datetime) -> None:
        self.cluster.step(now)
        self._measurement.gone(now, machine.id)
        self.cluster.vanish(machine.node, now=now, stopped=machine.returns is not None)
        self._clock.touch(self.cluster)

    @override
    def call(
        self, method: str, path: str, body: Json | None, content_type: str, *, user: str = OWNER
    ) -> Response:
        now = self._clock.now()
        answer = self.cluster.handle(method, path, None, body, content_type, now=now, user=user)
        self._clock.touch(self.cluster)
        return answer


def _plain(amounts: Json) -> Json:
    """Return the resources that a kubelet knows of without device plugins."""
    return {name: amount for name, amount in amounts.items() if "/" not in name}


def _maker(of: str) -> tuple[str, str, str]:
    kind, namespace, name = of.split("/")
    return kind, namespace, name
