"""What is promised of Deployments, and what they keep of it: for the table of `plimsoll plan`, in words and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import floor
from typing import Any, Final, Self

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Ref, Workload
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import (
    LoadLine,
    LossWindow,
    Promise,
    PromisedWorkload,
    StandingGroup,
    at_most,
    promised_workloads,
    standing_groups,
    understood_promise,
)
from plimsoll.domain.reports import Kept, Score
from plimsoll.domain.spot import CapacityPool, PoolRate

_LEAST_MINUTES: Final = 0.01
_WHOLE_MINUTES: Final = 10
_MONTH_MINUTES: Final = 43_800
UNSCORED: Final = "not yet scored: no stack compares it with what comes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What load lines follow from, beside the observed cluster."""

    rates: Mapping[CapacityPool, PoolRate]
    """Of its capacity pools, as far as they are known."""
    floors: Mapping[str, str]
    """Namespace -> the floor that its annotation asks for."""
    promises: Mapping[str, str]
    """Namespace -> what its annotation promises."""
    scores: Sequence[Score] | None
    """Of the cluster, the newest first; None: no stack keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLines:
    """The promises of a cluster."""

    promises: Mapping[Ref, Promise]
    groups: tuple[StandingGroup, ...]
    workloads: Mapping[Ref, PromisedWorkload]
    """Those of `promises` whose pods tell how long they take to start."""
    stands: Mapping[Ref, Counter[str]]
    """Ready pods of these by where they stand, as in `FloorStatus.ready`."""
    scores: Sequence[Score] | None

    @classmethod
    def of(cls, what_if: Promise | None, windows: StartWindows, facts: Facts) -> Self:
        """Compute them.

        Args:
            what_if: what counts as promised of Deployments of which nothing is.
            windows: those of the observed cluster.
            facts: what else they follow from.
        """
        seen = windows.seen
        promises = {
            workload.ref: promise
            for workload in seen.workloads
            if (promise := _promise(seen, workload, what_if, facts)) is not None
        }
        groups = standing_groups(seen, facts.rates)
        found = promised_workloads(lambda w: promises.get(w.ref), windows, groups, facts.floors)
        return cls(
            promises=promises,
            groups=groups,
            workloads={each.workload: each for each in found},
            stands={ref: seen.serving_by_capacity.get(ref, Counter()) for ref in promises},
            scores=facts.scores,
        )

    def only(self, name: str) -> Self:
        """Return the same of one workload by `namespace/name`; of nothing where it has no promise."""
        named = {ref: promise for ref, promise in self.promises.items() if short_name(ref) == name}
        return replace(
            self,
            promises=named,
            workloads={ref: each for ref, each in self.workloads.items() if ref in named},
        )

    def cells(self, workload: Ref) -> Sequence[str]:
        """Return what is promised of a workload, what it keeps of it, and the layout that would be the cheapest."""
        promise = self.promises.get(workload)
        if promise is None:
            return "", "", ""
        each = self.workloads.get(workload)
        if each is None:
            return str(promise.ready), "unknown", ""
        layout = f"{each.line.layout}{'' if each.kept else ' (not enough)'}"
        return str(promise.ready), _kept_percent(each.stands), layout

    def score_of(self, workload: Ref) -> str:
        """Return how its predictions were met, in words."""
        if self.scores is None:
            return UNSCORED
        found = Kept()
        for score in self.scores:
            kept = score.workloads.get(str(workload))
            found = found if kept is None else found.plus(kept)
        return found.says

    def arithmetic(self, workload: Ref) -> Iterator[str]:
        """Yield in plain words what a workload keeps, and what that follows from."""
        promise, each = self.promises[workload], self.workloads.get(workload)
        name, percent = short_name(workload), f"{promise.percent:.7g} %"
        if each is None:
            yield (
                f"{name}: {promise.ready} are promised for {percent} of the time; none of its pods tells how long it "
                "takes to start, so nothing is known of it"
            )
            return
        stands, lost = each.stands, LossWindow.of(each.window)
        most = _at_most(stands, lost, self.groups)
        yield (
            f"{name} keeps {each.wanted_now} of {each.declared} Ready for {_kept_percent(stands)} of the time: "
            f"{_minutes(stands)} a month below, in 19 of 20 months at most {most} (promised: {percent}, "
            f"{_short(promise.broken * _MONTH_MINUTES)}); {self.score_of(workload)}"
        )
        yield (
            f"  a lost pod is missing for {lost.after_notice_seconds:.0f} s after a notice, and for "
            f"{lost.without_notice_seconds:.0f} s without one"
        )
        yield f"  {each.window.says}"
        for group in self.groups:
            yield f"  {group}"
        yield f"  {_strength(each)}"
        bare = each.layouts[0]
        yield (
            f"  with all spot gone at once {stands.floor} stay. Without a floor it would be {_minutes(bare)} a month, "
            f"and {bare.floor} stay"
        )
        if not each.kept:
            yield f"  no layout keeps what is promised of {each.replicas} replicas"
        for other in each.layouts:
            chosen = "the cheapest that keeps the promise, " if other == each.line else ""
            yield (
                f"  {other.layout}: {chosen if each.kept else ''}{_minutes(other)} a month below, {other.floor} on "
                f"on-demand, {100 * other.cost:.0f} % of the on-demand price"
            )

    @property
    def data(self) -> Sequence[Mapping[str, Any]]:
        """The same as data."""
        return [
            {
                "workload": str(ref),
                "promised": asdict(promise),
                "score": self.score_of(ref),
                **({} if (each := self.workloads.get(ref)) is None else _workload_as_data(each)),
            }
            for ref, promise in self.promises.items()
        ]


def short_name(workload: Ref) -> str:
    """Return a workload as the options name it."""
    return f"{workload.namespace}/{workload.name}"


def not_promised(name: str) -> BadInput:
    """Return the error that a workload has neither a floor nor a promise."""
    return BadInput(
        f"{name} has no on-demand floor and no promise: annotate the workload, or name a promise with --keep-ready"
    )


def _promise(
    seen: Observation, workload: Workload, what_if: Promise | None, facts: Facts
) -> Promise | None:
    stated = understood_promise(workload, facts.promises, seen.policy.keep_ready)
    return stated or (what_if if workload.ref.kind == "Deployment" else None)


def _strength(each: PromisedWorkload) -> str:
    """Say which losses break the promise."""
    stands, spare = each.stands, each.declared - each.wanted_now
    says = f"the largest spot group has {stands.largest} pods and {spare} may be missing: "
    if stands.largest > spare:
        return f"{says}the loss of one group breaks the promise"
    if each.declared - stands.floor > spare:
        return f"{says}no group alone breaks the promise, several within minutes or a loss of all spot do"
    return f"{says}not even a loss of all spot breaks the promise"


def _at_most(line: LoadLine, lost: LossWindow, groups: Sequence[StandingGroup]) -> str:
    window = (lost.after_notice_seconds or lost.without_notice_seconds) / 60
    reclaims = sum(group.reclaims for group in groups)
    return _short(window * at_most(line.minutes_a_month / window, reclaims))


def _minutes(line: LoadLine) -> str:
    return _short(line.minutes_a_month)


def _short(minutes: float) -> str:
    if 0 < minutes < _LEAST_MINUTES:
        return f"under {_LEAST_MINUTES} min"
    return f"{minutes:,.0f} min" if minutes >= _WHOLE_MINUTES else f"{minutes:.2g} min"


def _kept_percent(line: LoadLine) -> str:
    """Return for what share of the time a promise is kept, rounded down: 100 is said only where nothing is lost."""
    return f"{floor((1 - line.below) * 1e6) / 1e4:.7g} %"


def _workload_as_data(each: PromisedWorkload) -> Mapping[str, Any]:
    return {
        "replicas": each.replicas,
        "wanted": each.wanted,
        "kept": each.kept,
        "window": asdict(each.window) | {"missing_seconds": each.window.missing},
        "stands": _as_data(each.stands),
        "line": _as_data(each.line),
        "layouts": [_as_data(line) for line in each.layouts],
    }


def _as_data(line: LoadLine) -> Mapping[str, Any]:
    return {
        "layout": str(line.layout),
        "on_demand": line.floor,
        "largest": line.largest,
        "cost": round(line.cost, 4),
        "below": line.below,
        "minutes_a_month": round(line.minutes_a_month, 2),
    }
