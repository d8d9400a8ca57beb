"""The claims of a live cluster and their volumes, each where its own volume may go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.domain.kubernetes import ZONE, ZONE_LABELS
from plimsoll_simulation.rehearsal.live import Json, LiveCluster
from plimsoll_simulation.rehearsal.pods import renamed


def volumes_of(live: LiveCluster, names: Mapping[str, str]) -> Iterator[Json]:
    """Yield manifests of the claims that are bound, each after its volume.

    Args:
        live: the cluster.
        names: live node -> node of the scenario.
    """
    volumes = {obj["metadata"]["name"]: obj for obj in live.objects["persistentvolumes"]}
    for claim in live.objects["persistentvolumeclaims"]:
        meta, spec = claim["metadata"], claim["spec"]
        volume = volumes.get(spec.get("volumeName", ""))
        if volume is None:
            continue
        name = volume["metadata"]["name"]
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": _of_volume(volume["spec"], names)
            | {"claimRef": {"namespace": meta["namespace"], "name": meta["name"]}},
        }
        kept = ("accessModes", "resources", "volumeMode", "storageClassName")
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "spec": {k: spec[k] for k in kept if k in spec} | {"volumeName": name},
        }


def _of_volume(spec: Json, names: Mapping[str, str]) -> dict[str, Any]:
    kept = ("capacity", "accessModes", "nodeAffinity", "storageClassName", "volumeMode")
    zones = dict.fromkeys(ZONE_LABELS, ZONE)
    return dict(renamed({k: spec[k] for k in kept if k in spec}, {**names, **zones}))
