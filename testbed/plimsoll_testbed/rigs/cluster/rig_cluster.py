"""A real control plane as the cluster of a drill: its nodes come and go with the fleet.

Everything that is measured is what watches show, at the moment at which they show it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import Temporary
from plimsoll_simulation.fake_aws.machines import Machine, node_object
from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.rig_cluster import OWNER, Json, RigCluster
from plimsoll_simulation.rigs.threads import RetryQueue, Threads
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_testbed.rigs.cluster.outage import Outages
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.follower import Follower
from plimsoll_testbed.rigs.watched_store import WatchedStore

POLL_SECONDS: Final = 0.05
"""Seconds between two checks whether the nodes of the start have joined."""
MONITOR: Final = timedelta(seconds=5)
"""How often the cloud's controller looks for nodes without an instance: --node-monitor-period."""
COMMON_DRAIN: Final = "drain"
RESPONDERS: Final = ("plimsoll", COMMON_DRAIN)
"""Each is a user of that name. The common drain may do everything, as such programs often may; other controllers, too."""
WATCHED: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "deployments": "/apis/apps/v1/deployments",
    "replicasets": "/apis/apps/v1/replicasets",
    "statefulsets": "/apis/apps/v1/statefulsets",
}
"""What a drill follows: resource -> path."""
_OK: Final = 200
_NOT_FOUND: Final = 404


class ControlPlaneRigCluster(RigCluster):
    """One real control plane of a drill. Its threads run from `start` to `end`.

    Args:
        spec: the cluster.
        seed: of the fleet.
        time: the drill's time, which goes by the wall.
        measurement: what watches it.
        say: told what a person may want to know.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        seed: int,
        time: WallTime,
        measurement: Measurement,
        say: Callable[[str], None],
    ) -> None:
        self._shown = WatchedStore()
        super().__init__(
            spec,
            seed=seed,
            clock=time.clock,
            measurement=measurement,
            store=self._shown,
            indexes=Indexes(self._shown),
            say=say,
        )
        self._time = time
        self.plane = ControlPlane(
            settings=Settings(pod_startup=spec.pods.startup, pod_stop=spec.pods.stop),
            users={name: ["system:masters"] for name in (COMMON_DRAIN, *spec.other_controllers)},
            audited=RESPONDERS,
        )
        self._others: dict[str, Transport] = {}
        """The ways of other controllers."""
        self._followers: list[Follower] = []
        self._arrivals = RetryQueue[Machine](f"arrivals of {spec.name}", self._join)
        self._departures = RetryQueue[str](f"departures from {spec.name}", self._depart)
        self._lost = RetryQueue[str](f"lost nodes of {spec.name}", self._delete)
        self._outages = Outages(self.plane, SystemClock(), say)

    def start(self) -> None:
        """Begin to watch, and to let nodes come and go. The control plane runs already."""
        for resource, path in WATCHED.items():
            show = partial(self._show, resource)
            self._followers.append(Follower(self.plane.kubeconfig(), path, show))
            self._followers[-1].start()
        for retry_queue in (self._arrivals, self._departures, self._lost):
            retry_queue.start()
        with self._time.lock:
            self._look_for_the_lost()

    def end(self) -> None:
        """End every thread. A watch ends only with the control plane itself."""
        for follower in self._followers:
            follower.end()
        self._outages.end()
        for retry_queue in (self._arrivals, self._departures, self._lost):
            retry_queue.end()

    @property
    def errors(self) -> list[Exception]:
        """What ended a thread, if something did."""
        retries = (self._arrivals, self._departures, self._lost)
        parts: list[Threads | Follower] = [*retries, self._outages, *self._followers]
        return [part.error for part in parts if part.error is not None]

    def rehearse_outage(self) -> float:
        """Restart the API server once; return how many seconds its start takes."""
        return self._outages.rehearse()

    @override
    def set_up(self, objects: Sequence[Manifest]) -> None:
        with self._time.lock:
            self.fleet.step(self._clock.now())
        # Every node is there before the first pod: the scheduler has the choice that it is to have.
        while self._arrivals.open:
            for error in self.errors:
                raise error
            time.sleep(POLL_SECONDS)
        with self._time.lock:
            self.label_nodes(objects)
            self.apply(objects)

    @override
    def take_api_away(self, until: datetime) -> None:
        self._outages.begin(until)

    @override
    def slow_down(self, seconds: float, until: datetime) -> None:
        raise ValueError(
            "a real API server cannot be slowed down: `refuse_unsupported` refuses the fault"
        )

    @override
    def unfinished(self) -> Iterator[str]:
        yield from super().unfinished()
        if self._outages.lasting:
            yield f"the API server of {self.name} is away"
        if any(follower.behind for follower in self._followers):
            yield f"a watch of {self.name} is behind"
        if self._arrivals.open:
            yield f"{self._arrivals.open} nodes are about to join {self.name}"

    @override
    def joined(self, machine: Machine, now: datetime) -> None:
        self._arrivals.ask(machine)

    @override
    def vanished(self, machine: Machine, now: datetime) -> None:
        self._measurement.gone(now, machine.id)
        self._departures.ask(machine.node)

    @override
    def call(
        self, method: str, path: str, body: Json | None, content_type: str, *, user: str = OWNER
    ) -> Response:
        others = nullcontext() if user == OWNER else self._time.let_go()
        way = self._way(user)
        try:
            with others:
                return way.call(
                    method,
                    path,
                    query={"fieldManager": user},
                    body=body,
                    content_type=content_type,
                )
        except Temporary as error:
            raise ConnectionRefusedError(str(error)) from error

    def _show(self, resource: str, change: str, obj: Json) -> None:
        with self._time.lock:
            self._shown.show(resource, change, obj, now=self._time.catch_up())

    @cached_property
    def _owner(self) -> Transport:
        return self.plane.transport()

    def _way(self, user: str) -> Transport:
        if user == OWNER:
            return self._owner
        return self._others.setdefault(user, self.plane.transport(user))

    # In threads of their own.

    def _join(self, machines: list[Machine]) -> None:
        with self._time.lock:  # what was created by an attempt whose answer was lost is shown
            new = [m for m in machines if m.gone is None and self.get("nodes", "", m.node) is None]
        if new:
            self.plane.join(*map(node_object, new))

    def _depart(self, nodes: list[str]) -> None:
        self.plane.vanish(*nodes)

    def _delete(self, nodes: list[str]) -> None:
        for node in nodes:
            answer = self._owner.call("DELETE", f"/api/v1/nodes/{node}")
            if answer.status not in {_OK, _NOT_FOUND}:
                raise RuntimeError(f"DELETE node {node}: {answer.status} {answer.body}")

    def _look_for_the_lost(self) -> None:
        """Delete Nodes that are not Ready and whose instance is gone, as the cloud's controller does.

        Source: k8s.io/cloud-provider/controllers/nodelifecycle, MonitorNodes.
        """
        gone = {machine.node for machine in self.fleet.machine.values() if machine.gone is not None}
        for node in self.all("nodes"):
            if node["metadata"]["name"] in gone and not is_ready(node):
                self._lost.ask(node["metadata"]["name"])
        self._clock.at(self._clock.now() + MONITOR, self._look_for_the_lost)
