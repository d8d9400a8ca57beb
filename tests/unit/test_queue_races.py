"""Others create pods while gangs start: what that costs, and that no gang stays in pieces."""

from __future__ import annotations

import pytest

from tests.support.hollows import Json
from tests.support.queue_scenes import Scene, a_job, a_training

GANGS = ("g0", "g1")
STEP = 0.2
CYCLE_STEPS = 5
STEPS = 600


def a_foreign_job(number: int, run: str) -> Json:
    """A Job of one pod that names no queue and is not suspended."""
    meta = {"name": f"f{number}", "namespace": "lab"}
    return {**a_job(f"f{number}", run=run, suspend=False), "metadata": meta}


def bound(scene: Scene, gang: str) -> int:
    pods = scene.pods_of(f"{gang}-ps", f"{gang}-workers")
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


def complete(scene: Scene, gang: str) -> bool:
    return all(scene.complete(f"{gang}-{role}") for role in ("ps", "workers"))


@pytest.mark.parametrize(
    ("per_second", "run", "most_partial", "most_seconds"),
    [(0, "", 0.5, 25), (1, "3s", 20, 30), (5, "400ms", 20, 30)],
    ids=["nobody", "one a second", "five a second"],
)
def test_pods_of_others_delay_a_gang_and_it_still_starts_whole(
    per_second, run, most_partial, most_seconds
):
    """Two gangs on twelve places; place-seconds of gangs of which some pods are not bound are counted."""
    scene = Scene(nodes=12, pod_stop=1, pod_startup=0.2)
    for gang in GANGS:
        scene.submit(*a_training(gang, run="20s", annotations={"plimsoll.dev/start-seconds": "10"}))
    partial, ended = 0.0, 0.0
    for step in range(STEPS):
        if per_second and step % int(1 / STEP / per_second) == 0:
            scene.play.apply(a_foreign_job(step, run))
        if step % CYCLE_STEPS == 0:
            scene.run(0)
        scene.clock.sleep(STEP)
        left = [gang for gang in GANGS if not complete(scene, gang)]
        started = [gang for gang in left if 0 < bound(scene, gang) < 6]
        begun = [g for g in started if not scene.job(f"{g}-ps")["status"].get("succeeded")]
        partial += STEP * sum(bound(scene, gang) for gang in begun)
        if not left:
            ended = step * STEP
            break
    assert ended, "both gangs complete"
    assert ended <= most_seconds
    assert partial <= most_partial
