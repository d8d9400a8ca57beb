"""DaemonSets: one pod on each node that its selectors and taints allow.

Its pods tolerate a cordon and a node that is not Ready, so a drain leaves them alone.

Source: k8s.io/kubernetes/pkg/controller/daemon/daemon_controller.go, update.go;
https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
Left out: maxSurge, minReadySeconds, ControllerRevision objects.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.domain.kubernetes import Node, Scheduling, node_selected, untolerated
from plimsoll_simulation.fake_cluster.conditions import (
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.rollouts import scaled
from plimsoll_simulation.fake_cluster.controllers.templates import pod_of, template_hash
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key, key_of

_REVISION = "controller-revision-hash"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(Controller[Key]):
    """The DaemonSet controller."""

    watches: ClassVar = frozenset({"daemonsets", "nodes", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._nodes: dict[str, Node] = {}
        self._rules: dict[str, tuple[int, Scheduling]] = {}
        """UID -> (generation, what its pods demand of a node)."""

    @override
    def observe(self, change: Change) -> None:
        match change.resource:
            case "daemonsets":
                self.note(change.key)
            case "nodes":
                name = change.object["metadata"]["name"]
                if change.type == "DELETED":
                    self._nodes.pop(name, None)
                else:
                    self._nodes[name] = parse_node(change.object)
                    self._look_at_node(self._nodes[name])
            case _:
                owner = controller_of(change.object)
                if owner is not None and owner["kind"] == "DaemonSet":
                    self.note((change.key[0], owner["name"]))

    def _look_at_node(self, node: Node) -> None:
        """Note the sets for which a changed node makes a difference. Source: syncNodeUpdate.

        A set that may stay but would not come again is not looked at: its status lags.
        """
        here = self.state.indexes.on_node(node.name)
        makers = {owner["uid"] for pod in here if (owner := controller_of(pod)) is not None}
        for daemonset in self.store.all("daemonsets"):
            runs, stays = _admits(self._rule(daemonset), node)
            scheduled = daemonset["metadata"]["uid"] in makers
            astray = look(daemonset, "status", "numberMisscheduled", default=0) > 0
            if (runs and not scheduled) or (scheduled and (astray or not stays)):
                self.note(key_of(daemonset))

    def _rule(self, daemonset: Json) -> Scheduling:
        """Return what the pods of a set demand of a node."""
        uid, generation = daemonset["metadata"]["uid"], daemonset["metadata"]["generation"]
        kept = self._rules.get(uid)
        if kept is None or kept[0] != generation:
            example = self._pod(daemonset, "", "")
            example["metadata"] |= {"name": "example", "uid": "", "resourceVersion": ""}
            kept = self._rules[uid] = generation, parse_pod(example).scheduling
        return kept[1]

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        daemonset = self.store.get("daemonsets", *key)
        if daemonset is None:
            return
        pods: dict[str, list[Json]] = {}
        for pod in self.state.indexes.owned(daemonset["metadata"]["uid"], "pods"):
            pods.setdefault(_node_of(pod), []).append(pod)
        update = template_hash(daemonset["spec"]["template"])
        rule = self._rule(daemonset)
        verdicts = {name: _admits(rule, node) for name, node in self._nodes.items()}
        wanted = [name for name, (runs, _) in verdicts.items() if runs]
        for node in wanted:
            if node not in pods:
                self.create("pods", self._pod(daemonset, node, update), now)
        for node, here in pods.items():
            astray = node in verdicts and not verdicts[node][1]
            for pod in here:
                if astray or is_finished(pod):
                    self.delete(pod, now)
        self._update(daemonset, wanted, pods, update, now)
        self._report(daemonset, wanted, pods, update, now)

    def _pod(self, daemonset: Json, node: str, update: str) -> Json:
        """Return the pod for a node: the scheduler places it, and can place it nowhere else."""
        suffix = self.state.identities.suffix() if node else ""
        pod = pod_of(daemonset, labels={_REVISION: update}, suffix=suffix)
        tolerations = [
            *look(pod, "spec", "tolerations", default=()),
            *({"key": k, "operator": "Exists", "effect": e} for k, e in _TOLERATED),
        ]
        pod["spec"] = {**pod["spec"], "tolerations": tolerations}
        if node:
            here = {"key": "metadata.name", "operator": "In", "values": [node]}
            terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
            path = ("spec", "affinity", "nodeAffinity")
            pod = put(pod, path, {"requiredDuringSchedulingIgnoredDuringExecution": terms})
        return pod

    def _update(
        self,
        daemonset: Json,
        wanted: list[str],
        pods: dict[str, list[Json]],
        update: str,
        now: datetime,
    ) -> None:
        """Replace outdated pods, on as many nodes at a time as may be without one that is Ready.

        Those on a node that would not get one again go too. Source: rollingUpdate.
        """
        strategy = daemonset["spec"]["updateStrategy"]
        if strategy["type"] == "OnDelete":
            return
        nodes = [pods.get(node, []) for node in dict.fromkeys([*wanted, *pods])]
        most = look(strategy, "rollingUpdate", "maxUnavailable", default=1)
        left = scaled(most, len(wanted), up=True)
        left -= sum(1 for here in nodes if not any(_serves(pod) for pod in here))
        for pod in [pod for here in nodes for pod in here]:
            if pod["metadata"]["labels"].get(_REVISION) == update or is_deleting(pod):
                continue
            if not is_ready(pod) or left > 0:
                left -= is_ready(pod)
                self.delete(pod, now)

    def _report(
        self,
        daemonset: Json,
        wanted: list[str],
        pods: dict[str, list[Json]],
        update: str,
        now: datetime,
    ) -> None:
        daemonset = self.store.must_get(
            "daemonsets", daemonset["metadata"]["namespace"], daemonset["metadata"]["name"]
        )
        here = [p for n in wanted for p in pods.get(n, ())]
        ready = sum(1 for p in here if is_ready(p))
        status = {
            "observedGeneration": daemonset["metadata"]["generation"],
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": sum(1 for n in wanted if pods.get(n)),
            "numberMisscheduled": sum(1 for n in pods if n not in wanted),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
            "updatedNumberScheduled": sum(
                1 for p in here if p["metadata"]["labels"].get(_REVISION) == update
            ),
        }
        self.store.replace("daemonsets", put(daemonset, ("status",), status), now=now)


def _admits(rule: Scheduling, node: Node) -> tuple[bool, bool]:
    """Whether a node should get a pod, and whether one that is there may stay.

    The surprise: a taint NoSchedule keeps new pods away and leaves those that run.
    Source: NodeShouldRunDaemonPod.
    """
    if not node_selected(rule, node):
        return False, False
    if untolerated(node.taints, rule.tolerations) is None:
        return True, True
    return False, untolerated(node.taints, rule.tolerations, frozenset({"NoExecute"})) is None


def _node_of(pod: Json) -> str:
    """Return the node a pod is on, or is meant for."""
    if node := look(pod, "spec", "nodeName"):
        return str(node)
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return str(look(pod, *path)["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _serves(pod: Json) -> bool:
    return is_ready(pod) and not is_deleting(pod)
