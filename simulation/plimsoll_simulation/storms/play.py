"""Plays storms and judges them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Final, override

from plimsoll.domain.actions import Step
from plimsoll.domain.drain import EMPTY_FOR
from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.rigs.simulated.other_controllers import OTHER_CONTROLLERS
from plimsoll_simulation.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_simulation.rigs.simulated.time import Invocation
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_simulation.scenario.timeline import FaultEntry
from plimsoll_simulation.storms.compare import (
    SCHEDULER_SEEDS,
    Other,
    Worse,
    worse_than,
)
from plimsoll_simulation.storms.endings import Ending, ending_of, endings_wrong, still_to_do
from plimsoll_simulation.storms.files import read_storm
from plimsoll_simulation.storms.losses import Loss, losses
from plimsoll_simulation.storms.model import Storm
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery
from plimsoll_simulation.storms.watch import Violation, Watch

PLIMSOLL: Final = "plimsoll"
CALM: Final = timedelta(seconds=65)
"""Between two observations of a settled cluster: a resync, and what it wakes."""
WAKE_UPS: Final = timedelta(minutes=4)
"""How long wake-ups may come that were sent before: a resync sends the last, over two minutes."""
QUIET: Final = timedelta(minutes=3)
"""How long a cluster is left alone in which nothing is to be done."""
LOOKS: Final = 4
"""So often it may be observed meanwhile: once a minute, wherever the first minute begins."""
OBSERVATIONS: Final = 10
"""After so many, there is always something left to do: recommendations may take their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StormResult:
    """The outcome of a storm."""

    seed: int
    violations: tuple[Violation, ...] = ()
    settled: bool = False
    playable: bool = True
    """False if its cluster never becomes ready: that is the storm's fault."""
    killed: int = 0
    losses: Mapping[str, Loss] = field(default_factory=dict)
    """By workload."""
    worse: tuple[Worse, ...] = ()
    """Workloads that another responder served better."""

    @property
    def rules(self) -> frozenset[str]:
        """The names of the rules that were broken."""
        worse = {w.rule for w in self.worse if not w.excused}
        return frozenset(v.rule for v in self.violations) | worse


def play_storm(
    storm: Storm,
    *,
    twice: bool = False,
    responder: str = PLIMSOLL,
    against: Collection[Other] = (),
) -> StormResult:
    """Play a storm and return its outcome; a bug in the code is a violation too.

    Args:
        storm: the storm.
        twice: play it again with every message doubled and a Lease for each of two executors, and compare.
        responder: who reacts. The rules are Plimsoll's; tests play others to see rules broken.
        against: other responders under which no workload may be better off.
    """
    drill = read_storm(storm)
    result = _judged(drill, responder, twice=twice)
    return replace(result, worse=tuple(worse_than(drill, against, result.losses)))


def play_kept(drill: Drill, *, twice: bool = False) -> StormResult:
    """Play a storm that was kept as a drill.

    Args:
        drill: the drill.
        twice: as in `play_storm`.
    """
    return _judged(drill, PLIMSOLL, twice=twice)


def _judged(drill: Drill, responder: str, *, twice: bool) -> StormResult:
    try:
        result, ending = _Play(drill, responder).run()
    except NeverReadyError:
        return StormResult(seed=drill.scenario.seed, playable=False)
    if not twice or ending is None:
        return result
    other, again = _Play(drill, responder, doubled=True).run()
    found = [*result.violations]
    found += [replace(v, rule=f"{v.rule} (doubled)") for v in other.violations]
    if again is not None and result.settled and other.settled:
        found += _differences(drill, responder, ending, again)
    return replace(result, violations=tuple(found))


def _differences(
    drill: Drill, responder: str, ending: Ending, again: Ending
) -> Iterator[Violation]:
    """Yield what two executors left and one does not, whatever the scheduler chooses.

    Messages that come twice come at other moments, and pods stand elsewhere for that: then other nodes are asked for.
    """
    if ending == again:
        return
    _, *more = SCHEDULER_SEEDS
    alone = [_Play(drill, responder, scheduler_seed=seed).run()[1] for seed in more]
    for name in (f.name for f in fields(Ending)):
        left, by_two = getattr(ending, name), getattr(again, name)
        if by_two not in {left, *(getattr(each, name) for each in alone if each is not None)}:
            what = f"{left} alone, {by_two} with another controller"
            yield Violation(rule=f"differs-{name}", seconds=0.0, what=what)


class _Play(Quiet):
    """One play of a storm; it listens to its own simulation."""

    def __init__(
        self,
        drill: Drill,
        responder: str,
        *,
        doubled: bool = False,
        scheduler_seed: int = 0,
    ) -> None:
        self._scenario = drill.scenario
        self._simulation = Simulation(
            drill,
            responder=responder,
            seed=drill.scenario.seed,
            listener=self,
            hooks=FaultHooks(on_call=self._called, doubled=doubled, scheduler_seed=scheduler_seed),
        )
        faults = [e for e in drill.scenario.timeline if isinstance(e, FaultEntry)]
        self._delivery = NoticeDelivery(faults)
        self._watch = Watch(self._simulation, responder, self._delivery, two_leases=doubled)
        self._looks = 2 * LOOKS if doubled else LOOKS
        """Each resync comes twice where messages are doubled."""
        self._calls: Counter[str] = Counter()

    def run(self) -> tuple[StormResult, Ending | None]:
        """Play it; after a bug there is no ending.

        Raises:
            NeverReadyError: its cluster never becomes ready.
        """
        result, ending = StormResult(seed=self._scenario.seed), None
        try:
            report = self._simulation.run()
            result = replace(
                result,
                settled=report["settled"],
                killed=report["totals"]["pods_killed"],
                losses=losses(self._simulation.measurement),
            )
            self._come_to_rest(settled=result.settled)
            ending = ending_of(self._watch.rig_cluster)
        except NeverReadyError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug is a finding
            self._watch.note("bug", f"{type(error).__name__}: {error}")
        finally:
            self._simulation.close()
        return replace(result, violations=tuple(self._watch.violations)), ending

    @override
    def say(self, seconds: float, what: str) -> None:
        """Take in which notices are sent, and which are lost."""
        self._delivery.record(what)

    def _called(self, invocation: Invocation) -> None:
        if invocation.name not in OTHER_CONTROLLERS:  # some observe the cluster themselves
            self._calls[invocation.last_call] += 1
        self._watch.called(invocation)

    def _come_to_rest(self, *, settled: bool) -> None:
        """Let the cluster come to rest, and judge what is left."""
        clock, rig_cluster = self._simulation.clock, self._watch.rig_cluster
        steps = self._until_calm()
        if any(group.spec.renew for group in rig_cluster.fleet.groups.values()):
            clock.run_until(clock.now() + EMPTY_FOR)
            steps = self._until_calm()
        for step in steps if settled else ():
            self._watch.note("never-calm", f"there is always something to do: {step}")
        kept_up = any(machine.waits for machine in rig_cluster.fleet.alive())
        if not (steps or kept_up):  # a lifecycle hook gets heartbeats
            self._leave_alone()
        seen = self._watch.observe()
        cordons = self._watch.cordons
        for rule, what in endings_wrong(
            self._simulation, rig_cluster, seen, self._delivery, cordons
        ):
            self._watch.note(rule, what)

    def _until_calm(self) -> Sequence[Step]:
        """Wait until nothing is to be done; return what is, if that does not come."""
        clock, rig_cluster = self._simulation.clock, self._watch.rig_cluster
        steps: Sequence[Step] = ()
        for _ in range(OBSERVATIONS):
            clock.run_until(clock.now() + CALM)
            reports = self._simulation.responder.reports(rig_cluster.name)
            steps = still_to_do(rig_cluster, self._watch.observe(), reports, clock.now())
            if not steps:
                break
        return steps

    def _leave_alone(self) -> None:
        """Count how often a cluster is observed in which nothing is to be done.

        Where something was done meanwhile, since a Job has ended for example, it is counted anew.
        """
        clock = self._simulation.clock
        for _ in range(OBSERVATIONS):
            written = self._watch.writes
            clock.run_until(clock.now() + WAKE_UPS)
            self._calls.clear()
            clock.run_until(clock.now() + QUIET)
            if self._watch.writes == written:
                break
        looks = self._calls["GET /api/v1/pods"]
        leases = sum(
            n for call, n in self._calls.items() if "/leases" in call and "GET" not in call
        )
        if looks > self._looks or leases:
            what = f"{looks} lists of pods and {leases} writes of the Lease in {QUIET}"
            self._watch.note("not-quiet", what)
