"""What keeps floors from standing is named by the plan and told on the object, and costs nobody else."""

from __future__ import annotations

from plimsoll.domain.kubernetes import MIN_ON_DEMAND, MOST_NAMED, Workload
from plimsoll.domain.placement import PlacementPlan, plan_placement
from tests.support.builders import NOON, a_deployment, a_node
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
