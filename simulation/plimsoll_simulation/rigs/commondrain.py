"""What common handlers do at a notice: cordon, and evict everything on the node at once; no more.

Every rig plays it: the simulated one in virtual time, the others in threads (`ThreadedDrain`). It follows
`kubectl drain`: all pods are evicted in parallel, DaemonSet and mirror pods are left alone, and a
blocked eviction is tried again after five seconds.

Source: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.kubernetes import OwnerKind, Pod
from plimsoll.domain.notices import InstanceNotice, parse
from plimsoll.services.ports import Clock, Workers
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.threads import Threads

PARALLEL: Final = 10_000
"""As many pods as are evicted side by side at the most."""
CONNECTIONS: Final = 512
"""To one cluster, kept open: urllib3 warns of more."""
RETRY: Final = 5.0
"""Seconds until a call that failed, or an eviction that is blocked, is tried again."""


@dataclass(slots=True, kw_only=True)
class CommonDrain:
    """Drains the node of each instance at its first notice."""

    rig_clusters: Mapping[str, RigCluster]
    """To know which node an instance is."""
    transports: Mapping[str, Transport]
    """Carry the requests to each cluster."""
    clock: Clock
    """Waits between two attempts."""
    workers: Workers
    """Must run all calls that they are given side by side."""
    spawn: Callable[[Callable[[], None], str], object]
    """Starts a drain, under a name, and does not wait for it."""
    ended: Callable[[], bool] = lambda: False
    """Whether the drill is over, so that nothing is tried again."""
    _draining: set[str] = field(init=False, default_factory=set)

    def notice(self, body: str) -> None:
        """Start to drain the node that an event is about, if this is its first notice."""
        for notice in parse(body, received=self.clock.now(), drills=True):
            if isinstance(notice, InstanceNotice.__value__):
                self._start(notice.instance)

    def _start(self, instance: str) -> None:
        for name, rig_cluster in self.rig_clusters.items():
            machine = rig_cluster.fleet.machine.get(instance)
            if machine is not None and instance not in self._draining:
                self._draining.add(instance)
                self.spawn(partial(self._drain, name, machine), f"drain {machine.node}")

    def _drain(self, cluster: str, machine: Machine) -> None:
        """Return when every pod that leaves is on its way, or when it is over."""
        transport = self.transports[cluster]
        requests = Requests(transport=transport, cluster=cluster)
        api = KubernetesCluster(transport, cluster, self.clock, workers=self.workers)
        insist = partial(self._insist, machine)
        body = {"spec": {"unschedulable": True}}
        insist(partial(requests.send, calls.PATCH_NODE, name=machine.node, body=body))
        fields = f"spec.nodeName={machine.node}"
        found = insist(partial(requests.list, calls.LIST_PODS, fields=fields))
        pods = [pod for pod in map(parse_pod, found or ()) if _leaves(pod)]
        self.workers.run([partial(insist, partial(api.evict, pod)) for pod in pods])

    def _insist[T](self, machine: Machine, call: Callable[[], T]) -> T | None:
        """Repeat a call until it works, its aim is reached anyhow, or the drill or machine is over."""
        while machine.gone is None and not self.ended():
            try:
                return call()
            except (NotFound, Conflict):
                return None
            except PlimsollError:
                self.clock.sleep(RETRY)
        return None


def _leaves(pod: Pod) -> bool:
    daemon = pod.owner is not None and pod.owner.kind == OwnerKind.DAEMON_SET
    return not (pod.mirror or daemon or pod.finished or pod.deleting is not None)


class ThreadedDrain(Threads):
    """Drains in wall-clock time, in a thread for each node and each pod; a context manager.

    Args:
        rig_clusters: to know which node an instance is.
        ways: into each cluster.
        clock: the real time.
    """

    def __init__(
        self, rig_clusters: Mapping[str, RigCluster], ways: Mapping[str, Access], clock: Clock
    ) -> None:
        super().__init__()
        self._clock = clock
        self._workers = ThreadWorkers(PARALLEL)
        self._drain = CommonDrain(
            rig_clusters=rig_clusters,
            transports={name: way.transport(CONNECTIONS) for name, way in ways.items()},
            clock=self,
            workers=self._workers,
            spawn=self.spawn,
            ended=self.ended.is_set,
        )

    def notice(self, body: str) -> None:
        """Start to drain the node that an event is about, if this is its first notice."""
        self._drain.notice(body)

    @override
    def end(self) -> None:
        super().end()
        self._workers.close()

    # The port `Clock` of its drain, whose waiting its end cuts short.

    def now(self) -> datetime:
        """Return the real time."""
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until it ends."""
        self.ended.wait(seconds)
