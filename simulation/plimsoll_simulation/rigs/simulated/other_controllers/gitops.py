"""What applies manifests from a repository, as Argo CD and Flux do."""

from __future__ import annotations

from typing import Any, Final, override

from plimsoll.domain.kubernetes import OwnerKind
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import (
    Json,
    OtherController,
)

_APPLIED: Final = frozenset(
    {"Deployment", "StatefulSet", "ReplicaSet", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
)


class GitOps(OtherController):
    """Sets workloads, budgets and autoscalers back to what is declared; an autoscaler's count is left to it."""

    @override
    def look(self) -> None:
        declared = self.rig_cluster.declared
        held = {
            (
                obj["spec"]["scaleTargetRef"]["kind"],
                namespace,
                obj["spec"]["scaleTargetRef"]["name"],
            )
            for (kind, namespace, _), obj in declared.items()
            if kind == "HorizontalPodAutoscaler"
        }
        for key, obj in declared.items():
            if "spec" in obj and key[0] in _APPLIED and not operated(obj):
                self.set_back(obj, held=key in held)

    def set_back(self, obj: Json, *, held: bool) -> None:
        """Take back what somebody changed in a spec."""
        live = self.live(obj)
        spec = {k: v for k, v in obj["spec"].items() if not (held and k == "replicas")}
        if live is not None and not _contains(live["spec"], spec):
            self.send("PATCH", "/".join(path_of(obj)), {"spec": spec})


def operated(obj: Json) -> bool:
    """Whether the controller of an object is a custom resource."""
    owner = controller_of(obj)
    return owner is not None and owner["kind"] not in set(OwnerKind)


def _contains(live: Any, declared: Any) -> bool:
    """Whether what is declared stands in what lives, beside what others have filled in."""
    if isinstance(declared, dict):
        return isinstance(live, dict) and all(
            key in live and _contains(live[key], value) for key, value in declared.items()
        )
    if isinstance(declared, list):
        return (
            isinstance(live, list)
            and len(live) == len(declared)
            and all(map(_contains, live, declared))
        )
    return bool(live == declared)
