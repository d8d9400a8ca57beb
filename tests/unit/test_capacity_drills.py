"""The kept drills about capacity: who is asked, and how soon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll_testbed.measure.listening import Quiet
from plimsoll_testbed.measure.report import as_text
from plimsoll_testbed.model.fleet import ANSWER
from plimsoll_testbed.model.launch_refusals import LAUNCH_FAULTS
from plimsoll_testbed.rigs.simulated.rig import run
from plimsoll_testbed.scenario.drill import read_drill

DRILLS: Final = Path(__file__).parents[1] / "drills" / "capacity"
ELSEWHERE: Final = 15.0
"""Seconds from a refusal until another group must have been asked."""


def played(file: Path) -> dict[str, Any]:
    report = run(read_drill(file), responder="plimsoll", seed=7, listener=Quiet())
    found: dict[str, Any] = json.loads(as_text(report))
    return found


def first_asked(report: dict[str, Any], group: str) -> float | None:
    (row,) = (row for row in report["capacity"] if row["group"] == group)
    seconds: float | None = row["first_asked"]
    return seconds


@pytest.mark.parametrize("name", sorted(folder.name for folder in DRILLS.iterdir()))
def test_a_kept_drill_holds_what_it_expects(name: str) -> None:
    assert played(DRILLS / name / "drill.yaml")["expect"]["failures"] == []


@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        pytest.param("asg", 0.0, id="told at once by LaunchInstances"),
        pytest.param(
            "eks-nodegroup", ANSWER.total_seconds(), id="told by activities and health issues"
        ),
    ],
)
@pytest.mark.parametrize("fault", sorted(LAUNCH_FAULTS.keys() - {"launches-throttled"}))
def test_after_any_refusal_another_group_is_asked_within_fifteen_seconds(
    tmp_path: Path, fault: str, kind: str, answered: float
) -> None:
    text = (DRILLS / "first-group-starves" / "drill.yaml").read_text()
    text = text.replace("insufficient-capacity", fault).replace(
        "kind: eks-nodegroup", f"kind: {kind}", 1
    )
    if fault == "vcpu-quota":  # it counts all on-demand instances of the standard families
        text = text.replace("r6i.xlarge", "g5.xlarge")
    (tmp_path / "drill.yaml").write_text(text)
    workloads = (DRILLS / "first-group-starves" / "workloads.yaml").read_text()
    (tmp_path / "workloads.yaml").write_text(workloads)

    report = played(tmp_path / "drill.yaml")

    asked, elsewhere = first_asked(report, "base"), first_asked(report, "spare")
    assert asked is not None
    assert elsewhere is not None
    assert elsewhere - asked - answered <= ELSEWHERE
    assert report["expect"]["failures"] == []
    reasons = [reason for each in report["reports"] for reason in each["reasons"]]
    assert any("base was refused" in reason and "Cure: " in reason for reason in reasons)


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
