"""What Plimsoll does in a cluster, row by row: action, calls, and the fields that they write.

The rights and the fields of the manifests are held to these rows: by their text in `tests/contract/test_rights.py`,
and by a real API server in `tests/cluster/test_rights_of_actions.py`. Add a row with an action.
"""

from __future__ import annotations

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

WHY: Final = "a test says so"
HOOK: Final = LifecycleHook(
    group="base", name="hook", timeout=timedelta(minutes=5), longest=timedelta(hours=8), ours=True
)
CORDON: Final = "spec.unschedulable"
RELEASE: Final = frozenset(
    {f"label {POD_TEMPLATE_HASH}", f"annotation {RELEASED}", "metadata.ownerReferences"}
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

    def budget(self) -> Json:
        (found,) = self.stage.get(self.budgets)["items"]
        return dict(found)

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

    def release(self, do_not_disrupt: str | None = None) -> Action:
        return actions.Release(
            pod=self.pod,
            replica_set=self.observed().current[self.web.ref],
            interruption="i-1@noon",
            reason=WHY,
            do_not_disrupt=do_not_disrupt,
        )

    def carry_out(self, action: Callable[[], Action]) -> None:
        """Let the executor do it, from a fresh look where a controller was quicker."""
        writers = Writers(cluster=self.api, capacity=self.aws)
        executor = Executor(writers=writers, workers=self._workers, telemetry=Telemetry())

        def attempt() -> ActionResult | None:
            plan = Plan(steps=(Step(action=action(), nodes=frozenset()),))
            (outcome,) = executor.carry_out(plan)
            return None if isinstance(outcome.error, Conflict) else outcome

        outcome = self.stage.until(attempt)
        assert outcome is not None
        assert outcome.error is None
        assert outcome.done
        told = set(executor.noted)
        executor.create_events()
        events = self.stage.get("/api/v1/events")["items"]
        assert told <= {event["metadata"]["name"] for event in events}


type Make = Callable[[Scene], Action]


@dataclass(frozen=True)
class Row:
    """An action, which is made once or several times in turn, each time from a fresh look."""

    make: tuple[Make, ...]
    writes: Mapping[Call, AbstractSet[str]]
    """The calls that write, and the fields that they change; an Event may follow each."""
    given: Callable[[Scene], object] = lambda _: None
    done: Callable[[Scene], bool] = lambda _: True
    """What must be so in the end, besides the fields."""

    def play(self, scene: Scene) -> None:
        self.given(scene)
        scene.wire.written.clear()
        for make in self.make:
            scene.carry_out(lambda make=make: make(scene))  # type: ignore[misc] # bound here and now
        assert scene.wire.written == {right_of(c): {*f} for c, f in self.writes.items()}
        scene.stage.until(lambda: self.done(scene))


def cordon(scene: Scene) -> Action:
    return actions.Cordon(node=scene.node, interruption=scene.interruption(), reason=WHY)


def _cordoned(scene: Scene) -> None:
    scene.carry_out(lambda: cordon(scene))
    # The node controller adds a taint of its own to what is cordoned; it must not spoil ours.
    scene.stage.until(lambda: len(scene.node.taints) == 2)


def _released(do_not_disrupt: str | None = None) -> Callable[[Scene], None]:
    def given(scene: Scene) -> None:
        scene.run_web()
        scene.carry_out(lambda: scene.release(do_not_disrupt))
        scene.stage.until(lambda: scene.serve(3))

    return given


def _guarded(scene: Scene) -> None:
    """A budget of ours whose workload is gone."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "plimsoll-deployment-gone", "labels": {GUARD: "true"}},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "gone"}}},
    }
    scene.stage.create(scene.budgets, budget)


def _unguard(scene: Scene) -> Action:
    (ours,) = (b for b in scene.observed().budgets if b.ref.namespace == scene.stage.name)
    return actions.Unguard(budget=ours, reason=WHY)


def _recorded(make: Callable[[Node, Interruption], Action], **more: Any) -> Row:
    """An action whose one write is the record of its Node."""
    return Row(
        make=(lambda s: make(s.node, s.interruption()),),
        writes={PATCH_NODE: {f"annotation {INTERRUPTION}"}},
        **more,
    )


def _annotated(key: str, *make: Make) -> Row:
    """An action whose one write is an annotation of a pod."""
    return Row(make=make, writes={PATCH_POD: {f"annotation {key}"}}, given=Scene.run_web)


ACTIONS: Final[Mapping[type[Action], Row]] = {
    actions.Cordon: Row(
        make=(cordon,),
        writes={PATCH_NODE: {CORDON, f"taint {INTERRUPTION}", f"annotation {INTERRUPTION}"}},
    ),
    actions.Uncordon: Row(
        given=_cordoned,
        make=(lambda s: actions.Uncordon(node=s.node, reason=WHY),),
        writes={PATCH_NODE: {CORDON, f"taint {INTERRUPTION}", f"annotation {INTERRUPTION}"}},
    ),
    actions.LabelNode: Row(
        make=(
            lambda s: actions.LabelNode(
                node=s.node,
                labels={f"{SPREAD_PREFIX}1": "spot-1", CAPACITY_LABELS[0]: "spot"},
                reason=WHY,
            ),
        ),
        writes={PATCH_NODE: {f"label {SPREAD_PREFIX}1", f"label {CAPACITY_LABELS[0]}"}},
    ),
    actions.Exclude: Row(
        make=(
            lambda s: actions.Exclude(node=s.node, reason=WHY),
            lambda s: actions.Exclude(node=s.node, excluded=False, reason=WHY),
        ),
        writes={PATCH_NODE: {f"label {EXCLUDED}"}},
    ),
    actions.TaintNode: Row(
        make=(
            lambda s: actions.TaintNode(node=s.node, reason=WHY),
            lambda s: actions.TaintNode(node=s.node, tainted=False, reason=WHY),
        ),
        writes={PATCH_NODE: {f"taint {ZONAL_SHIFT}"}},
    ),
    actions.OutOfService: Row(
        given=lambda s: s.stage.lose(s.node.name),
        make=(lambda s: actions.OutOfService(node=s.node, reason=WHY),),
        writes={PATCH_NODE: {f"taint {OUT_OF_SERVICE.key}"}},
    ),
    actions.Record: _recorded(lambda n, i: actions.Record(node=n, interruption=i, reason=WHY)),
    actions.Heartbeat: _recorded(
        lambda n, i: actions.Heartbeat(node=n, interruption=i, hooks=(HOOK,), reason=WHY),
        done=lambda s: bool(s.aws.beaten),
    ),
    actions.CompleteLifecycle: _recorded(
        lambda n, i: actions.CompleteLifecycle(node=n, interruption=i, hooks=(HOOK,), reason=WHY),
        done=lambda s: bool(s.aws.completed),
    ),
    actions.TerminateInstance: _recorded(
        lambda n, i: actions.TerminateInstance(node=n, interruption=i, reason=WHY),
        done=lambda s: bool(s.aws.renewed),
    ),
    actions.Grow: Row(
        make=(
            lambda s: actions.Grow(
                group=a_group("base"), add=1, zone=None, token="token", reason=WHY
            ),
        ),
        writes={},
        done=lambda s: bool(s.aws.asked),
    ),
    actions.SetDeletionCost: _annotated(
        DELETION_COST, lambda s: actions.SetDeletionCost(pod=s.pod, cost="1000", reason=WHY)
    ),
    actions.MarkMoved: _annotated(
        MOVED,
        lambda s: actions.MarkMoved(
            pod=s.pod, moved="1 2026-11-22T12:00:00Z on-demand", reason=WHY
        ),
    ),
    actions.TellDeadline: _annotated(
        DEADLINE,
        lambda s: actions.TellDeadline(pod=s.pod, deadline="2026-11-22T12:00:00Z", reason=WHY),
        lambda s: actions.TellDeadline(pod=s.pod, deadline=None, reason=WHY),
    ),
    actions.DoNotDisrupt: Row(
        given=_released("300s"),
        make=(
            lambda s: actions.DoNotDisrupt(pod=s.pod, duration=None, reason=WHY),
            lambda s: actions.DoNotDisrupt(pod=s.pod, duration="301s", reason=WHY),
        ),
        writes={PATCH_POD: {f"annotation {DO_NOT_DISRUPT}", f"annotation {PROTECTED}"}},
    ),
    actions.Release: Row(
        given=Scene.run_web,
        make=(lambda s: s.release(),),
        writes={PATCH_POD: RELEASE},
        done=lambda s: s.serve(3) and s.pod.serving,  # its replacement beside it
    ),
    actions.UndoRelease: Row(
        given=_released(),
        make=(
            lambda s: actions.UndoRelease(
                pod=s.pod, replica_set=s.observed().current[s.web.ref], reason=WHY
            ),
        ),
        writes={PATCH_POD: RELEASE},
        done=lambda s: s.serve(2),
    ),
    actions.Evict: Row(
        given=Scene.run_web,
        make=(lambda s: actions.Evict(pod=s.pod, reason=WHY),),
        writes={EVICT: set()},
        done=Scene.is_gone,
    ),
    actions.ForceDelete: Row(
        given=Scene.run_web,
        make=(lambda s: actions.ForceDelete(pod=s.pod, reason=WHY),),
        writes={DELETE_POD: set()},
        done=Scene.is_gone,
    ),
    actions.InjectFloors: Row(
        given=lambda s: s.stage.create(s.floors, {"metadata": {"name": FLOORS}}),
        make=(
            lambda s: actions.InjectFloors(
                namespace=s.stage.name, entries={"deployment.web": "2"}, reason=WHY
            ),
        ),
        writes={PATCH_FLOORS: {"data deployment.web"}},
    ),
    actions.Guard: Row(
        given=Scene.run_web,
        make=(lambda s: actions.Guard(workload=s.web, name="plimsoll-deployment-web", reason=WHY),),
        writes={CREATE_BUDGET: set()},
        done=lambda s: s.budget()["spec"]["maxUnavailable"] == 0,
    ),
    actions.Unguard: Row(
        given=_guarded,
        make=(_unguard,),
        writes={DELETE_BUDGET: set()},
        done=lambda s: not s.stage.get(s.budgets)["items"],
    ),
}
"""Every action, with all that it writes in a cluster."""
