"""What common handlers do at a notice: cordon, and evict everything on the node at once; no more.

Both rigs play it, each with its own clock, threads and way to the cluster. It follows
`kubectl drain`: every pod in a line of its own, DaemonSet and mirror pods left alone, a blocked
eviction tried again after five seconds.

Source: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.notices import InstanceNotice, parse
from plimsoll.domain.objects import parse_pod
from plimsoll.domain.pods import OwnerKind, Pod
from plimsoll.services.ports import Clock, Workers

RETRY: Final = 5.0
"""Seconds until a call that failed, or an eviction that is blocked, is tried again."""


def noticed(body: str, now: datetime) -> Iterator[str]:
    """Yield the instances that an event is about."""
    for notice in parse(body, received=now, drills=True):
        if isinstance(notice, InstanceNotice.__value__):
            yield notice.instance


class CommonDrain:
    """Drains nodes of one cluster.

    Args:
        transport: carries the requests.
        cluster: its name, for messages.
        clock: waits between two attempts.
        workers: must run all calls that they are given side by side.
    """

    def __init__(
        self, transport: Transport, cluster: str, clock: Clock, *, workers: Workers
    ) -> None:
        self._requests = Requests(transport=transport, cluster=cluster)
        self._api = KubernetesCluster(transport, cluster, clock, workers=workers)
        self._clock = clock
        self._workers = workers

    def drain(self, node: str, *, over: Callable[[], bool]) -> None:
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
