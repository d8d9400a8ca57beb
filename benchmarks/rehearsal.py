"""How often a rehearsal is right: `python -m benchmarks.rehearsal --rig cluster --jobs 4`.

Each drill is a cluster drawn as for storms, of which all spot instances go, or those of a zone or a family. At time 0
it is rehearsed over its API as a user would rehearse it; then it is played, and what was predicted of each workload is held against
what it felt. The rehearsal knows what a cluster shows, and not what the drill knows: how long nodes and pods
need, which node the scheduler will choose, what groups launch by themselves, that usage changes.

On the rig `cluster` a drill has few nodes, a control plane and an emulator of its own, and takes some minutes of the
wall; on `simulated` seconds.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count as count_from
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
from rich.console import Console

from benchmarks.output import machine, table
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.services.ports import Clock
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rehearsal.prediction import Prediction, prediction_of
from plimsoll_simulation.rehearsal.scenario import modelled
from plimsoll_simulation.rehearsal.scope import Scope
from plimsoll_simulation.rigs.run import Run
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.scenario.kinds import COUNTED
from plimsoll_simulation.scenario.selectors import Selector
from plimsoll_simulation.scenario.timeline import NoticeEntry
from plimsoll_simulation.storms.draw import draw_groups
from plimsoll_simulation.storms.draw_workloads import draw_workloads
from plimsoll_simulation.storms.files import read_storm
from plimsoll_simulation.storms.model import CLUSTER, Storm
from plimsoll_simulation.storms.workload import CUSTOM
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.cluster.rig_cluster import ControlPlaneRigCluster
from plimsoll_testbed.rigs.emulated.rig import Emulation

CONTROL_PLANE: Final = "cluster"
RIGS: Final[dict[str, Callable[..., Run]]] = {
    "simulated": Simulation,
    CONTROL_PLANE: partial(Emulation, clusters=ControlPlanes, rig=CONTROL_PLANE),
}
AT: Final = {"simulated": timedelta(seconds=60), CONTROL_PLANE: timedelta(seconds=15)}
"""When the notices come."""
QUESTIONS: Final[dict[str, Callable[[Pair], tuple[bool, bool]]]] = {
    "at zero": lambda pair: (pair.zero_predicted > 0, pair.zero > 0),
    "below its floor": lambda pair: (pair.below_predicted > 0, pair.below > 0),
}
"""What was predicted, and what came."""
HORIZON: Final = timedelta(minutes=5)
"""Of a drill in the wall's time: two minutes until the instances go, and as much again for what replaces them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One workload of one drill: the seconds that were predicted, and what it felt until the drill ended."""

    workload: str
    zero_predicted: float
    zero: float
    below_predicted: float
    below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One drill."""

    seed: int
    scope: str
    pairs: Sequence[Pair] = ()
    failed: str | None = None
    """Why it could not be played to its end."""


@click.command()
@click.option("--count", default=50, show_default=True, type=click.IntRange(min=1))
@click.option("--first", default=0, show_default=True, help="The seed of the first drill.")
@click.option("--rig", type=click.Choice(list(RIGS)), default=CONTROL_PLANE, show_default=True)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1))
def main(*, count: int, first: int, rig: str, jobs: int) -> None:
    """Print precision and recall over so many drills, and what was predicted wrongly; exit 1 if one failed."""
    told, done = machine(), list[Played]()
    for each in _all_played(list(islice(_playable(first, rig), count)), rig, jobs):
        done.append(each)
        words = f"was not played: {each.failed}" if each.failed else f"{len(each.pairs)} workloads"
        print(f"{len(done)} of {count} drills: seed {each.seed}, {words}", file=sys.stderr)
    _show(done, rig, told)
    if any(each.failed for each in done):
        raise click.exceptions.Exit(1)


def _playable(first: int, rig: str) -> Iterator[int]:
    """Yield the seeds of which something is predicted, and whose clusters become Ready: a storm may not fit its nodes."""
    for seed in count_from(first):
        storm, _ = _drawn(seed, rig)
        if not any(workload.kind in COUNTED for workload in storm.workloads):
            continue
        with Simulation(read_storm(storm), responder="plimsoll", seed=seed) as run:
            try:
                run.prepare()
            except NeverReadyError:
                continue
        yield seed


def _all_played(seeds: Sequence[int], rig: str, jobs: int) -> Iterator[Played]:
    """Play drills side by side, each in a process of its own."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for each in as_completed([pool.submit(_played, seed, rig) for seed in seeds]):
            yield each.result()


def _show(done: Sequence[Played], rig: str, told: str) -> None:
    out = Console(width=120)
    played = [each for each in done if not each.failed]
    pairs = [(each, pair) for each in played for pair in each.pairs]
    shown = table(
        f"{len(played)} drills on the rig {rig}, {len(pairs)} workloads",
        "a workload is",
        "predicted and came",
        "predicted only",
        "came only",
        "precision",
        "recall",
    )
    for name, question in QUESTIONS.items():
        answers = [question(pair) for _, pair in pairs]
        right = answers.count((True, True))
        false, missed = answers.count((True, False)), answers.count((False, True))
        shares = [
            f"{right / (right + wrong):.0%}" if right + wrong else "of none"
            for wrong in (false, missed)
        ]
        shown.add_row(name, str(right), str(false), str(missed), *shares)
        for (each, pair), (predicted, came) in zip(pairs, answers, strict=True):
            if predicted != came:
                out.print(f"seed {each.seed}, {each.scope}: {name}: {pair}")
    out.print(shown)
    errors = [abs(p.zero - p.zero_predicted) for _, p in pairs if p.zero and p.zero_predicted]
    if errors:
        out.print(
            f"seconds at zero, where both say so: half are within {median(errors):.1f} s, all within {max(errors):.1f} s"
        )
    out.print(told)


def _played(seed: int, rig: str) -> Played:
    """Rehearse a drill at its time 0, play it, and return its workloads; of a failure why."""
    storm, scope = _drawn(seed, rig)
    none = Played(seed=seed, scope=str(scope))
    try:
        with RIGS[rig](_shortened(read_storm(storm), rig), responder="plimsoll", seed=seed) as run:
            run.prepare()
            found = _rehearsed(_live(run), scope)
            run.begin()
            report = run.report(settled=run.watch())
    except Exception as error:  # noqa: BLE001 - others go on, and it is told
        return replace(none, failed=f"{type(error).__name__}: {error}"[:2000])
    # A drill ends while some of what it lost has not come back: more cannot be felt than it lasts.
    lasted = report["seconds"] - AT[rig].total_seconds()
    felt = {f"{row['kind']} {row['namespace']}/{row['name']}": row for row in report["workloads"]}
    pairs = [
        Pair(
            workload=each.workload,
            zero_predicted=min(each.seconds_at_zero, lasted),
            zero=felt[each.workload]["seconds_at_zero"],
            below_predicted=each.seconds_below_floor,
            below=felt[each.workload]["seconds_below_floor"],
        )
        for each in found.outcomes
        if each.workload in felt and each.workload.split()[0] in COUNTED
    ]
    return replace(none, pairs=pairs)


def _shortened(drill: Drill, rig: str) -> Drill:
    if rig != CONTROL_PLANE:
        return drill
    return replace(drill, scenario=drill.scenario.model_copy(update={"horizon": HORIZON}))


def _drawn(seed: int, rig: str) -> tuple[Storm, Scope]:
    """Draw a cluster, and what of it goes."""
    rnd = random.Random(f"rehearsal/{seed}")
    groups = draw_groups(rnd, small=rig == CONTROL_PLANE)
    drawn = draw_workloads(rnd, groups, small=False)
    workloads = tuple(
        w for w in drawn if not w.operated and w.kind != CUSTOM
    )  # only one rig has operators
    spot = [group for group in groups if group.capacity == "spot"]
    kind, one = rnd.choice(("all", "zone", "family")), rnd.choice(spot)
    nodes: dict[str, Any] = {"capacity": "spot"}
    scope = Scope()
    if kind == "zone":
        nodes["zone"] = one.zones[0]  # the first that nodes are dealt to
        scope = Scope(zone=one.zones[0])
    elif kind == "family":
        nodes["instance_type"] = one.instance_type
        scope = Scope(family=one.instance_type.partition(".")[0])
    entry = NoticeEntry(at=AT[rig], notice="spot-interruption", nodes=Selector(**nodes))
    return Storm(seed=seed, groups=groups, workloads=workloads, events=(entry,)), scope


def _live(run: Run) -> LiveCluster:
    rig_cluster = run.rig_clusters[CLUSTER]
    clock: Clock = run.clock
    match rig_cluster:
        case SimulatedRigCluster():
            requests = Requests(
                transport=FakeTransport(rig_cluster.cluster, run.clock), cluster=CLUSTER
            )
        case ControlPlaneRigCluster():
            clock = SystemClock()
            requests = Requests(transport=rig_cluster.plane.transport(), cluster=CLUSTER)
        case other:
            raise TypeError(other)
    fleet = rig_cluster.fleet
    groups = [group_of(g) for g in fleet.groups.values() if g.spec.kind != "static"]
    return replace(
        read_cluster(requests, clock),
        groups=groups,
        launched={machine.id: machine.launched for machine in fleet.alive()},
    )


def _rehearsed(live: LiveCluster, scope: Scope) -> Prediction:
    drill = modelled(live, scope)
    with tempfile.TemporaryDirectory(prefix="plimsoll-rehearsal-") as folder:
        script = read_drill(drill.write(Path(folder)))
    with Simulation(script, responder="plimsoll", seed=0) as play:
        report: Report = play.run()
    return prediction_of(live, scope, drill, report)


if __name__ == "__main__":
    main()
