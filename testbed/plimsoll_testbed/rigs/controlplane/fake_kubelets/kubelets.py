"""The kubelets of a control plane: the model's own, fed by watches, over a real API server.

The rules, annotations and times are those of `plimsoll_simulation.fake_cluster.controllers.kubelet`. While the
API server is down containers run on, exit and are killed in their time; what waits to be written is
written when it is back.

Left out: as there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.controllers.kubelet import Kubelets
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.stamps import moment
from plimsoll_simulation.fake_cluster.state import ClusterState, PodStopped
from plimsoll_simulation.fake_cluster.store import Change
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import JSON, STRATEGIC, Loop, Write
from plimsoll_testbed.rigs.controlplane.fake_kubelets.volumes import Volumes
from plimsoll_testbed.rigs.watched_store import WatchedStore


class ApiStore(WatchedStore):
    """A watched store whose writes go to the API server; a watch shows what became of them.

    Args:
        loop: sends the writes.
        vanished: the nodes whose kubelets write nothing any more.
    """

    def __init__(self, loop: Loop, vanished: set[str]) -> None:
        super().__init__()
        self._loop = loop
        self._vanished = vanished

    @override
    def replace(self, resource: str, obj: Json, *, now: datetime) -> Json:
        """Send a pod's status."""
        body = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": obj["status"]}
        self._loop.write(self._request(obj, "PATCH", "/status", body, STRATEGIC))
        return obj

    def end(self, pod: Json) -> None:
        """Send a pod's last status, and confirm after it that its containers are gone: its object may go."""
        uid = {"uid": pod["metadata"]["uid"]}
        delete = self._request(pod, "DELETE", "", {"gracePeriodSeconds": 0, "preconditions": uid})
        last = {"metadata": uid, "status": pod["status"]}
        status = self._request(pod, "PATCH", "/status", last, STRATEGIC)
        self._loop.write(replace(status, then=lambda _: self._loop.write(delete)))

    def _request(
        self, pod: Json, method: str, part: str, body: Json, content_type: str = JSON
    ) -> Write:
        meta, node = pod["metadata"], pod["spec"]["nodeName"]

        def wanted() -> bool:
            shown = self.get("pods", meta["namespace"], meta["name"])
            same = shown is not None and shown["metadata"]["uid"] == meta["uid"]
            return same and node not in self._vanished

        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}{part}"
        return Write(method=method, path=path, body=body, content_type=content_type, wanted=wanted)


class WatchedKubelets(Kubelets):
    """All kubelets of the cluster, with the volumes that they mount.

    Args:
        loop: everything here runs in it.
        settings: times of pods without annotations, and of volumes.
        stopped: told of each pod that ran and stopped running.
    """

    watches: ClassVar = frozenset(
        {"nodes", "pods", "persistentvolumeclaims", "persistentvolumes", "volumeattachments"}
    )

    def __init__(
        self, loop: Loop, settings: Settings, *, stopped: Callable[[PodStopped], None]
    ) -> None:
        self._loop = loop
        vanished: set[str] = set()
        self._watched = ApiStore(loop, vanished)
        super().__init__(
            ClusterState(
                store=self._watched,
                indexes=Indexes(self._watched),
                timers=loop.timers,
                identities=self._watched.identities,
                settings=settings,
                started=loop.now(),
                vanished=vanished,
                stop_listeners=[stopped],
            )
        )
        self._since: dict[str, datetime] = {}
        """Node -> when its instance went."""
        self.volumes = Volumes(loop, self._watched, settings)
        self._watched.subscribe(self.volumes.observe)
        self._watched.subscribe(self.observe)

    def show(self, resource: str, change: str, obj: Json) -> None:
        """Take in what a watch showed, and react."""
        now = self._loop.now()
        self._watched.show(resource, change, obj, now=now)
        self.work(now)

    def instance_gone(self, node: str) -> None:
        """Let a node's instance be gone: everything that ran on it is killed.

        The API server may tell of the node later than this.
        """
        now = self._since[node] = self._loop.now()
        self.state.vanished.add(node)
        self.vanish(node, now)

    @override
    def observe(self, change: Change) -> None:
        match change.resource, change.type:
            case "nodes", "ADDED":
                self._join(change.object)
            case "nodes", "DELETED":
                self._reborn(change.key[1])
            case "nodes", _:
                pass
            case _ if change.resource in self.watches:
                super().observe(change)
            case _:
                pass

    @override
    def mounted(self, pod: Json) -> bool:
        return self.volumes.mounted(pod)

    @override
    def unmounted(self, pod: Json) -> None:
        self.volumes.unmount(pod)

    @override
    def confirm(self, pod: Json, now: datetime) -> None:
        self._watched.end(pod)

    def _join(self, node: Json) -> None:
        name = node["metadata"]["name"]
        gone = self._since.get(name)
        if gone is not None and moment(node["metadata"]["creationTimestamp"]) > gone:
            self._reborn(name)  # another instance, of the same name
        self.begin(name)

    def _reborn(self, node: str) -> None:
        self._since.pop(node, None)
        self.state.vanished.discard(node)
