"""The report of a drill as JSON, with the keys and the order of its published form.

The same figures give the same text, byte for byte: nothing of the clock, the machine or the order
of a set gets in. See `figures.py` for how numbers are rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from plimsoll_simulation.measure.expectations import judge
from plimsoll_simulation.measure.figures import Figures
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.scenario.scenario import Scenario

type Report = Mapping[str, Any]


def build_report(  # noqa: PLR0913 - the heads of a report
    scenario: Scenario,
    measurement: Measurement,
    figures: Figures,
    *,
    rig: str,
    responder: str,
    seed: int,
) -> Report:
    """Return the report of a drill that has ended."""
    verdict = judge(scenario.expect, figures, responder)
    return {
        "drill": scenario.name,
        "rig": rig,
        "responder": responder,
        "seed": seed,
        "seconds": figures.seconds,
        "settled": figures.settled,
        "workloads": [asdict(row) for row in figures.workloads],
        "nodes": [asdict(row) for row in figures.nodes],
        "capacity": [asdict(row) for row in figures.capacity],
        "totals": asdict(figures.totals),
        "api": {
            "kubernetes": dict(sorted(measurement.kubernetes_calls.items())),
            "aws": dict(sorted(measurement.aws_calls.items())),
        },
        "reports": [
            {"interruption": name, "reasons": list(reasons)}
            for name, reasons in sorted(measurement.reports.items())
        ],
        "expect": {"held": verdict.held, "failures": list(verdict.failures)},
    }


def exit_status(report: Report) -> int:
    """Return 1 when an expectation did not hold, and 0 otherwise."""
    return 1 if report["expect"]["held"] is False else 0


def as_text(report: Report) -> str:
    """Return the report as JSON text, ending with a line break."""
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def as_texts(reports: Sequence[Report]) -> str:
    """Return reports as one JSON list, ending with a line break."""
    return json.dumps(list(reports), indent=2, ensure_ascii=False) + "\n"
