"""The swap, and who may surge: replacements stand beside the doomed pods until they are Ready."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import (
    CHEAPEST,
    Evict,
    FinishSurge,
    ForceDelete,
    Scale,
)
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.names import DELETION_COST, SURGE
from plimsoll.domain.surge_replicas import SurgeReplicas
from tests.support.builders import (
    NOON,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    pods_of,
)
from tests.support.observations import (
    STARTED,
    at,
    died,
    interrupted,
    looked,
    of,
    only,
    raised,
    sets_of,
)


def test_a_deployment_is_raised_by_its_doomed_pods_and_the_note_says_what_to_restore():
    pods = [*pods_of("web", 2, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(looked([interrupted("spot"), a_node("od")], pods, [a_deployment()]), at(1))

    scale = only(plan, Scale)
    assert scale.replicas == 5
    assert scale.temporary == SurgeReplicas(restore=3, set_to=5)
    assert plan.busy


def test_doomed_pods_stay_while_their_replacements_are_not_ready():
    evictable = pods_of("web", 2, node="spot")
    new = [a_pod(f"web-{n}", node="od", ready=False) for n in (7, 8)]
    plan = plan_drain(
        looked(
            [interrupted("spot"), a_node("od")],
            evictable + new,
            [raised(a_deployment(replicas=4), 2)],
        ),
        at(20),
    )

    assert plan.actions == ()
    assert "0 of 2 are Ready elsewhere" in plan.waiting["spot"][0]


def test_ready_replacements_end_the_swap_and_take_exactly_the_doomed_pods():
    evictable = pods_of("web", 2, node="spot")
    new = [a_pod(f"web-{n}", node="od") for n in (7, 8)]
    plan = plan_drain(
        looked(
            [interrupted("spot"), a_node("od")],
            evictable + new,
            [raised(a_deployment(replicas=4), 2)],
        ),
        at(20),
    )

    back = only(plan, FinishSurge)
    assert back.replicas == 2
    assert list(back.evictable) == evictable


def test_one_sick_pod_among_the_staying_makes_us_evict_because_scale_in_would_take_it_first():
    evictable = pods_of("web", 1, node="spot")
    others = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    workload = raised(a_deployment(replicas=3), 1)
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], evictable + others, [workload]), at(20)
    )

    assert [a.pod.name for a in of(plan, Evict)] == ["web-0"]
    assert of(plan, FinishSurge) == []


def test_after_the_count_went_back_the_replica_set_is_left_to_take_the_doomed():
    cheap = {DELETION_COST: str(CHEAPEST)}
    pods = [
        *pods_of("web", 1, node="spot", annotations=cheap),
        a_pod("web-7", node="od"),
    ]
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods, [a_deployment(replicas=1)]), at(20)
    )

    assert plan.actions == ()


def test_a_count_that_somebody_else_set_meanwhile_stands():
    note = SurgeReplicas(restore=2, set_to=4).to_record()
    workload = replace(a_deployment(replicas=9), annotations={SURGE: note})
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods_of("web", 9, node="spot"), [workload]),
        at(5),
    )

    (scale,) = of(plan, Scale)
    assert (scale.replicas, scale.temporary) == (9, None)


def test_a_raised_count_is_restored_once_no_pod_of_it_is_doomed():
    pods = pods_of("web", 4, node="od")
    plan = plan_drain(looked([a_node("od")], pods, [raised(a_deployment(replicas=4), 2)]), NOON)

    scale = only(plan, Scale)
    assert (scale.replicas, scale.temporary) == (2, None)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"managers": ("argocd-controller",)}, "argocd-controller owns its replicas"),
        ({"strategy": {"type": "Recreate"}}, "Recreate"),
        ({"paused": True}, "paused"),
    ],
    ids=["gitops", "recreate", "paused"],
)
def test_a_count_that_is_not_ours_moves_by_eviction_within_the_ready_floor(how, said):
    pods = pods_of("web", 4, node="spot")
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods, [a_deployment(replicas=4, **how)]), at(1)
    )

    assert of(plan, Scale) == []
    evicted = of(plan, Evict)
    assert evicted
    assert said in evicted[0].reason
    if said != "Recreate":
        assert len(evicted) == 1  # 25 % of 4


def test_a_count_that_an_autoscaler_owns_moves_by_eviction():
    workload = replace(a_deployment(replicas=4), scaler="web")
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods_of("web", 4, node="spot"), [workload]),
        at(1),
    )

    assert len(of(plan, Evict)) == 1
    assert "HorizontalPodAutoscaler web" in of(plan, Evict)[0].reason


def test_room_for_a_pod_that_cannot_run_twice_is_not_given_to_a_surge():
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    pods = [*sets_of("db", ["spot"], cpu="2"), *pods_of("web", 2, node="spot", cpu="1")]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_deployment(replicas=2)]), at(1)
    )

    assert of(plan, Scale) == []
    assert [a.pod.name for a in of(plan, Evict)] == ["db-0"]


def test_the_report_says_the_lowest_ready_count_and_every_reason():
    pods = [*pods_of("web", 2, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(looked([interrupted("spot"), a_node("od")], pods, [a_deployment()]), at(1))

    (report,) = plan.reports
    assert report.lowest_ready == {"Deployment default/web": 3}
    assert any("replacements come first" in reason for reason in report.reasons)


def test_pods_that_died_with_their_instance_do_not_count_as_serving_and_are_forgotten():
    pods = [*pods_of("web", 1, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(
        looked(
            [died(interrupted("spot")), a_node("od")], pods, [raised(a_deployment(replicas=3), 2)]
        ),
        at(40),
    )

    assert [a.pod.name for a in of(plan, ForceDelete)] == ["web-0"]
    assert of(plan, Scale) == []  # a count put back now would take the replacement


def test_a_raised_count_goes_back_once_the_dead_are_forgotten():
    pods = [a_pod("web-8", node="od", ready=False), a_pod("web-9", node="od")]
    plan = plan_drain(
        looked(
            [died(interrupted("spot")), a_node("od")], pods, [raised(a_deployment(replicas=3), 2)]
        ),
        at(41),
    )

    assert [(a.replicas, a.temporary) for a in of(plan, Scale)] == [(2, None)]


def test_room_for_a_pod_that_is_evicted_in_the_same_plan_is_not_given_to_a_surge():
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    old = a_deployment("old", replicas=1, strategy={"type": "Recreate"})
    pods = [
        *pods_of("old", 1, node="spot", cpu="2"),
        *pods_of("web", 1, node="spot", cpu="2"),
    ]
    plan = plan_drain(looked(nodes, pods, [old, a_deployment(replicas=1)]), at(1))

    assert [a.pod.name for a in of(plan, Evict)] == ["old-0"]
    assert of(plan, Scale) == []


def test_at_the_latest_safe_start_a_raised_count_stays_and_so_do_replacements_that_start():
    evictable = pods_of("web", 2, node="spot")
    starting = [a_pod(f"web-{n}", node="od", ready=False, created=STARTED) for n in (7, 8)]
    workload = raised(a_deployment(replicas=4), 2)
    late = plan_drain(
        looked([interrupted("spot"), a_node("od")], [*evictable, *starting], [workload]), at(90)
    )
    assert len(of(late, Evict)) == 2
    assert of(late, Scale) == []

    stopping = [replace(pod, deleting=at(120)) for pod in evictable]
    after = plan_drain(
        looked([interrupted("spot"), a_node("od")], [*stopping, *starting], [workload]), at(91)
    )
    assert of(after, Scale) == []
    assert after.busy


def test_a_replacement_that_never_becomes_ready_does_not_keep_the_count_raised():
    pods = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    seen = looked([a_node("od")], pods, [raised(a_deployment(replicas=3), 2)])

    assert [(a.replicas, a.temporary) for a in of(plan_drain(seen, at(0)), Scale)] == [(2, None)]


def test_pods_that_are_told_to_stop_in_a_plan_do_not_count_as_serving_in_the_same_plan():
    pods = sets_of("db", ["spot", "later", "od"], grace_seconds=60)
    nodes = [interrupted("spot"), interrupted("later", ends=600), a_node("od")]

    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=3)]), at(70))

    assert [a.pod.name for a in of(plan, Evict)] == ["db-0"]


def test_replacements_without_room_are_given_up_once_nothing_says_when_the_nodes_go():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    evictable = pods_of("web", 2, node="spot")
    homeless = [a_pod(f"web-{n}", created=STARTED, cpu="6") for n in (7, 8)]
    pods, workload = [*evictable, *homeless], raised(a_deployment(replicas=4), 2)
    seen = looked([node], pods, [workload])

    assert of(plan_drain(seen, at(120)), Scale) == []  # a node may be on its way
    (scale,) = of(plan_drain(seen, at(600)), Scale)
    assert (scale.replicas, scale.temporary) == (2, None)

    urgent = looked([interrupted("spot", ends=900)], pods, [workload])
    assert of(plan_drain(urgent, at(600)), Scale) == []


def test_after_giving_up_a_count_is_not_raised_again_without_room():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = looked([node], pods_of("web", 2, node="spot"), [a_deployment(replicas=2)])

    assert plan_drain(seen, at(601)).actions == ()
