"""Each row of `tests/rights/table.py` on a real API server: the executor, with our own rights, is let through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.actions import Action, Cordon, Evict, Uncordon
from plimsoll.domain.kubernetes import Ref
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.rights.table import ACTIONS, Scene
from tests.support.fake_clusters import a_budget

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadWorkers]:
    threads = ThreadWorkers()
    yield threads
    threads.close()


@pytest.fixture
def scene(guarded: ControlPlane, ground: Ground, workers: ThreadWorkers) -> Scene:
    ground.nodes("a")
    return Scene(ground, guarded.transport("plimsoll"), workers, SystemClock())


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_what_the_product_does_is_let_through(scene: Scene, kind: type[Action]) -> None:
    ACTIONS[kind].play(scene, kind)


def test_a_budget_can_be_overruled_with_less_grace(scene: Scene) -> None:
    scene.stage.apply(a_budget("web", "web", minAvailable=2))
    scene.run_web()
    budget = Ref("PodDisruptionBudget", scene.stage.name, "web")

    def spent() -> bool:
        (seen,) = (b for b in scene.observed().budgets if b.ref == budget)
        return seen.disruptions_allowed == 0

    scene.stage.until(spent)
    scene.carry_out(Evict, overrule=True, grace_seconds=1)
    scene.stage.until(scene.is_gone)


def test_a_taint_of_others_survives_a_cordon_and_its_end(scene: Scene, ground: Ground) -> None:
    """Also one that evicts, whose time the API server adds and we do not write back."""
    theirs = {"key": "theirs", "value": "1", "effect": "NoExecute"}
    path = f"/api/v1/nodes/{scene.node.name}"
    aged = {**theirs, "timeAdded": "2026-01-01T00:00:00Z"}
    answer = ground.call(
        "PATCH", path, {"spec": {"taints": [aged]}}, "application/merge-patch+json"
    )
    assert answer.status == 200
    scene.carry_out(Cordon)
    scene.carry_out(Uncordon)
    left = [t for t in ground.get(path)["spec"]["taints"] if t["key"] == "theirs"]
    assert [without_time(t) for t in left] == [theirs]


def without_time(taint: Json) -> Json:
    return {key: value for key, value in taint.items() if key != "timeAdded"}


def test_the_lease_is_made_renewed_and_given_back(scene: Scene) -> None:
    api = scene.api
    assert api.acquire("one", 20)
    assert api.acquire("one", 20)
    assert not api.acquire("two", 20)
    api.release_lease("one")
    assert api.acquire("two", 20)
    api.release_lease("two")


def test_all_that_a_plan_needs_is_read(scene: Scene) -> None:
    scene.run_web()
    assert scene.api.node(scene.node.name) is not None
    assert scene.web.replicas == 2
    assert scene.pod.serving
