"""Compares Plimsoll with other responders: no workload may be worse off than without it.

The comparison goes by what happened in each play, never by what the planner believed. All responders see the same
storm with the same choices of the scheduler, and both plays of a pair are measured against the same counts (`losses.py`).
A first play tells whether any workload differs by more than is allowed. Only then is the storm played with the other
seeds of the scheduler, and the median difference decides: a place that a pod gets by luck blames nobody. The seeds are
alike, so a workload that is worse in their median is worse in the first play more often than not: a screening misses
the few that are close, and one seed of a storm in many finds the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Final, Literal

from plimsoll.domain.kubernetes import is_ignored
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_simulation.storms.losses import BINDINGS, Loss, losses

type Other = Literal["drain", "none"]
OURS: Final = "plimsoll"
SCHEDULER_SEEDS: Final = range(5)
LONGER: Final = 5.0
"""How many seconds longer a workload may lack pods than under `drain`: a notice takes its way to us."""
STOP_SECONDS: Final = 30.0
MARGIN_SECONDS: Final = 2.0
"""A workload may lack pods longer by the sum of both beside `none`, and where the other let its pods be killed. Those
pods served until their instance went, and a pod that is evicted in time stops that much earlier."""
OPTED_OUT: Final = "they have opted out"
SURPRISED: Final = "they stood where nobody knew of an end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worse:
    """A workload that another responder served better, in the median of all seeds."""

    workload: str
    than: Other
    figure: str
    ours: float
    theirs: float
    excused: str | None
    """Why no responder can be blamed for it."""

    @property
    def rule(self) -> str:
        """The name of the rule that it breaks."""
        return f"worse-than-{self.than}"


def worse_than(
    drill: Drill, others: Collection[Other], ours: Mapping[str, Loss]
) -> Iterator[Worse]:
    """Yield the workloads that are worse off than under other responders.

    Args:
        drill: the storm.
        others: the responders to compare with.
        ours: what Plimsoll's first play cost, with the scheduler's first seed; nothing if it failed.
    """
    if not ours:
        return
    first, *more = SCHEDULER_SEEDS
    mine = [ours]
    for other in others:
        theirs = [play(drill, other, first)]
        found = list(worse_of(drill, other, [(ours, theirs[0])]))
        if any(not worse.excused for worse in found):
            if len(mine) == 1:
                mine += _played(drill, OURS, more)
            theirs += _played(drill, other, more)
            found = list(worse_of(drill, other, list(zip(mine, theirs, strict=True))))
        yield from found


def _played(drill: Drill, responder: str, seeds: Iterable[int]) -> Iterator[Mapping[str, Loss]]:
    """Play a drill with more seeds; with one that leaves a pod without a place before time 0 there is nothing to compare."""
    for seed in seeds:
        with suppress(NeverReadyError):
            yield play(drill, responder, seed)


def play(drill: Drill, responder: str, scheduler_seed: int = 0) -> Mapping[str, Loss]:
    """Play a drill with one seed of the scheduler, and return what each workload has lost."""
    hooks = FaultHooks(scheduler_seed=scheduler_seed)
    simulation = Simulation(drill, responder=responder, seed=drill.scenario.seed, hooks=hooks)
    try:
        simulation.run()
    finally:
        simulation.close()
    return losses(simulation.measurement)


type _Pairs = Sequence[tuple[Loss, Loss]]
"""Of one workload: ours and theirs, play by play."""
type _Figure = Callable[[Loss], float]

KILLED: Final = "pods killed or cut short"
_FIGURES: Final[Mapping[str, _Figure]] = {
    "seconds at zero": lambda loss: loss.seconds_at_zero,
    "seconds below quorum": lambda loss: loss.seconds_below_quorum,
    "seconds below floor": lambda loss: loss.seconds_below_floor,
    KILLED: lambda loss: float(loss.killed),
}


def worse_of(
    drill: Drill, than: Other, plays: Sequence[tuple[Mapping[str, Loss], Mapping[str, Loss]]]
) -> Iterator[Worse]:
    """Yield what is worse in the median of these plays, each ours and theirs, by any of the counts to measure against."""
    opted_out = _opted_out(drill)
    judged = (plays[0][0].keys() & plays[0][1].keys()) - _exempt(drill)
    for workload in sorted(judged):
        pairs = [(ours[workload], theirs[workload]) for ours, theirs in plays]
        found: dict[str, Worse] = {}
        for binding in BINDINGS:
            bound = [(a.against(b, binding), b.against(a, binding)) for a, b in pairs]
            for worse in _worse(workload, than, bound):
                if worse.figure not in found or not worse.excused:
                    found[worse.figure] = worse
        excuse = OPTED_OUT if workload in opted_out else None
        yield from (replace(worse, excused=excuse or worse.excused) for worse in found.values())


def _worse(workload: str, than: Other, pairs: _Pairs) -> Iterator[Worse]:
    """Yield the figures of a workload that are worse in the median of these plays."""
    for figure, of in _FIGURES.items():
        worse = partial(_is_worse, of, _none if figure == KILLED else partial(_longer, than))
        if worse(pairs):
            yield Worse(
                workload=workload,
                than=than,
                figure=figure,
                ours=median(of(a) for a, _ in pairs),
                theirs=median(of(b) for _, b in pairs),
                excused=_chance(pairs, worse),
            )


def _none(_: Loss) -> float:
    return 0.0


def _longer(than: Other, theirs: Loss) -> float:
    return LONGER if than == "drain" and not theirs.died else STOP_SECONDS + MARGIN_SECONDS


def _is_worse(of: _Figure, allowed: Callable[[Loss], float], pairs: _Pairs) -> bool:
    """Whether the median of the pairs is over what their other play allows."""
    return bool(pairs) and median(of(a) - of(b) - allowed(b) for a, b in pairs) > 0


def _chance(pairs: _Pairs, worse: Callable[[_Pairs], bool]) -> str | None:
    """Say what nobody could know, if it is not worse in the plays without that; None if it is."""
    known = [
        (ours, theirs)
        for ours, theirs in pairs
        if ours.surprised <= theirs.surprised and ours.unforeseen <= theirs.unforeseen
    ]
    return None if worse(known) else SURPRISED


def _opted_out(drill: Drill) -> frozenset[str]:
    """Return the workloads whose pods nobody may touch: their owner answers for them."""
    return frozenset(
        _name(manifest)
        for manifest, template in _templates(drill)
        if is_ignored(*_marks(manifest.body), *_marks(template))
    )


def _marks(body: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    meta = body.get("metadata", {})
    yield from (meta.get(each) or {} for each in ("labels", "annotations"))


def _exempt(drill: Drill) -> frozenset[str]:
    """Return the workloads of negative priority, whose owner lets them go for any other."""
    values = {
        manifest.name: manifest.body.get("value", 0)
        for manifests in drill.objects.values()
        for manifest in manifests
        if manifest.kind == "PriorityClass"
    }
    return frozenset(
        _name(manifest)
        for manifest, template in _templates(drill)
        if values.get(template["spec"].get("priorityClassName"), 0) < 0
    )


def _templates(drill: Drill) -> Iterator[tuple[Manifest, Mapping[str, Any]]]:
    for manifests in drill.objects.values():
        for manifest in manifests:
            body: dict[str, Any] = manifest.body
            template = body if manifest.kind == "Pod" else body.get("spec", {}).get("template")
            if template is not None:
                yield manifest, template


def _name(manifest: Manifest) -> str:
    """Return the workload that an object stands for: a custom resource for its Pods."""
    owner = controller_of(manifest.body) if manifest.kind == "Pod" else None
    kind, name = (manifest.kind, manifest.name) if owner is None else (owner["kind"], owner["name"])
    return f"{kind} {manifest.namespace}/{name}"
