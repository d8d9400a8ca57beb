"""What a comparison of reports says in words: did Plimsoll keep what it promises?

Three promises are judged on its report, beside the report of a common drain of the same drill; and
where it was played on another rig, whether the simulated one comes to the same verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll_simulation.measure.report import Report

SHARE: Final = 0.1
"""Of the ready-replica-seconds that a drain loses, Plimsoll loses at most this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    held: bool
    text: str


def findings(plimsoll: Report, drain: Report, simulated: Report | None) -> Sequence[Finding]:
    """Return what was found.

    Args:
        plimsoll: what happened with Plimsoll, on whatever rig.
        drain: the same drill with a common drain.
        simulated: the same drill with Plimsoll on the simulated rig, if that is another.
    """
    found = [*promises(plimsoll, drain)]
    expect = plimsoll["expect"]
    if expect["held"] is not None:
        told = "; ".join(expect["failures"]) or "every expectation of the file held"
        found.append(Finding(held=expect["held"], text=told))
    if simulated is not None:
        found.append(_agreement(plimsoll, drain, simulated))
    return found


def promises(plimsoll: Report, drain: Report) -> Sequence[Finding]:
    """Return whether each promise was kept."""
    return _killed(plimsoll), _at_zero(plimsoll), _lost(plimsoll, drain)


def _killed(report: Report) -> Finding:
    killed = [row for row in report["workloads"] if row["pods_killed"]]
    names = ", ".join(f"{_name(row)} {row['pods_killed']}" for row in killed)
    total = report["totals"]["pods_killed"]
    return Finding(
        held=not total,
        text=f"{total} pods killed" + (f": {names}" if names else ""),
    )


def _at_zero(report: Report) -> Finding:
    # A workload that cannot run twice has no ready floor.
    twice = [row for row in report["workloads"] if row["ready_floor"]]
    away = [row for row in twice if row["seconds_at_zero"]]
    if away:
        told = ", ".join(f"{_name(row)} {row['seconds_at_zero']:g} s" for row in away)
        return Finding(held=False, text=f"with nothing Ready: {told}")
    names = ", ".join(_name(row) for row in twice)
    return Finding(
        held=True,
        text=f"0 seconds at zero for each workload that can run twice: {names}"
        if twice
        else "there is no workload that can run twice",
    )


def _lost(report: Report, drain: Report) -> Finding:
    lost = report["totals"]["ready_replica_seconds_lost"]
    by_drain = drain["totals"]["ready_replica_seconds_lost"]
    told = f"{lost:,.1f} ready-replica-seconds lost"
    if not by_drain:
        return Finding(held=not lost, text=f"{told}; drain lost none")
    share = lost / by_drain
    return Finding(
        held=share <= SHARE,
        text=f"{told}, {share:.1%} of drain's {by_drain:,.1f} (at most {SHARE:.0%})",
    )


def _agreement(plimsoll: Report, drain: Report, simulated: Report) -> Finding:
    here = [finding.held for finding in promises(plimsoll, drain)]
    there = promises(simulated, drain)
    totals = simulated["totals"]
    told = (
        f"{totals['pods_killed']} killed, {totals['workloads_at_zero']} workloads at zero, "
        f"{totals['ready_replica_seconds_lost']:,.1f} ready-replica-seconds lost"
    )
    if here == [finding.held for finding in there]:
        return Finding(held=True, text=f"the simulated rig gives the same verdict: {told}")
    return Finding(held=False, text=f"the simulated rig gives another verdict: {told}")


def _name(row: Report) -> str:
    return f"{row['namespace']}/{row['name']}"
