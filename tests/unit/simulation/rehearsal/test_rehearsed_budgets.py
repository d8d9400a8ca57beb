"""Which budgets are named as obstacles: those that let none of a workload go, by all pods that they cover."""

from __future__ import annotations

import pytest

from plimsoll_simulation.rehearsal.obstacles import obstacles
from tests.support.builders import a_budget, a_node, a_stateful_set
from tests.support.observations import looked, noon, sets_of


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        pytest.param({"minAvailable": 5}, [], id="one of six may be missing"),
        pytest.param({"maxUnavailable": "10%"}, [], id="a share of six rounds up to one"),
        pytest.param({"minAvailable": 6}, ["db", "hot"], id="none may"),
        pytest.param({"maxUnavailable": 0}, ["db", "hot"], id="none, in other words"),
    ],
)
def test_a_budget_over_two_sets_is_an_obstacle_only_where_it_lets_none_of_them_go(spec, named):
    spot = a_node("spot", capacity="spot")
    seen = looked(
        [spot, a_node("od")],
        [*sets_of("db", ["spot", "od", "od"]), *sets_of("hot", ["spot", "od", "od"])],
        [a_stateful_set("db", replicas=3), a_stateful_set("hot", replicas=3)],
        budgets=[a_budget("shared", selector={}, **spec)],
    )

    found = [o.workload for o in obstacles(seen, [spot], noon(0)) if o.kind == "budget"]
    assert found == [f"StatefulSet default/{name}" for name in named]
