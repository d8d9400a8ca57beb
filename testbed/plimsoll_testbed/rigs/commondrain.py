"""What common handlers do at a notice: cordon, and evict everything on the node at once; no more.

Every rig plays it, each with its own clock, threads and way to the cluster. It follows
`kubectl drain`: all pods are evicted in parallel, DaemonSet and mirror pods are left alone, and a
blocked eviction is tried again after five seconds.

Source: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.notices import InstanceNotice, parse
from plimsoll.domain.pods import OwnerKind, Pod
from plimsoll.services.ports import Clock, Workers
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs.rig_cluster import RigCluster

RETRY: Final = 5.0
"""Seconds until a call that failed, or an eviction that is blocked, is tried again."""


class CommonDrain:
    """Drains the node of each instance at its first notice.

    Args:
        rig_clusters: to know which node an instance is.
        transports: carry the requests to each cluster.
        clock: waits between two attempts.
        workers: must run all calls that they are given side by side.
        spawn: starts a drain, under a name, and does not wait for it.
        ended: whether the drill is over, so that nothing is tried again.
    """

    def __init__(  # noqa: PLR0913 - what differs between rigs
        self,
        rig_clusters: Mapping[str, RigCluster],
        transports: Mapping[str, Transport],
        clock: Clock,
        *,
        workers: Workers,
        spawn: Callable[[Callable[[], None], str], object],
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rig_clusters = rig_clusters
        self._clock = clock
        self._spawn = spawn
        self._ended = ended
        self._draining: set[str] = set()
        self._drains = {
            name: _ClusterDrain(transport, name, clock, workers=workers)
            for name, transport in transports.items()
        }

    def notice(self, body: str) -> None:
        """Start to drain the node that an event is about, if this is its first notice."""
        for notice in parse(body, received=self._clock.now(), drills=True):
            if isinstance(notice, InstanceNotice.__value__):
                self._start(notice.instance)

    def _start(self, instance: str) -> None:
        for name, rig_cluster in self._rig_clusters.items():
            machine = rig_cluster.fleet.machine.get(instance)
            if machine is not None and instance not in self._draining:
                self._draining.add(instance)
                drain = partial(
                    self._drains[name].drain, machine.node, partial(self._over, machine)
                )
                self._spawn(drain, f"drain {machine.node}")

    def _over(self, machine: Machine) -> bool:
        return machine.gone is not None or self._ended()


class _ClusterDrain:
    """Drains nodes of one cluster."""

    def __init__(
        self, transport: Transport, cluster: str, clock: Clock, *, workers: Workers
    ) -> None:
        self._requests = Requests(transport=transport, cluster=cluster)
        self._api = KubernetesCluster(transport, cluster, clock, workers=workers)
        self._clock = clock
        self._workers = workers

    def drain(self, node: str, over: Callable[[], bool]) -> None:
        """Return when every pod that leaves is on its way, or when it is over."""
        insist = partial(self._insist, over)
        cordon = partial(
            self._requests.send,
            calls.PATCH_NODE,
            name=node,
            body={"spec": {"unschedulable": True}},
        )
        insist(cordon)
        found = insist(
            partial(self._requests.list, calls.LIST_PODS, fields=f"spec.nodeName={node}")
        )
        pods = [pod for pod in map(parse_pod, found or ()) if _leaves(pod)]
        self._workers.run([partial(insist, partial(self._api.evict, pod)) for pod in pods])

    def _insist[T](self, over: Callable[[], bool], call: Callable[[], T]) -> T | None:
        """Repeat a call until it works, its aim is reached anyhow, or it is over."""
        while not over():
            try:
                return call()
            except (NotFound, Conflict):
                return None
            except PlimsollError:
                self._clock.sleep(RETRY)
        return None


def _leaves(pod: Pod) -> bool:
    daemon = pod.owner is not None and pod.owner.kind == OwnerKind.DAEMON_SET
    return not (pod.mirror or daemon or pod.finished or pod.deleting is not None)
