"""The real control plane as a side: many scenarios share one, each in a namespace of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence

from plimsoll_simulation.fake_cluster.conditions import condition, is_finished
from plimsoll_simulation.fake_cluster.pod_annotations import STOP
from tests.differential.bench import FOREVER
from tests.differential.scenario import Json, Request
from tests.differential.sides import Response, Seen
from tests.differential.watched import ControlPlane

_QUIET = 1.6
_LONGEST = 60.0
_STUCK = 15.0
"""Seconds without a change after which nothing is believed to be under way: a StatefulSet that a quota holds up."""
_DELETED_WITHIN = 300.0
"""Seconds until a namespace is gone. Where its controller still finds a pod, it looks again after half of
the pod's grace period, and a pod of a Job stays until the controller of Jobs has counted it."""
_OBSERVED = ("deployments", "replicasets", "statefulsets", "daemonsets", "poddisruptionbudgets")


class ActualSide:
    """One scenario on the real control plane."""

    instant = 0.7

    def __init__(self, plane: ControlPlane, scenario: str) -> None:
        self._plane = plane
        self._scenario = scenario
        namespace = {"metadata": {"name": scenario}}
        begin = Request(method="POST", path="/api/v1/namespaces", body=namespace)
        end = time.monotonic() + _DELETED_WITHIN
        while (made := plane.send(begin)).status != 201:
            # What this scenario left behind when it was played before is still being deleted.
            if made.status != 409 or time.monotonic() > end:
                raise RuntimeError(f"namespace {scenario}: {made.body['message']}")
            # A controller may have made a pod after the scenario was forgotten, and a finalizer may hold it.
            plane.let_go(scenario)
            time.sleep(0.5)
        self.settle(0)
        self.changes()

    def request(self, request: Request) -> Response:
        answer = self._plane.send(request)
        self._plane.touch(self._scenario)
        return answer

    def settle(self, seconds: float) -> None:
        self._plane.touch(self._scenario)
        time.sleep(seconds)
        end = time.monotonic() + _LONGEST
        while time.monotonic() < end:
            quiet = self._plane.quiet_for(self._scenario)
            if quiet > _STUCK or (quiet > _QUIET and not self.moving()):
                break
            time.sleep(max(_QUIET - quiet, 0.1))

    def moving(self) -> bool:
        """Whether something is under way that will be seen, however slow the machine is."""
        if any(condition(node, "Ready") is None for node in self.objects("nodes")):
            return True
        if any(map(_starts_or_stops, self.objects("pods"))):
            return True
        if any(map(_fills, self.objects("statefulsets"))):
            return True
        return any(map(_rolls, self.objects("daemonsets"))) or any(
            obj["metadata"].get("generation", 0)
            > obj.get("status", {}).get("observedGeneration", 0)
            for resource in _OBSERVED
            for obj in self.objects(resource)
        )

    def objects(self, resource: str) -> Sequence[Json]:
        return self._plane.objects(self._scenario, resource)

    def changes(self) -> Sequence[Seen]:
        return self._plane.changes(self._scenario)

    def forget(self) -> None:
        """Take away what the scenario left behind."""
        self._plane.forget(self._scenario)


def _starts_or_stops(pod: Json) -> bool:
    """Whether a pod is about to be looked at by the scheduler, or on its way up or down."""
    status = pod.get("status") or {}
    if is_finished(pod) and pod["metadata"].get("finalizers"):
        return False  # nobody takes them off
    if "deletionTimestamp" in pod["metadata"]:
        return (pod["metadata"].get("annotations") or {}).get(STOP) != FOREVER
    if status.get("phase") == "Pending":
        ours = pod["spec"]["schedulerName"] == "default-scheduler"
        return "nodeName" in pod["spec"] or (ours and not status.get("conditions"))
    return False


def _fills(stateful: Json) -> bool:
    """Whether a StatefulSet lacks pods, and those that it has are no reason to wait."""
    status = stateful.get("status") or {}
    there = status.get("replicas", 0)
    return bool(there == status.get("availableReplicas", 0) < stateful["spec"]["replicas"])


def _rolls(daemonset: Json) -> bool:
    """Whether a DaemonSet is not through with an update: it rests for seconds between nodes."""
    status = daemonset.get("status") or {}
    if daemonset["spec"]["updateStrategy"]["type"] != "RollingUpdate":
        return False
    return bool(status.get("updatedNumberScheduled", 0) < status.get("desiredNumberScheduled", 0))
