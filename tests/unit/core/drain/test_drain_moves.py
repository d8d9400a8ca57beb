"""Pods that cannot stand twice: one by one, within the ready floor, and who has the last room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Cordon, Evict, Grow, Release
from plimsoll.domain.disruptions import disruptions_of
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.capacity import owed_of
from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.observation import InterruptedNodes
from plimsoll.services.reconcile_memory import ReconcileMemory
from tests.support.builders import (
    ZONE_A,
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
from tests.support.observations import WEB, actions, interrupted, looked, noon, released, sets_of


def test_eviction_waits_for_room():
    workload = replace(a_deployment(replicas=4), max_surge=0)
    pods = pods_of("web", 4, node="spot", cpu="4")
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od", cpu="2")], pods, [workload]), noon(1)
    )

    assert actions(plan, Evict) == []
    assert "room" in plan.waiting["spot"][0]


def test_a_stateful_set_moves_one_pod_at_a_time_from_the_highest_ordinal():
    pods = sets_of("db", ["spot", "spot", "spot"])
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods, [a_stateful_set(replicas=3)]), noon(1)
    )

    assert [a.pod.name for a in actions(plan, Evict)] == ["db-2"]


def test_a_stateful_set_moves_the_pod_whose_node_goes_first():
    pods = sets_of("db", ["sooner", "spot", "spot"])
    nodes = [interrupted("spot"), interrupted("sooner", ends=110), a_node("od")]
    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=3)]), noon(1))

    assert [a.pod.name for a in actions(plan, Evict)] == ["db-0"]


def test_a_stateful_set_waits_while_one_of_its_pods_is_not_ready():
    pods = sets_of("db", ["spot", "spot", "od"])
    pods[2] = replace(pods[2], ready=False)
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods, [a_stateful_set(replicas=3)]), noon(1)
    )

    assert actions(plan, Evict) == []


def test_a_stateful_set_moves_its_pod_that_is_not_ready_first():
    pods = sets_of("db", ["spot", "spot", "spot"])
    pods[1] = replace(pods[1], ready=False)
    plan = plan_drain(
        looked([interrupted("spot"), a_node("od")], pods, [a_stateful_set(replicas=3)]), noon(1)
    )

    assert [a.pod.name for a in actions(plan, Evict)] == ["db-1"]


def test_a_stateful_set_does_not_move_to_where_its_volume_is_not():
    pods = sets_of("db", ["spot"], volumes=mounting("data"))
    seen = looked(
        [interrupted("spot"), a_node("od", zone=ZONE_B)],
        pods,
        [a_stateful_set(replicas=1)],
        claims={("default", "data"): a_claim(zone="us-east-1a")},
    )

    assert actions(plan_drain(seen, noon(1)), Evict) == []


@pytest.mark.parametrize(("replicas", "evicted"), [(1, ["web-0"]), (2, [])])
def test_a_volume_of_one_node_waives_the_floor_of_a_single_replica_alone(replicas, evicted):
    seen = looked(
        [interrupted("spot"), a_node("od")],
        pods_of("web", replicas, node="spot", volumes=mounting("data")),
        [a_deployment(replicas=replicas)],
        claims={("default", "data"): a_claim(zone=ZONE_A)},
    )

    assert [a.pod.name for a in actions(plan_drain(seen, noon(1)), Evict)] == evicted


def test_none_leaves_early_between_the_end_of_one_and_its_successor():
    seen = looked(
        [interrupted("spot"), a_node("od")],
        sets_of("db", ["spot", "spot"]),
        [a_stateful_set(replicas=3)],
    )
    assert actions(plan_drain(seen, noon(70)), Evict) == []


@pytest.mark.parametrize(("replicas", "owed"), [(5, ["web-0"]), (4, [])])
def test_a_successor_is_owed_until_there_are_as_many_pods_as_their_owner_wants(replicas, owed):
    pods = [
        replace(p, node="od" if n > 2 else "spot")
        for n, p in enumerate(pods_of("web", 5, node="spot"))
    ]
    pods[0] = replace(pods[0], ready=False, deleting=noon(0))
    seen = looked([interrupted("spot"), a_node("od")], pods, [a_deployment(replicas=replicas)])
    (found,) = disruptions_of(seen, InterruptedNodes.of(seen), noon(1))

    assert [pod.name for pod in owed_of(found)] == owed


def test_a_single_stateful_replica_goes_as_soon_as_its_place_is_ready():
    plan = plan_drain(
        looked(
            [interrupted("spot"), a_node("od")],
            sets_of("db", ["spot"]),
            [a_stateful_set(replicas=1)],
        ),
        noon(1),
    )

    assert [a.pod.name for a in actions(plan, Evict)] == ["db-0"]


def test_a_rebalance_moves_pods_but_never_gives_up_a_replica():
    pods = pods_of("web", 2, node="spot", cpu="6")
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    alone = looked([node], pods, [a_deployment(replicas=2)])
    assert plan_drain(alone, noon(100_000)).actions == ()

    with_room = looked([node, a_node("od")], pods, [a_deployment(replicas=2)])
    assert (
        len(actions(plan_drain(with_room, noon(100_000)), Release)) == 1
    )  # the second would be Pending for nobody knows how long


def test_who_is_nearest_to_the_ready_floor_is_served_first():
    web = replace(a_deployment("web", replicas=4), max_surge=0)
    api = replace(a_deployment("api", replicas=4), max_surge=0)
    pods = [
        *pods_of("web", 1, node="spot", cpu="2"),
        *(
            replace(p, name=f"web-{n}", uid=f"w{n}")
            for n, p in enumerate(pods_of("web", 3, node="od"), 5)
        ),
        *pods_of("api", 4, node="spot", cpu="2"),
    ]
    seen = looked([interrupted("spot"), a_node("od", cpu="2500m")], pods, [web, api])

    assert [a.pod.name for a in actions(plan_drain(seen, noon(1)), Evict)] == ["api-0"]


def test_a_budget_raises_the_floor_of_what_is_evicted():
    workload = replace(a_deployment(replicas=2), max_surge=0)
    seen = looked(
        [interrupted("spot"), a_node("od")],
        pods_of("web", 2, node="spot"),
        [workload],
        budgets=[a_budget("web", maxUnavailable=0)],
    )

    assert actions(plan_drain(seen, noon(1)), Evict) == []
    assert len(actions(plan_drain(seen, noon(90)), Evict)) == 2


def test_a_pod_of_a_node_object_that_is_no_more_serves_nobody():
    pods = [a_pod("web-5", node="vanished"), *pods_of("web", 1, node="spot")]
    plan = plan_drain(
        looked(
            [interrupted("spot"), a_node("od")],
            pods,
            [replace(a_deployment(replicas=2), max_surge=0)],
        ),
        noon(1),
    )

    (report,) = plan.reports
    assert report.lowest_ready == {"Deployment default/web": 1}
    assert report.fell == {"Deployment default/web": {1: noon(1)}}
    assert actions(plan, Evict) == []


def test_two_budgets_over_a_pod_are_named():
    seen = looked(
        [interrupted("spot"), a_node("od")],
        sets_of("db", ["spot", "spot"]),
        [a_stateful_set(replicas=2)],
        budgets=[a_budget(n, selector={}, minAvailable=1, allowed=1) for n in ("one", "two")],
    )

    plan = plan_drain(seen, noon(1))
    assert actions(plan, Evict) == []
    assert "several budgets cover: one, two" in plan.waiting["spot"][0]


def test_room_of_a_pod_that_is_stopping_is_kept_for_its_successor():
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    leaving = sets_of("db", ["spot"], cpu="2", deleting=noon(30))
    pods = [*leaving, *pods_of("web", 1, node="spot", cpu="2")]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_deployment(replicas=1)]), noon(1)
    )

    assert actions(plan, Release) == []


@pytest.mark.parametrize(
    ("cpu", "leave", "asked"), [("4", ["web-1"], []), ("2", [], [ZONE_A])], ids=["room", "no room"]
)
def test_the_successor_of_a_pod_that_is_stopping_counts_in_the_spread_of_the_next_one(
    cpu, leave, asked
):
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    homes = [("spot-b", noon(30)), ("spot-a", None), ("od-a", None), ("od-b", None)]
    pods = [
        a_pod(f"web-{n}", node=node, deleting=stops, cpu="2", topologySpreadConstraints=[spread])
        for n, (node, stops) in enumerate(homes)
    ]
    nodes = [
        interrupted("spot-a", zone=ZONE_A),
        interrupted("spot-b", zone=ZONE_B),
        a_node("od-a", zone=ZONE_A, cpu=cpu),
        a_node("od-b", zone=ZONE_B),
    ]
    workload = a_deployment(replicas=4, strategy={"type": "Recreate"})
    budget = a_budget(min_available=2, allowed=1)
    groups = [a_group(zones=[ZONE_A]), a_group("other", zones=[ZONE_B])]
    plan = plan_drain(looked(nodes, pods, [workload], budgets=[budget], groups=groups), noon(1))

    assert [evict.pod.name for evict in actions(plan, Evict)] == leave
    assert [grow.zone or grow.group.zones[0] for grow in actions(plan, Grow)] == asked


@pytest.mark.parametrize("seconds", [1, 89], ids=["stops", "is told to stop now"])
def test_no_room_is_kept_for_a_bare_pod_since_nobody_makes_it_anew(seconds):
    nodes = [interrupted("spot"), interrupted("next", ends=300), a_node("od", cpu="2")]
    deleting = None if seconds == 89 else noon(30)
    bare = a_pod("bare", node="spot", owner=None, labels={}, cpu="2", deleting=deleting)
    pods = [bare, *sets_of("db", ["next"], cpu="2")]
    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=1)]), noon(seconds))

    assert pods[1] in [evict.pod for evict in actions(plan, Evict)]


def test_no_room_is_kept_from_a_second_pod_for_a_bare_pod_that_may_go_on():
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    rolled = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}
    bare = a_pod("bare", node="spot", owner=None, labels={}, cpu="1")
    pods = [*pods_of("web", 3, node="spot", cpu="1"), bare]
    plan = plan_drain(looked(nodes, pods, [a_deployment(replicas=3, strategy=rolled)]), noon(1))

    assert len(actions(plan, Evict)) == 2


@pytest.mark.parametrize(
    ("replicas", "ready", "released"), [(3, True, 0), (2, True, 1), (3, False, 1)]
)
def test_room_of_a_pod_that_has_stopped_is_kept_until_its_stateful_set_makes_it_anew(
    replicas, ready, released
):
    nodes = [interrupted("spot"), a_node("od", cpu="2"), a_node("full", cpu="4")]
    _, *others = sets_of("db", ["spot", "full", "full"], cpu="2")
    others = [replace(pod, ready=ready) for pod in others]
    pods = [*others, *pods_of("web", 1, node="spot", cpu="2")]
    workloads = [a_stateful_set(replicas=replicas), a_deployment(replicas=1)]

    plan = plan_drain(looked(nodes, pods, workloads), noon(1))

    assert len(actions(plan, Release)) == released


def test_who_would_be_at_zero_has_the_last_room_before_who_would_not():
    nodes = [interrupted("spot"), a_node("od", cpu="4"), a_node("full", cpu="2")]
    half = a_deployment("half", replicas=2, strategy={"type": "Recreate"})
    pods = [
        *pods_of("web", 1, node="spot", cpu="4"),
        *pods_of("half", 1, node="spot", cpu="2"),
        a_pod(
            "half-9", node="full", labels={"app": "half"}, owner=("ReplicaSet", "half-abc"), cpu="2"
        ),
    ]
    plan = plan_drain(looked(nodes, pods, [half, a_deployment(replicas=1)]), noon(1))

    assert [a.replica_set.controller for a in actions(plan, Release)] == [WEB]
    assert actions(plan, Evict) == []


@pytest.mark.parametrize("name", ["second", "zebra"])
def test_no_workload_gets_a_second_place_while_another_has_none(name):
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    once = {"strategy": {"type": "Recreate"}}
    workloads = [a_deployment("first", replicas=2, **once), a_deployment(name, replicas=1, **once)]
    pods = [
        *pods_of("first", 2, node="spot", cpu="1"),
        *pods_of(name, 1, node="spot", cpu="1"),
    ]
    plan = plan_drain(looked(nodes, pods, workloads), noon(1))

    assert "headroom" not in plan.waiting["spot"][-1]
    assert sorted(a.pod.name.partition("-")[0] for a in actions(plan, Evict)) == ["first", name]


def test_a_rollout_of_a_stateful_set_is_let_finish_first():
    rolling = replace(a_stateful_set(replicas=2), rolling_out=True)
    seen = looked([interrupted("spot"), a_node("od")], sets_of("db", ["spot", "spot"]), [rolling])

    assert actions(plan_drain(seen, noon(1)), Evict) == []
    assert len(actions(plan_drain(seen, noon(90)), Evict)) == 2


def test_a_member_that_its_rollout_waits_for_leaves_its_node_before_it_serves_there():
    rolling = replace(a_stateful_set(replicas=2), rolling_out=True)
    first, last = sets_of("db", ["spot", "od"])
    nodes = [interrupted("spot"), a_node("od")]

    starting = looked(nodes, [replace(first, ready=False), last], [rolling])
    assert [a.pod.name for a in actions(plan_drain(starting, noon(1)), Evict)] == ["db-0"]

    another = looked(nodes, [first, replace(last, ready=False)], [rolling])
    assert actions(plan_drain(another, noon(1)), Evict) == []


def test_no_pod_leaves_for_a_place_that_a_replacement_made_in_the_same_plan_may_take():
    nodes = [
        interrupted("spot"),
        a_node("small", memory="4Gi"),
        a_node("wide", memory="9Gi"),
        a_node("full"),
    ]
    old = a_deployment("old", replicas=2, strategy={"type": "Recreate"})
    pods = [
        *pods_of("web", 1, node="spot", cpu="500m", memory="2Gi"),
        *pods_of("old", 1, node="spot", memory="8Gi"),
        a_pod("old-9", node="full", labels={"app": "old"}, owner=("ReplicaSet", "old-abc")),
        a_pod("fills-it", node="full", memory="31Gi", owner=None),
    ]
    plan = plan_drain(looked(nodes, pods, [old, a_deployment(replicas=1)]), noon(1))

    assert [a.replica_set.controller for a in actions(plan, Release)] == [WEB]
    assert actions(plan, Evict) == []  # the replacement of `web` may come to stand on `wide`
    assert any("take its headroom first" in words for words in plan.waiting["spot"])

    placed = replace(a_pod("web-9", node="small", memory="2Gi"), ready=False)
    later = looked(nodes, [released(pods[0]), *pods[1:], placed], [old, a_deployment(replicas=1)])
    assert [a.pod.name for a in actions(plan_drain(later, noon(2)), Evict)] == ["old-0"]


@pytest.mark.parametrize(("sleeps", "leave"), [(False, {"db-0"}), (True, {"web-0", "web-1"})])
def test_no_pod_leaves_for_a_place_that_pods_which_need_all_their_time_may_take(sleeps, leave):
    pods = pods_of("web", 3, node="spot", cpu="1", grace_seconds=300)
    web = [replace(p, hook_seconds=0 if sleeps else None) for p in pods]
    web[2] = replace(web[2], node="od")
    seen = looked(
        [interrupted("spot"), a_node("od", cpu="3")],
        [*sets_of("db", ["spot"], cpu="1"), *web],
        [a_stateful_set(replicas=1), a_deployment(replicas=3)],
        budgets=[a_budget(allowed=2, minAvailable=1)],
    )

    assert {a.pod.name for a in actions(plan_drain(seen, noon(1)), Evict)} == leave


@pytest.mark.parametrize(("sleeps", "leave"), [(False, {"db-0"}), (True, {"web-1"})])
def test_no_pod_leaves_for_a_place_that_a_member_which_needs_all_its_time_may_take(sleeps, leave):
    pods = sets_of("web", ["od", "spot"], cpu="1", grace_seconds=300)
    seen = looked(
        [interrupted("spot"), a_node("od", cpu="2")],
        [
            *sets_of("db", ["spot"], cpu="1"),
            *(replace(p, hook_seconds=0 if sleeps else None) for p in pods),
        ],
        [a_stateful_set(replicas=1), a_stateful_set("web", replicas=2)],
        budgets=[a_budget(allowed=1, minAvailable=1)],
    )

    assert {a.pod.name for a in actions(plan_drain(seen, noon(1)), Evict)} == leave


def test_no_more_replacements_are_made_than_leave_a_place_to_those_who_were_promised_one():
    nodes = [interrupted("spot"), *(a_node(f"od-{n}", cpu="2") for n in range(3))]
    leaving = sets_of("db", ["spot"], cpu="2", deleting=noon(30))
    pods = [*leaving, *pods_of("web", 4, node="spot", cpu="1")]
    plan = plan_drain(
        looked(nodes, pods, [a_stateful_set(replicas=1), a_deployment(replicas=4)]), noon(1)
    )

    assert len(actions(plan, Release)) == 2  # a third could spoil the last node
    assert plan.waiting["spot"]


def test_replacements_that_fit_nowhere_now_take_nobodys_place():
    nodes = [interrupted("spot"), a_node("od", cpu="2")]
    leaving = sets_of("db", ["spot"], cpu="2", deleting=noon(30))
    waiting = a_pod("big-0", cpu="6", owner=("ReplicaSet", "big-abc"))
    cache = a_pod(
        "cache-0", node="spot", labels={"app": "cache"}, owner=("StatefulSet", "cache"), cpu="1"
    )
    workloads = [a_stateful_set(replicas=1), a_stateful_set("cache", replicas=1)]
    crowded = looked(nodes, [*leaving, waiting, cache], workloads)
    assert (
        actions(plan_drain(crowded, noon(1)), Evict) == []
    )  # there is one place, and it is promised

    roomy = looked([*nodes, a_node("more", cpu="2")], [*leaving, waiting, cache], workloads)
    assert [a.pod.name for a in actions(plan_drain(roomy, noon(1)), Evict)] == ["cache-0"]


def test_a_pod_that_stops_has_its_place_before_anybody_else_however_near_to_the_floor():
    nodes = [interrupted("spot"), a_node("od", cpu="2"), a_node("full", cpu="1")]
    sets = sets_of("db", ["full", "full"])
    sets.append(sets_of("db", ["spot"] * 3, cpu="2", deleting=noon(30))[2])
    others = pods_of("api", 4, node="full")
    others[0] = replace(others[0], node="spot", scheduling=sets[2].scheduling)
    api = replace(a_deployment("api", replicas=4), max_surge=0)
    plan = plan_drain(looked(nodes, [*sets, *others], [a_stateful_set(replicas=3), api]), noon(1))

    assert actions(plan, Evict) == []
    assert any("waits for headroom" in words for words in plan.waiting["spot"])


@pytest.mark.parametrize(("waits", "leaves"), [(False, ["db-0"]), (True, [])])
def test_a_pod_that_waits_for_a_node_may_take_the_only_place_of_another_first(waits, leaves):
    nodes = [interrupted("spot"), a_node("empty"), a_node("od", cpu="2", labels={"disk": "ssd"})]
    pods = sets_of("db", ["spot"], cpu="2", nodeSelector={"disk": "ssd"})
    waiting = [a_pod("any", cpu="1", labels={}, owner=None)] if waits else []
    plan = plan_drain(looked(nodes, [*pods, *waiting], [a_stateful_set(replicas=1)]), noon(1))

    assert [a.pod.name for a in actions(plan, Evict)] == leaves


@pytest.mark.parametrize("replicas", [4, 3], ids=["a surge of 1", "a surge of 0.75"])
@pytest.mark.parametrize(("rolling_out", "leaves"), [(False, ["db-0"]), (True, [])])
def test_a_rollout_may_take_any_place_at_any_moment(rolling_out, leaves, replicas):
    nodes = [interrupted("spot"), a_node("od", cpu="2"), a_node("full", cpu=str(replicas))]
    new = replace(a_deployment("new", replicas=replicas), rolling_out=rolling_out)
    pods = [*sets_of("db", ["spot"], cpu="2"), *pods_of("new", replicas, node="full", cpu="1")]
    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=1), new]), noon(1))

    assert [a.pod.name for a in actions(plan, Evict)] == leaves


def test_a_pod_of_an_unknown_controller_waits_until_the_one_before_it_is_made_anew():
    owner = Ref("Database", "default", "db")
    pods = [
        a_pod(f"db-{n}", node="spot", owner=(owner.kind, owner.name), labels={"app": "db"})
        for n in range(3)
    ]
    memory = ReconcileMemory()
    evicted = []
    for left in (pods, pods[:2]):
        seen = looked([interrupted("spot"), a_node("od")], left)
        memory.count(seen, noon(1))
        plan = plan_drain(seen.among(counts=memory.counts), noon(1))
        evicted.append(len(actions(plan, Evict)))
    assert evicted == [1, 0]


@pytest.mark.parametrize(("grace_seconds", "evicted"), [(30, 0), (300, 1)])
def test_a_pod_that_needs_all_its_time_does_not_wait_until_others_may_be_made_anew(
    grace_seconds, evicted
):
    owner = Ref("Database", "default", "db")
    how = {"labels": {"app": "db"}, "owner": (owner.kind, owner.name)}
    pods = [a_pod(f"db-{n}", node="spot", grace_seconds=grace_seconds, **how) for n in range(2)]
    seen = looked(
        [interrupted("spot"), a_node("od")],
        [replace(pod, hook_seconds=0) for pod in pods],
        budgets=[a_budget("db", allowed=1, minAvailable=1)],
    )

    plan = plan_drain(seen.among(uncounted=frozenset({owner})), noon(1))

    assert len(actions(plan, Evict)) == evicted


def not_cordoned(kind: str, *, ends: float | None) -> Node:
    """Return a node with a notice that is still open to pods."""
    node = interrupted("open", kind=kind, ends=ends)
    assert node.interruption is not None
    waits = replace(node.interruption, cordoned=None)
    return replace(node, interruption=waits, unschedulable=False)


def test_nothing_moves_to_a_node_whose_turn_comes_in_the_same_plan():
    nodes = [interrupted("spot"), not_cordoned("spot-interruption", ends=300)]
    seen = looked(nodes, sets_of("db", ["spot", "spot"]), [a_stateful_set(replicas=2)])
    plan = plan_drain(seen, noon(5))
    assert [action.node.name for action in actions(plan, Cordon)] == ["open"]
    assert actions(plan, Evict) == []


def test_no_node_is_cordoned_on_advice_while_another_has_a_near_deadline():
    nodes = [interrupted("spot"), not_cordoned("rebalance-recommendation", ends=None)]
    seen = looked(nodes, sets_of("db", ["spot", "spot"]), [a_stateful_set(replicas=2)])
    plan = plan_drain(seen, noon(5))
    assert actions(plan, Cordon) == []
    assert len(actions(plan, Evict)) == 1
    assert "until no deadline is near" in plan.waiting["open"][0]


def test_interrupted_nodes_come_by_their_deadlines_and_those_without_one_last():
    nodes = [
        interrupted("a", kind="rebalance-recommendation", ends=None),
        interrupted("b", ends=120),
        a_node("c"),
        interrupted("d", ends=60),
    ]

    assert [node.name for node in InterruptedNodes.of(looked(nodes, [])).nodes] == ["d", "b", "a"]


def test_who_waits_for_the_ready_floor_is_told_how_many_serve_after_what_leaves_now():
    """Two pods may leave of four of which two must serve: the sentence about the third says so."""
    pods = pods_of("web", 4, node="spot")
    workload = a_deployment(replicas=4, strategy=max_unavailable(2))
    plan = plan_drain(looked([interrupted("spot"), a_node("od")], pods, [workload]), noon(1))

    assert len(actions(plan, Evict)) == 2
    (words,) = [words for words in plan.waiting["spot"] if "must serve" in words]
    assert "2 must serve, and 2 serve after the evictions of now" in words


def max_unavailable(count: int) -> dict[str, object]:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": count},
    }
