"""The kept drills about capacity: who is asked, and how soon."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll.domain.node_groups import (
    FIRST_SIGN_WITHIN,
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NodeGroup,
    NoFreeAddresses,
    VcpuQuota,
)
from plimsoll.services.reconcile_memory import BUSY
from plimsoll_simulation.fake_aws.fleet import ANSWER
from plimsoll_simulation.fake_aws.launch_refusals import LAUNCH_FAULTS
from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.report import as_text
from plimsoll_simulation.rigs.simulated.aws import SimulatedNodeGroups
from plimsoll_simulation.rigs.simulated.responders import Plimsoll
from plimsoll_simulation.rigs.simulated.rig import Simulation, run
from plimsoll_simulation.scenario.drill import read_drill

DRILLS: Final = Path(__file__).parents[3] / "drills" / "capacity"
ELSEWHERE: Final = 15.0
"""Seconds from a refusal until another group must have been asked."""
CURES: Final = {
    "insufficient-capacity": (InsufficientCapacity.kind, InsufficientCapacity.cure),
    "launch-template-broken": (LaunchTemplateBroken.kind, LaunchTemplateBroken.cure),
    "launches-throttled": (LaunchesThrottled.kind, LaunchesThrottled.cure),
    "subnet-full": (NoFreeAddresses.kind, NoFreeAddresses.cure),
    "vcpu-quota": (VcpuQuota.kind, VcpuQuota.cure),
}
"""Fault -> what it is told as, and what cures it."""


def played(file: Path) -> dict[str, Any]:
    report = run(read_drill(file), responder="plimsoll", seed=7, listener=Quiet())
    found: dict[str, Any] = json.loads(as_text(report))
    return found


def first_asked(report: dict[str, Any], group: str) -> float | None:
    (row,) = (row for row in report["capacity"] if row["group"] == group)
    seconds: float | None = row["first_asked"]
    return seconds


HOW: Final = pytest.mark.parametrize(
    ("kind", "answered"),
    [
        pytest.param("asg", 0.0, id="told at once by LaunchInstances"),
        pytest.param(
            "eks-nodegroup", ANSWER.total_seconds(), id="told by activities and health issues"
        ),
    ],
)


def starving(folder: Path, fault: str, kind: str) -> Path:
    """Write the drill in which a group starves, for another kind of group and of refusal."""
    text = (DRILLS / "first-group-starves" / "drill.yaml").read_text()
    text = text.replace("insufficient-capacity", fault)
    text = text.replace("kind: eks-nodegroup", f"kind: {kind}", 1)
    if fault == "vcpu-quota":  # it counts all on-demand instances of the standard families
        text = text.replace("r6i.2xlarge", "g5.2xlarge")
    workloads = (DRILLS / "first-group-starves" / "workloads.yaml").read_text()
    (folder / "workloads.yaml").write_text(workloads)
    (folder / "drill.yaml").write_text(text)
    return folder / "drill.yaml"


def announced(file: Path) -> tuple[dict[str, Any], str]:
    """Return the report of a drill, and what people are told of it once it is over."""
    with Simulation(read_drill(file), responder="plimsoll", seed=7) as simulation:
        report = json.loads(as_text(simulation.run()))
        simulation.clock.run_until(simulation.clock.now() + timedelta(minutes=5))
        assert isinstance(simulation.responder, Plimsoll)
        ((_, text),) = simulation.responder.announcer.told
        return report, text


@HOW
@pytest.mark.parametrize("fault", sorted(LAUNCH_FAULTS))
def test_after_any_refusal_another_group_is_asked_within_fifteen_seconds_and_the_cure_announced(
    tmp_path: Path, fault: str, kind: str, answered: float
) -> None:
    report, text = announced(starving(tmp_path, fault, kind))

    asked, elsewhere = first_asked(report, "base"), first_asked(report, "spare")
    assert asked is not None
    assert elsewhere is not None
    within = ELSEWHERE
    if fault == "launches-throttled":
        within = 2 + (FIRST_SIGN_WITHIN.total_seconds() if answered else BUSY.total_seconds())
    assert 0 < elsewhere - asked - answered <= within
    assert report["expect"]["failures"] == []
    reasons = [reason for each in report["reports"] for reason in each["reasons"]]
    assert any("base was refused" in reason and "Cure: " in reason for reason in reasons)
    kind_of_refusal, cure = CURES[fault]
    lines = [line for line in text.splitlines() if line.startswith("No nodes: base")]
    (told,) = (line for line in lines if kind_of_refusal in line)
    assert told.endswith(f"Cure: {cure}")


def test_a_group_takes_what_its_maximum_allows_and_the_next_one_the_rest() -> None:
    report = played(DRILLS / "group-at-its-maximum" / "drill.yaml")
    added = {row["group"]: row["nodes_added"] for row in report["capacity"]}
    assert (added["base"], added["spare"]) == (1, 3)
    assert first_asked(report, "base") == first_asked(report, "spare")


def test_where_all_groups_are_at_their_maxima_that_is_announced_with_its_cure(
    tmp_path: Path,
) -> None:
    for name in ("drill.yaml", "workloads.yaml"):
        text = (DRILLS / "group-at-its-maximum" / name).read_text()
        (tmp_path / name).write_text(text.replace("max: 12", "max: 1"))
    _, text = announced(tmp_path / "drill.yaml")
    for name in ("base", "spare"):
        assert f"No nodes: {name} was refused (group-maximum)" in text
    assert f"at its maximum of 1 nodes. Cure: {GroupMaximum.cure}" in text


def test_nodes_that_are_only_slow_are_waited_for() -> None:
    report = played(DRILLS / "nodes-of-150-seconds" / "drill.yaml")
    assert first_asked(report, "base") is not None
    assert first_asked(report, "spare") is None


@pytest.mark.parametrize("others", [1, 2])
def test_an_autoscaler_that_raises_the_same_group_between_our_read_and_our_write_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    ask = SimulatedNodeGroups.grow

    def after_others(self: SimulatedNodeGroups, group: NodeGroup, *how: Any) -> int:
        self._fleet.raise_desired(group.name, others, self._clock.now())
        return ask(self, group, *how)

    monkeypatch.setattr(SimulatedNodeGroups, "grow", after_others)
    report = played(DRILLS / "nodes-of-150-seconds" / "drill.yaml")
    added = {row["group"]: row["nodes_added"] for row in report["capacity"]}
    assert added["base"] == others, "it is never lowered, and not asked for twice"
    assert report["expect"]["failures"] == []


@pytest.mark.parametrize(
    ("name", "instead"),
    [("one-interruption-bars-its-pool", "same-pool"), ("one-health-event-bars-nothing", "larger")],
)
def test_no_notice_about_one_node_bars_its_group(name: str, instead: str) -> None:
    report = played(DRILLS / name / "drill.yaml")
    assert first_asked(report, "spot") is not None
    assert first_asked(report, instead) is None


def test_what_karpenter_makes_nodes_for_is_asked_of_nobody_else() -> None:
    report = played(DRILLS / "karpenter-refused-its-first-choice" / "drill.yaml")
    asked = {row["group"]: row["nodes_added"] for row in report["capacity"]}
    assert asked == {"flexible-m5": 0, "flexible-r5": 0, "fallback": 2, "spare": 0}
    assert first_asked(report, "flexible-r5") is not None
    assert first_asked(report, "spare") is None


def test_refused_launches_are_asked_for_again_after_growing_pauses_by_all_reconciles_together() -> (
    None
):
    report = played(DRILLS.parent / "replace" / "last-places" / "drill.yaml")
    assert report["expect"]["failures"] == []
    assert 2 < report["api"]["aws"]["autoscaling:LaunchInstances"] <= 12
