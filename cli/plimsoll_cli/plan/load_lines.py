"""`plimsoll plan --keep-ready`: the load line of each Deployment, and its arithmetic. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor
from typing import Any, Final, Self

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement import (
    LoadLine,
    LossWindow,
    Promise,
    PromisedWorkload,
    StandingGroup,
    promised_workloads,
    standing_groups,
)
from plimsoll.domain.spot import CapacityPool, PoolRate

_LEAST_MINUTES: Final = 0.01
_WHOLE_MINUTES: Final = 10
LINES_HEAD: Final = ("workload", "keep ready", "missing", "layout", "on-demand", "line", "no floor")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLines:
    """The load lines of a cluster."""

    groups: tuple[StandingGroup, ...]
    workloads: tuple[PromisedWorkload, ...]

    @classmethod
    def of(
        cls,
        promise: Promise,
        windows: StartWindows,
        rates: Mapping[CapacityPool, PoolRate],
        namespaces: Mapping[str, str],
    ) -> Self:
        """Compute them.

        Args:
            promise: of each Deployment.
            windows: those of the observed cluster.
            rates: of its capacity pools, as far as they are known.
            namespaces: namespace -> the floor that its annotation asks for.
        """
        groups = standing_groups(windows.seen, rates)
        found = promised_workloads(lambda _: promise, windows, groups, namespaces)
        return cls(groups=groups, workloads=tuple(found))

    def of_workload(self, name: str) -> PromisedWorkload:
        """Return one workload by `namespace/name`.

        Raises:
            BadInput: no Deployment of that name has a line.
        """
        for each in self.workloads:
            if short_name(each.workload) == name:
                return each
        raise BadInput(
            f"{name} has no load line: it is no Deployment, or none of its pods tells how long it takes to start"
        )

    @property
    def rows(self) -> Iterator[Sequence[str]]:
        """A row of the table for each workload."""
        for each in self.workloads:
            line = each.line
            yield (
                str(each.workload),
                f"{each.wanted} of {each.replicas}{'' if each.kept else ' (not possible)'}",
                f"{each.window.missing:.0f} s",
                str(line.layout),
                str(line.floor),
                f"{_below(line)} ({100 * line.below:.2g} %)",
                _below(each.layouts[0]),
            )

    def arithmetic(self, each: PromisedWorkload) -> Iterator[str]:
        """Yield in plain words what a line follows from."""
        line, lost = each.line, LossWindow.of(each.window)
        yield (
            f"{short_name(each.workload)} keeps {each.wanted} of {each.replicas} Ready for {_kept_percent(line)} of the "
            f"time with the layout {line.layout}: {_below(line)} below (promised: {100 * (1 - each.promise.broken):.4g} %)"
        )
        if not each.kept:
            yield f"  no layout keeps that: it has {each.replicas} replicas"
        yield (
            f"  a pod is missing for {lost.after_notice_seconds:.0f} s after a notice, {lost.without_notice_seconds:.0f} s without one"
        )
        yield f"  {each.window.says}"
        for group in self.groups:
            yield f"  {group}"
        yield (
            f"  the largest spot group has {line.largest} pods, and {each.replicas - each.wanted} may be missing; "
            f"with all spot gone at once {line.floor} stay"
        )
        for other in each.layouts:
            yield (
                f"  {other.layout}: {_below(other)} below, {other.floor} on on-demand, "
                f"{100 * other.cost:.0f} % of the on-demand price"
            )

    @property
    def data(self) -> Sequence[Mapping[str, Any]]:
        """The same as data."""
        return [
            {
                "workload": str(each.workload),
                "replicas": each.replicas,
                "wanted": each.wanted,
                "kept": each.kept,
                "window": asdict(each.window) | {"missing_seconds": each.window.missing},
                "line": _as_data(each.line),
                "layouts": [_as_data(line) for line in each.layouts],
            }
            for each in self.workloads
        ]


def short_name(workload: Ref) -> str:
    """Return a workload as the options name it."""
    return f"{workload.namespace}/{workload.name}"


def _below(line: LoadLine) -> str:
    minutes = line.minutes_a_month
    if 0 < minutes < _LEAST_MINUTES:
        return f"under {_LEAST_MINUTES} min a month"
    return (
        f"{minutes:,.0f} min a month" if minutes >= _WHOLE_MINUTES else f"{minutes:.2g} min a month"
    )


def _kept_percent(line: LoadLine) -> str:
    """Return for what share of the time a promise is kept, rounded down: 100 is said only where nothing is lost."""
    return f"{floor((1 - line.below) * 1e6) / 1e4:.7g} %"


def _as_data(line: LoadLine) -> Mapping[str, Any]:
    return {
        "layout": str(line.layout),
        "on_demand": line.floor,
        "largest": line.largest,
        "cost": round(line.cost, 4),
        "below": line.below,
        "minutes_a_month": round(line.minutes_a_month, 2),
    }
