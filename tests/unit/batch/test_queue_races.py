"""Others create pods while gangs start: what that costs, and that no gang stays in pieces."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from tests.support.fake_clusters import Json
from tests.support.queue_scenes import Scene, a_job, a_training, killed_at_each_write

GANGS = ("g0", "g1")
STEP = 0.2
CYCLE_STEPS = 5
STEPS = 1000


def a_foreign_job(number: int, run: str) -> Json:
    """A Job of one pod that names no queue and is not suspended."""
    meta = {"name": f"f{number}", "namespace": "lab"}
    return {**a_job(f"f{number}", run=run, suspend=False), "metadata": meta}


def bound(scene: Scene, gang: str, dead: Collection[str] = ()) -> int:
    """How many of its pods have a place on a node that lives."""
    pods = scene.pods_of(f"{gang}-ps", f"{gang}-workers")
    return sum(pod["spec"].get("nodeName") not in {None, *dead} for pod in pods)


def complete(scene: Scene, gang: str) -> bool:
    return all(scene.complete(f"{gang}-{role}") for role in ("ps", "workers"))


def played(
    scene: Scene, befall: Callable[[int], None], dead: Collection[str] = ()
) -> tuple[float, float]:
    """Play two gangs and what befalls them until both are complete.

    Returns:
        Seconds until then, and place-seconds of gangs of which some pods are not bound.
    """
    for gang in GANGS:
        scene.submit(*a_training(gang, run="20s", annotations={"plimsoll.dev/start-seconds": "10"}))
    partial = 0.0
    for step in range(STEPS):
        befall(step)
        if step % CYCLE_STEPS == 0:
            scene.run(0)
        scene.clock.sleep(STEP)
        left = [gang for gang in GANGS if not complete(scene, gang)]
        started = [gang for gang in left if 0 < bound(scene, gang, dead) < 6]
        begun = [g for g in started if not scene.job(f"{g}-ps")["status"].get("succeeded")]
        partial += STEP * sum(bound(scene, gang, dead) for gang in begun)
        if not left:
            return step * STEP, partial
    pytest.fail("both gangs complete")


@pytest.mark.parametrize(
    ("per_second", "run", "most_partial", "most_seconds"),
    [(0, "", 0.5, 25), (1, "3s", 20, 30), (5, "400ms", 20, 30)],
    ids=["nobody", "one a second", "five a second"],
)
def test_pods_of_others_delay_a_gang_and_it_still_starts_whole(
    per_second, run, most_partial, most_seconds
):
    scene = Scene(nodes=12, pod_stop=1, pod_startup=0.2)

    def befall(step: int) -> None:
        if per_second and step % int(1 / STEP / per_second) == 0:
            scene.play.apply(a_foreign_job(step, run))

    ended, partial = played(scene, befall)
    assert ended <= most_seconds
    assert partial <= most_partial


def test_a_node_that_dies_while_gangs_start_delays_one_and_leaves_none_in_pieces():
    """What is left of that gang makes way after its start-seconds; its dead pod stays until Kubernetes forgets the node."""
    scene = Scene(nodes=12, pod_stop=1, pod_startup=0.2)
    dead: list[str] = []

    def befall(_: int) -> None:
        pods = [pod for gang in GANGS for pod in scene.pods_of(f"{gang}-ps", f"{gang}-workers")]
        if not dead and (names := [p["spec"]["nodeName"] for p in pods if "nodeName" in p["spec"]]):
            dead.append(names[0])
            scene.play.cluster.vanish(names[0], now=scene.clock.now())

    ended, partial = played(scene, befall, dead)
    assert dead
    assert ended <= 125
    assert partial <= 55


def test_a_planner_killed_after_any_write_is_carried_on_once_its_lease_has_run_out():
    """Another comes up each second. What the first wrote of a gang waits meanwhile, in pieces at worst."""
    found: list[tuple[float, float]] = []

    def tell(scene: Scene) -> None:
        found.append(played(scene, lambda _: None))

    def make() -> Scene:
        return Scene(nodes=12, pod_stop=1, pod_startup=0.2)

    killed = [where for where, _ in killed_at_each_write(make, tell, after=True)]
    unhurt, *hurt = found
    assert len(hurt) == len(killed) > 8
    delays = [ended - unhurt[0] for ended, _ in hurt]
    assert 10 <= max(delays) <= 11.1
    assert unhurt[1] == 0
    assert max(partial for _, partial in hurt) <= 20.1
