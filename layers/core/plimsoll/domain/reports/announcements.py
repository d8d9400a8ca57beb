"""What people are told once interruptions are over: what they cost, who was killed, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from plimsoll.domain.reports.metrics import Metric
from plimsoll.domain.reports.report import Report

LISTED_NAMES: Final = 20
"""Nodes, and killed pods of a node, that one message names: a mail is read, not searched."""


def announcement(cluster: str, reports: Sequence[Report]) -> tuple[str, str]:
    """Return subject and text of the one message about interruptions of a cluster that are over."""
    killed = sum(len(report.killed) for report in reports)
    nodes = "1 node" if len(reports) == 1 else f"{len(reports)} nodes"
    # Reports with the most killed pods first: a message names only some nodes.
    worst = sorted(reports, key=lambda report: (-len(report.killed), report.noticed))
    lines = [line for report in worst[:LISTED_NAMES] for line in _about(report)]
    if len(worst) > LISTED_NAMES:
        lines.append(f"and {len(worst) - LISTED_NAMES} more: plimsoll reports --cluster {cluster}")
    cures = dict.fromkeys(said for report in reports for said in report.refused.values())
    lines += [f"No nodes: {said}" for said in [*cures][:LISTED_NAMES]]
    hurt = next((r for r in worst if r.killed or 0 in r.lowest_ready.values()), None)
    if hurt is None:
        lines.append("Nothing is left to do.")
    else:
        lines.append(f"Why, step by step: plimsoll reports show {hurt.interruption}")
        lines.append(
            "Then see that the workloads are whole again: kubectl get pods --all-namespaces"
        )
    return f"{cluster[:50]}: {nodes} interrupted, {killed} pods killed", "\n".join(lines)


def interruption_metrics(reports: Sequence[Report]) -> Mapping[Metric, float]:
    """Return what is counted by cluster of interruptions that are over; what is zero is left out."""
    ages = [(r.cordoned - r.noticed).total_seconds() for r in reports if r.cordoned is not None]
    found = {
        Metric.PODS_KILLED: sum(len(report.killed) for report in reports),
        Metric.BUDGETS_OVERRULED: sum(len(report.overruled) for report in reports),
        Metric.NOTICE_AGE_AT_CORDON: max(ages, default=0.0),
    }
    return {metric: value for metric, value in found.items() if value > 0}


def _about(report: Report) -> Iterator[str]:
    parts = [f"{report.node} ({report.kind}) was noticed {report.noticed:%Y-%m-%d %H:%M:%SZ}"]
    for name, moment in (("empty", report.emptied), ("gone", report.gone)):
        if moment is not None:
            parts.append(f"{name} after {(moment - report.noticed).total_seconds():.0f} s")
    yield ", ".join(parts)
    zero = [workload for workload, ready in report.lowest_ready.items() if not ready]
    told = {
        "killed": report.killed,
        "deleted past their budgets": (*report.overruled,),
        "stood at zero": zero,
        "below their ready floors": (*report.below_floor,),
    }
    for what, names in told.items():
        if names:
            more = f" and {len(names) - LISTED_NAMES} more" if len(names) > LISTED_NAMES else ""
            yield f"  {what}: {', '.join(names[:LISTED_NAMES])}{more}"
