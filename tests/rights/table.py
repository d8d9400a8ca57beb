"""What Plimsoll does in a cluster, row by row: action, calls, and the fields that they write.

The rights and the fields of the manifests are held to these rows: by their text in `tests/contract/test_rights.py`,
and by a real API server in `tests/cluster/test_rights_of_actions.py`. Add a row with an action.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.kubernetes.api import OUT_OF_SERVICE
from plimsoll.adapters.kubernetes.calls import (
    CREATE_BUDGET,
    DELETE_BUDGET,
    DELETE_POD,
    EVICT,
    PATCH_FLOORS,
    PATCH_NODE,
    PATCH_POD,
    Call,
)
from plimsoll.domain import actions
from plimsoll.domain.actions import Action, Plan, Step
from plimsoll.domain.errors import Conflict
from plimsoll.domain.interruptions import Interruption, LifecycleHook, NoticeRecord
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    DEADLINE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    EXCLUDED,
    FLOORS,
    GUARD,
    INTERRUPTION,
    MOVED,
    POD_TEMPLATE_HASH,
    PROTECTED,
    RELEASED,
    SPREAD_PREFIX,
    ZONAL_SHIFT,
    Node,
    Pod,
    Ref,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.services.executor import ActionResult, Executor, Writers
from plimsoll.services.ports import Clock, Workers
from tests.contract.rights import Asked
from tests.support.builders import a_group
from tests.support.fake_clusters import a_deployment
from tests.support.workload_sets import Aws, Telemetry

type Json = dict[str, Any]
type Right = tuple[str, str, str]
"""Verb, group, and resource with its subresource."""

HOOK: Final = LifecycleHook(
    group="base", name="hook", timeout=timedelta(minutes=5), longest=timedelta(hours=8), ours=True
)


def right_of(call: Call) -> Right:
    return call.verb, call.group, call.resource


def fields(obj: Json) -> dict[str, object]:
    """Return the fields of an object or a merge patch that policies tell apart."""
    named = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")
    meta, spec = obj.get("metadata", {}), obj.get("spec") or {}
    return {
        **{f"label {key}": value for key, value in meta.get("labels", {}).items()},
        **{f"annotation {key}": value for key, value in meta.get("annotations", {}).items()},
        **{f"metadata.{key}": value for key, value in meta.items() if key not in named},
        **{f"taint {taint['key']}": taint["effect"] for taint in spec.get("taints", ())},
        **{f"spec.{key}": value for key, value in spec.items() if key != "taints"},
        **{f"data {key}": value for key, value in (obj.get("data") or {}).items()},
    }


class Stage(Protocol):
    """A cluster, real or fake, with the Node `NAME-a` and a namespace of the test."""

    name: str

    def apply(self, *manifests: Json) -> None: ...
    def create(self, path: str, body: Json) -> Json: ...
    def get(self, path: str) -> Json: ...
    def lose(self, node: str) -> None: ...
    def until[T](self, look: Callable[[], T]) -> T: ...


@dataclass
class Wire:
    """A transport that notes which rights were used to write, and what changed by it."""

    inner: Transport
    stage: Stage
    written: dict[Right, set[str]] = field(default_factory=dict)

    def call(self, method: str, path: str, **request: Any) -> Response:
        patch = method == "PATCH"
        before = fields(self.stage.get(path)) if patch else {}
        answer = self.inner.call(method, path, **request)
        asked = Asked.of(method, path, request.get("query"))
        if method == "GET" or answer.status >= 300 or asked.resource == "events":
            return answer
        changed = self.written.setdefault(asked.right, set())
        if patch:
            wanted = fields(request["body"])
            if "taints" in request["body"].get("spec", {}):
                wanted = {key: None for key in before if key.startswith("taint ")} | wanted
            after = fields(answer.body)
            for key, value in wanted.items():
                if value != before.get(key):
                    assert after.get(key) == value, key
                    changed.add(key)
        return answer


class Scene:
    """A small cluster under way, and our hands on it."""

    def __init__(self, stage: Stage, transport: Transport, workers: Workers, clock: Clock) -> None:
        self.stage = stage
        self.wire = Wire(transport, stage)
        self.api = KubernetesCluster(self.wire, stage.name, clock, workers=workers)
        self.aws = Aws()
        self.floors = f"/api/v1/namespaces/{stage.name}/configmaps"
        self.budgets = f"/apis/policy/v1/namespaces/{stage.name}/poddisruptionbudgets"
        self.target = ""
        self._workers = workers

    def observed(self) -> Observation:
        return self.api.observe()

    @property
    def node(self) -> Node:
        return next(n for n in self.api.nodes() if n.name == f"{self.stage.name}-a")

    @property
    def web(self) -> Workload:
        return self.observed().workload[Ref("Deployment", self.stage.name, "web")]

    @property
    def pods(self) -> list[Pod]:
        found = (p for p in self.observed().pods if p.namespace == self.stage.name)
        return [p for p in found if p.labels["app"] == "web"]

    @property
    def pod(self) -> Pod:
        """The pod of web that actions are about."""
        return next(p for p in self.pods if p.name == self.target)

    def is_gone(self) -> bool:
        return self.target not in {pod.name for pod in self.pods}

    def budgets_there(self) -> list[Json]:
        return list(self.stage.get(self.budgets)["items"])

    def serve(self, count: int) -> bool:
        return sum(pod.serving for pod in self.pods) == count

    def run_web(self) -> None:
        """Let a Deployment of two pods run."""
        self.stage.apply(a_deployment("web", 2))
        self.stage.until(lambda: self.serve(2))
        self.target = self.pods[0].name

    def interruption(self) -> Interruption:
        notices = [NoticeRecord(kind="spot-interruption", time=datetime.now(UTC), id="event")]
        return Interruption(
            instance=self.node.instance or "",
            launched=None,
            node=self.node.name,
            notices=tuple(notices),
        )

    def made(self, kind: type[Action], **arguments: object) -> Action:
        """Return an action about what there is now; only what that does not tell is an argument."""
        tells: Mapping[str, Callable[[], object]] = {
            "reason": lambda: "a test says so",
            "node": lambda: self.node,
            "pod": lambda: self.pod,
            "workload": lambda: self.web,
            "replica_set": lambda: self.observed().current[self.web.ref],
            "budget": lambda: next(
                b for b in self.observed().budgets if b.ref.namespace == self.stage.name
            ),
            "namespace": lambda: self.stage.name,
            "interruption": lambda: "i-1@noon" if kind is actions.Release else self.interruption(),
            "hooks": lambda: (HOOK,),
            "group": lambda: a_group("base"),
        }
        needed = {each.name for each in dataclasses.fields(kind)} & tells.keys()
        make: Callable[..., Action] = kind
        return make(**{name: tells[name]() for name in needed - arguments.keys()}, **arguments)

    def carry_out(self, kind: type[Action], **arguments: object) -> None:
        """Let the executor do it, from a fresh look where a controller was quicker."""
        writers = Writers(cluster=self.api, capacity=self.aws)
        executor = Executor(writers=writers, workers=self._workers, telemetry=Telemetry())

        def attempt() -> ActionResult | None:
            plan = Plan(steps=(Step(action=self.made(kind, **arguments), nodes=frozenset()),))
            (outcome,) = executor.carry_out(plan)
            return None if isinstance(outcome.error, Conflict) else outcome

        outcome = self.stage.until(attempt)
        assert outcome is not None
        assert outcome.error is None, outcome.error
        assert outcome.done
        told = set(executor.noted)
        executor.create_events()
        events = self.stage.get("/api/v1/events")["items"]
        assert told <= {event["metadata"]["name"] for event in events}


@dataclass(frozen=True)
class Row:
    """An action, done once with each of some arguments in turn, each time from a fresh look."""

    writes: Mapping[Call, AbstractSet[str]]
    """The calls that write, and the fields that they change; an Event may follow each."""
    each: tuple[Mapping[str, object], ...] = ({},)
    given: Callable[[Scene], object] = lambda _: None
    done: Callable[[Scene], bool] = lambda _: True
    """What must be so in the end, besides the fields."""

    def play(self, scene: Scene, kind: type[Action]) -> None:
        self.given(scene)
        scene.wire.written.clear()
        for arguments in self.each:
            scene.carry_out(kind, **arguments)
        assert scene.wire.written == {right_of(c): {*f} for c, f in self.writes.items()}
        scene.stage.until(lambda: self.done(scene))


def _cordoned(scene: Scene) -> None:
    scene.carry_out(actions.Cordon)
    # The node controller adds a taint of its own to what is cordoned; it must not spoil ours.
    scene.stage.until(lambda: len(scene.node.taints) == 2)


def _released(scene: Scene) -> None:
    scene.run_web()
    scene.carry_out(actions.Release, do_not_disrupt="300s")
    scene.stage.until(lambda: scene.serve(3))


def _guarded(scene: Scene) -> None:
    """A budget of ours whose workload is gone."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "plimsoll-deployment-gone", "labels": {GUARD: "true"}},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "gone"}}},
    }
    scene.stage.create(scene.budgets, budget)


def _annotated(key: str, *each: Mapping[str, object]) -> Row:
    return Row({PATCH_POD: {f"annotation {key}"}}, each, given=Scene.run_web)


CORDON: Final = {"spec.unschedulable", f"taint {INTERRUPTION}", f"annotation {INTERRUPTION}"}
RECORD: Final = {PATCH_NODE: {f"annotation {INTERRUPTION}"}}
PROTECTION: Final = {f"annotation {DO_NOT_DISRUPT}", f"annotation {PROTECTED}"}
RELEASE: Final = {
    f"label {POD_TEMPLATE_HASH}",
    f"annotation {RELEASED}",
    "metadata.ownerReferences",
}
LABELS: Final = {f"{SPREAD_PREFIX}1": "spot-1", CAPACITY_LABELS[0]: "spot"}
MOVE: Final = "1 2026-11-22T12:00:00Z on-demand"

ACTIONS: Final[Mapping[type[Action], Row]] = {
    actions.Cordon: Row({PATCH_NODE: CORDON}),
    actions.Uncordon: Row({PATCH_NODE: CORDON}, given=_cordoned),
    actions.LabelNode: Row(
        {PATCH_NODE: {f"label {key}" for key in LABELS}}, each=({"labels": LABELS},)
    ),
    actions.Exclude: Row(
        {PATCH_NODE: {f"label {EXCLUDED}"}}, each=({"excluded": True}, {"excluded": False})
    ),
    actions.TaintNode: Row(
        {PATCH_NODE: {f"taint {ZONAL_SHIFT}"}}, each=({"tainted": True}, {"tainted": False})
    ),
    actions.OutOfService: Row(
        {PATCH_NODE: {f"taint {OUT_OF_SERVICE.key}"}}, given=lambda s: s.stage.lose(s.node.name)
    ),
    actions.Record: Row(RECORD),
    actions.Heartbeat: Row(RECORD, done=lambda s: bool(s.aws.beaten)),
    actions.CompleteLifecycle: Row(RECORD, done=lambda s: bool(s.aws.completed)),
    actions.TerminateInstance: Row(RECORD, done=lambda s: bool(s.aws.renewed)),
    actions.Grow: Row(
        {}, each=({"add": 1, "zone": None, "token": "token"},), done=lambda s: bool(s.aws.asked)
    ),
    actions.SetDeletionCost: _annotated(DELETION_COST, {"cost": "1000"}),
    actions.MarkMoved: _annotated(MOVED, {"moved": MOVE}),
    actions.TellDeadline: _annotated(
        DEADLINE, {"deadline": "2026-11-22T12:00:00Z"}, {"deadline": None}
    ),
    actions.DoNotDisrupt: Row(
        {PATCH_POD: PROTECTION}, each=({"duration": None}, {"duration": "301s"}), given=_released
    ),
    actions.Release: Row(
        {PATCH_POD: RELEASE},
        given=Scene.run_web,
        done=lambda s: s.serve(3) and s.pod.serving,  # its replacement beside it
    ),
    actions.UndoRelease: Row(
        {PATCH_POD: RELEASE | PROTECTION}, given=_released, done=lambda s: s.serve(2)
    ),
    actions.Evict: Row({EVICT: set()}, given=Scene.run_web, done=Scene.is_gone),
    actions.ForceDelete: Row({DELETE_POD: set()}, given=Scene.run_web, done=Scene.is_gone),
    actions.InjectFloors: Row(
        {PATCH_FLOORS: {"data deployment.web"}},
        each=({"entries": {"deployment.web": "2"}},),
        given=lambda s: s.stage.create(s.floors, {"metadata": {"name": FLOORS}}),
    ),
    actions.Guard: Row(
        {CREATE_BUDGET: set()},
        each=({"name": "plimsoll-deployment-web"},),
        given=Scene.run_web,
        done=lambda s: s.budgets_there()[0]["spec"]["maxUnavailable"] == 0,
    ),
    actions.Unguard: Row(
        {DELETE_BUDGET: set()}, given=_guarded, done=lambda s: not s.budgets_there()
    ),
}
"""Every action, with all that it writes in a cluster."""
