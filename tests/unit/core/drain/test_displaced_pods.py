"""A replacement that took the place of a workload which now serves nowhere: its release is undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Release, UndoRelease
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.observation import Observation
from tests.support.builders import NOON, a_deployment, a_node, a_pod, a_stateful_set, pods_of
from tests.support.observations import actions, interrupted, looked, noon, released, sets_of

OLD = released(a_pod("web-0", node="spot", cpu="1"))
NEW = replace(a_pod("web-8", node="od", cpu="1", ready=False), created=noon(1))
"""Its replacement came to the node from which a rollout took the StatefulSet's pod."""
BACK = a_pod("web-0", node="spot", cpu="1")
"""The same pod once its release is undone."""
WAITS = replace(sets_of("db", [None], cpu="1")[0], created=noon(40))


def seen_with(*pods: Pod, replicas: int = 1) -> Observation:
    """Return an observation of nodes `spot` (interrupted at noon) and `od`, with room for one of the pods."""
    nodes = [interrupted("spot"), a_node("od", cpu="1")]
    known = looked(
        nodes,
        [*pods, *pods_of("web", 1)],
        [a_deployment(replicas=replicas), a_stateful_set("db", replicas=1)],
    )
    return replace(known, pods=list(pods))


def test_the_release_is_undone_while_there_is_time_for_another_replacement():
    plan = plan_drain(seen_with(OLD, NEW, WAITS), noon(41))

    (undone,) = actions(plan, UndoRelease)
    assert undone.pod == OLD
    assert undone.reason == "default/web-8 took the place of default/db-0"


@pytest.mark.parametrize(
    ("new", "waits", "now"),
    [
        (NEW, replace(WAITS, created=NOON), 41),
        (NEW, replace(WAITS, priority=-1), 41),
        (NEW, replace(sets_of("db", [None], cpu="2")[0], created=noon(40)), 41),
        (NEW, WAITS, 70),
        (replace(NEW, ready=True), WAITS, 41),
    ],
    ids=["waited before", "less important", "would not fit", "no time is left", "serves by now"],
)
def test_a_replacement_stays_where_it_took_nobody_s_place_or_must_serve_soon(new, waits, now):
    assert actions(plan_drain(seen_with(OLD, new, waits), noon(now)), UndoRelease) == []


def test_a_replacement_stays_where_another_pod_of_that_workload_serves():
    serving = replace(sets_of("db", ["elsewhere"])[0], name="db-1", uid="db-1")
    seen = seen_with(OLD, NEW, WAITS, serving)

    assert actions(plan_drain(seen, noon(41)), UndoRelease) == []


def test_a_replacement_stays_where_that_workload_stood_on_an_interrupted_node():
    """It waits because of the same storm: nobody took a place that it would have had without Plimsoll."""
    stops = replace(sets_of("db", ["spot"])[0], name="db-1", uid="db-1", deleting=noon(60))
    seen = seen_with(OLD, NEW, WAITS, stops)

    assert actions(plan_drain(seen, noon(41)), UndoRelease) == []


def test_a_replacement_stays_where_its_replica_set_could_delete_another_pod_in_its_stead():
    other = replace(a_pod("web-9", ready=False, cpu="1"), created=noon(1))
    seen = seen_with(OLD, NEW, other, WAITS, replicas=2)

    assert actions(plan_drain(seen, noon(41)), UndoRelease) == []


@pytest.mark.parametrize(
    "new",
    [NEW, replace(NEW, deleting=noon(60))],
    ids=["its ReplicaSet has not acted yet", "it stops"],
)
def test_the_pod_is_not_released_again_before_its_replacement_has_left_the_place(new):
    plan = plan_drain(seen_with(BACK, new, WAITS), noon(42))

    assert actions(plan, Release) == []
    assert "default/web-8 has left its place to default/db-0" in str(plan.waiting["spot"])


def test_the_pod_is_released_again_once_its_replacement_has_left_the_place():
    plan = plan_drain(seen_with(BACK, replace(WAITS, node="od")), noon(43))

    assert [a.pod for a in actions(plan, Release)] == [BACK]


def test_a_release_does_not_wait_for_a_pod_that_starts_and_nobody_deletes():
    seen = seen_with(BACK, replace(NEW, created=NOON), WAITS, replicas=2)

    assert [a.pod for a in actions(plan_drain(seen, noon(42)), Release)] == [BACK]
