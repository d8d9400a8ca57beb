"""A vertical pod autoscaler that resizes pods in place."""

from __future__ import annotations

from typing import override

from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.edits import look, put
from plimsoll_simulation.fake_cluster.pod_annotations import RESIZE
from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import OtherController

_CPU = ("resources", "requests", "cpu")


class Vpa(OtherController):
    """Resizes Ready pods to the CPU request that they name: `drill.plimsoll.dev/resize`.

    It evicts none that cannot be resized, and changes none that are created, as in the update mode InPlace.
    Source: k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater.
    """

    @override
    def look(self) -> None:
        if self.rig_cluster.started is None:
            return
        for pod in list(self.rig_cluster.all("pods")):
            cpu = look(pod, "metadata", "annotations", default={}).get(RESIZE)
            first, *others = pod["spec"]["containers"]
            if cpu in {None, look(first, *_CPU)} or is_deleting(pod) or not is_ready(pod):
                continue
            containers = [put(first, _CPU, cpu), *others]
            resize = f"{'/'.join(path_of(pod))}/resize"
            self.send("PATCH", resize, {"spec": {"containers": containers}})
