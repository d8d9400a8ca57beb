"""Volumes: a claim is bound where its first pod goes, and attached to one node at a time.

A pod cannot start while its ReadWriteOnce volume is attached elsewhere; it is detached some
seconds after the last pod there is gone. When the node vanished nobody confirms the unmount, and
the volume stays attached for six minutes, unless the node carries the taint out-of-service.

Sources: https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode
(WaitForFirstConsumer), k8s.io/kubernetes/pkg/controller/volume/attachdetach/reconciler,
https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/faq.md (the six minutes).
Left out: storage classes, sizes, provisioning time, snapshots.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from hashlib import sha256
from typing import ClassVar, override

from plimsoll.domain.kubernetes import ZONE
from plimsoll_simulation.fake_cluster.conditions import is_finished
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.identities import readable
from plimsoll_simulation.fake_cluster.indexes import claims_of
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key, Store

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
DRIVER = "ebs.csi.aws.com"


def attachment_name(volume: str, node: str) -> str:
    """Return the name of the VolumeAttachment of a volume to a node."""
    return f"csi-{readable(int(sha256(f'{volume} {node}'.encode()).hexdigest()[:15], 16))}"


def attached(store: Store, pod: Json) -> bool:
    """Whether all volumes of a pod are attached to its node."""
    node, namespace = look(pod, "spec", "nodeName", default=""), pod["metadata"]["namespace"]
    for name in claims_of(pod):
        claim = store.get("persistentvolumeclaims", namespace, name)
        volume = look(claim or {}, "spec", "volumeName")
        if volume is None:
            return False
        found = store.get("volumeattachments", "", attachment_name(volume, node))
        if not look(found or {}, "status", "attached", default=False):
            return False
    return True


def provisioned(claim: Json, zone: str | None) -> Json:
    """Return the volume that the storage driver's provisioner makes for a claim."""
    meta = claim["metadata"]
    handle = f"vol-{sha256(meta['uid'].encode()).hexdigest()[:17]}"
    spec: Json = {
        "accessModes": claim["spec"]["accessModes"],
        "capacity": look(claim, "spec", "resources", "requests", default={}),
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{k: meta[k] for k in ("namespace", "name", "uid", "resourceVersion")},
        },
        "csi": {"driver": DRIVER, "volumeHandle": handle},
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": look(claim, "spec", "storageClassName", default=""),
        "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
    }
    if zone is not None:
        here = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return {"metadata": {"name": f"pvc-{meta['uid']}"}, "spec": spec}


def bind_claims(store: Store, pod: Json, node: Json, *, now: datetime) -> None:
    """Make and bind a volume in the node's zone for each of a pod's claims that has none."""
    namespace = pod["metadata"]["namespace"]
    for name in claims_of(pod):
        claim = store.get("persistentvolumeclaims", namespace, name)
        if claim is None or look(claim, "spec", "volumeName"):
            continue
        shared = (
            "ReadWriteMany" in claim["spec"]["accessModes"]
        )  # a file system of the whole region
        made = provisioned(claim, None if shared else look(node, "metadata", "labels", ZONE))
        store.create("persistentvolumes", {**made, "status": {"phase": "Bound"}}, now=now)
        volume = made["metadata"]["name"]
        bound = put(put(claim, ("spec", "volumeName"), volume), ("status", "phase"), "Bound")
        store.replace("persistentvolumeclaims", bound, now=now)


class Volumes(Controller[Key]):
    """The attach-detach controller, by claim."""

    watches: ClassVar = frozenset({"pods", "persistentvolumeclaims", "volumeattachments", "nodes"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._attached: defaultdict[str, dict[str, Key]] = defaultdict(dict)
        """Volume -> node -> the claim it is for."""
        self._detaching: set[tuple[str, str]] = set()

    @override
    def observe(self, change: Change) -> None:
        match change.resource:
            case "persistentvolumeclaims":
                self.note(change.key)
            case "pods":
                for name in claims_of(change.object):
                    self.note((change.key[0], name))
            case "nodes" if out_of_service(change.object):
                node = change.object["metadata"]["name"]
                for nodes in self._attached.values():
                    if node in nodes:
                        self.note(nodes[node])
            case _:
                pass

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        claim = self.store.get("persistentvolumeclaims", *key)
        volume = look(claim or {}, "spec", "volumeName")
        if claim is None or volume is None:
            return
        wanted = [
            node
            for pod in self.state.indexes.mounting(key)
            if (node := look(pod, "spec", "nodeName")) and not is_finished(pod)
        ]
        for node in list(self._attached[volume]):
            if node not in wanted:
                self._detach(volume, node, now)
        shared = "ReadWriteMany" in claim["spec"]["accessModes"]
        for node in dict.fromkeys(wanted):
            if node not in self._attached[volume] and (shared or not self._attached[volume]):
                self._attach(volume, node, key, now)

    def _attach(self, volume: str, node: str, claim: Key, now: datetime) -> None:
        self._attached[volume][node] = claim
        name = attachment_name(volume, node)
        source = {"persistentVolumeName": volume}
        spec = {"attacher": DRIVER, "nodeName": node, "source": source}
        made = {"metadata": {"name": name}, "spec": spec, "status": {"attached": False}}
        self.store.create("volumeattachments", made, now=now)

        def done(at: datetime) -> None:
            found = self.store.get("volumeattachments", "", name)
            if found is not None:
                done = put(found, ("status", "attached"), True)  # noqa: FBT003 - a JSON value
                self.store.replace("volumeattachments", done, now=at)

        self.state.timers.write(now + self.state.settings.volume_attach, done)

    def _detach(self, volume: str, node: str, now: datetime) -> None:
        settings = self.state.settings
        down = out_of_service(self.store.get("nodes", "", node))
        if node in self.state.vanished and not down:
            after = settings.volume_forced_detach
        else:
            after = settings.volume_detach
        if (volume, node) in self._detaching and not down:
            return
        self._detaching.add((volume, node))
        self.state.timers.write(now + after, lambda at: self._detached(volume, node, at))

    def _detached(self, volume: str, node: str, now: datetime) -> None:
        self._detaching.discard((volume, node))
        claim = self._attached[volume].get(node)
        if claim is None:
            return
        for pod in self.state.indexes.mounting(claim):
            if look(pod, "spec", "nodeName") == node and not is_finished(pod):
                return
        del self._attached[volume][node]
        self.note(claim)
        name = attachment_name(volume, node)
        if self.store.get("volumeattachments", "", name) is not None:
            self.store.remove("volumeattachments", "", name, now=now)


def out_of_service(node: Json | None) -> bool:
    """Whether somebody has said that a node is down for good."""
    taints = look(node or {}, "spec", "taints", default=())
    return any(taint["key"] == OUT_OF_SERVICE for taint in taints)
