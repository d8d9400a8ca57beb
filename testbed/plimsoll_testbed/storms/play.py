"""Plays storms and judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Final, override

from plimsoll.domain.plan import Step
from plimsoll_testbed.measure.listening import Quiet
from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_testbed.rigs.simulated.time import Invocation
from plimsoll_testbed.rigs.warmup import NeverReadyError
from plimsoll_testbed.scenario.drill import Drill
from plimsoll_testbed.scenario.scenario import FaultEntry
from plimsoll_testbed.storms.endings import Ending, ending_of, endings_wrong, still_to_do
from plimsoll_testbed.storms.files import read_storm
from plimsoll_testbed.storms.hearing import NOTICE, Hearing
from plimsoll_testbed.storms.model import CLUSTER, Storm
from plimsoll_testbed.storms.oracle import Before, knows, not_saved
from plimsoll_testbed.storms.watch import Violation, Watch

PLIMSOLL: Final = "plimsoll"
CALM: Final = timedelta(seconds=65)
"""Between two looks at a settled cluster: a resync, and what it wakes."""
LOOKS: Final = 10
"""After so many something is always still to be done: recommendations may take their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StormResult:
    """What came of a storm."""

    seed: int
    violations: tuple[Violation, ...] = ()
    settled: bool = False
    playable: bool = True
    """False where its cluster never gets ready: that is the storm's fault."""
    judged: bool = False
    """Whether the oracle knew the answer."""
    killed: int = 0

    @property
    def rules(self) -> frozenset[str]:
        """The names of the rules that were broken."""
        return frozenset(v.rule for v in self.violations)


def play_storm(storm: Storm, *, twice: bool = False, responder: str = PLIMSOLL) -> StormResult:
    """Play a storm and return what came of it; a bug in the code is a violation too.

    Args:
        storm: the storm.
        twice: play it again with every message doubled and the lease held by all, and compare.
        responder: who reacts; the rules are Plimsoll's, others show that they are seen broken.
    """
    return _judged(read_storm(storm), storm, storm.seed, responder, twice=twice)


def play_kept(drill: Drill, *, twice: bool = False) -> StormResult:
    """Play a storm that was kept as a drill; the oracle is not asked.

    Args:
        drill: the drill.
        twice: as in `play_storm`.
    """
    return _judged(drill, None, drill.scenario.seed, PLIMSOLL, twice=twice)


def _judged(
    drill: Drill, storm: Storm | None, seed: int, responder: str, *, twice: bool
) -> StormResult:
    try:
        verdict, ending = _played(drill, storm, responder, doubled=False)
    except NeverReadyError:
        return StormResult(seed=seed, playable=False)
    if not twice or ending is None:
        return verdict
    other, again = _played(drill, storm, responder, doubled=True)
    found = [*verdict.violations, *(_doubled(v) for v in other.violations)]
    if again is not None and verdict.settled and other.settled:
        found += [
            Violation(rule=f"differs-{f.name}", seconds=0.0, what=f"{a} alone, {b} with a rival")
            for f in fields(Ending)
            if (a := getattr(ending, f.name)) != (b := getattr(again, f.name))
        ]
    return replace(verdict, violations=tuple(found))


def _doubled(violation: Violation) -> Violation:
    return Violation(
        rule=f"{violation.rule} (doubled)", seconds=violation.seconds, what=violation.what
    )


@dataclass(slots=True)
class _Play:
    """One play of a storm, and what is looked at meanwhile."""

    storm: Storm | None
    """None where the oracle is not to be asked."""
    simulation: Simulation
    watch: Watch
    before: Before | None = None

    def say(self, what: str) -> None:
        """Look at the cluster when the first notice is sent, before anybody hears of it."""
        self.watch.hearing.say(what)
        asked = self.storm is not None and knows(self.storm)
        if self.before is None and asked and NOTICE.match(what):
            seen = self.watch.seen(self.simulation.rig_clusters[CLUSTER])
            self.before = Before(seen=seen, at=self.simulation.clock.now())

    def judge(self, report: Report) -> bool:
        """Ask the oracle; return whether it knew the answer."""
        if self.storm is None or self.before is None:
            return False
        answer = not_saved(self.storm, self.before, self.simulation, report)
        for rule, what in answer or ():
            self.watch.note(rule, what)
        return answer is not None

    def wait(self, *, settled: bool) -> None:
        """Let the cluster come to rest, and look at what is left."""
        rig_cluster = self.simulation.rig_clusters[CLUSTER]
        steps: Sequence[Step] = ()
        for _ in range(LOOKS):
            self.simulation.clock.run_until(self.simulation.clock.now() + CALM)
            steps = still_to_do(
                rig_cluster, self.watch.seen(rig_cluster), self.simulation.clock.now()
            )
            if not steps:
                break
        for step in steps if settled else ():
            self.watch.note("never-calm", f"there is always something to do: {step}")
        for rule, what in endings_wrong(
            self.simulation, rig_cluster, self.watch.seen(rig_cluster), self.watch.hearing
        ):
            self.watch.note(rule, what)


class _Ears(Quiet):
    """Hears what happens in a play, once there is one."""

    play: _Play | None = None

    @override
    def say(self, seconds: float, what: str) -> None:
        if self.play is not None:
            self.play.say(what)

    def called(self, invocation: Invocation) -> None:
        """Hear of a call."""
        if self.play is not None:
            self.play.watch.called(invocation)


def _played(
    drill: Drill, storm: Storm | None, responder: str, *, doubled: bool
) -> tuple[StormResult, Ending | None]:
    ears = _Ears()
    scenario = drill.scenario
    simulation = Simulation(
        drill,
        responder=responder,
        seed=scenario.seed,
        listener=ears,
        mischief=FaultHooks(on_call=ears.called, doubled=doubled),
    )
    hearing = Hearing([e for e in scenario.timeline if isinstance(e, FaultEntry)])
    watch = Watch(simulation, responder, hearing, lease_for_all=doubled)
    play = ears.play = _Play(storm, simulation, watch)
    try:
        report = simulation.run()
        judged = play.judge(report)
        play.wait(settled=report["settled"])
        ending = ending_of(simulation.rig_clusters[CLUSTER])
    except NeverReadyError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug is what is looked for
        watch.note("bug", f"{type(error).__name__}: {error}")
        return StormResult(seed=scenario.seed, violations=tuple(watch.findings.found)), None
    finally:
        simulation.close()
    verdict = StormResult(
        seed=scenario.seed,
        violations=tuple(watch.findings.found),
        settled=report["settled"],
        judged=judged,
        killed=report["totals"]["pods_killed"],
    )
    return verdict, ending
