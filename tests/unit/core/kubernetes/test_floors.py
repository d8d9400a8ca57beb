"""The ready floor, and how Kubernetes rounds what it is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    budget_keeps,
    ready_floor,
    resolve_count,
    runs_twice,
    unavailable,
)
from tests.support.builders import a_budget


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (2, 10, 2, 2),
        (0, 10, 0, 0),
        ("25%", 6, 2, 1),
        ("25%", 4, 1, 1),
        ("25%", 1, 1, 0),
        ("30%", 10, 3, 3),
        ("29%", 100, 29, 29),
        ("100%", 7, 7, 7),
        ("0%", 7, 0, 0),
    ],
)
def test_percentages_round_exactly(value, total, up, down):
    assert resolve_count(value, total, round_up=True) == up
    assert resolve_count(value, total, round_up=False) == down


@pytest.mark.parametrize("value", ["25", "x%", "-1%", "", "2.5%", -1])
def test_what_is_no_count_and_no_percentage_is_refused_with_an_example(value):
    with pytest.raises(BadInput, match="25%"):
        resolve_count(value, 10, round_up=True)


def test_a_deployment_that_could_neither_surge_nor_miss_a_pod_may_miss_one():
    assert unavailable(2, "25%", 0) == 1
    assert unavailable(2, "25%", "25%") == 0


@pytest.mark.parametrize(
    ("kind", "replicas", "strategy", "keeps", "floor"),
    [
        ("Deployment", 6, "RollingUpdate", 0, 5),
        ("Deployment", 4, "RollingUpdate", 0, 3),
        ("Deployment", 3, "RollingUpdate", 0, 3),
        ("Deployment", 1, "RollingUpdate", 0, 1),
        ("Deployment", 6, "RollingUpdate", 6, 6),
        ("Deployment", 0, "RollingUpdate", 0, 0),
        ("Deployment", 1, "Recreate", 1, 0),
        ("Deployment", 3, "Recreate", 0, 1),
        ("Deployment", 3, "Recreate", 2, 2),
        ("StatefulSet", 3, "RollingUpdate", 0, 2),
        ("StatefulSet", 2, "RollingUpdate", 0, 1),
        ("StatefulSet", 1, "RollingUpdate", 1, 0),
        ("StatefulSet", 0, "RollingUpdate", 0, 0),
        ("ReplicaSet", 4, "RollingUpdate", 0, 3),
        ("ReplicaSet", 1, "RollingUpdate", 0, 1),
        ("Job", 3, "RollingUpdate", 0, 0),
    ],
)
def test_the_ready_floor_of_each_kind(kind, replicas, strategy, keeps, floor):
    assert ready_floor(kind, replicas, strategy, budget_keeps=keeps) == floor


def test_a_floor_uses_the_rollout_settings_of_the_workload():
    assert ready_floor("Deployment", 10, max_unavailable=3) == 7
    assert ready_floor("Deployment", 10, max_unavailable="100%") == 1
    assert ready_floor("Deployment", 2, max_unavailable="25%", max_surge=0) == 1


@pytest.mark.parametrize(
    ("fields", "keeps"),
    [
        ({"min_available": 3}, 3),
        ({"min_available": "50%"}, 3),
        ({"min_available": 9}, 5),
        ({"max_unavailable": 0}, 5),
        ({"max_unavailable": "30%"}, 3),
        ({"max_unavailable": 9}, 0),
        ({}, 0),
    ],
)
def test_what_a_budget_keeps_of_five_rounds_up_both_ways(fields, keeps):
    assert budget_keeps(replace(a_budget(), **fields), 5, expected=5) == keeps


def test_a_budget_over_several_workloads_keeps_of_one_what_the_others_cannot_give():
    eight = a_budget(minAvailable=8)
    assert budget_keeps(eight, 4, expected=10) == 2
    assert budget_keeps(eight, 6, expected=10) == 4
    assert budget_keeps(a_budget(maxUnavailable=0), 4, expected=10) == 4
    assert budget_keeps(a_budget(maxUnavailable="20%"), 4, expected=10) == 2


@pytest.mark.parametrize(
    ("replicas", "keeps", "floor"),
    [
        pytest.param(11, 7, 7, id="the budget is the floor"),
        pytest.param(11, 3, 6, id="a majority stays whatever it allows"),
        pytest.param(11, 11, 11, id="a budget may keep all"),
        pytest.param(3, 0, 2, id="a majority of three"),
        pytest.param(2, 0, 1, id="one of two"),
    ],
)
def test_a_stateful_set_with_a_budget_of_its_own_may_miss_what_that_allows_down_to_a_majority(
    replicas, keeps, floor
):
    assert ready_floor("StatefulSet", replicas, budget_keeps=keeps, one_budget=True) == floor


@given(
    kind=st.sampled_from(["Deployment", "StatefulSet", "ReplicaSet"]),
    replicas=st.integers(0, 200),
    strategy=st.sampled_from(["RollingUpdate", "Recreate"]),
    missing=st.one_of(st.integers(0, 300), st.integers(0, 100).map("{}%".format)),
    keeps=st.integers(0, 300),
)
def test_a_floor_is_between_one_and_the_replicas_where_the_workload_can_run_twice(
    kind, replicas, strategy, missing, keeps
):
    floor = ready_floor(kind, replicas, strategy, missing, keeps)
    if runs_twice(kind, replicas, strategy):
        assert max(1, min(keeps, replicas)) <= floor <= replicas
    else:
        assert floor == 0
