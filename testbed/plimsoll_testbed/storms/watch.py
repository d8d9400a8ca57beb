"""Looks over the responder's shoulder: every write it makes is judged by what was true just before.

The API of the hollow cluster is put behind one that first looks, then lets the write happen. What
is looked at is the cluster itself, not what the responder last read of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.observation import Observation
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rigs.simulated.rig import Simulation
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.simulated.time import Invocation
from plimsoll_testbed.storms.hearing import Hearing, since
from plimsoll_testbed.storms.rules import Situation, judged
from plimsoll_testbed.storms.scaleins import ScaleIns
from plimsoll_testbed.storms.watchedapi import WatchedApi, Watching
from plimsoll_testbed.storms.writes import Write

WATCHER: Final = "storms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that must not be."""

    rule: str
    """Its name, short and the same in every storm."""
    seconds: float
    """Since time 0."""
    what: str


@dataclass(slots=True)
class Findings:
    """What was found wrong in one drill, each rule and object once."""

    found: list[Violation] = field(default_factory=list)

    def add(self, rule: str, seconds: float, what: str) -> None:
        """Note a violation."""
        violation = Violation(rule=rule, seconds=round(seconds, 3), what=what)
        if violation not in self.found:
            self.found.append(violation)


class Watch:
    """Watches one simulation from time 0 to its end."""

    def __init__(
        self,
        simulation: Simulation,
        responder: str,
        hearing: Hearing,
        *,
        lease_for_all: bool = False,
    ) -> None:
        self.simulation = simulation
        self.hearing = hearing
        self.findings = Findings()
        self._eyes: dict[str, KubernetesCluster] = {}
        self._desired: dict[tuple[str, str], int] = {}
        self._ends: dict[str, datetime | None] = {}
        for name, rig_cluster in simulation.rig_clusters.items():
            self._eyes[name] = KubernetesCluster(
                HollowTransport(rig_cluster.cluster, simulation.clock, user=WATCHER),
                name,
                simulation.clock,
                workers=SerialWorkers(),
            )
            rig_cluster.cluster.api = WatchedApi(
                rig_cluster.cluster.store,
                responder,
                Watching(
                    before=partial(self._judge, rig_cluster),
                    note=self.note,
                    scale_ins=ScaleIns(rig_cluster, simulation.measurement, self.note),
                ),
                lease_for_all=lease_for_all,
            )

    def note(self, rule: str, what: str) -> None:
        """Note a violation of now."""
        measurement = self.simulation.measurement
        elapsed = since(measurement.started, self.simulation.clock.now())
        self.findings.add(rule, elapsed.total_seconds(), what)

    def seen(self, rig_cluster: HollowRigCluster) -> Observation:
        """Return what a look at a cluster finds just now."""
        return self._eyes[rig_cluster.name].observe()

    def called(self, invocation: Invocation) -> None:
        """Judge a call to AWS, right after it."""
        operation = invocation.last_call
        for rig_cluster in self.simulation.rig_clusters.values():
            for group in rig_cluster.fleet.groups.values():
                key = (rig_cluster.name, group.spec.name)
                if group.desired < self._desired.get(key, group.desired):
                    self.note("desired-lowered", f"{group.spec.name} by {operation}")
                self._desired[key] = group.desired
            if operation.startswith("autoscaling:"):
                self._judge_ends(rig_cluster, operation)

    def _judge_ends(self, rig_cluster: HollowRigCluster, operation: str) -> None:
        """No instance is ended at our word before its node is empty."""
        now = self.simulation.clock.now()
        for machine in rig_cluster.fleet.alive():
            if machine.ends is None or machine.ends > now:
                continue
            row = self.simulation.measurement.nodes[machine.id]
            pods = [
                pod["metadata"]["name"]
                for pod in rig_cluster.cluster.store.all("pods")
                if pod["spec"].get("nodeName") == machine.node
                and pod.get("status", {}).get("phase") == "Running"
                and not any(
                    owner["kind"] == "DaemonSet"
                    for owner in pod["metadata"].get("ownerReferences", ())
                )
            ]
            if pods and row.deadline != machine.ends:
                self.note("ended-not-empty", f"{operation} of {machine.node} with {pods}")

    def _judge(self, rig_cluster: HollowRigCluster, write: Write) -> list[tuple[str, str]]:
        if self.simulation.measurement.started is None:
            return []
        scene = Situation(
            rig_cluster=rig_cluster,
            measurement=self.simulation.measurement,
            hearing=self.hearing,
            look=lambda: self.seen(rig_cluster),
        )
        return judged(write, scene)
