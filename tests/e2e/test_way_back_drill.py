"""Two hours after all spot went, with pods that return to spot and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

DRILL: Final = (
    Path(__file__).parents[1] / "drills" / "returns" / "no-way-back-to-spot" / "drill.yaml"
)
PODS: Final = 16


def played(*, returns: bool) -> Report:
    drill = read_drill(DRILL)
    (cluster,) = drill.scenario.clusters
    cluster = cluster.model_copy(update={"return_to_spot": returns})
    scenario = drill.scenario.model_copy(update={"clusters": (cluster,)})
    return run(replace(drill, scenario=scenario), responder="plimsoll", seed=scenario.seed)


@pytest.mark.long
def test_pods_return_to_spot_where_their_owner_lets_them_and_nobody_is_worse_off_by_it():
    stays, returns = played(returns=False), played(returns=True)

    def on_spot(report: Report) -> int:
        return sum(workload["ready_on_spot"] for workload in report["workloads"])

    def cost(report: Report) -> float:
        return float(report["totals"]["cost_vs_all_on_demand"])

    assert (on_spot(stays), round(cost(stays), 2)) == (0, 0.93)
    assert on_spot(returns) > PODS / 2
    assert cost(returns) < 0.76
    assert returns["expect"]["failures"] == []
    assert returns["totals"]["seconds_below_floor"] == stays["totals"]["seconds_below_floor"]
