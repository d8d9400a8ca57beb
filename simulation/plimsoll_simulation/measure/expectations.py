"""Holds the figures of a drill against what its scenario expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from plimsoll_simulation.durations import words
from plimsoll_simulation.measure.figures import Figures, Totals, WorkloadFigures
from plimsoll_simulation.measure.workload_metrics import WorkloadMetrics
from plimsoll_simulation.scenario.expect import Bounds, Expect, WorkloadBounds
from plimsoll_simulation.scenario.kinds import COUNTED
from plimsoll_simulation.scenario.problems import listed

JUDGED = "plimsoll"
"""The responder that expectations are about; others are measured only."""

_MAXIMA: Mapping[str, str] = {
    "pods_killed": "podsKilled",
    "pods_cut_short": "podsCutShort",
    "seconds_below_floor": "secondsBelowFloor",
    "seconds_below_quorum": "secondsBelowQuorum",
    "seconds_below_replicas": "secondsBelowReplicas",
    "seconds_at_zero": "secondsAtZero",
    "ready_replica_seconds_lost": "readyReplicaSecondsLost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationResult:
    """Whether everything held that was expected."""

    held: bool | None
    """None: nothing was judged, since the responder is not plimsoll."""
    failures: tuple[str, ...] = ()


def judge(expect: Expect | None, figures: Figures, responder: str) -> ExpectationResult:
    """Return the verdict on a drill; without expectations everything holds."""
    if responder != JUDGED:
        return ExpectationResult(held=None)
    failures = () if expect is None else tuple(_failures(expect, figures))
    return ExpectationResult(held=not failures, failures=failures)


def awaited(expect: Expect | None, metrics: Iterable[WorkloadMetrics]) -> Iterator[str]:
    """Yield in words which pods are not back on spot for which the drill waits."""
    if expect is None:
        return
    for one in metrics:
        _, namespace, kind, name = one.id
        bounds = _bounds(expect, f"{namespace}/{name}")
        wanted = bounds and bounds.spot_ready
        if wanted and kind in COUNTED and one.ready_on_spot < wanted:
            yield f"{kind} {namespace}/{name} has {one.ready_on_spot} of {wanted} pods on spot"


def _bounds(expect: Expect, name: str) -> WorkloadBounds | None:
    return expect.workloads.get(name, expect.workloads.get("*"))


def _failures(expect: Expect, figures: Figures) -> Iterator[str]:
    yield from _over(expect, figures.totals, "")
    if expect.cordoned_within is not None:
        yield from _late_cordons(expect, figures)
    if expect.emptied_before_gone:
        full = [
            node.name
            for node in figures.nodes
            if node.noticed is not None
            and node.gone is not None
            and (node.empty is None or node.empty > node.gone)
        ]
        if full:
            yield f"emptiedBeforeGone: {len(full)} nodes went with pods on them: {listed(full)}"
    if expect.settled and not figures.settled:
        yield f"settled: the drill was not at rest when it ended after {figures.seconds:g} s"
    for row in figures.workloads:
        name = f"{row.namespace}/{row.name}"
        bounds = _bounds(expect, name)
        if bounds is None:
            continue
        whose = f"{row.kind} {name} of {row.cluster}: "
        yield from _over(bounds, row, whose)
        for word, least, measured in (
            ("minReady", bounds.min_ready, row.min_ready),
            ("onDemandReady", bounds.on_demand_ready, row.min_ready_on_demand),
            ("spotReady", bounds.spot_ready, row.ready_on_spot),
        ):
            if least is not None and row.kind in COUNTED and measured < least:
                yield f"{whose}{word} is {measured}, expected at least {least}"


def _over(bounds: Bounds, measured: Totals | WorkloadFigures, whose: str) -> Iterator[str]:
    for attribute, word in _MAXIMA.items():
        most = getattr(bounds, attribute)
        value = getattr(measured, attribute)
        if most is not None and value > most:
            yield f"{whose}{word} is {value:g}, expected at most {most:g}"


def _late_cordons(expect: Expect, figures: Figures) -> Iterator[str]:
    if expect.cordoned_within is None:
        return
    within = expect.cordoned_within.total_seconds()
    for node in figures.nodes:
        told = figures.with_deadline.get(node.instance)
        if told is None:
            continue
        if node.cordoned is None:
            yield f"cordonedWithin: {node.name} was never cordoned"
        elif round(node.cordoned - told, 3) > within:
            yield (
                f"cordonedWithin: {node.name} was cordoned {node.cordoned - told:.3g} s "
                f"after its notice, expected within {words(expect.cordoned_within)}"
            )
