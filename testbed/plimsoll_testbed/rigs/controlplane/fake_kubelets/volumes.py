"""The storage driver and the mounts of a control plane without machines.

When a volume is attached and detached decides the real attach-detach controller, six minutes of a
node that does not answer and the taint out-of-service included. Played here is what it waits for:
the driver's sidecars (provision, attach, detach, delete) and the kubelets' word of what is mounted,
`volumesInUse`. A node that vanished takes that word back never.

Sources: https://kubernetes-csi.github.io/docs/external-provisioner.html,
https://kubernetes-csi.github.io/docs/external-attacher.html,
k8s.io/kubernetes/pkg/controller/volume/attachdetach/reconciler.
Left out: sizes, snapshots, limits of volumes per node, time to provision, inline volumes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from plimsoll.domain.kubernetes import ZONE
from plimsoll_simulation.fake_cluster.conditions import is_deleting
from plimsoll_simulation.fake_cluster.controllers.volumes import DRIVER, provisioned
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.indexes import claims_of
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.store import Change, Store
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import MERGE, Loop, Write
from plimsoll_testbed.rigs.controlplane.nodes import ATTACHED_BY_CONTROLLER

_STORAGE: Final = "/apis/storage.k8s.io/v1"
_ATTACHER: Final = f"external-attacher/{DRIVER.replace('.', '-')}"
_PROVISIONED_BY: Final = ("metadata", "annotations", "pv.kubernetes.io/provisioned-by")
_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
_NODE_CHOSEN: Final = "volume.kubernetes.io/selected-node"


class Volumes:
    """The driver, and all kubelets' mounts.

    Args:
        loop: everything here runs in it.
        store: what the API server shows.
        settings: how long attaching and detaching take.
    """

    def __init__(self, loop: Loop, store: Store, settings: Settings) -> None:
        self._loop = loop
        self._store = store
        self._settings = settings
        self._attached: set[tuple[str, str]] = set()
        """(volume, node)"""
        self._busy: set[tuple[str, str]] = set()
        """(UID of an attachment, what is being done)"""
        self._reporting: set[str] = set()
        """Nodes whose report is under way."""
        self._reported: dict[str, list[str]] = {}
        self._mounts: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        """Node -> UID of a pod -> what it has mounted, as the attach-detach controller calls it."""

    def observe(self, change: Change) -> None:
        """React to a change that a watch showed."""
        match change.resource, change.type:
            case "nodes", "ADDED":
                self._joined(change.object)
            case "nodes", "DELETED":
                self._mounts.pop(change.key[1], None)
                self._reported.pop(change.key[1], None)
            case "volumeattachments", _:
                self._attachment(change.type, change.object)
            case "persistentvolumeclaims", "ADDED" | "MODIFIED":
                self._claim(change.object)
            case "persistentvolumes", "ADDED" | "MODIFIED":
                self._volume(change.object)
            case _:
                pass

    def _joined(self, node: Json) -> None:
        """Let the attach-detach controller know a node."""
        name = node["metadata"]["name"]
        if ATTACHED_BY_CONTROLLER not in look(node, "metadata", "annotations", default={}):
            body = {"metadata": {"annotations": {ATTACHED_BY_CONTROLLER: "true"}}}
            path = f"/api/v1/nodes/{name}"
            self._loop.write(Write(method="PATCH", path=path, body=body, content_type=MERGE))

    def _claim(self, claim: Json) -> None:
        """Provision a volume when the scheduler has chosen a node for a claim."""
        annotations = look(claim, "metadata", "annotations", default={})
        chosen = annotations.get(_NODE_CHOSEN)
        wanted = annotations.get(_PROVISIONER) == DRIVER and not is_deleting(claim)
        named = look(claim, "spec", "storageClassName", default="")
        storage_class = self._store.get("storageclasses", "", named) or {}
        at_once = storage_class.get("volumeBindingMode") == "Immediate"
        if wanted and not look(claim, "spec", "volumeName") and (chosen or at_once):
            node = self._store.get("nodes", "", chosen) if chosen else None
            zone = look(node or {}, "metadata", "labels", ZONE)
            body = put(provisioned(claim, zone), _PROVISIONED_BY, DRIVER)
            self._loop.write(Write(method="POST", path="/api/v1/persistentvolumes", body=body))

    def _volume(self, volume: Json) -> None:
        """Delete a volume that nobody claims any more."""
        name = volume["metadata"]["name"]
        ours = look(volume, *_PROVISIONED_BY) == DRIVER
        delete = look(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete"
        released = look(volume, "status", "phase") == "Released"
        if ours and delete and released and not is_deleting(volume):
            self._loop.write(Write(method="DELETE", path=f"/api/v1/persistentvolumes/{name}"))

    def _attachment(self, change: str, attachment: Json) -> None:
        """Attach or detach a volume, in its time."""
        if look(attachment, "spec", "attacher") != DRIVER:
            return
        key = (
            look(attachment, "spec", "source", "persistentVolumeName", default=""),
            attachment["spec"]["nodeName"],
        )
        attached = look(attachment, "status", "attached", default=False)
        if change != "DELETED" and attached and not is_deleting(attachment):
            self._attached.add(key)
            return
        self._attached.discard(key)
        if change == "DELETED":
            return
        ours = _ATTACHER in attachment["metadata"].get("finalizers", ())
        if is_deleting(attachment):
            if ours:
                self._once(attachment, "detach", lambda: self._detach(attachment))
        elif not ours:
            finalizers = {"metadata": {"finalizers": [_ATTACHER]}}
            self._once(attachment, "hold", lambda: self._patch(attachment, finalizers))
        else:
            self._once(attachment, "attach", lambda: self._attach(attachment))

    def mounted(self, pod: Json) -> bool:
        """Mount a pod's volumes where they are attached; return whether all are there."""
        claims = claims_of(pod)
        if not claims:
            return True
        node, namespace = pod["spec"]["nodeName"], pod["metadata"]["namespace"]
        found = [self._store.get("persistentvolumeclaims", namespace, name) for name in claims]
        names = [look(claim or {}, "spec", "volumeName", default="") for claim in found]
        volumes = [self._store.get("persistentvolumes", "", name) for name in names]
        known = [volume for volume in volumes if volume is not None]
        if len(known) < len(claims):
            return False
        # A kubelet says what it wants to mount before it has it, or it would be detached again.
        self._report(node, pod["metadata"]["uid"], frozenset(_unique(v) for v in known))
        return all((name, node) in self._attached for name in names)

    def unmount(self, pod: Json) -> None:
        """Take note that a pod's containers are gone."""
        self._report(pod["spec"]["nodeName"], pod["metadata"]["uid"], frozenset())

    def _report(self, node: str, uid: str, volumes: frozenset[str]) -> None:
        if volumes:
            self._mounts[node][uid] = volumes
        elif self._mounts.get(node, {}).pop(uid, None) is None:
            return
        if node not in self._reporting:
            self._send(node)

    def _send(self, node: str) -> None:
        """Report what is in use on a node, one report at a time, until it is what was reported."""
        in_use = sorted(frozenset[str]().union(*self._mounts.get(node, {}).values()))
        self._reporting.discard(node)
        if in_use == self._reported.get(node, []):
            return
        self._reporting.add(node)
        self._reported[node] = in_use
        self._loop.write(
            Write(
                method="PATCH",
                path=f"/api/v1/nodes/{node}/status",
                body={"status": {"volumesInUse": in_use}},
                content_type=MERGE,
                then=lambda _: self._send(node),
            )
        )

    def _attach(self, attachment: Json) -> None:
        self._loop.timers.write(
            self._loop.now() + self._settings.volume_attach,
            lambda _: self._patch(attachment, {"status": {"attached": True}}, "/status"),
        )

    def _detach(self, attachment: Json) -> None:
        self._loop.timers.write(
            self._loop.now() + self._settings.volume_detach,
            lambda _: self._patch(attachment, {"metadata": {"finalizers": None}}),
        )

    def _patch(self, attachment: Json, body: Json, part: str = "") -> None:
        path = f"{_STORAGE}/volumeattachments/{attachment['metadata']['name']}{part}"
        self._loop.write(Write(method="PATCH", path=path, body=body, content_type=MERGE))

    def _once(self, attachment: Json, what: str, act: Callable[[], None]) -> None:
        """Do something to an attachment the first time it is asked for."""
        key = (attachment["metadata"]["uid"], what)
        if key not in self._busy:
            self._busy.add(key)
            act()


def _unique(volume: Json) -> str:
    """Return a volume's name in `volumesInUse` and `volumesAttached`."""
    csi = look(volume, "spec", "csi", default={})
    return f"kubernetes.io/csi/{csi.get('driver')}^{csi.get('volumeHandle')}"
