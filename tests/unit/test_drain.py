"""The plan of a cluster whose nodes are going: who leaves when, and who waits for what."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from plimsoll.domain.actions import (
    CompleteLifecycle,
    Discard,
    Evict,
    GiveBack,
    Grow,
    OutOfService,
    Record,
    Release,
    Renew,
    Scale,
)
from plimsoll.domain.actions.give_back import CHEAPEST
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Interruption, NoticeRecord, marked
from plimsoll.domain.names import DELETION_COST, IGNORE, TEMPORARY
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan
from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.temporary import TemporaryReplicas
from plimsoll.domain.workloads import Workload
from tests.builders import (
    NOON,
    ZONE_B,
    a_budget,
    a_claim,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
    pods_of,
)

WEB = Ref("Deployment", "default", "web")
DB = Ref("StatefulSet", "default", "db")
STARTED = "2026-01-02T12:01:00Z"


def going(name: str, *, kind: str = "spot-interruption", ends: float | None = 120, **how) -> Node:
    """Return a node whose notice came at noon and which goes `ends` seconds later."""
    node = a_node(name, capacity="spot", unschedulable=True, **how)
    notice = NoticeRecord(
        kind=kind,
        time=NOON,
        id="event",
        ends=None if ends is None else NOON + timedelta(seconds=ends),
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node=name, notices=(notice,), cordoned=NOON
    )
    return replace(node, interruption=interruption)


def looked(
    nodes: list[Node], pods: list[Pod], workloads: list[Workload] | None = None, **how
) -> Observation:
    """Return a look at the cluster `harbor`; the ReplicaSet `x-abc` belongs to Deployment `x`."""
    parents = {
        p.owner: Ref("Deployment", p.namespace, p.owner.name.removesuffix("-abc"))
        for p in pods
        if p.owner is not None and p.owner.kind == "ReplicaSet"
    }
    return Observation(
        cluster="harbor",
        nodes=nodes,
        pods=pods,
        workloads=workloads or [],
        parents=parents,
        **how,
    )


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def of[A](plan: Plan, kind: type[A]) -> list[A]:
    return [action for action in plan.actions if isinstance(action, kind)]


def only[A](plan: Plan, kind: type[A]) -> A:
    """Return the one action of the plan, which is of this kind."""
    (action,) = plan.actions
    assert isinstance(action, kind)
    return action


def raised(workload: Workload, restore: int) -> Workload:
    """Return a workload whose count we raised."""
    note = TemporaryReplicas(restore=restore, set_to=workload.replicas).to_record()
    return replace(workload, annotations={TEMPORARY: note})


def sets_of(name: str, nodes: list[str | None], **how) -> list[Pod]:
    labels = {"app": name}
    return [
        a_pod(f"{name}-{n}", node=node, labels=labels, owner=("StatefulSet", name), **how)
        for n, node in enumerate(nodes)
    ]


def test_nothing_is_planned_for_a_cluster_in_which_no_node_is_going():
    plan = plan_drain(looked([a_node("od")], pods_of("web", 3, node="od"), [a_deployment()]), NOON)

    assert plan == Plan()


def test_a_deployment_is_raised_by_its_doomed_pods_and_the_note_says_what_to_restore():
    pods = [*pods_of("web", 2, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(looked([going("spot"), a_node("od")], pods, [a_deployment()]), at(1))

    scale = only(plan, Scale)
    assert scale.replicas == 5
    assert scale.temporary == TemporaryReplicas(restore=3, set_to=5)
    assert plan.busy


def test_doomed_pods_stay_while_their_replacements_are_not_ready():
    doomed = pods_of("web", 2, node="spot")
    new = [a_pod(f"web-{n}", node="od", ready=False) for n in (7, 8)]
    plan = plan_drain(
        looked([going("spot"), a_node("od")], doomed + new, [raised(a_deployment(replicas=4), 2)]),
        at(20),
    )

    assert plan.actions == ()
    assert "0 of 2 are Ready elsewhere" in plan.waiting["spot"][0]


def test_ready_replacements_end_the_swap_and_take_exactly_the_doomed_pods():
    doomed = pods_of("web", 2, node="spot")
    new = [a_pod(f"web-{n}", node="od") for n in (7, 8)]
    plan = plan_drain(
        looked([going("spot"), a_node("od")], doomed + new, [raised(a_deployment(replicas=4), 2)]),
        at(20),
    )

    back = only(plan, GiveBack)
    assert back.replicas == 2
    assert list(back.doomed) == doomed


def test_one_sick_pod_among_the_staying_makes_us_evict_because_scale_in_would_take_it_first():
    doomed = pods_of("web", 1, node="spot")
    others = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    workload = raised(a_deployment(replicas=3), 1)
    plan = plan_drain(looked([going("spot"), a_node("od")], doomed + others, [workload]), at(20))

    assert [a.pod.name for a in of(plan, Evict)] == ["web-0"]
    assert of(plan, GiveBack) == []


def test_after_the_count_went_back_the_replica_set_is_left_to_take_the_doomed():
    cheap = {DELETION_COST: str(CHEAPEST)}
    pods = [
        *pods_of("web", 1, node="spot", annotations=cheap),
        a_pod("web-7", node="od"),
    ]
    plan = plan_drain(
        looked([going("spot"), a_node("od")], pods, [a_deployment(replicas=1)]), at(20)
    )

    assert plan.actions == ()


def test_a_count_that_somebody_else_set_meanwhile_stands():
    note = TemporaryReplicas(restore=2, set_to=4).to_record()
    workload = replace(a_deployment(replicas=9), annotations={TEMPORARY: note})
    plan = plan_drain(
        looked([going("spot"), a_node("od")], pods_of("web", 9, node="spot"), [workload]), at(5)
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
        looked([going("spot"), a_node("od")], pods, [a_deployment(replicas=4, **how)]), at(1)
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
        looked([going("spot"), a_node("od")], pods_of("web", 4, node="spot"), [workload]), at(1)
    )

    assert len(of(plan, Evict)) == 1
    assert "HorizontalPodAutoscaler web" in of(plan, Evict)[0].reason


def test_eviction_waits_for_room():
    workload = replace(a_deployment(replicas=4), scaler="web")
    pods = pods_of("web", 4, node="spot", cpu="4")
    plan = plan_drain(looked([going("spot"), a_node("od", cpu="2")], pods, [workload]), at(1))

    assert of(plan, Evict) == []
    assert "room" in plan.waiting["spot"][0]


def test_a_stateful_set_moves_one_pod_at_a_time_from_the_highest_ordinal():
    pods = sets_of("db", ["spot", "spot", "spot"])
    plan = plan_drain(
        looked([going("spot"), a_node("od")], pods, [a_stateful_set(replicas=3)]), at(1)
    )

    assert [a.pod.name for a in of(plan, Evict)] == ["db-2"]


def test_a_stateful_set_waits_while_one_of_its_pods_is_not_ready():
    pods = sets_of("db", ["spot", "spot", "od"])
    pods[2] = replace(pods[2], ready=False)
    plan = plan_drain(
        looked([going("spot"), a_node("od")], pods, [a_stateful_set(replicas=3)]), at(1)
    )

    assert of(plan, Evict) == []


def test_a_stateful_set_does_not_move_to_where_its_volume_is_not():
    pods = sets_of("db", ["spot"], volumes=mounting("data"))
    seen = looked(
        [going("spot"), a_node("od", zone=ZONE_B)],
        pods,
        [a_stateful_set(replicas=1)],
        claims={("default", "data"): a_claim(zone="us-east-1a")},
    )

    assert of(plan_drain(seen, at(1)), Evict) == []


def test_a_single_stateful_replica_goes_as_soon_as_its_place_is_ready():
    plan = plan_drain(
        looked(
            [going("spot"), a_node("od")], sets_of("db", ["spot"]), [a_stateful_set(replicas=1)]
        ),
        at(1),
    )

    assert [a.pod.name for a in of(plan, Evict)] == ["db-0"]


def test_room_for_a_pod_that_cannot_run_twice_is_not_given_to_a_surge():
    nodes = [going("spot"), a_node("od", cpu="2")]
    pods = [*sets_of("db", ["spot"], cpu="2"), *pods_of("web", 2, node="spot", cpu="1")]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_deployment(replicas=2)]), at(1)
    )

    assert of(plan, Scale) == []
    assert [a.pod.name for a in of(plan, Evict)] == ["db-0"]


def test_at_the_latest_safe_start_a_pod_goes_even_without_a_replacement():
    pods = pods_of("web", 1, node="spot", grace_seconds=30)
    seen = looked([going("spot")], pods, [a_deployment(replicas=1)])

    assert of(plan_drain(seen, at(87)), Evict) == []
    (last,) = of(plan_drain(seen, at(88)), Evict)
    assert last.overrule
    assert last.grace_seconds is None


def test_a_grace_period_that_does_not_fit_is_clamped_but_never_to_zero():
    pods = pods_of("web", 1, node="spot", grace_seconds=600)
    seen = looked([going("spot")], pods, [a_deployment(replicas=1)])

    (first,) = of(plan_drain(seen, at(1)), Evict)
    assert first.grace_seconds == 117
    (late,) = of(plan_drain(seen, at(300)), Evict)
    assert late.grace_seconds == 1


def test_a_bare_pod_and_a_job_are_told_as_late_as_is_safe():
    pods = [
        a_pod("alone", node="spot", owner=None, grace_seconds=10),
        a_pod("work", node="spot", owner=("Job", "work"), grace_seconds=10),
    ]
    seen = looked([going("spot"), a_node("od")], pods)

    assert of(plan_drain(seen, at(100)), Evict) == []
    assert len(of(plan_drain(seen, at(109)), Evict)) == 2


def test_daemons_mirrors_and_those_who_opted_out_are_left():
    pods = [
        a_pod("log", node="spot", owner=("DaemonSet", "log")),
        a_pod("static", node="spot", owner=("Node", "spot")),
        a_pod("mine", node="spot", owner=None, labels={IGNORE: "true"}),
    ]
    plan = plan_drain(looked([going("spot")], pods), at(119))

    assert of(plan, Evict) == []
    (record,) = of(plan, Record)
    assert record.interruption.emptied == at(119)


def test_a_rebalance_moves_pods_but_never_gives_up_a_replica():
    pods = pods_of("web", 2, node="spot", cpu="6")
    node = going("spot", kind="rebalance-recommendation", ends=None)
    alone = looked([node], pods, [a_deployment(replicas=2)])
    assert plan_drain(alone, at(100_000)).actions == ()

    with_room = looked([node, a_node("od")], pods, [a_deployment(replicas=2)])
    (scale,) = of(plan_drain(with_room, at(100_000)), Scale)
    assert scale.replicas == 3  # the second would be Pending for nobody knows how long


def test_a_node_emptied_after_a_rebalance_closes_its_interruption():
    seen = looked([going("spot", kind="rebalance-recommendation", ends=None)], [])

    (record,) = of(plan_drain(seen, at(60)), Record)
    assert record.interruption.phase == "closed"


def test_capacity_is_asked_for_in_the_first_plan_and_never_for_the_groups_that_are_going():
    node = going("spot")
    groups = [
        a_group("base", desired=1, max_size=5),
        replace(
            a_group("spot", capacity="spot", desired=1), instances=frozenset({node.instance or ""})
        ),
    ]
    pods = pods_of("web", 3, node="spot", cpu="4")
    plan = plan_drain(looked([node], pods, [a_deployment(replicas=3)], groups=groups), at(1))

    grown = of(plan, Grow)
    assert {g.group.name for g in grown} == {"base"}
    assert sum(g.add for g in grown) == 1  # one is on its way already, and each takes two
    assert plan.actions[0] == grown[0]


def test_the_same_look_asks_for_the_same_capacity_under_the_same_token():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [going("spot")], pods, [a_deployment(replicas=3)], groups=[a_group("base", desired=0)]
    )

    tokens = {g.token for when in (1, 2) for g in of(plan_drain(seen, at(when)), Grow)}
    assert len(tokens) == len(of(plan_drain(seen, at(1)), Grow))


def test_capacity_on_its_way_is_not_asked_for_again():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [going("spot")], pods, [a_deployment(replicas=3)], groups=[a_group("base", desired=2)]
    )

    assert of(plan_drain(seen, at(1)), Grow) == []


def test_who_is_nearest_to_the_ready_floor_is_served_first():
    web = replace(a_deployment("web", replicas=4), scaler="x")
    api = replace(a_deployment("api", replicas=4), scaler="x")
    pods = [
        *pods_of("web", 1, node="spot", cpu="2"),
        *(
            replace(p, name=f"web-{n}", uid=f"w{n}")
            for n, p in enumerate(pods_of("web", 3, node="od"), 5)
        ),
        *pods_of("api", 4, node="spot", cpu="2"),
    ]
    seen = looked([going("spot"), a_node("od", cpu="2500m")], pods, [web, api])

    assert [a.pod.name for a in of(plan_drain(seen, at(1)), Evict)] == ["api-0"]


def test_a_budget_raises_the_floor_of_what_is_evicted():
    workload = replace(a_deployment(replicas=2), scaler="web")
    seen = looked(
        [going("spot"), a_node("od")],
        pods_of("web", 2, node="spot"),
        [workload],
        budgets=[a_budget("web", maxUnavailable=0)],
    )

    assert of(plan_drain(seen, at(1)), Evict) == []
    assert len(of(plan_drain(seen, at(90)), Evict)) == 2


def test_a_lifecycle_action_is_completed_when_the_node_is_empty():
    node = a_node("spot", unschedulable=True)
    notice = NoticeRecord(
        kind="lifecycle-terminate", time=NOON, id="t", ends=at(300), group="g", hook="h", token="t"
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node="spot", notices=(notice,)
    )
    seen = looked([replace(node, interruption=interruption)], [])

    (done,) = of(plan_drain(seen, at(60)), CompleteLifecycle)
    assert done.interruption.closed == at(60)
    assert done.interruption.emptied == at(60)


def test_volumes_are_freed_only_from_an_instance_that_ec2_says_is_gone():
    node = going("spot")
    seen = looked([node], [], attached={"spot": frozenset({"pv-1"})})

    assert of(plan_drain(seen, at(130)), OutOfService) == []
    gone = seen.among(groups=(), gone=frozenset({node.instance or ""}))
    assert len(of(plan_drain(gone, at(130)), OutOfService)) == 1


def test_pods_still_there_when_the_instance_is_gone_are_reported_as_killed():
    node = going("spot")
    seen = looked([node], pods_of("web", 1, node="spot"), [a_deployment(replicas=1)])
    gone = seen.among(groups=(), gone=frozenset({node.instance or ""}))

    plan = plan_drain(gone, at(130))
    assert plan.reports[0].killed == ("default/web-0",)
    assert of(plan, Evict) == []


def test_what_was_called_off_gives_the_node_back():
    node = a_node("spot", unschedulable=True)
    notices = (
        NoticeRecord(kind="health-scheduled-change", time=NOON, id="a", about="arn"),
        NoticeRecord(
            kind="health-scheduled-change", time=at(9), id="b", about="arn", state="closed"
        ),
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node="spot", notices=notices
    )
    seen = looked([replace(node, interruption=interruption)], pods_of("web", 1, node="spot"))

    plan = plan_drain(seen, at(60))
    assert [type(a) for a in plan.actions] == [Release]


def test_a_closed_interruption_is_over():
    node = going("spot", kind="rebalance-recommendation", ends=None)
    assert node.interruption is not None
    closed = replace(node, interruption=marked(node.interruption, closed=at(50)))

    assert plan_drain(looked([closed], []), at(60)) == Plan()


def test_the_report_says_the_lowest_ready_count_and_every_reason():
    pods = [*pods_of("web", 2, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(looked([going("spot"), a_node("od")], pods, [a_deployment()]), at(1))

    (report,) = plan.reports
    assert report.lowest_ready == {"Deployment default/web": 3}
    assert any("replacements come first" in reason for reason in report.reasons)


def died(node: Node) -> Node:
    """Return a node whose record says that its instance is gone."""
    assert node.interruption is not None
    return replace(node, interruption=marked(node.interruption, gone=at(30)))


def test_pods_that_died_with_their_instance_do_not_count_as_serving_and_are_forgotten():
    pods = [*pods_of("web", 1, node="spot"), a_pod("web-9", node="od")]
    plan = plan_drain(
        looked([died(going("spot")), a_node("od")], pods, [raised(a_deployment(replicas=3), 2)]),
        at(40),
    )

    assert [a.pod.name for a in of(plan, Discard)] == ["web-0"]
    assert of(plan, Scale) == []  # a count put back now would take the replacement


def test_a_raised_count_goes_back_once_the_dead_are_forgotten():
    pods = [a_pod("web-8", node="od", ready=False), a_pod("web-9", node="od")]
    plan = plan_drain(
        looked([died(going("spot")), a_node("od")], pods, [raised(a_deployment(replicas=3), 2)]),
        at(41),
    )

    assert [(a.replicas, a.temporary) for a in of(plan, Scale)] == [(2, None)]


def test_a_pod_of_a_node_object_that_is_no_more_serves_nobody():
    pods = [a_pod("web-5", node="vanished"), *pods_of("web", 1, node="spot")]
    plan = plan_drain(
        looked(
            [going("spot"), a_node("od")], pods, [replace(a_deployment(replicas=2), scaler="x")]
        ),
        at(1),
    )

    assert plan.reports[0].lowest_ready == {"Deployment default/web": 1}
    assert of(plan, Evict) == []


def test_a_budget_that_allows_nothing_now_is_waited_for_without_asking():
    workload = replace(a_deployment(replicas=4), scaler="web")
    seen = looked(
        [going("spot"), a_node("od")],
        pods_of("web", 4, node="spot"),
        [workload],
        budgets=[a_budget("web", minAvailable=1, allowed=0)],
    )

    plan = plan_drain(seen, at(1))
    assert of(plan, Evict) == []
    assert "PodDisruptionBudget web allows no disruption now" in plan.waiting["spot"][0]


def test_two_budgets_over_a_pod_are_named():
    seen = looked(
        [going("spot"), a_node("od")],
        sets_of("db", ["spot", "spot"]),
        [a_stateful_set(replicas=2)],
        budgets=[a_budget(n, selector={}, minAvailable=1, allowed=1) for n in ("one", "two")],
    )

    plan = plan_drain(seen, at(1))
    assert of(plan, Evict) == []
    assert "several budgets cover: one, two" in plan.waiting["spot"][0]


def test_an_empty_node_is_renewed_where_its_owner_lets_us():
    node = going("spot", kind="rebalance-recommendation", ends=None)
    group = replace(
        a_group("spot", capacity="spot", desired=1),
        instances=frozenset({node.instance or ""}),
        renew=True,
    )

    assert of(plan_drain(looked([node], []), at(60)), Renew) == []
    (renewed,) = of(plan_drain(looked([node], [], groups=[group]), at(60)), Renew)
    assert renewed.interruption.phase == "closed"
    with_pod = looked([node], pods_of("web", 1, node="spot"), groups=[group])
    assert of(plan_drain(with_pod, at(60)), Renew) == []


def test_who_cannot_be_saved_is_given_up_in_words_by_priority():
    pods = [
        *pods_of("low", 1, node="spot", cpu="9", priority=1),
        *pods_of("high", 1, node="spot", cpu="9", priority=9),
    ]
    workloads = [a_deployment("low", replicas=1), a_deployment("high", replicas=1)]
    plan = plan_drain(looked([going("spot"), a_node("od")], pods, workloads), at(1))

    given_up = [words for words in plan.waiting["spot"] if words.startswith("no room for")]
    assert [words.split(" (")[0] for words in given_up] == [
        "no room for default/high-0",
        "no room for default/low-0",
    ]


def test_the_report_says_when_capacity_was_asked_for_and_when_all_was_replaced():
    pods = pods_of("web", 1, node="spot", cpu="4")
    asked = plan_drain(
        looked([going("spot")], pods, [a_deployment(replicas=1)], groups=[a_group("base")]), at(1)
    )
    assert asked.reports[0].capacity_asked == at(1)
    assert asked.reports[0].replaced is None

    new = a_pod("web-9", node="od")
    done = plan_drain(
        looked([going("spot"), a_node("od")], [*pods, new], [raised(a_deployment(replicas=2), 1)]),
        at(50),
    )
    assert done.reports[0].replaced == at(50)
    assert asked.reports[0].merged(done.reports[0]).capacity_asked == at(1)


def test_room_for_a_pod_that_is_evicted_in_the_same_plan_is_not_given_to_a_surge():
    nodes = [going("spot"), a_node("od", cpu="2")]
    old = a_deployment("old", replicas=1, strategy={"type": "Recreate"})
    pods = [
        *pods_of("old", 1, node="spot", cpu="2"),
        *pods_of("web", 1, node="spot", cpu="2"),
    ]
    plan = plan_drain(looked(nodes, pods, [old, a_deployment(replicas=1)]), at(1))

    assert [a.pod.name for a in of(plan, Evict)] == ["old-0"]
    assert of(plan, Scale) == []


def test_at_the_latest_safe_start_a_raised_count_stays_and_so_do_replacements_that_start():
    doomed = pods_of("web", 2, node="spot")
    starting = [a_pod(f"web-{n}", node="od", ready=False, created=STARTED) for n in (7, 8)]
    workload = raised(a_deployment(replicas=4), 2)
    late = plan_drain(
        looked([going("spot"), a_node("od")], [*doomed, *starting], [workload]), at(90)
    )
    assert len(of(late, Evict)) == 2
    assert of(late, Scale) == []

    stopping = [replace(pod, deleting=at(120)) for pod in doomed]
    after = plan_drain(
        looked([going("spot"), a_node("od")], [*stopping, *starting], [workload]), at(91)
    )
    assert of(after, Scale) == []
    assert after.busy


def test_a_replacement_that_never_becomes_ready_does_not_keep_the_count_raised():
    pods = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    seen = looked([a_node("od")], pods, [raised(a_deployment(replicas=3), 2)])

    assert [(a.replicas, a.temporary) for a in of(plan_drain(seen, at(0)), Scale)] == [(2, None)]


def test_room_of_a_pod_that_is_stopping_is_kept_for_its_successor():
    nodes = [going("spot"), a_node("od", cpu="2")]
    leaving = sets_of("db", ["spot"], cpu="2", deleting=at(30))
    pods = [*leaving, *pods_of("web", 1, node="spot", cpu="2")]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_deployment(replicas=1)]), at(1)
    )

    assert of(plan, Scale) == []


def test_a_rollout_spends_what_may_be_missing_so_nothing_is_evicted_beside_it():
    rolling = replace(a_deployment(replicas=4), rolling_out=True)
    nodes = [going("spot"), a_node("od")]

    assert (
        of(plan_drain(looked(nodes, pods_of("web", 4, node="spot"), [rolling]), at(1)), Evict) == []
    )
    surplus = [*pods_of("web", 4, node="spot"), a_pod("web-9", node="od")]
    assert len(of(plan_drain(looked(nodes, surplus, [rolling]), at(1)), Evict)) == 1


def test_successors_of_the_dead_have_their_room_before_anybody_else_moves():
    nodes = [died(going("gone")), going("spot"), a_node("od", cpu="2")]
    pods = [
        *sets_of("db", ["gone"], cpu="2"),
        a_pod(
            "cache-0", node="spot", labels={"app": "cache"}, owner=("StatefulSet", "cache"), cpu="2"
        ),
    ]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_stateful_set("cache", replicas=1)]),
        at(40),
    )

    assert [a.pod.name for a in of(plan, Discard)] == ["db-0"]
    assert of(plan, Evict) == []


def test_who_would_be_at_zero_has_the_last_room_before_who_would_not():
    nodes = [going("spot"), a_node("od", cpu="4"), a_node("full", cpu="2")]
    half = a_deployment("half", replicas=2, strategy={"type": "Recreate"})
    pods = [
        *pods_of("web", 1, node="spot", cpu="4"),
        *pods_of("half", 1, node="spot", cpu="2"),
        a_pod(
            "half-9", node="full", labels={"app": "half"}, owner=("ReplicaSet", "half-abc"), cpu="2"
        ),
    ]
    plan = plan_drain(looked(nodes, pods, [half, a_deployment(replicas=1)]), at(1))

    assert [a.workload.ref for a in of(plan, Scale)] == [WEB]
    assert of(plan, Evict) == []


def test_a_rollout_of_a_stateful_set_is_let_finish_first():
    rolling = replace(a_stateful_set(replicas=2), rolling_out=True)
    seen = looked([going("spot"), a_node("od")], sets_of("db", ["spot", "spot"]), [rolling])

    assert of(plan_drain(seen, at(1)), Evict) == []
    assert len(of(plan_drain(seen, at(90)), Evict)) == 2


def test_an_ask_that_was_refused_has_another_name_a_minute_later():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [going("spot")], pods, [a_deployment(replicas=3)], groups=[a_group("base", desired=0)]
    )

    first, second = (of(plan_drain(seen, at(when)), Grow)[0].token for when in (1, 61))
    assert first != second


def test_a_pod_that_came_although_its_node_was_cordoned_is_left_there():
    tolerant = [{"operator": "Exists"}]
    came = a_pod("web-1", node="spot", tolerations=tolerant, created=STARTED)
    seen = looked([going("spot"), a_node("od")], [came], [a_deployment(replicas=1)])
    assert of(plan_drain(seen, at(119)), Evict) == []

    before = a_pod("web-1", node="spot", tolerations=tolerant)
    seen = looked([going("spot"), a_node("od")], [before], [a_deployment(replicas=1)])
    assert len(of(plan_drain(seen, at(119)), Evict)) == 1


def test_a_node_that_is_going_is_no_place_even_for_who_tolerates_it():
    pods = sets_of("db", ["spot"], tolerations=[{"operator": "Exists"}])
    nodes = [going("spot"), going("other")]

    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=1)]), at(1))
    assert of(plan, Evict) == []


def test_pods_that_are_told_to_stop_in_a_plan_do_not_count_as_serving_in_the_same_plan():
    pods = sets_of("db", ["spot", "later", "od"], grace_seconds=60)
    nodes = [going("spot"), going("later", ends=600), a_node("od")]

    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=3)]), at(70))

    assert [a.pod.name for a in of(plan, Evict)] == ["db-0"]
