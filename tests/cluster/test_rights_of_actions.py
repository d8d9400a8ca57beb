"""Everything that Plimsoll does passes: its own code, with its own rights, on a real API server.

Each action is carried out once by the executor. One that is added must be added here, so one that
`infra/cluster` forbids cannot go unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.api import OUT_OF_SERVICE
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.actions import (
    Action,
    CompleteLifecycle,
    Cordon,
    DoNotDisrupt,
    Evict,
    Exclude,
    ForceDelete,
    Grow,
    Guard,
    Heartbeat,
    InjectFloors,
    LabelNode,
    MarkMoved,
    OutOfService,
    Plan,
    Record,
    Release,
    SetDeletionCost,
    Step,
    TaintNode,
    TellDeadline,
    TerminateInstance,
    Uncordon,
    UndoRelease,
    Unguard,
)
from plimsoll.domain.errors import Conflict
from plimsoll.domain.interruptions import Interruption, LifecycleHook, NoticeRecord
from plimsoll.domain.kubernetes import (
    DEADLINE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    EXCLUDED,
    EXCLUDED_BY_US,
    FLOORS,
    GUARD,
    INTERRUPTION,
    MOVED,
    SPREAD_PREFIX,
    Node,
    Pod,
    Ref,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.zones import has_shift_taint
from plimsoll.services.executor import ActionResult, Executor, Writers
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.support.builders import a_group
from tests.support.fake_clusters import a_budget, a_deployment
from tests.support.workload_sets import Aws, Telemetry

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

WHY = "a test says so"


@dataclass
class Situation:
    """A small cluster under way, and our hands on it."""

    ground: Ground
    api: KubernetesCluster
    workers: ThreadWorkers
    aws: Aws = field(default_factory=Aws)

    def observed(self) -> Observation:
        return self.api.observe()

    @property
    def node(self) -> Node:
        return next(n for n in self.api.nodes() if n.name == f"{self.ground.name}-a")

    def run_web(self) -> None:
        """Let a Deployment of two pods run."""
        self.ground.apply(a_deployment("web", 2))
        self.ground.until(lambda: len(self.ground.serving("web")) == 2)

    def workload(self) -> Workload:
        return self.observed().workload[Ref("Deployment", self.ground.name, "web")]

    @property
    def pod(self) -> Pod:
        pods = (p for p in self.observed().pods if p.namespace == self.ground.name)
        return min((p for p in pods if p.labels["app"] == "web"), key=lambda p: p.name)

    def named(self, name: str) -> Pod:
        return next(p for p in self.observed().pods if p.name == name)

    def interruption(self) -> Interruption:
        notices = [NoticeRecord(kind="spot-interruption", time=datetime.now(UTC), id="event")]
        return Interruption(
            instance=self.node.instance or "",
            launched=None,
            node=self.node.name,
            notices=tuple(notices),
        )

    def carry_out(self, action: Callable[[], Action]) -> None:
        """Let the executor do it, from a fresh look where a controller was quicker."""
        writers = Writers(cluster=self.api, capacity=self.aws)
        executor = Executor(writers=writers, workers=self.workers, telemetry=Telemetry())

        def attempt() -> ActionResult | None:
            plan = Plan(steps=(Step(action=action(), nodes=frozenset()),))
            (outcome,) = executor.carry_out(plan)
            return None if isinstance(outcome.error, Conflict) else outcome

        outcome = self.ground.until(attempt)
        assert outcome is not None
        assert outcome.error is None
        assert outcome.done
        told = set(executor.noted)
        executor.create_events()
        events = self.ground.get("/api/v1/events")["items"]
        assert told <= {event["metadata"]["name"] for event in events}

    def stored_pod(self, name: str) -> Json | None:
        return self.ground.pod(name)

    def stored_node(self) -> Json:
        return self.ground.get(f"/api/v1/nodes/{self.ground.name}-a")


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadWorkers]:
    threads = ThreadWorkers()
    yield threads
    threads.close()


@pytest.fixture
def scene(guarded: ControlPlane, ground: Ground, workers: ThreadWorkers) -> Situation:
    ground.nodes("a")
    api = KubernetesCluster(
        guarded.transport("plimsoll"), ground.name, SystemClock(), workers=workers
    )
    return Situation(ground, api, workers)


type Make = Callable[[], Action]
"""The action, from a fresh look."""
type Look = Callable[[], bool]
"""Whether the action had its effect."""


def cordon(scene: Situation) -> tuple[Make, Look]:
    def action() -> Action:
        return Cordon(node=scene.node, interruption=scene.interruption(), reason=WHY)

    return action, lambda: scene.node.unschedulable and scene.node.interruption is not None


def uncordon(scene: Situation) -> tuple[Make, Look]:
    scene.carry_out(cordon(scene)[0])
    # The node controller adds a taint of its own to what is cordoned; it must not spoil ours.
    scene.ground.until(lambda: len(scene.node.taints) == 2)

    def action() -> Action:
        return Uncordon(node=scene.node, reason=WHY)

    return action, lambda: not scene.node.unschedulable and scene.node.interruption is None


def label(scene: Situation) -> tuple[Make, Look]:
    def action() -> Action:
        return LabelNode(node=scene.node, labels={f"{SPREAD_PREFIX}1": "spot-1"}, reason=WHY)

    return (
        action,
        lambda: scene.stored_node()["metadata"]["labels"].get(f"{SPREAD_PREFIX}1") == "spot-1",
    )


def taint(scene: Situation) -> tuple[Make, Look]:
    scene.carry_out(lambda: TaintNode(node=scene.node, reason=WHY))
    assert has_shift_taint(scene.node)

    def action() -> Action:
        return TaintNode(node=scene.node, tainted=False, reason=WHY)

    return action, lambda: not has_shift_taint(scene.node)


def exclude(scene: Situation) -> tuple[Make, Look]:
    scene.carry_out(lambda: Exclude(node=scene.node, reason=WHY))
    assert scene.node.labels[EXCLUDED] == EXCLUDED_BY_US

    def action() -> Action:
        return Exclude(node=scene.node, excluded=False, reason=WHY)

    return action, lambda: EXCLUDED not in scene.node.labels


def set_deletion_cost(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    name = scene.pod.name

    def action() -> Action:
        return SetDeletionCost(pod=scene.named(name), cost="1000", reason=WHY)

    return action, lambda: scene.named(name).annotations.get(DELETION_COST) == "1000"


def mark_moved(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    name = scene.pod.name
    mark = "1 2026-11-22T12:00:00Z on-demand"

    def action() -> Action:
        return MarkMoved(pod=scene.named(name), moved=mark, reason=WHY)

    return action, lambda: scene.named(name).annotations.get(MOVED) == mark


def tell_deadline(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    name = scene.pod.name

    def tell(deadline: str | None) -> Action:
        return TellDeadline(pod=scene.named(name), deadline=deadline, reason=WHY)

    scene.carry_out(lambda: tell("2026-11-22T12:00:00Z"))
    assert scene.named(name).annotations[DEADLINE] == "2026-11-22T12:00:00Z"
    return lambda: tell(None), lambda: DEADLINE not in scene.named(name).annotations


def do_not_disrupt(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    name = scene.pod.name
    scene.carry_out(
        lambda: Release(
            pod=scene.named(name),
            replica_set=scene.observed().current[scene.workload().ref],
            interruption="i-1@noon",
            reason=WHY,
            do_not_disrupt="300s",
        )
    )
    assert scene.named(name).annotations[DO_NOT_DISRUPT] == "300s"
    scene.carry_out(lambda: DoNotDisrupt(pod=scene.named(name), duration=None, reason=WHY))
    assert DO_NOT_DISRUPT not in scene.named(name).annotations

    def action() -> Action:
        return DoNotDisrupt(pod=scene.named(name), duration="301s", reason=WHY)

    return action, lambda: scene.named(name).annotations.get(DO_NOT_DISRUPT) == "301s"


def inject_floors(scene: Situation) -> tuple[Make, Look]:
    path = f"/api/v1/namespaces/{scene.ground.name}/configmaps"
    scene.ground.create(path, {"metadata": {"name": FLOORS}})

    def action() -> Action:
        return InjectFloors(
            namespace=scene.ground.name, entries={"deployment.web": "2"}, reason=WHY
        )

    return action, lambda: "deployment.web" in scene.ground.get(f"{path}/{FLOORS}").get("data", {})


BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


def guard(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    path = f"{BUDGETS.format(scene.ground.name)}/plimsoll-deployment-web"

    def action() -> Action:
        return Guard(workload=scene.workload(), name="plimsoll-deployment-web", reason=WHY)

    return action, lambda: scene.ground.get(path)["spec"]["maxUnavailable"] == 0


def unguard(scene: Situation) -> tuple[Make, Look]:
    path = BUDGETS.format(scene.ground.name)
    selector = {"matchLabels": {"app": "gone"}}
    metadata = {"name": "plimsoll-deployment-gone", "labels": {GUARD: "true"}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"maxUnavailable": 0, "selector": selector},
    }
    scene.ground.create(path, budget)

    def action() -> Action:
        (ours,) = (b for b in scene.observed().budgets if b.ref.namespace == scene.ground.name)
        return Unguard(budget=ours, reason=WHY)

    return action, lambda: not scene.ground.get(path)["items"]


def record(scene: Situation) -> tuple[Make, Look]:
    def action() -> Action:
        return Record(node=scene.node, interruption=scene.interruption(), reason=WHY)

    return action, lambda: INTERRUPTION in scene.stored_node()["metadata"]["annotations"]


def out_of_service(scene: Situation) -> tuple[Make, Look]:
    scene.ground.lose(scene.node.name)

    def action() -> Action:
        return OutOfService(node=scene.node, reason=WHY)

    return action, lambda: OUT_OF_SERVICE in scene.node.taints


HOOK = LifecycleHook(
    group="base", name="hook", timeout=timedelta(minutes=5), longest=timedelta(hours=8), ours=True
)


def heartbeat(scene: Situation) -> tuple[Make, Look]:
    interrupted = scene.interruption()

    def action() -> Action:
        return Heartbeat(node=scene.node, interruption=interrupted, hooks=(HOOK,), reason=WHY)

    return action, lambda: bool(scene.aws.beaten) and scene.node.interruption == interrupted


def complete(scene: Situation) -> tuple[Make, Look]:
    interrupted = scene.interruption()

    def action() -> Action:
        return CompleteLifecycle(
            node=scene.node, interruption=interrupted, hooks=(HOOK,), reason=WHY
        )

    return action, lambda: bool(scene.aws.completed) and scene.node.interruption == interrupted


def terminate(scene: Situation) -> tuple[Make, Look]:
    interrupted = scene.interruption()

    def action() -> Action:
        return TerminateInstance(node=scene.node, interruption=interrupted, reason=WHY)

    return action, lambda: bool(scene.aws.renewed) and scene.node.interruption == interrupted


def grow(scene: Situation) -> tuple[Make, Look]:
    scene.aws.groups = [a_group("base")]

    def action() -> Action:
        return Grow(group=a_group("base"), add=1, zone=None, token="token", reason=WHY)

    return action, lambda: bool(scene.aws.asked)


def release(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    before = scene.pod

    def action() -> Action:
        return Release(
            pod=scene.named(before.name),
            replica_set=scene.observed().current[scene.workload().ref],
            interruption="i-1@noon",
            reason=WHY,
        )

    def replaced() -> bool:
        return len(scene.ground.serving("web")) == 3 and scene.named(before.name).serving

    return action, replaced


def undo_release(scene: Situation) -> tuple[Make, Look]:
    make, replaced = release(scene)
    scene.carry_out(make)
    scene.ground.until(replaced)
    name = next(
        p.name for p in scene.observed().pods if p.released and p.namespace == scene.ground.name
    )

    def action() -> Action:
        seen = scene.observed()
        current = seen.current[scene.workload().ref]
        return UndoRelease(pod=scene.named(name), replica_set=current, reason=WHY)

    return action, lambda: len(scene.ground.serving("web")) == 2


def evict(scene: Situation, **how: Any) -> tuple[Make, Look]:
    scene.run_web()
    evictable = scene.pod

    def action() -> Action:
        return Evict(pod=evictable, reason=WHY, **how)

    return action, lambda: scene.stored_pod(evictable.name) is None


def force_delete(scene: Situation) -> tuple[Make, Look]:
    scene.run_web()
    evictable = scene.pod
    return lambda: ForceDelete(
        pod=evictable, reason=WHY
    ), lambda: scene.stored_pod(evictable.name) is None


SCENES: dict[type, Callable[[Situation], tuple[Make, Look]]] = {
    Cordon: cordon,
    Uncordon: uncordon,
    LabelNode: label,
    Exclude: exclude,
    TaintNode: taint,
    SetDeletionCost: set_deletion_cost,
    MarkMoved: mark_moved,
    DoNotDisrupt: do_not_disrupt,
    TellDeadline: tell_deadline,
    InjectFloors: inject_floors,
    Guard: guard,
    Unguard: unguard,
    Record: record,
    OutOfService: out_of_service,
    Heartbeat: heartbeat,
    CompleteLifecycle: complete,
    TerminateInstance: terminate,
    Grow: grow,
    Release: release,
    UndoRelease: undo_release,
    Evict: evict,
    ForceDelete: force_delete,
}


def test_every_action_is_tried() -> None:
    assert set(SCENES) == set(get_args(Action.__value__))


@pytest.mark.parametrize("kind", SCENES, ids=lambda kind: kind.__name__)
def test_what_the_product_does_is_let_through(scene: Situation, kind: type) -> None:
    action, done = SCENES[kind](scene)
    scene.carry_out(action)
    scene.ground.until(done)


def test_a_budget_can_be_overruled_with_less_grace(scene: Situation) -> None:
    scene.ground.apply(a_budget("web", "web", minAvailable=2))
    action, gone = evict(scene, overrule=True, grace_seconds=1)
    budget = Ref("PodDisruptionBudget", scene.ground.name, "web")

    def spent() -> bool:
        (seen,) = (b for b in scene.observed().budgets if b.ref == budget)
        return seen.disruptions_allowed == 0

    scene.ground.until(spent)
    scene.carry_out(action)
    scene.ground.until(gone)


def test_a_taint_of_others_survives_a_cordon_and_its_end(scene: Situation) -> None:
    """Also one that evicts, whose time the API server adds and we do not write back."""
    theirs = {"key": "theirs", "value": "1", "effect": "NoExecute"}
    path = f"/api/v1/nodes/{scene.node.name}"
    aged = {**theirs, "timeAdded": "2026-01-01T00:00:00Z"}
    answer = scene.ground.call(
        "PATCH", path, {"spec": {"taints": [aged]}}, "application/merge-patch+json"
    )
    assert answer.status == 200
    scene.carry_out(cordon(scene)[0])
    scene.carry_out(lambda: Uncordon(node=scene.node, reason=WHY))
    left = [t for t in scene.stored_node()["spec"]["taints"] if t["key"] == "theirs"]
    assert [without_time(t) for t in left] == [theirs]


def without_time(taint: Json) -> Json:
    return {key: value for key, value in taint.items() if key != "timeAdded"}


def test_the_lease_is_made_renewed_and_given_back(scene: Situation) -> None:
    api = scene.api
    assert api.acquire("one", 20)
    assert api.acquire("one", 20)
    assert not api.acquire("two", 20)
    api.release_lease("one")
    assert api.acquire("two", 20)
    api.release_lease("two")


def test_all_that_a_plan_needs_is_read(scene: Situation) -> None:
    scene.run_web()
    assert scene.api.node(scene.node.name) is not None
    assert scene.workload().replicas == 2
    assert scene.pod.serving
