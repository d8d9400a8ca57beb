"""Budgets over several workloads are drawn, and no rule is broken for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll_simulation.storms import draw_budgets, draw_storm, play_storm
from tests.support.storms import WEB, a_batch, a_group, a_storm


def test_budgets_over_several_workloads_are_drawn_in_both_forms(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(draw_budgets, "SHARED", 1.0)
    specs = [
        each["spec"]
        for seed in range(40)
        for each in draw_storm(seed).objects
        if each["kind"] == "PodDisruptionBudget"
    ]
    assert {field for spec in specs for field in spec} == {
        "maxUnavailable",
        "minAvailable",
        "selector",
    }
    assert {len(s["selector"]["matchExpressions"][0]["values"]) for s in specs} == {2, 3}


def test_two_sets_under_one_budget_move_one_member_at_a_time_and_no_rule_is_broken():
    names = ["db", "hot"]
    sets = [
        replace(WEB, kind="StatefulSet", name=name, replicas=3, nodes=("spot-1-1", "spot-1-2"))
        for name in names
    ]
    apps = {"matchExpressions": [{"key": "app", "operator": "In", "values": names}]}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shared"},
        "spec": {"minAvailable": 5, "selector": apps},
    }
    storm = a_storm(
        groups=(a_group("base", "on-demand", 3), a_group("spot-1", "spot", 2)),
        workloads=tuple(sets),
        events=(a_batch("spot-1", 2),),
        objects=(budget,),
    )
    played = play_storm(storm)
    lost = {name: loss.seconds_below_floor for name, loss in played.losses.items()}

    assert (played.settled, played.violations) == (True, ())
    assert lost == {"StatefulSet default/db": 0, "StatefulSet default/hot": 0}
