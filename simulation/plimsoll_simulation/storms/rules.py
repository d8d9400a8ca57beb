"""What the responder may write, judged by what it could know of the cluster.

An eviction has no precondition on anything but its pod, so between the observation of a plan and its
last write others may change what it was decided by. Whether a pod may leave is therefore judged by each state that
the cluster had within the time that a plan takes: a rule is broken that is broken in all of them. What the
responder did itself meanwhile it does know, and is part of each. All other rules go by the state just before the
write.

Each rule returns its name and what is wrong. The rules ask the planner's `ClusterSnapshot` what fits
where, since that is the scheduler's rule; they derive everything else independently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.disruptions import (
    EvictablePod,
    WorkloadDisruption,
    disruptions_of,
    has_one_budget,
    kept_of,
    stop_time,
)
from plimsoll.domain.interruptions import MARGIN
from plimsoll.domain.kubernetes import (
    GUARD,
    Node,
    Pod,
    Ref,
    is_ignored,
    replacement_of,
)
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_cluster.subresources import Request
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.workload_metrics import WorkloadMetrics
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery, since

type Wrong = tuple[str, str]
NO_HEADROOM: Final = "no-headroom"
GENERATIONS: Final = ("pod-template-hash", "controller-revision-hash")
"""The labels by which controllers tell generations of pods apart."""
DETECTED: Final = timedelta(seconds=5)
"""How soon it is known that an instance is past its deadline, when no fault is active."""
WRITTEN: Final = timedelta(seconds=60)
"""How soon a notice is recorded on its node, also if the API server was away meanwhile."""
SILENT: Final = timedelta(seconds=75)
"""How long an instance may be gone without a notice before a resync finds out."""
_NAMES_ITS_END: Final = frozenset(
    {"spot-interruption", "capacity-reservation-interruption", "health-scheduled-change"}
)
"""Notices that say when the instance goes; a lifecycle action does not say its hook's timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a write is judged by."""

    rig_cluster: SimulatedRigCluster
    measurement: Measurement
    delivery: NoticeDelivery
    observe: Callable[[], Observation]
    """Observes the cluster itself, not what the responder last read of it."""
    earlier: Callable[[timedelta], Iterator[Observation]]
    """The same, as the cluster was within so long before, the latest first, with what the responder did since."""


def judged(write: Request, situation: Situation) -> list[Wrong]:
    """Return what is wrong with a write, before it happens."""
    plural = write.target.resource.plural
    namespace = write.target.namespace or ""
    if plural == "pods" and (write.target.subresource == "eviction" or write.method == "DELETE"):
        seen = situation.observe()
        pod = next((p for p in seen.pods if (p.namespace, p.name) == (namespace, write.name)), None)
        return [] if pod is None else list(_Removal(write, situation, seen, pod).wrong())
    if plural == "poddisruptionbudgets":
        budget = situation.rig_cluster.get(plural, namespace, write.name or "") or {"metadata": {}}
        if (budget["metadata"].get("labels") or {}).get(GUARD) == "true":
            return []
    if plural not in {"pods", "nodes", "leases", "events"}:
        return [("workload-written", f"{write.method} {plural} {namespace}/{write.name}")]
    return []


@dataclass(frozen=True, slots=True)
class _Removal:
    """An eviction or a delete of one pod."""

    write: Request
    situation: Situation
    seen: Observation
    pod: Pod

    def wrong(self) -> Iterator[Wrong]:
        pod, node = self.pod, self.seen.node.get(self.pod.node or "")
        machine = None if pod.node is None else self.situation.rig_cluster.fleet.on_node(pod.node)
        grace = self._grace()
        if machine is None or node is None or not machine.joined:
            return  # it died with its instance, which may be starting anew
        if is_ignored(pod.labels, pod.annotations):
            yield "ignored-removed", f"{pod} of {node.name}, which has opted out"
        if grace == 0:
            yield "forced-while-alive", f"{pod} of {node.name}, whose instance lives"
        if node.interruption is None and not pod.released:  # a released one may be surplus there
            yield (
                "left-healthy-node",
                f"{pod} of {node.name}, which has no record of an interruption",
            )
        deadline = None if node.interruption is None else node.interruption.deadline
        ends = self._announced(machine)
        if ends is not None and (deadline is None or deadline > ends):
            yield "deadline-too-late", f"{node.name} ends before the deadline of its record"
        deadline = self._told(deadline, machine)
        if grace is not None and deadline is not None:
            left = (deadline - self.write.now).total_seconds()
            if grace < min(pod.grace_seconds, max(1, int(left))):
                yield "cut-needlessly", f"{pod} gets {grace} s of {left:g} s left"
        if pod.serving:
            yield from self._too_soon(node, deadline)

    def _too_soon(self, node: Node, deadline: datetime | None) -> Iterator[Wrong]:
        """Yield what is wrong with a removal before the eviction deadline."""
        elapsed = since(self.situation.measurement.started, self.write.now)
        next_plan = self.write.now + self.situation.delivery.until_next_plan(elapsed)
        promised = self._promised(deadline)
        if promised.late(next_plan):
            return
        yield from self._not_known_better(
            node,
            self.situation.delivery.plan_age(elapsed),
            hurried=promised.may_need_more(next_plan),
        )

    def _promised(self, deadline: datetime | None) -> EvictablePod:
        """Return until when the plan promises to leave the pod in place: the product's own rule."""
        owner = self.seen.owner(self.pod) or self.pod.owner
        times = None if owner is None else self.seen.times.get(owner)
        return EvictablePod(
            pod=self.pod,
            interruption="",
            deadline=deadline,
            stop=stop_time(self.pod, None if times is None else times.stop),
        )

    def _not_known_better(self, node: Node, age: timedelta, *, hurried: bool) -> Iterator[Wrong]:
        """Yield what is wrong now, and was in each state that the plan can have observed."""
        wrong = list(self.early(node, hurried=hurried))
        for seen in self.situation.earlier(age) if wrong else ():
            pod = next((p for p in seen.pods if p.uid == self.pod.uid), None)
            if pod is None:
                continue
            then = replace(self, seen=seen, pod=pod)
            broken = then.early(node, hurried=hurried) if pod.serving else ()
            still = {rule for rule, _ in broken}
            wrong = [each for each in wrong if each[0] in still]
            if not wrong:
                break
        yield from wrong

    @staticmethod
    def _told(deadline: datetime | None, machine: Machine) -> datetime | None:
        """Return the deadline that a plan goes by which has just read the lifecycle hooks of others."""
        if deadline is None:
            return None
        others = (end - MARGIN for hook, end in machine.held.items() if not hook.ours)
        return min((deadline, *others))

    def _announced(self, machine: Machine) -> datetime | None:
        """Return when an instance ends, if all notices that say so arrived long enough ago."""
        arrived = self.write.now - WRITTEN - self.situation.delivery.slack
        told = all(kind in _NAMES_ITS_END and at < arrived for kind, at in machine.notices)
        known = machine.notices and self.situation.delivery.all_arrived(machine.node)
        return machine.ends if told and known else None

    def _grace(self) -> int | None:
        body = self.write.body or {}
        options = body.get("deleteOptions", body)
        grace: int | None = options.get("gracePeriodSeconds")
        return grace

    def early(self, node: Node, *, hurried: bool) -> Iterator[Wrong]:
        """Before its eviction deadline a serving pod is removed only where that costs nothing.

        Args:
            node: where it stands.
            hurried: whether it may need all the time that is left. Then it leaves as its budget allows, or else the
                ready floor, with or without a replacement; a quorum stays.
        """
        pod, owner = self.pod, self.seen.owner(self.pod)
        metrics = self._metrics(owner) or self._metrics(pod.owner)
        if owner is None or metrics is None or not metrics.counted:
            yield "early", f"{pod}, which may finish, or which no controller recreates"
            return
        mates = [p for p in self.seen.of_workload.get(owner, ()) if self._serves(p)]
        staying = [p for p in mates if self._stays(p)]
        if len(staying) >= metrics.replicas or len(mates) > metrics.replicas:
            return  # as many as declared serve on without it
        floor = self._floor(owner, metrics)
        if hurried and (kept := self._kept(owner, metrics.replicas)):
            floor = max(*kept, metrics.quorum)
        if len(mates) - 1 < floor and not self._one_for_the_others(owner):
            rule = "below-floor-in-rollout" if self._rolls_out(owner) else "below-floor"
            yield rule, f"{pod} of {node.name}: {len(mates)} serve, the floor is {floor}"
        # A released pod has its replacement.
        if not (pod.released or hurried or self._has_headroom() or self._in_turn(owner)):
            yield NO_HEADROOM, f"no node has headroom for the replacement of {pod} of {node.name}"

    def _one_for_the_others(self, owner: Ref) -> bool:
        """Whether all would leave before anything serves in their place, so that one leaves early: the product's own rule."""
        return any(found.pressed for found in self._disruptions(owner))

    def _in_turn(self, owner: Ref) -> bool:
        """Whether it may leave without a place, since not all would be replaced in turn: the product's own rule."""
        return any(
            found.hurries(one, in_turn=True)
            for found in self._disruptions(owner)
            for one in found.evictable
            if one.pod.uid == self.pod.uid
        )

    def _disruptions(self, owner: Ref) -> Iterator[WorkloadDisruption]:
        """Yield what the plan goes by: it has just read the lifecycle hooks, and writes on the Nodes last what they say."""
        groups = self.situation.rig_cluster.fleet.groups.values()
        seen = replace(self.seen, groups=tuple(map(group_of, groups)))
        found = disruptions_of(seen, InterruptedNodes.of(seen), self.write.now)
        return (each for each in found if each.ref == owner)

    def _floor(self, owner: Ref, metrics: WorkloadMetrics) -> int:
        """Return the ready floor: of fewer replicas, if its autoscaler has overruled its owner."""
        workload = self.seen.workload.get(owner)
        if workload is None or workload.scaler is None or workload.replicas >= metrics.replicas:
            return metrics.floor
        if workload.replicas < (workload.min_replicas or 1):
            return metrics.floor  # the autoscaler will lift it again
        kept = max(self._kept(owner, workload.replicas), default=0)
        one = has_one_budget(self.seen, owner)
        return metrics.floor_of(workload.replicas, kept=kept, one_budget=one)

    def _kept(self, owner: Ref, replicas: int) -> Collection[int]:
        """Return how many of so many replicas each budget keeps."""
        return kept_of(self.seen, owner, replicas).values()

    def _rolls_out(self, owner: Ref) -> bool:
        """Whether its pods are of two generations: then its controller deletes pods as well."""
        pods = self.seen.of_workload.get(owner, ())
        generations = {p.labels.get(key) for p in pods for key in GENERATIONS if key in p.labels}
        workload = self.seen.workload.get(owner)
        return len(generations) > 1 or (workload is not None and workload.rolling_out)

    def _metrics(self, owner: Ref | None) -> WorkloadMetrics | None:
        if owner is None:
            return None
        return self.situation.measurement.workload_metrics.get(
            (self.situation.rig_cluster.name, owner.namespace, owner.kind, owner.name)
        )

    def _serves(self, pod: Pod) -> bool:
        """Whether a pod serves as far as can be known: deaths count once recorded or found by a resync."""
        if not pod.serving or pod.node is None:
            return False
        if self.situation.rig_cluster.fleet.on_node(pod.node) is not None:
            return True
        node = self.seen.node.get(pod.node)
        record = None if node is None else node.interruption
        if record is not None and (record.gone is not None or self._past(record.deadline)):
            return False
        slack = self.situation.delivery.slack
        return any(
            machine.gone is not None and machine.gone > self.write.now - SILENT - slack
            for machine in self.situation.rig_cluster.fleet.machine.values()
            if machine.node == pod.node
        )

    def _past(self, deadline: datetime | None) -> bool:
        return (
            deadline is not None
            and deadline + DETECTED + self.situation.delivery.slack < self.write.now
        )

    def _stays(self, pod: Pod) -> bool:
        node = self.seen.node.get(pod.node or "")
        return node is not None and node.interruption is None and not node.unschedulable

    def _has_headroom(self) -> bool:
        """Whether its replacement fits now without taking a place from pods that wait.

        kube-scheduler may place the pods in another way; what counts is that a placement exists. Pods of negative
        priority are there to be preempted.
        """
        # A node that waits for its turn on advice is not cordoned, and takes pods until then.
        standing = [p for p in self.seen.pods if p.priority >= min(0, self.pod.priority)]
        snapshot = ClusterSnapshot(self.seen.nodes, standing, self.seen.claims)
        waiting = sorted(self._waiting(), key=lambda pod: -pod.priority)
        alone = _packed(snapshot.copy(), waiting)
        snapshot.remove(self.pod)
        for node in snapshot.candidates(self.pod):
            twin = snapshot.copy()
            twin.place(self.pod, node.name)
            if _packed(twin, waiting) >= alone:
                return True
        return False

    def _waiting(self) -> Iterator[Pod]:
        """Yield the pods that take headroom first: Pending pods, and replacements of terminating ones."""
        yield from (p for p in self.seen.pods if p.pending and p.priority >= 0)
        for ref, workload in self.seen.workload.items():
            pods = self.seen.of_workload.get(ref, ())
            leaving = [p for p in pods if p.deleting is not None and p.priority >= 0]
            owed = workload.replicas - sum(p.deleting is None for p in pods)
            yield from (replacement_of(p) for p in leaving[: max(0, owed)])


def _packed(snapshot: ClusterSnapshot, pods: Sequence[Pod]) -> int:
    """Place as many pods as fit, and return how many."""
    placed = 0
    for pod in pods:
        node = snapshot.choose(pod)
        if node is not None:
            snapshot.place(pod, node.name)
            placed += 1
    return placed
