"""Compares Plimsoll with other responders: no workload may be worse off than without it.

All responders see the same storm with the same choices of the scheduler. A first play tells whether
any workload differs by more than is allowed. Only then is the storm played with the other seeds of
the scheduler, and the median difference decides: a place that a pod gets by luck blames nobody. The
seeds are alike, so a workload that is worse in their median is worse in the first play more often
than not: a screening misses the few that are close, and one seed of a storm in many finds the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Any, Final, Literal

from plimsoll.domain.interruptions import MARGIN
from plimsoll.domain.names import IGNORE, STOP_SECONDS
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.model.durations import parse_duration
from plimsoll_testbed.model.hollow.conditions import controller_of
from plimsoll_testbed.model.hollow.controllers.kubelet import STOP
from plimsoll_testbed.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_testbed.scenario.drill import Drill
from plimsoll_testbed.scenario.manifests import Manifest
from plimsoll_testbed.scenario.timeline import FaultEntry, NoticeEntry
from plimsoll_testbed.storms.notice_delivery import since

type Other = Literal["drain", "none"]
OURS: Final = "plimsoll"
SCHEDULER_SEEDS: Final = range(5)
AT_ZERO: Final = "seconds at zero"
SOONER: Final = timedelta(seconds=30)
DEAFENING: Final = frozenset({"api-server-down", "api-server-slow", "function-killed"})
"""Faults in which no pod can be told to stop, or only late. Where Auto Scaling throttles, nobody can say
when a lifecycle hook ends an instance."""
RECOVERY: Final = timedelta(seconds=10)
"""How much longer that lasts: until the Lease of a reconcile that died has expired."""
LONGER_AT_ZERO: Final = timedelta(seconds=5)
"""How much longer than under `drain` a workload may be at zero: a notice takes its way to us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one workload lost in one play."""

    seconds_at_zero: float
    """Without a pod that is Ready and whose instance is there."""
    pods: int
    """Cut short or killed, by an instance whose end was told in time for them to stop."""
    killed: int = 0
    """Those of them that were killed."""
    ends: tuple[timedelta, ...] = ()
    """When the instances of these pods go, and of those whose end was not told, since time 0."""
    surprised: int = 0
    """Pods that came to an instance that was yet to get its first notice, or whose end was not told."""


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


def losses(measurement: Measurement) -> Mapping[str, Loss]:
    """Return what each workload has lost, by kind and name."""
    return {
        f"{kind} {namespace}/{name}": Loss(
            seconds_at_zero=metrics.unserved.total_seconds(),
            pods=metrics.killed + metrics.cut_short - metrics.unforeseen,
            killed=metrics.killed - metrics.unforeseen_killed,
            ends=tuple(since(measurement.started, end) for end in metrics.ends),
            surprised=metrics.surprised + metrics.unforeseen,
        )
        for (_, namespace, kind, name), metrics in measurement.workload_metrics.items()
    }


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
        theirs = [_play(drill, other, first)]
        found = list(worse_of(drill, other, [(ours, theirs[0])]))
        if any(not worse.excused for worse in found):
            mine += (_play(drill, OURS, seed) for seed in more[len(mine) - 1 :])
            theirs += (_play(drill, other, seed) for seed in more)
            found = list(worse_of(drill, other, list(zip(mine, theirs, strict=True))))
        yield from found


def _play(drill: Drill, responder: str, scheduler_seed: int) -> Mapping[str, Loss]:
    hooks = FaultHooks(scheduler_seed=scheduler_seed)
    simulation = Simulation(drill, responder=responder, seed=drill.scenario.seed, hooks=hooks)
    try:
        simulation.run()
    finally:
        simulation.close()
    return losses(simulation.measurement)


def _name(manifest: Manifest) -> str:
    """Return the workload that an object stands for: a custom resource for its Pods."""
    owner = controller_of(manifest.body) if manifest.kind == "Pod" else None
    kind, name = (manifest.kind, manifest.name) if owner is None else (owner["kind"], owner["name"])
    return f"{kind} {manifest.namespace}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """How long the pods of a workload take to stop, as is known of them and in truth."""

    known: timedelta = timedelta()
    excused: str | None = None
    """Why its owner has to answer for what becomes of them."""
    sooner: bool = False
    """Whether they need far less: told so early, they are away for longer than they would have to be."""

    @classmethod
    def of(cls, manifest: Manifest) -> _Stop:
        body: dict[str, Any] = manifest.body
        template = body if manifest.kind == "Pod" else body.get("spec", {}).get("template")
        if template is None:
            return cls()
        annotations = template["metadata"].get("annotations", {})
        grace = template["spec"]["terminationGracePeriodSeconds"]
        claims = "volumeClaimTemplates" in body["spec"] or any(
            "persistentVolumeClaim" in volume for volume in template["spec"].get("volumes", ())
        )
        known = timedelta(seconds=_known(grace, annotations, claims))
        real = min(parse_duration(annotations.get(STOP, "3s")), timedelta(seconds=grace))
        excused = "they stop for longer than is known of them" if real > known else None
        if annotations.get(IGNORE) == "true":
            excused = "they have opted out"
        return cls(known=known, excused=excused, sooner=known - real >= SOONER)


def _known(grace: int, annotations: Mapping[str, str], claims: bool) -> int:
    stated = annotations.get(STOP_SECONDS)
    return int(stated) if stated else grace if claims else min(grace, 30)


def _unheard(loss: Loss, stop: _Stop, faults: Sequence[FaultEntry]) -> bool:
    """Whether the last call of a lost pod came while nobody could tell it to stop, or only late."""
    return any(
        fault.at <= end - MARGIN - stop.known < fault.at + fault.lasts + RECOVERY
        for end in loss.ends
        for fault in faults
    )


type _Pairs = Sequence[tuple[Loss, Loss]]
"""Of one workload: ours and theirs, play by play."""
type _Figure = Callable[[Loss], float]


def _is_worse(of: _Figure, allowed: float, pairs: _Pairs) -> bool:
    return bool(pairs) and median(of(ours) - of(theirs) for ours, theirs in pairs) > allowed


def _chance(
    pairs: _Pairs, worse: Callable[[_Pairs], bool], stop: _Stop, faults: Sequence[FaultEntry]
) -> str | None:
    """Say what nobody could know, if it is not worse in the plays without that; None if it is."""
    heard = [(ours, theirs) for ours, theirs in pairs if not _unheard(ours, stop, faults)]
    if not worse(heard):
        return "no last call could reach them"
    if not worse([(a, b) for a, b in heard if a.surprised <= b.surprised]):
        return "they stood where nobody knew of an end"
    return None


def worse_of(
    drill: Drill, than: Other, plays: Sequence[tuple[Mapping[str, Loss], Mapping[str, Loss]]]
) -> Iterator[Worse]:
    """Yield what is worse in the median of these plays, each ours and theirs."""
    timeline = drill.scenario.timeline
    hooks = any(isinstance(e, NoticeEntry) and e.hooks for e in timeline)
    faults = [
        entry
        for entry in timeline
        if isinstance(entry, FaultEntry)
        and (entry.fault in DEAFENING or (hooks and entry.service == "autoscaling"))
    ]
    stops = {
        _name(manifest): _Stop.of(manifest)
        for manifests in drill.objects.values()
        for manifest in manifests
    }
    for workload in sorted(plays[0][0].keys() & plays[0][1].keys()):
        pairs = [(ours[workload], theirs[workload]) for ours, theirs in plays]
        stop = stops.get(workload, _Stop())
        killed = median(theirs.killed - ours.killed for ours, theirs in pairs) > 0
        longer = LONGER_AT_ZERO if than == "drain" and not killed else stop.known + MARGIN
        early = None
        if stop.sooner and longer is LONGER_AT_ZERO:
            early = "they stop far sooner than is known of them"
        for figure, allowed, of in (
            (AT_ZERO, longer.total_seconds(), lambda loss: loss.seconds_at_zero),
            ("pods killed or cut short", 0, lambda loss: float(loss.pods)),
        ):
            worse = partial(_is_worse, of, allowed)
            if worse(pairs):
                excused = early if figure == AT_ZERO else None
                yield Worse(
                    workload=workload,
                    than=than,
                    figure=figure,
                    ours=median(of(a) for a, _ in pairs),
                    theirs=median(of(b) for _, b in pairs),
                    excused=stop.excused or _chance(pairs, worse, stop, faults) or excused,
                )
