"""What keeps floors from standing is named by the plan and told on the object, and costs nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import MIN_ON_DEMAND, MOST_NAMED, Pod, Workload
from plimsoll.domain.observation import ObservedTime, WorkloadTimes
from plimsoll.domain.placement import Layout, PlacementPlan, floors_by_stop_time, plan_placement
from tests.support.builders import NOON, a_deployment, a_node, a_pod
from tests.support.observations import looked


def asking(name: str, floor: str, replicas: int = 4) -> Workload:
    return a_deployment(name, replicas=replicas, annotations={MIN_ON_DEMAND: floor})


def told(plan: PlacementPlan) -> list[tuple[str, str]]:
    return [(event.reason, event.about.name) for event in plan.events]


def spot(name: str):
    return a_node(name, capacity="spot", labels={"node.kubernetes.io/instance-type": "m5.large"})


def test_a_floor_above_the_replicas_is_told_and_asks_for_all_of_them():
    asked = [asking("web", "9"), asking("cart", "1"), asking("shop", "4")]
    plan = plan_placement(looked([a_node("od")], [], asked), NOON)
    assert told(plan) == [("FloorAboveReplicas", "web")]
    assert "asks for 9 on on-demand and has 4 replicas" in plan.problems[0]
    assert [standing.floor.keep for standing in plan.workloads] == [4, 1, 4]


def test_a_workload_scaled_to_nothing_has_no_floor_to_miss():
    plan = plan_placement(looked([a_node("od")], [], [asking("web", "2", replicas=0)]), NOON)
    assert not plan.problems


def test_a_node_that_nobody_calls_on_demand_or_spot_is_told_and_left_out():
    nodes = [a_node("od"), spot("m5"), a_node("bare", capacity=None)]
    plan = plan_placement(looked(nodes, [], [asking("web", "1")]), NOON)
    assert told(plan) == [("CapacityUnknown", "bare")]
    assert "bare" not in {name for group in plan.groups for name in group.nodes}


def test_of_many_such_nodes_a_few_are_named():
    nodes = [a_node("od"), *(a_node(f"bare-{n}", capacity=None) for n in range(50))]
    plan = plan_placement(looked(nodes, [], [asking("web", "1")]), NOON)
    assert len(plan.problems) == MOST_NAMED
    assert "49 other nodes say neither" in plan.problems[0]


def test_in_a_cluster_of_spot_alone_every_owner_of_a_floor_is_told():
    plan = plan_placement(looked([spot("m5"), spot("c5")], [], [asking("web", "1")]), NOON)
    assert told(plan) == [("NoOnDemandNode", "web")]
    assert not plan.workloads[0].met


def test_where_nobody_asks_for_a_floor_nothing_is_a_problem():
    nodes = [spot("m5"), a_node("bare", capacity=None)]
    assert not plan_placement(looked(nodes, [], [asking("web", "0")]), NOON).problems


def serving(*nodes: str, took: int) -> list[Pod]:
    """Return pods of a model that took so long to start; each has a GPU."""
    pods = [
        a_pod(f"web-{n}", node=node, owner=("ReplicaSet", "web-abc"))
        for n, node in enumerate(nodes)
    ]
    gpu = replace(pods[0].scheduling.requests, extended=(("nvidia.com/gpu", 1),))
    scheduling = replace(pods[0].scheduling, requests=gpu)
    return [
        replace(pod, scheduling=scheduling, start_seconds=took, ready_since=NOON) for pod in pods
    ]


def test_on_demand_is_asked_for_what_one_pool_runs_where_a_model_loads_for_longer_than_a_pod_serves():
    nodes = [spot("a"), spot("b"), a_node("od")]
    slow = serving("a", "a", "b", "od", took=240)
    plan = plan_placement(looked(nodes, slow, [a_deployment("web", replicas=4)]), NOON)
    assert told(plan) == [("FloorBelowPool", "web")]
    assert 'min-on-demand: "3"' in plan.problems[0]
    stated = plan_placement(looked(nodes, slow, [asking("web", "3")]), NOON)
    assert "FloorBelowPool" not in {reason for reason, _ in told(stated)}
    for pods in (serving("a", "a", "b", "od", took=16), serving("a", "od", took=240)):
        assert told(plan_placement(looked(nodes, pods, [a_deployment("web")]), NOON)) == []


@pytest.mark.parametrize("how", ["workload", "namespace", "cluster"])
def test_who_leaves_the_floor_to_plimsoll_gets_one_while_the_model_loads_for_longer_than_a_pod_serves(
    how,
):
    nodes = [spot("a"), spot("b"), a_node("od")]

    def planned(took: int) -> PlacementPlan:
        web = a_deployment(
            "web", replicas=4, annotations={MIN_ON_DEMAND: "auto"} if how == "workload" else {}
        )
        seen = looked(nodes, serving("a", "a", "b", "od", took=took), [web])
        if how == "cluster":
            seen = replace(seen, policy=Policy(min_on_demand="auto"))
        return plan_placement(
            seen, NOON, namespaces={"default": "auto"} if how == "namespace" else {}
        )

    (standing,) = planned(240).workloads
    assert (standing.floor.keep, standing.floor.layout) == (1, Layout(1, 3))
    assert "240 s to start" in standing.floor.reason
    assert "FloorBelowPool" not in {reason for reason, _ in told(planned(240))}
    assert not planned(16).workloads
    assert planned(
        17
    ).workloads  # 2 s and 70 s for a node: 1 s later than the old pod is asked to stop


def test_the_floor_that_an_owner_states_wins_over_one_that_the_cluster_leaves_to_plimsoll():
    nodes = [spot("a"), spot("b"), a_node("od")]
    slow = looked(nodes, serving("a", "a", "b", "od", took=240), [asking("web", "0")])
    plan = plan_placement(replace(slow, policy=Policy(min_on_demand="auto")), NOON)
    assert not plan.workloads
    assert told(plan) == [("FloorBelowPool", "web")]


@pytest.mark.parametrize(
    ("floor", "took", "asked"),
    [
        ("auto", 25, True),  # late by 9 s if its pods need 30 s to stop, in time if they need 10
        ("auto", 15, False),
        ("auto", 240, False),
        ("1", 25, False),
    ],
)
def test_the_stop_time_is_looked_up_where_the_floor_hinges_on_it(floor, took, asked):
    nodes = [spot("a"), spot("b"), a_node("od", cpu="0")]
    seen = looked(nodes, serving("a", "a", "b", took=took), [asking("web", floor)])
    found = floors_by_stop_time(StartWindows(seen=seen, now=NOON), {})
    assert [ref.name for ref in found] == ["web"] * asked
    stops = WorkloadTimes(stop=ObservedTime(pods=4, p95_seconds=4))
    known = replace(seen, times=dict.fromkeys(found, stops))
    if asked:
        assert plan_placement(seen, NOON).workloads
        assert not plan_placement(known, NOON).workloads
