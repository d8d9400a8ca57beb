"""The plan of a fleet: whole nodes, pods that stay, and few nodes that change."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from plimsoll_service.domain.gpu import CARDS, GpuNode, geometries_of, plan_fleet, supply
from plimsoll_service.domain.gpu.geometry import Counts, MigGeometries
from plimsoll_service.domain.gpu.layouts import Layout
from tests.support.exact_geometry import most_kept_by_solver

H100 = geometries_of(CARDS["H100-80GB-HBM3"])
WHOLE = H100.counts({"gpu": 1})
SEVEN = H100.counts({"1g.10gb": 7})
TWO = H100.counts({"3g.40gb": 2})


def node(name: str, layout: Layout, *, stays: bool = False) -> GpuNode:
    return GpuNode(name=name, layout=layout, stays=stays)


def given(layouts: list[Layout]) -> Counts:
    return tuple(map(sum, zip(*map(supply, layouts), strict=True)))


def holds(layouts: list[Layout], demand: Counts) -> bool:
    return all(have >= want for have, want in zip(given(layouts), demand, strict=True))


def random_counts(draw: random.Random, most: int, geometries: MigGeometries = H100) -> Counts:
    return (
        0,
        *(draw.randint(0, most) for _ in geometries.names[1:-1]),
        draw.randint(0, most // 10),
    )


def test_whole_gpus_that_nobody_needs_whole_become_slices_and_the_other_nodes_may_go():
    nodes = [node(f"n{number}", (WHOLE,) * 8) for number in range(3)]
    plan = plan_fleet(H100, H100.counts({"1g.10gb": 20, "3g.40gb": 4}), nodes, per_node=8)
    assert (plan.before, plan.bound, plan.after) == (24, 5, 8)
    assert [each.after is None for each in plan.nodes] == [False, True, True]
    assert plan.rebuilt == 8


def test_nodes_are_added_where_there_are_too_few_gpus():
    plan = plan_fleet(H100, H100.counts({"7g.80gb": 17}), [], per_node=8)
    assert [each.name for each in plan.nodes] == ["new-1", "new-2", "new-3"]
    assert plan.bound == 17
    assert plan.after == 24


def test_a_node_with_a_pod_that_stays_keeps_its_layout_and_its_free_slices_are_used():
    nodes = [node("a", (WHOLE,) * 2), node("b", (SEVEN, TWO), stays=True)]
    plan = plan_fleet(H100, H100.counts({"1g.10gb": 7, "3g.40gb": 2}), nodes, per_node=2)
    assert {each.name: each.after for each in plan.nodes} == {"a": None, "b": (SEVEN, TWO)}
    assert plan.rebuilt == 0


def test_a_pod_that_stays_may_cost_more_than_the_bound_and_the_plan_says_how_much():
    nodes = [node("a", (WHOLE,), stays=True), node("b", (WHOLE,))]
    plan = plan_fleet(H100, H100.counts({"1g.10gb": 7}), nodes, per_node=1)
    assert (plan.bound, plan.needed, plan.after) == (1, 2, 2)


def test_a_layout_that_the_optimum_allows_is_not_touched():
    nodes = [node("a", (TWO,)), node("b", (SEVEN,)), node("c", (WHOLE,))]
    demand = H100.counts({"1g.10gb": 7, "3g.40gb": 2, "4g.40gb": 1})
    plan = plan_fleet(H100, demand, nodes, per_node=1)
    assert [each.name for each in plan.nodes if each.changed] == ["c"]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("size", [1, 8])
def test_the_fewest_whole_nodes_hold_the_demand(seed: int, size: int):
    draw = random.Random(seed)
    old = plan_fleet(H100, random_counts(draw, 60), [], per_node=size)
    nodes = [
        node(f"old-{each.name}", each.after or (), stays=draw.random() < 0.1) for each in old.nodes
    ]
    demand = random_counts(draw, 60)
    plan = plan_fleet(H100, demand, nodes, per_node=size)
    assert holds([each.after for each in plan.nodes if each.after], demand)
    assert plan.after == -(-plan.needed // size) * size
    if not any(each.stays for each in nodes):
        assert plan.needed == plan.bound == H100.needed(demand)


@pytest.mark.parametrize("seed", range(20))
def test_a_new_node_has_at_most_two_geometries_where_nodes_are_no_fewer_than_geometries(seed: int):
    plan = plan_fleet(H100, random_counts(random.Random(seed), 300), [], per_node=8)
    used = {geometry for each in plan.nodes for geometry in each.after or ()}
    assert len(used) <= len(plan.nodes)
    assert max(len(set(each.after or ())) for each in plan.nodes) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_few_more_gpus_are_rebuilt_than_the_solver_needs(seed: int):
    draw = random.Random(seed)
    before = random_counts(draw, 200)
    after = (0, *(round(count * draw.uniform(0.8, 1.2)) for count in before[1:]))
    old = plan_fleet(H100, before, [], per_node=1)
    nodes = [node(f"old-{each.name}", each.after or ()) for each in old.nodes]
    plan = plan_fleet(H100, after, nodes, per_node=1)
    kinds = Counter(supply(each.layout) for each in nodes)
    limit = H100.needed(after)
    best = limit - most_kept_by_solver(H100, after, list(kinds.items()), limit)
    rebuilt_or_new = sum(each.changed or each.before is None for each in plan.nodes)
    assert best <= rebuilt_or_new <= best + max(2, limit // 50)
