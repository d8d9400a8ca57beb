"""What a cluster looks like to whoever drains it, in words that do not depend on chance or clocks.

A picture is flat: a name for each thing that can agree or differ. Pods whose names are made by
chance are told by what they are, and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import DELETION_COST, RELEASED, matches
from plimsoll_simulation.fake_cluster.conditions import (
    condition,
    controller_of,
    is_deleting,
    is_ready,
)
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.resources import BY_KIND
from tests.differential.bench import CAPACITY, ZONE
from tests.differential.past import Past, maker
from tests.differential.placements import Placements
from tests.differential.scenario import Request, Scenario
from tests.differential.sides import MARK, Response, Seen, Side

_SAME: Mapping[str, str] = dict.fromkeys(
    ("NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated"), "under way"
)
"""Reasons between which two writes of the real controller race."""

type Snapshot = Mapping[str, Any]

_NAMED = {"StatefulSet", None}
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "Deployment": ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    "ReplicaSet": ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "StatefulSet": ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"),
    "DaemonSet": (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberMisscheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ),
    "Job": ("active", "ready", "succeeded", "failed", "terminating"),
    "PodDisruptionBudget": (
        "expectedPods",
        "desiredHealthy",
        "currentHealthy",
        "disruptionsAllowed",
    ),
}
_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "Deployment": ("Available", "Progressing", "ReplicaFailure"),
    "Job": ("Complete", "Failed", "Suspended"),
    "PodDisruptionBudget": ("DisruptionAllowed",),
    "Node": ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"),
}


class Painter:
    """Paints the pictures of one scenario on one side, step after step."""

    def __init__(self, scenario: Scenario, side: Side) -> None:
        self._side = side
        self._placements = Placements()
        self._past = Past(scenario.ordered)

    def keep(self) -> None:
        """End a step: what was seen up to now is what the next one begins with."""
        self._placements.keep()
        self._past.keep()

    def paint(
        self, answers: Sequence[tuple[Request, Response]], changes: Sequence[Seen]
    ) -> Snapshot:
        """Return what there is now, and what was answered and seen on the way."""
        side = self._side
        pods = side.objects("pods")
        sets = {s["metadata"]["uid"]: s for s in side.objects("replicasets")}
        nodes = {n["metadata"]["name"]: n for n in side.objects("nodes")}
        snapshot: dict[str, Any] = {}
        for number, (request, answer) in enumerate(answers):
            snapshot |= {f"answer {number}: {k}": v for k, v in _answered(request, answer).items()}
        snapshot |= _pods(pods, sets, nodes)
        shared = _sharing(side.objects("poddisruptionbudgets"), pods)
        tainted = any(look(node, "spec", "taints") for node in nodes.values())
        for kind in _COUNTS:
            for obj in side.objects(BY_KIND[kind].plural):
                if kind == "ReplicaSet" and controller_of(obj) is not None:
                    continue
                if kind == "DaemonSet" and tainted:
                    continue  # its status follows taints when something else wakes its controller
                if kind == "PodDisruptionBudget" and obj["metadata"]["name"] in shared:
                    continue  # its controller follows one of the budgets of a pod, whichever
                snapshot[f"{kind} {obj['metadata']['name']}"] = _workload(kind, obj)
        for scaler in side.objects("horizontalpodautoscalers"):
            target = scaler["spec"]["scaleTargetRef"]
            found = side.objects(BY_KIND[target["kind"]].plural)
            here = [o for o in found if o["metadata"]["name"] == target["name"]]
            snapshot[f"HorizontalPodAutoscaler {scaler['metadata']['name']}"] = [
                o["spec"]["replicas"] for o in here
            ]
        for claim in side.objects("persistentvolumeclaims"):
            name = claim["metadata"]["name"]
            snapshot[f"PersistentVolumeClaim {name}"] = look(claim, "status", "phase")
        for name, node in nodes.items():
            snapshot[f"Node {name}"] = _node(node)
        snapshot |= self._past.look(changes, sets, side.objects("deployments"), side.instant)
        claims = side.objects("persistentvolumeclaims")
        snapshot |= self._placements.look(list(nodes.values()), pods, claims, changes)
        return snapshot


def _answered(request: Request, answer: Response) -> dict[str, Any]:
    body = answer.body if isinstance(answer.body, dict) else {}
    found: dict[str, Any] = {"code": answer.status}
    if answer.status >= 400:
        found["code"] = f"{answer.status} {body.get('reason', '')}"
        if causes := look(body, "details", "causes", default=()):
            found["causes"] = sorted({cause.get("reason", "") for cause in causes})
        headers = {name.lower(): value for name, value in answer.headers.items()}
        if wait := headers.get("retry-after"):
            found["retry after"] = wait
    for path in request.show:
        found[path] = _shown(body, path.split("."))
    return found


def _shown(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return value or None  # the real server leaves most zeros out
    if path[0] == "*":
        return [_shown(item, path[1:]) for item in value or ()]
    if path[0] == "#":
        return len(value or ())
    return _shown(value.get(path[0]), path[1:]) if isinstance(value, dict) else None


def _pods(
    pods: Sequence[Json], sets: Mapping[str, Json], nodes: Mapping[str, Json]
) -> dict[str, Any]:
    snapshot: dict[str, Any] = {}
    groups: defaultdict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        kind, name = maker(pod, sets)
        if kind in _NAMED:
            own = pod["metadata"]["name"]
            snapshot[f"pod {own}"] = _standing(pod)
            snapshot[f"pod {own}: node"] = look(pod, "spec", "nodeName")
        if kind is not None:
            groups[f"pods of {kind} {name}"].append(pod)
    for group, members in groups.items():
        snapshot[group] = _counted(_standing(pod) for pod in members)
        where = [nodes.get(look(pod, "spec", "nodeName", default="")) for pod in members]
        snapshot[f"{group}: nodes"] = _counted(n["metadata"]["name"] for n in where if n)
        for key in (ZONE, CAPACITY):
            domains = Counter(n["metadata"]["labels"].get(key, "") for n in where if n)
            snapshot[f"{group}: by {key}"] = dict(sorted(domains.items()))
            snapshot[f"{group}: counts by {key}"] = sorted(domains.values())
    return snapshot


def _sharing(budgets: Sequence[Json], pods: Sequence[Json]) -> set[str]:
    """Return the names of budgets that have a pod which another one has too."""
    selectors = {b["metadata"]["name"]: parse_selector(b["spec"].get("selector")) for b in budgets}
    found: set[str] = set()
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        mine = {name for name, selector in selectors.items() if matches(selector, labels)}
        if len(mine) > 1:
            found |= mine
    return found


def _counted(items: Iterable[str]) -> list[str]:
    return [f"{count} x {item}" for item, count in sorted(Counter(items).items())]


def _standing(pod: Json) -> str:
    """Say what state a pod is in, and by which marks it can be told from its like."""
    meta = pod["metadata"]
    words = [look(pod, "status", "phase", default="")]
    if is_ready(pod):
        words.append("ready")
    if is_deleting(pod):
        words.append(f"going {meta['deletionGracePeriodSeconds']}s")
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled["status"] == "False":
        words.append(scheduled.get("reason", ""))
    disrupted = condition(pod, "DisruptionTarget")
    if disrupted is not None:
        words.append(disrupted.get("reason", ""))
    if look(pod, "status", "nominatedNodeName") and not look(pod, "spec", "nodeName"):
        words.append("nominated")
    words.append(f"image {pod['spec']['containers'][0]['image']}")
    if priority := look(pod, "spec", "priority"):
        words.append(f"priority {priority}")
    if mark := look(meta, "labels", MARK):
        words.append(f"mark {mark}")
    if RELEASED in (meta.get("annotations") or {}):
        words.append("released")
    if cost := (meta.get("annotations") or {}).get(DELETION_COST):
        words.append(f"cost {cost}")
    return ", ".join(words)


def _workload(kind: str, obj: Json) -> dict[str, Any]:
    status = obj.get("status") or {}
    found: dict[str, Any] = {field: status.get(field, 0) for field in _COUNTS[kind]}
    if "replicas" in obj["spec"]:
        found["wanted"] = obj["spec"]["replicas"]
    if "observedGeneration" in status:
        found["observed"] = status["observedGeneration"] == obj["metadata"]["generation"]
    for name in _CONDITIONS.get(kind, ()):
        held = condition(obj, name)
        if held is not None:
            reason = held.get("reason", "")
            found[name] = (held["status"], _SAME.get(reason, reason))
    if "disruptedPods" in status:
        found["disrupted"] = len(status["disruptedPods"])
    if "updateRevision" in status:
        found["rolled out"] = status.get("currentRevision") == status["updateRevision"]
    return found


def _node(node: Json) -> dict[str, Any]:
    states = {name: condition(node, name) for name in _CONDITIONS["Node"]}
    taints = look(node, "spec", "taints", default=())
    return {
        "taints": sorted((t["key"], t.get("value", ""), t["effect"]) for t in taints),
        "unschedulable": bool(look(node, "spec", "unschedulable")),
        "conditions": {name: state and state["status"] for name, state in states.items()},
    }
