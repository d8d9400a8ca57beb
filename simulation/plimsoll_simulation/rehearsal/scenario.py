"""A live cluster as a drill: files that are read like any other, and what was assumed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import batched
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.domain.disruptions import StopTime
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Node
from plimsoll_simulation.rehearsal.fleet import ModelledFleet, modelled_fleet
from plimsoll_simulation.rehearsal.live import Json, LiveCluster
from plimsoll_simulation.rehearsal.objects import ModelledObjects
from plimsoll_simulation.rehearsal.scope import Scope

MAIN: Final = "rehearsal.yaml"
HORIZON: Final = timedelta(minutes=15)
NOTICE: Final = timedelta(seconds=60)
"""From time 0 to the notices."""
_PER_FILE: Final = 300
"""Objects: a file may not hold much more than a million characters."""
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """A drill as documents, by file name, and what it stands for."""

    files: Mapping[str, Sequence[Json]]
    fleet: ModelledFleet
    lost: Sequence[Node]
    """The live nodes that go."""
    stops: Mapping[str, StopTime]
    """Workload, as it is played -> how long its pods are known to need to stop."""
    notes: Sequence[str]

    def write(self, folder: Path) -> Path:
        """Write it into a folder, which is made; return the path of its scenario."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, documents in self.files.items():
            text = yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False)
            (folder / name).write_text(text, encoding="utf-8")
        return folder / MAIN


def modelled(live: LiveCluster, scope: Scope) -> Modelled:
    """Return the drill in which a scope is reclaimed.

    Args:
        live: the cluster.
        scope: what goes, all at once.

    Raises:
        BadInput: nothing is in the scope.
    """
    lost = [node for node in scope.nodes(live.seen) if node.ready and node.interruption is None]
    if not lost:
        raise BadInput(f"there is no Ready node without an interruption in {scope}")
    fleet = modelled_fleet(live, scope)
    objects = ModelledObjects(live, fleet.names)
    manifests = {
        f"objects-{n}.yaml": list(some)
        for n, some in enumerate(batched(objects.manifests, _PER_FILE, strict=False), start=1)
    }
    cluster: dict[str, Any] = {
        "name": "cluster",
        "nodeGroups": list(fleet.groups),
        "manifests": list(manifests),
        "otherControllers": [*fleet.other_controllers, *(["operator"] if objects.operated else [])],
        "bindings": objects.bindings,
        "observed": objects.observed,
    }
    at, whole = f"{NOTICE.total_seconds():.0f}s", f"{HORIZON.total_seconds():.0f}s"
    refusals = [
        {"at": at, "fault": "insufficient-capacity", "nodes": {"group": name}, "for": whole}
        for name in fleet.refused
    ]
    names = [fleet.names[node.name] for node in lost]
    drill = {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "rehearsal", "description": f"{scope} goes".capitalize() + "."},
        "spec": {
            "horizon": whole,
            "clusters": [cluster],
            "timeline": [
                *refusals,
                {"at": at, "notice": "spot-interruption", "nodes": {"names": names}},
            ],
        },
    }
    return Modelled(
        files={MAIN: [drill], **manifests},
        fleet=fleet,
        lost=lost,
        stops=objects.stops,
        notes=(*fleet.notes, *objects.notes),
    )
