"""The scheduler: pods that wait for a node, highest priority first, then first come.

The predicates and the scoring are those of `plimsoll.domain.scheduling.cluster_snapshot`, the same that plans are made
with; the test suite against a real control plane is the independent check of both. A pod that fits
nowhere waits until something changed that could let it in, or until those it may preempt are gone:
it is nominated for their node then, and lower ones are kept off that room.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/,
k8s.io/kubernetes/pkg/scheduler/backend/queue (what moves pods out of the unschedulable ones),
pkg/scheduler/schedule_one.go (nodes are looked at from another one on each time, and chance decides
among equals: without it whole workloads would pile up on neighbouring nodes)
(nominated pods: pkg/scheduler/framework/runtime, RunFilterPluginsWithNominatedPods)
A pod with a scheduling gate, or for another scheduler, waits outside. Of a PodGroup as many pods as it needs are placed
in one round, or none.
Left out: extenders, backoff, preemption for a PodGroup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, assert_never, override

from plimsoll.adapters.kubernetes.objects import (
    parse_claim,
    parse_node,
    parse_pod,
    parse_pod_group,
    parse_volume,
    parse_volume_limits,
)
from plimsoll.domain.kubernetes import Node, Pod, Ref, in_groups
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_cluster.conditions import (
    condition,
    controller_of,
    is_active,
    is_deleting,
    is_finished,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.preemption import cheapest, starts
from plimsoll_simulation.fake_cluster.controllers.volumes import DRIVER, bind_claims
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.resizes import holds
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key, Store
from plimsoll_simulation.fake_cluster.subresources import bind

_PREEMPTED = "default-scheduler: preempting to accommodate a higher priority pod"


class Scheduler(Controller[tuple[str, Key]]):
    """One kube-scheduler with its default profile."""

    watches: ClassVar = frozenset(
        {"pods", "nodes", "podgroups", "persistentvolumeclaims", "persistentvolumes", "csinodes"}
    )

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._snapshot = ClusterSnapshot([], [])
        self._placed: dict[Key, Pod] = {}
        self._waiting: dict[Key, Pod] = {}
        self._relating: dict[Key, None] = {}
        """Those of them that look at other pods."""
        self._fresh: dict[Key, None] = {}
        """Waiting, and not tried since they changed."""
        self._retry = False
        """Something changed that may let in any pod that waits."""
        self._nominated: dict[Key, str] = {}
        """Pods that wait for the room of their victims, and the node it is on."""
        self._ranks: dict[str, float] = {}
        """Of nodes, where the seed and not the score decides who comes first."""

    @override
    def observe(self, change: Change) -> None:
        if change.type == "MODIFIED" and change.before is not None and not _matters(change):
            return
        self.note((change.resource, change.key))

    @override
    def reconcile(self, key: tuple[str, Key], now: datetime) -> None:
        resource, name = key
        obj = self.store.get(resource, *name)
        match resource:
            case "pods":
                self._follow_pod(name, obj)
            case "nodes":
                self._retry = True
                if obj is None:
                    self._snapshot.remove_node(name[1])
                else:
                    self._add_node(obj)
            case "persistentvolumeclaims":
                self._retry = True
                if obj is not None:
                    volume = look(obj, "spec", "volumeName", default="")
                    bound = self.store.get("persistentvolumes", "", volume)
                    claim = replace(parse_claim(obj), driver=DRIVER)
                    self._snapshot.set_claim(claim.on(parse_volume(bound)) if bound else claim)
            case "csinodes":
                self._retry = True
                node = self.store.get("nodes", "", name[1])
                if node is not None:
                    self._add_node(node)
            case _:
                self._retry = True

    @override
    def work(self, now: datetime) -> None:
        super().work(now)
        keys = self._waiting if self._retry else self._fresh
        waiting = [(key, self._grouped(self._waiting[key])) for key in keys if key in self._waiting]
        tried = sorted(
            waiting,
            key=lambda item: (-item[1].priority, self._turn()),
        )
        self._retry = False
        self._fresh = {}
        whole = self._whole(tried)
        self._snapshot.gather(whole)
        self._place(tried, now)
        self._snapshot.scatter(whole)

    def _whole(self, tried: Sequence[tuple[Key, Pod]]) -> Sequence[Ref]:
        """Return the PodGroups of which enough pods fit at once."""
        together: dict[Ref, list[Pod]] = defaultdict(list)
        for _, pod in tried:
            if pod.group is not None and pod.group.is_gang:
                together[pod.group.ref].append(pod)
        found = []
        for ref, pods in together.items():
            left = {pod.uid for pod in self._snapshot.place_together(pods)}
            placed = [pod for pod in pods if pod.uid not in left]
            self._snapshot.undo(placed)
            found += [ref] if placed else []
        return found

    def _grouped(self, pod: Pod) -> Pod:
        """Return a pod with what its PodGroup says, if there is one."""
        if pod.group is None:
            return pod
        obj = self.store.get("podgroups", pod.namespace, pod.group.ref.name)
        return pod if obj is None else in_groups([pod], [parse_pod_group(obj)])[0]

    def _place(self, tried: Sequence[tuple[Key, Pod]], now: datetime) -> None:
        lowest: int | None = None
        refused: set[int] = set()
        hopeless: set[tuple[int, int]] = set()
        for key, pod in tried:
            if (bound := self._binding(key)) is not None:
                self._bind(key, bound, now)
                continue
            same = id(pod.scheduling)
            # Where another of its template did not fit a moment ago, it fits only if it has room of its own.
            if same not in refused or key in self._nominated:
                nodes = self._candidates(key, pod)
                if nodes and self._missing(pod) is None:
                    self._bind(key, self._choose(key, pod, nodes), now)
                    if _relates(pod):
                        refused.clear()
                    continue
                refused.add(same)
            self._refuse(key, pod, now)
            if lowest is None:  # a look at all pods, for which most rounds have no need
                lowest = min((placed.priority for placed in self._placed.values()), default=0)
            alike = (same, pod.priority)
            if pod.priority > lowest and alike not in hopeless and not self._preempt(key, pod, now):
                hopeless.add(alike)

    def _binding(self, key: Key) -> str | None:
        """Return the node that a pod was promised, if it is there."""
        bindings = self.state.bindings
        if not bindings:
            return None
        maker = made_by(self.store, self.store.must_get("pods", *key))
        nodes = bindings.get(maker) or bindings.get(("Pod", *key)) or []
        found = next((node for node in nodes if node in self._snapshot.nodes), None)
        if found is not None:
            nodes.remove(found)
        return found

    def _turn(self) -> float:
        """Draw a place among equals that tried before: theirs hangs on when each last backed off."""
        if self._retry and self.state.settings.choice == "any":
            return self.state.identities.share()
        return 0.0

    def _candidates(self, key: Key, pod: Pod) -> list[Node]:
        """Return the nodes that a pod fits on, also beside those nominated before it."""
        nodes = self._snapshot.candidates(pod)
        if not nodes or not self._nominated:
            return nodes
        with self._beside_nominated(key, pod):
            left = {node.name for node in self._snapshot.candidates(pod)}
        return [node for node in nodes if node.name in left]

    @contextmanager
    def _beside_nominated(self, key: Key, pod: Pod) -> Iterator[None]:
        """Let nominated pods of no lower priority stand where they are going to."""
        standing = []
        for other, node in self._nominated.items():
            ahead = self._waiting.get(other)
            if other == key or ahead is None or ahead.priority < pod.priority:
                continue
            if node in self._snapshot.nodes:
                self._snapshot.place(ahead, node)
                standing.append(ahead)
        try:
            yield
        finally:
            for ahead in standing:
                self._snapshot.remove(ahead)

    def _choose(self, key: Key, pod: Pod, nodes: list[Node]) -> str:
        nominated = self._nominated.get(key)
        if nominated is not None and any(node.name == nominated for node in nodes):
            return nominated
        match self.state.settings.choice:
            case "packed":
                return min(nodes, key=self._rank).name
            case "any":
                return self.state.identities.turned(nodes)[0].name
            case "best":
                turned = self.state.identities.turned(nodes)  # equals are chosen by chance
                return self._snapshot.best(pod, turned).name
            case _ as never:
                assert_never(never)

    def _rank(self, node: Node) -> float:
        return self._ranks.setdefault(node.name, self.state.identities.share())

    def _preempt(self, key: Key, pod: Pod, now: datetime) -> bool:
        """Let pods of lower priority go for one that fits nowhere; whether that helps it."""
        obj = self.store.must_get("pods", *key)
        if look(obj, "spec", "preemptionPolicy") == "Never" or self._missing(pod) is not None:
            return False
        nominated = self._nominated.get(key)
        if nominated is not None and nominated in self._snapshot.nodes:
            beside = self._snapshot.on(nominated)
            if any(p.deleting is not None and p.priority < pod.priority for p in beside):
                return True  # its victims are still on their way out
        budgets = list(self.store.all("poddisruptionbudgets"))
        with self._beside_nominated(key, pod):
            found = cheapest(self._snapshot, pod, budgets, starts(self.store, now))
        if found is None:
            self._nominate(key, None, now)
            return False
        for victim in found.victims:
            there = self.store.get("pods", victim.namespace, victim.name)
            if there is not None and not is_deleting(there):
                self.disrupt(there, "PreemptionByScheduler", _PREEMPTED, now)
        for other in [k for k, node in self._nominated.items() if node == found.node]:
            if other in self._waiting and self._waiting[other].priority < pod.priority:
                self._nominate(other, None, now)
        self._nominate(key, found.node, now)
        return True

    def _nominate(self, key: Key, node: str | None, now: datetime) -> None:
        """Write where a pod is going to have room; None takes it back."""
        if self._nominated.get(key) == node:
            return
        obj = self.store.must_get("pods", *key)
        status = {k: v for k, v in obj["status"].items() if k != "nominatedNodeName"}
        if node is None:
            del self._nominated[key]
        else:
            self._nominated[key] = status["nominatedNodeName"] = node
        self.store.replace("pods", {**obj, "status": status}, now=now)

    def _follow_pod(self, key: Key, obj: Json | None) -> None:
        before = self._placed.get(key)
        if obj is None or is_finished(obj) or (before and before.uid != obj["metadata"]["uid"]):
            self._forget(key)
            if before is not None:
                self._snapshot.remove(before)
                del self._placed[key]
                self._retry = True
        if obj is None or is_finished(obj):
            return
        if before is not None and before.resource_version == obj["metadata"]["resourceVersion"]:
            return  # it was this scheduler that bound it
        node = look(obj, "spec", "nodeName")
        if node is not None:
            self._forget(key)
            pod = parse_pod(obj)
            if before is not None and not before.scheduling.requests.within(
                pod.scheduling.requests
            ):
                self._retry = True  # it was resized, and holds less
            self._placed[key] = pod
            if node in self._snapshot.nodes:
                self._snapshot.place(pod, node)
            self._neighbour_came()
        elif is_active(obj) and not _left_alone(obj):
            pod = self._waiting[key] = parse_pod(obj)
            self._fresh[key] = None
            if _relates(pod):
                self._relating[key] = None
            # Others of its group may have waited for it.
            self._retry = self._retry or pod.group is not None

    def _neighbour_came(self) -> None:
        """Look again at the pods that may have waited for one."""
        self._fresh |= dict.fromkeys(self._relating)

    def _forget(self, key: Key) -> None:
        """A pod waits no longer: it has a node, or is no more."""
        self._waiting.pop(key, None)
        self._relating.pop(key, None)
        if self._nominated.pop(key, None) is not None:
            self._retry = True  # the room that was kept for it may be free

    def _add_node(self, obj: Json) -> None:
        node = parse_node(obj)
        csi = self.store.get("csinodes", "", node.name)
        if csi is not None:
            _, limits = parse_volume_limits(csi)
            node = replace(node, volume_limits=limits)
        new = node.name not in self._snapshot.nodes
        self._snapshot.add_node(node)
        if new:
            for pod in self.state.indexes.on_node(node.name):
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                if key in self._placed:
                    self._snapshot.place(self._placed[key], node.name)

    def _missing(self, pod: Pod) -> str | None:
        for name in pod.scheduling.claims:
            if self.store.get("persistentvolumeclaims", pod.namespace, name) is None:
                return f'persistentvolumeclaim "{name}" not found'
        return None

    def _bind(self, key: Key, node: str, now: datetime) -> None:
        obj = self.store.must_get("pods", *key)
        bind_claims(self.store, obj, self.store.must_get("nodes", "", node), now=now)
        bound = bind(self.store, obj, node, now=now)
        self._forget(key)
        # The board must know before the next pod is placed, not when the change comes round.
        pod = self._placed[key] = parse_pod(bound)
        self._snapshot.place(pod, node)
        self._neighbour_came()

    def _refuse(self, key: Key, pod: Pod, now: datetime) -> None:
        """Say once why a pod waits: again for every change elsewhere would be a write each."""
        obj = self.store.must_get("pods", *key)
        known = condition(obj, "PodScheduled")
        if known is not None and known.get("reason") == "Unschedulable":
            return
        why = self._missing(pod) or self._snapshot.explain(pod)
        told = with_condition(
            obj, "PodScheduled", "False", now=now, reason="Unschedulable", message=why
        )
        self.store.replace("pods", told, now=now)


def made_by(store: Store, pod: Json) -> tuple[str, str, str]:
    """Return kind, namespace and name of what makes pods like this: the Deployment above its ReplicaSet."""
    namespace = pod["metadata"]["namespace"]
    owner = controller_of(pod)
    if owner is not None and owner["kind"] == "ReplicaSet":
        owner = controller_of(store.get("replicasets", namespace, owner["name"]) or {}) or owner
    if owner is None:
        return "Pod", namespace, pod["metadata"]["name"]
    return owner["kind"], namespace, owner["name"]


def _left_alone(pod: Json) -> bool:
    """Whether a pod is gated, or for another scheduler."""
    mine = look(pod, "spec", "schedulerName") == "default-scheduler"
    return bool(look(pod, "spec", "schedulingGates")) or not mine


def _relates(pod: Pod) -> bool:
    scheduling = pod.scheduling
    return bool(scheduling.affinity or scheduling.anti_affinity or scheduling.spread)


def _matters(change: Change) -> bool:
    """Whether a modified object is another to the scheduler than it was."""
    old, new = change.before or {}, change.object
    if change.resource == "pods":
        if is_finished(new) != is_finished(old):
            return True
        return any(
            look(old, *path) != look(new, *path)
            for path in (("spec",), ("metadata", "labels"), ("metadata", "deletionTimestamp"))
        ) or (look(new, "status", "phase") == "Running" and holds(old) != holds(new))
    if change.resource == "nodes":
        ready = [condition(obj, "Ready") for obj in (old, new)]
        return any(
            look(old, *path) != look(new, *path)
            for path in (("spec",), ("metadata", "labels"), ("status", "allocatable"))
        ) or [r and r["status"] for r in ready[:1]] != [r and r["status"] for r in ready[1:]]
    return True
