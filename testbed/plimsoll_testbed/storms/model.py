"""A storm: a small drill as plain values, easy to draw, to shrink, and to write to files.

It renders the scenario and the manifests that a person would have written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from plimsoll_testbed.storms.timeline import Event, Fault, Notices, Rescale, Rollout
from plimsoll_testbed.storms.workload import Workload, priority_class

type Json = dict[str, Any]

CLUSTER: Final = "harbor"
MAIN: Final = "drill.yaml"
MANIFESTS: Final = "workloads.yaml"
HORIZON_SECONDS: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node group."""

    name: str
    kind: str
    capacity: str
    zones: tuple[str, ...]
    size: int
    most: int
    startup_seconds: int
    cpu: int
    """Of one node, in millicores."""

    def rendered(self) -> Json:
        """Return it as a scenario says it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "capacity": self.capacity,
            "instanceType": "m6i.xlarge" if self.capacity == "on-demand" else f"{self.name}.xlarge",
            "zones": list(self.zones),
            "size": self.size,
            "max": self.most,
            "startup": f"{self.startup_seconds}s",
            "allocatable": {"cpu": f"{self.cpu}m", "memory": "16Gi", "pods": 30},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """A drill of one cluster."""

    seed: int
    groups: tuple[Group, ...]
    workloads: tuple[Workload, ...]
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        """The name of its drill."""
        return f"storm-{self.seed}"

    @property
    def nodes(self) -> int:
        """How many nodes it starts with."""
        return sum(group.size for group in self.groups)

    def workload(self, name: str) -> Workload:
        """Return a workload by name."""
        return next(w for w in self.workloads if w.name == name)

    def files(self) -> dict[str, list[Json]]:
        """Return the documents of each file: `drill.yaml` and what it names."""
        classes = [priority_class(value) for value in sorted({w.priority for w in self.workloads})]
        objects = [o for w in self.workloads for o in w.rendered()]
        files = {MANIFESTS: [*(c for c in classes if c["value"]), *objects]}
        timeline = []
        for number, event in enumerate(self.events):
            entry = self._entry(event, number)
            if isinstance(event, Rollout):
                files[entry["apply"]] = [self._at(event).rolled(number + 1)]
            timeline.append(entry)
        scenario: Json = {
            "apiVersion": "plimsoll.dev/v1",
            "kind": "Drill",
            "metadata": {"name": self.name},
            "spec": {
                "seed": self.seed,
                "horizon": f"{HORIZON_SECONDS}s",
                "clusters": [
                    {
                        "name": CLUSTER,
                        "nodeGroups": [group.rendered() for group in self.groups],
                        "manifests": [MANIFESTS],
                    }
                ],
                "timeline": timeline,
            },
        }
        return {MAIN: [scenario], **files}

    def _at(self, event: Rollout) -> Workload:
        """Return a workload as its owner last scaled it: a rollout does not change the count."""
        found = self.workload(event.workload)
        for other in self.events:
            if isinstance(other, Rescale) and other.workload == found.name and other.at <= event.at:
                found = replace(found, replicas=other.replicas)
        return found

    def _entry(self, event: Event, number: int) -> Json:
        match event:
            case Notices() | Fault():
                return event.rendered()
            case Rescale():
                kind = self.workload(event.workload).kind
                scale = {"kind": kind, "name": event.workload, "replicas": event.replicas}
                return {"at": f"{event.at}s", "scale": scale}
            case Rollout():
                return {"at": f"{event.at}s", "apply": f"rollout-{number + 1}.yaml"}
            case _:
                assert_never(event)
