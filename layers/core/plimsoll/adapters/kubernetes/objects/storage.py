"""Volumes, and where they bind pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_node_terms
from plimsoll.domain.kubernetes import Claim, NodeTerm, Requirement, StorageClass, Volume, names

_ONE_POD: Final = "ReadWriteOncePod"
_ONE_NODE: Final = {"ReadWriteOnce", _ONE_POD}
_NOT_MADE: Final = "kubernetes.io/no-provisioner"


@naming("VolumeAttachment")
def parse_attachment(obj: Raw) -> tuple[str, str] | None:
    """Read the node and the volume that is attached to it, or may be: a detach may hang half-way."""
    read = decoded(obj, schema.Attachment)
    volume = read.spec.source.persistent_volume_name
    return (read.spec.node_name, volume) if volume and read.status.attached else None


@naming("PersistentVolumeClaim")
def parse_claim(obj: Raw) -> Claim:
    """Read a PersistentVolumeClaim. What its volume demands of a node is joined by `Claim.on`."""
    read = decoded(obj, schema.Claim)
    meta, spec = read.metadata, read.spec
    # One that names its volume and is not bound to it keeps its pods Pending, whatever its class.
    unbound = bool(spec.volume_name) and read.status.phase in {"Pending", "Lost"}
    return Claim(
        namespace=meta.namespace,
        name=meta.name,
        volume=spec.volume_name,
        storage_class=spec.storage_class_name,
        node_terms=() if unbound or meta.deletion_timestamp else None,
        single_node=set(spec.access_modes) <= _ONE_NODE,
        single_pod=_ONE_POD in spec.access_modes,
    )


@naming("PersistentVolume")
def parse_volume(obj: Raw) -> Volume:
    """Read a PersistentVolume, as far as it binds its pods to nodes."""
    read = decoded(obj, schema.Volume)
    return Volume(
        name=read.metadata.name, node_terms=_volume_terms(read), driver=read.spec.csi.driver
    )


@naming("StorageClass")
def parse_storage_class(obj: Raw) -> StorageClass:
    """Read a StorageClass, as far as it binds pods to nodes before they have a volume."""
    read = decoded(obj, schema.StorageClass)
    waits = read.volume_binding_mode == "WaitForFirstConsumer" and read.provisioner != _NOT_MADE
    allowed = tuple(
        NodeTerm(
            expressions=tuple(
                Requirement(key=line.key, operator="In", values=line.values)
                for line in term.match_label_expressions
            )
        )
        for term in read.allowed_topologies
    )
    return StorageClass(
        name=read.metadata.name,
        node_terms=(allowed or None) if waits else (),
        driver=read.provisioner,
    )


@naming("CSINode")
def parse_volume_limits(obj: Raw) -> tuple[str, Mapping[str, int]]:
    """Read the name of a node, and how many volumes of each CSI driver it can have."""
    read = decoded(obj, schema.CsiNode)
    counts = {each.name: each.allocatable.count for each in read.spec.drivers}
    return read.metadata.name, {name: n for name, n in counts.items() if n is not None}


def _volume_terms(
    read: schema.Described[schema.VolumeSpec],
) -> tuple[NodeTerm, ...] | None:
    """Return where a volume can be used. Its zone may be a label too, several joined by `__`.

    https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone
    """
    terms = read_node_terms(read.spec.node_affinity.required)
    zones = read.metadata.labels.get(names.ZONE)
    if not zones:
        return terms or None
    here = Requirement(key=names.ZONE, operator="In", values=tuple(zones.split("__")))
    return tuple(
        replace(term, expressions=(*term.expressions, here)) for term in terms or (NodeTerm(),)
    )
