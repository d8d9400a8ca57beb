"""The oracle: what a plan that knew everything could have saved, found by exact search.

It answers for plain storms only: one batch of notices in one instant, each with its end, no fault,
no rollout and no new count (also not by an autoscaler), nothing ignored, all pods of one priority, no quota, no volume
that detaches slowly, no pod that is resized or needs devices, and at most `FEW` pods to evict. What it assumes:

* A pod can be evicted at once, so a pod that really stops within the time left need not be killed, whatever the
  planner takes its stop time for.
* A workload stays above zero if one of its pods is Ready elsewhere before its last one is evicted,
  and every pod gets the time that it really takes to stop.
* A budget of `maxUnavailable` over pods of a custom resource never allows: nobody knows how many there should be.
* A Deployment whose pods can be released gets the replacement first. All others lose a pod first,
  within their budget; a single pod of those cannot be kept, which is no fault of the plan.
* New nodes come from on-demand groups that may grow; spot groups may be interrupted as well.
* An administrator who drains node after node evicts whatever the standing guard does not hold, with or without
  Plimsoll: whether that leaves anybody worse off is for `plimsoll_simulation.storms.compare` to say.
* The plan begins within `DETECTED` seconds and takes `DONE` seconds to end. The oracle promises
  nothing for what is tighter.

So what it calls possible is possible; it may miss some of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from plimsoll.domain.capacity import Daemons, future_node
from plimsoll.domain.kubernetes import Pod, replacement_of, resolve_count
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.timeline import NoticeEntry
from plimsoll_simulation.storms.model import CLUSTER, Storm
from plimsoll_simulation.storms.workload import CUSTOM, SCALED, Workload

FEW: Final = 6
DETECTED: Final = 5.0
DONE: Final = 8.0
_ENDS: Final = frozenset(
    {"spot-interruption", "capacity-reservation-interruption", "health-scheduled-change"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The cluster in the instant of the notices."""

    seen: Observation
    at: datetime


def knows(storm: Storm) -> bool:
    """Whether the oracle answers for a storm, apart from the number of pods."""
    return (
        len(storm.events) == 1
        and isinstance(event := storm.events[0], NoticeEntry)
        and event.notice in _ENDS
        and not event.spread
        and not (storm.objects or storm.detach_seconds)
        and not any(
            w.autoscaled or w.priority or w.ignored or w.resized_cpu or w.devices
            for w in storm.workloads
        )
    )


def not_saved(
    storm: Storm, before: Before, simulation: Simulation, report: Report
) -> list[tuple[str, str]] | None:
    """Return what could have been saved and was not; None if the oracle does not know."""
    fleet = simulation.rig_clusters[CLUSTER].fleet
    interrupted = {m.node: m for m in fleet.machine.values() if m.notices}
    evictable = [
        pod
        for pod in before.seen.pods
        if pod.node in interrupted and _workload(storm, pod) is not None
    ]
    ends = [m.ends for m in interrupted.values() if m.ends is not None]
    if not ends or len(evictable) > FEW:
        return None
    left = (min(ends) - before.at).total_seconds()
    search = _Search(storm, before.seen, frozenset(interrupted), evictable, left, simulation)
    return [*_killed(storm, evictable, left, report), *search.at_zero(report)]


def _workload(storm: Storm, pod: Pod) -> Workload | None:
    """Return the workload of a pod by its label; DaemonSet pods stay with their node."""
    name = pod.labels.get("app")
    return next((w for w in storm.workloads if w.name == name and w.kind != "DaemonSet"), None)


def _killed(
    storm: Storm, evictable: Sequence[Pod], left: float, report: Report
) -> Iterator[tuple[str, str]]:
    for row in report["workloads"]:
        mine = [
            w
            for pod in evictable
            if (w := _workload(storm, pod)) is not None and w.name == row["name"]
        ]
        lost = sum(w.real_stop_seconds > left - DETECTED - DONE for w in mine)
        killed = row["pods_killed"] + row["pods_cut_short"]
        if killed > lost:
            yield "oracle-killed", f"{killed} of {row['name']}, and {lost} could not be saved"


class _Search:
    """Places one replacement for each workload that would be at zero, in the best way there is."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that the search depends on
        self,
        storm: Storm,
        seen: Observation,
        interrupted: frozenset[str],
        evictable: Sequence[Pod],
        left: float,
        simulation: Simulation,
    ) -> None:
        self._storm, self._left, self._interrupted = storm, left, interrupted
        nodes = [replace(n, unschedulable=True) if n.name in interrupted else n for n in seen.nodes]
        self._snapshot = ClusterSnapshot(nodes, seen.pods, seen.claims)
        self._fleet = simulation.rig_clusters[CLUSTER].fleet
        self._seen = seen
        self._evictable: dict[str, list[Pod]] = {w.name: [] for w in storm.workloads}
        for pod in evictable:
            workload = _workload(storm, pod)
            if workload is not None:
                self._evictable[workload.name].append(pod)
        self._ready_after = self._add_new_nodes()

    def at_zero(self, report: Report) -> Iterator[tuple[str, str]]:
        """Yield the workloads that were at zero and need not have been."""
        rows = {row["name"]: row for row in report["workloads"]}
        kinds = {*SCALED, CUSTOM}
        known = [w for w in self._storm.workloads if not self._evicted_by_others(w)]
        risky = [w for w in known if w.kind in kinds and self._at_risk(w)]
        hit = [n for n, row in rows.items() if row["seconds_at_zero"] > 0 and row["ready_floor"]]
        safe = {w.name for w in known} - {w.name for w in risky}
        for name in hit:
            if name in safe:
                yield "oracle-zero", f"{name} was at zero, though some of its pods stay"
        hopeful = [w for w in risky if self._may_be_kept(w)]
        kept = self._most(hopeful, self._snapshot)
        lost = [w.name for w in hopeful if w.name in hit]
        if len(lost) > len(hopeful) - kept:
            yield "oracle-zero", f"{lost} were at zero; {kept} of {len(hopeful)} could be kept"

    def _evicted_by_others(self, workload: Workload) -> bool:
        held = workload.guarded and workload.budget is None and self._surges(workload)
        return "kubectl-drain" in self._storm.other_controllers and not held

    def _at_risk(self, workload: Workload) -> bool:
        pods = [p for p in self._seen.pods if _workload(self._storm, p) is workload]
        return bool(pods) and all(p.node in self._interrupted for p in pods)

    def _surges(self, workload: Workload) -> bool:
        """Whether its pods can be released: see `plimsoll.domain.disruptions.releasability`."""
        return (
            workload.kind == "Deployment"
            and workload.strategy == "RollingUpdate"
            and resolve_count(workload.max_surge, workload.replicas, round_up=True) > 0
            and not workload.volumes
        )

    def _may_be_kept(self, workload: Workload) -> bool:
        one_may_go = workload.budget == ("maxUnavailable", 1) and workload.kind != CUSTOM
        if workload.replicas == 1 and one_may_go and self._may_need_all(workload):
            return False  # its owner lets it go, and its grace period begins before anything serves
        if self._surges(workload):
            return True
        return workload.replicas > 1 and (workload.budget is None or one_may_go)

    def _may_need_all(self, workload: Workload) -> bool:
        asks = workload.shared or workload.hook_seconds is not None
        waits = workload.startup_seconds + DETECTED + DONE
        return asks and not workload.stated and workload.grace_seconds + waits > self._left

    def _most(self, workloads: Sequence[Workload], snapshot: ClusterSnapshot) -> int:
        """Return how many of these can be kept at once."""
        if not workloads:
            return 0
        first, rest = workloads[0], workloads[1:]
        best = self._most(rest, snapshot)
        for pod, node in self._places(first, snapshot):
            if best == len(workloads):
                break
            twin = snapshot.copy()
            twin.remove(pod)
            twin.place(pod, node)
            best = max(best, 1 + self._most(rest, twin))
        return best

    def _places(self, workload: Workload, snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, str]]:
        takes = workload.startup_seconds + DETECTED
        if not self._surges(workload):
            takes += workload.real_stop_seconds + DONE  # and a volume has to follow
        must_leave = self._left - workload.real_stop_seconds - DONE
        for evictable in self._evictable[workload.name]:
            pod = replacement_of(evictable) if self._surges(workload) else evictable
            for node in snapshot.candidates(pod):
                if self._ready_after.get(node.name, 0.0) + takes <= must_leave:
                    yield pod, node.name
            if self._surges(workload):
                return  # one replacement is as good as another

    def _add_new_nodes(self) -> dict[str, float]:
        """Add every node that a scale-up could bring; return after how many seconds each is Ready."""
        daemons = Daemons(self._snapshot)
        after: dict[str, float] = {}
        for spec in self._storm.groups:
            group = group_of(self._fleet.groups[spec.name])
            if spec.capacity != "on-demand" or spec.kind != "asg" or group.template is None:
                continue
            if any(name.rpartition("-")[0] == spec.name for name in self._interrupted):
                continue  # it replaces its own instances, and may not grow further
            for number in range(min(FEW, spec.max - spec.size)):
                zone = spec.zones[number % len(spec.zones)]
                node = future_node(group, group.template, zone, f"new-{spec.name}-{number}")
                self._snapshot.add_node(node)
                for daemon in daemons.on(node):
                    self._snapshot.place(daemon, node.name)
                after[node.name] = spec.startup.most.total_seconds() + DETECTED
        return after
