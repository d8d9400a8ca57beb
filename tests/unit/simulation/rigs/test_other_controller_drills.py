"""The kept drills about neighbours that drain, and who has to answer for the cordons beside them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.responders import Responder
from plimsoll_simulation.rigs.simulated.rig import Simulation, run
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.cordons import Cordons
from plimsoll_simulation.storms.endings import endings_wrong
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery
from plimsoll_simulation.storms.watch import Watch
from tests.support.storms import a_batch, a_group, a_storm

DRILLS: Final = Path(__file__).parents[3] / "drills" / "other-controllers"
HANDLER: Final = "handler-at-the-notice"
GUARD: Final = '  labels: {plimsoll.dev/guard: "true"}\n'


def played(file: Path, responder: str = "plimsoll") -> Report:
    return run(read_drill(file), responder=responder, seed=7)


@pytest.mark.parametrize("name", sorted(folder.name for folder in DRILLS.iterdir()))
def test_a_kept_drill_holds_what_it_expects(name: str) -> None:
    assert played(DRILLS / name / "drill.yaml")["expect"]["failures"] == []


def test_without_the_guard_the_handler_leaves_nothing_ready_and_plimsoll_makes_it_no_longer(
    tmp_path: Path,
) -> None:
    for name in ("drill.yaml", "workloads.yaml"):
        text = (DRILLS / HANDLER / name).read_text()
        assert (GUARD in text) == (name == "workloads.yaml")
        (tmp_path / name).write_text(text.replace(GUARD, ""))
    ours, alone = (
        played(tmp_path / "drill.yaml", who)["totals"]["seconds_at_zero"]
        for who in ("plimsoll", "none")
    )
    assert 60 < ours <= alone


def test_beside_karpenter_without_a_delay_no_workload_is_worse_off_than_with_karpenter_alone() -> (
    None
):
    file = DRILLS / "karpenter-at-once" / "drill.yaml"
    ours, alone = (
        {row["name"]: row["ready_replica_seconds_lost"] for row in played(file, who)["workloads"]}
        for who in ("plimsoll", "none")
    )
    assert {name: lost - alone[name] for name, lost in ours.items() if lost > alone[name] + 5} == {}
    assert alone["lone"] > 60


class Silent(Responder):
    """Hands in no report."""

    def __init__(self) -> None:
        """Need no context."""


@pytest.mark.parametrize("ours", [True, False])
def test_a_node_that_only_somebody_else_cordoned_needs_no_report(*, ours: bool) -> None:
    simulation = Simulation(read_storm(a_storm()), responder="plimsoll", seed=1)
    watch = Watch(simulation, "plimsoll", NoticeDelivery([]))
    simulation.run()
    simulation.clock.run_until(simulation.clock.now() + timedelta(minutes=3))
    assert list(watch.cordons.ours) == ["spot-1-1"]
    simulation.responder = Silent()
    simulation.measurement.reports.clear()
    cordons = watch.cordons if ours else Cordons(others={"spot-1-1"})
    rig_cluster, delivery = simulation.rig_clusters["harbor"], NoticeDelivery([])
    found = endings_wrong(simulation, rig_cluster, watch.observe(), delivery, cordons)
    assert [rule for rule, _ in found] == (["not-reported"] if ours else [])


@pytest.mark.parametrize("other_controller", [None, "nth", "kubectl-drain"])
def test_it_is_told_who_cordoned_which_node(other_controller: str | None) -> None:
    advised: dict[str, Any] = {"notice": "rebalance-recommendation"}
    storm = a_storm(
        groups=(a_group("base", "on-demand", 2), a_group("spot-1", "spot", 2)),
        events=(a_batch("spot-1", 2, **advised),),
        other_controllers=(other_controller,) if other_controller else (),
    )
    simulation = Simulation(read_storm(storm), responder="plimsoll", seed=1)
    watch = Watch(simulation, "plimsoll", NoticeDelivery([]))
    simulation.prepare()
    simulation.begin()
    simulation.clock.run_until(simulation.clock.now() + timedelta(seconds=50))
    (first,) = watch.cordons.ours  # one in an hour
    assert isinstance(watch.cordons.ours[first], datetime)
    assert watch.cordons.others == (
        {"spot-1-1", "spot-1-2"} if other_controller == "nth" else set()
    )
    simulation.close()
