"""A storm: a small drill as plain values, easy to draw, to shrink, and to write to files.

It renders the scenario and the manifests that a person would have written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from plimsoll_simulation.declared import Declared
from plimsoll_simulation.durations import words
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.timeline import (
    FaultEntry,
    NoticeEntry,
    ScaleEntry,
    ZonalShiftEntry,
)
from plimsoll_simulation.storms.workload import CUSTOM, Workload, priority_class

type Json = dict[str, Any]

CLUSTER: Final = "harbor"
MAIN: Final = "drill.yaml"
MANIFESTS: Final = "workloads.yaml"
HORIZON_SECONDS: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The owner applies another pod template."""

    at: timedelta
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Somebody applies objects that belong to no workload."""

    at: timedelta
    objects: tuple[Json, ...]


type Event = NoticeEntry | FaultEntry | ScaleEntry | ZonalShiftEntry | Rollout | Applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """A drill of one cluster."""

    seed: int
    groups: tuple[NodeGroupSpec, ...]
    workloads: tuple[Workload, ...]
    events: tuple[Event, ...]
    other_controllers: tuple[str, ...] = ()
    """Programs that act beside the responder, but for an operator and a vertical pod autoscaler of workloads that have one."""
    objects: tuple[Json, ...] = ()
    """What belongs to no workload and is there from the start."""
    detach_seconds: int | None = None
    """How long volumes take to detach."""
    queue_delay_seconds: int = 0
    """DelaySeconds of the queue that some of them read."""

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
        files = {MANIFESTS: [*(c for c in classes if c["value"]), *objects, *self.objects]}
        timeline = []
        for number, event in enumerate(self.events, start=1):
            if isinstance(event, (Rollout, Applied)):
                kind = "rollout" if isinstance(event, Rollout) else "applied"
                file = f"{kind}-{number}.yaml"
                files[file] = self._applied(event, number)
                timeline.append({"at": words(event.at), "apply": file})
            else:
                timeline.append(_plain(event))
        there = {f"{g.name}-{n + 1}" for g in self.groups for n in range(g.size)}
        bindings = {of: on for w in self.workloads for of, on in w.bindings(there).items()}
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
                        "nodeGroups": [_plain(group) for group in self.groups],
                        "manifests": [MANIFESTS],
                        "otherControllers": self._other_controllers(),
                        "queueDelay": f"{self.queue_delay_seconds}s",
                        **({"bindings": bindings} if bindings else {}),
                        **self._pods(),
                    }
                ],
                "timeline": timeline,
            },
        }
        return {MAIN: [scenario], **files}

    def _other_controllers(self) -> list[str]:
        operated = any(w.operated or w.kind == CUSTOM for w in self.workloads)
        resized = any(w.resized_cpu for w in self.workloads)
        more = [*(["operator"] if operated else []), *(["vpa"] if resized else [])]
        return [*self.other_controllers, *more]

    def _pods(self) -> Json:
        if self.detach_seconds is None:
            return {}
        return {"pods": {"detach": f"{self.detach_seconds}s"}}

    def _applied(self, event: Rollout | Applied, number: int) -> list[Json]:
        match event:
            case Rollout():
                return [self._at(event).rolled(number)]
            case Applied():
                return [*event.objects]

    def _at(self, event: Rollout) -> Workload:
        """Return a workload as its owner last scaled it: a rollout does not change the count."""
        found = self.workload(event.workload)
        for other in self.events:
            if isinstance(other, ScaleEntry) and other.at <= event.at:
                scale = other.scale
                found = (
                    replace(found, replicas=scale.replicas) if scale.name == found.name else found
                )
        return found


def _plain(declared: Declared) -> Json:
    """Return what a scenario says of it."""
    return declared.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
