"""Karpenter leaves a pod to Plimsoll until its eviction deadline, and no longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import DoNotDisrupt, Evict, Release, UndoRelease
from plimsoll.domain.disruptions import disruptions_of
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.do_not_disrupt import do_not_disrupt
from plimsoll.domain.kubernetes import (
    DO_NOT_DISRUPT,
    IGNORE,
    NODE_POOL,
    PROTECTED,
    RELEASED,
    Pod,
    protection,
)
from plimsoll.domain.observation import InterruptedNodes, Observation
from tests.support.builders import NOON, a_deployment, a_node, a_pod, a_stateful_set, pods_of
from tests.support.observations import actions, interrupted, looked, noon, released, sets_of

POOL = {NODE_POOL: "spot"}
AN_HOUR_OLD = NOON - timedelta(hours=1)
AT_ITS_DEADLINE = "3688s"
"""Its age 118 s after noon, when the node must be empty, less the 30 s that it may take to stop."""
OURS = {DO_NOT_DISRUPT: AT_ITS_DEADLINE, PROTECTED: AT_ITS_DEADLINE}


def aged(*pods: Pod) -> list[Pod]:
    return [replace(pod, started=AN_HOUR_OLD) for pod in pods]


def seen_with(*pods: Pod, labels=POOL, **how) -> Observation:
    """Return an observation of `web` and `db` on the node `spot`, which gets a notice, beside `od`."""
    nodes = [interrupted("spot", labels=labels, **how), a_node("od")]
    template = a_pod("template", owner=("ReplicaSet", "web-abc"))
    workloads = [a_deployment(replicas=1), a_stateful_set(replicas=2)]
    return replace(looked(nodes, [*pods, template], workloads), pods=list(pods))


def marks(seen: Observation, after: float = 1) -> list[str | None]:
    """Return what the plan says to Karpenter: of pods that it releases, and of others."""
    plan = plan_drain(seen, noon(after))
    said = [a.do_not_disrupt for a in actions(plan, Release)]
    return said + [a.duration for a in actions(plan, DoNotDisrupt)]


def test_a_release_says_up_to_which_age_karpenter_leaves_the_pod_alone():
    assert marks(seen_with(*aged(*pods_of("web", 1, node="spot")))) == [AT_ITS_DEADLINE]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"labels": {}}, id="a node of no NodePool"),
        pytest.param({"kind": "rebalance-recommendation", "ends": None}, id="advice"),
        pytest.param({"kind": "health-scheduled-change", "ends": 120}, id="a date"),
        pytest.param({"ends": 3600}, id="a deadline that is not near"),
    ],
)
def test_a_release_says_nothing_to_karpenter_for(how):
    web = aged(*pods_of("web", 1, node="spot"))
    assert set(marks(seen_with(*web, **how), after=700)) <= {None}
    assert set(marks(seen_with(*web, **how))) <= {None}


def test_pods_that_move_one_by_one_are_marked_together_before_their_turns():
    seen = seen_with(*aged(*sets_of("db", ["spot", "spot"])))
    plan = plan_drain(seen, noon(1))
    (first,) = actions(plan, Evict)
    assert [a.pod.name for a in actions(plan, DoNotDisrupt)] == [
        name for name in ("db-0", "db-1") if name != first.pod.name
    ]
    assert marks(seen) == [AT_ITS_DEADLINE]


def test_a_pod_that_was_released_on_advice_is_marked_once_the_notice_comes():
    (pod,) = aged(released(a_pod("web-0", node="spot")))
    assert marks(seen_with(pod)) == [AT_ITS_DEADLINE]


@pytest.mark.parametrize(
    ("pod", "after"),
    [
        pytest.param(
            a_pod("db-0", node="spot", owner=("StatefulSet", "db"), annotations={DO_NOT_DISRUPT: "true"}),
            1,
            id="its owner says something",
        ),
        pytest.param(a_pod("db-0", node="spot", owner=("StatefulSet", "db")), 90, id="it is late"),
    ],
)  # fmt: skip
def test_a_pod_is_not_marked_where(pod, after):
    seen = seen_with(*aged(pod))
    (db,) = disruptions_of(seen, InterruptedNodes.of(seen), noon(after))
    assert do_not_disrupt(db.evictable[0], noon(after)) is None


def test_a_pod_whose_age_nobody_tells_is_not_marked():
    """Karpenter would leave it alone for good."""
    assert marks(seen_with(*pods_of("web", 1, node="spot"))) == [None]


def test_the_mark_of_a_pod_whose_node_stays_is_taken_off():
    db = [
        replace(p, annotations=OURS)
        for p in aged(*sets_of("db", ["od", "spot"]))
    ]  # fmt: skip
    plan = plan_drain(seen_with(*db), noon(1))
    (off,) = actions(plan, DoNotDisrupt)
    assert (off.pod.name, off.duration) == ("db-0", None)


def test_a_release_that_is_undone_takes_its_mark_off_by_itself():
    back = replace(released(a_pod("web-0", node="od")), annotations={RELEASED: "i-1", **OURS})
    plan = plan_drain(seen_with(back), noon(1))
    assert len(actions(plan, UndoRelease)) == 1
    assert actions(plan, DoNotDisrupt) == []


@pytest.mark.parametrize(
    ("found", "taken_off"),
    [
        (OURS, {PROTECTED: None, DO_NOT_DISRUPT: None}),
        ({**OURS, DO_NOT_DISRUPT: "true"}, {PROTECTED: None}),
        ({DO_NOT_DISRUPT: "true"}, {}),
        ({}, {}),
    ],
    ids=["ours", "its owner took it over", "its owner's", "none"],
)
def test_only_what_plimsoll_set_is_taken_off(found, taken_off):
    assert protection(a_pod(annotations=found), None) == taken_off


def test_a_mark_that_the_api_server_refused_is_not_tried_again_and_keeps_no_eviction_back():
    seen = seen_with(*aged(*sets_of("db", ["spot", "spot"])))
    (mark,) = actions(plan_drain(seen, noon(1)), DoNotDisrupt)
    plan = plan_drain(seen, noon(1), refused={mark.target: "no"})
    assert actions(plan, DoNotDisrupt) == []
    assert len(actions(plan, Evict)) == 1
    late = plan_drain(seen, noon(100), refused={mark.target: "no"})
    assert {a.pod.name for a in actions(late, Evict)} == {"db-0", "db-1"}


def test_the_mark_of_a_pod_that_its_owner_took_from_plimsoll_ends_by_itself():
    (pod,) = aged(*sets_of("db", ["od"]))
    kept = replace(pod, annotations={**OURS, IGNORE: "true"})
    assert actions(plan_drain(seen_with(kept), noon(1)), DoNotDisrupt) == []
