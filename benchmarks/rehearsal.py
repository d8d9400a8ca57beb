"""How often a rehearsal is right: `python -m benchmarks.rehearsal --count 50 --rig cluster`.

Each drill is a cluster drawn as for storms, of which all spot instances go, or those of a zone or a family. At time 0
it is rehearsed over its API as a user would rehearse it; then it is played, and what was foretold of each workload is held against
what it felt. The rehearsal knows what a cluster shows, and not what the drill knows: how long nodes and pods
need, which node the scheduler will choose, what groups launch by themselves, that usage changes.

On the rig `cluster` a drill takes some minutes of the wall, on `simulated` seconds.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
from rich.console import Console

from benchmarks.output import machine, table
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.services.ports import Clock
from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rehearsal.live import LiveCluster, read_cluster
from plimsoll_testbed.rehearsal.prediction import Outcome, Prediction, prediction_of
from plimsoll_testbed.rehearsal.scenario import modelled
from plimsoll_testbed.rehearsal.scope import Scope
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.cluster.rig_cluster import ControlPlaneRigCluster
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.run import Run
from plimsoll_testbed.rigs.simulated.aws import group_of
from plimsoll_testbed.rigs.simulated.rig import Simulation
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.scenario.drill import read_drill
from plimsoll_testbed.scenario.kinds import COUNTED
from plimsoll_testbed.scenario.selectors import Selector
from plimsoll_testbed.scenario.timeline import NoticeEntry
from plimsoll_testbed.storms.draw import draw_groups
from plimsoll_testbed.storms.draw_workloads import draw_workloads
from plimsoll_testbed.storms.files import read_storm
from plimsoll_testbed.storms.model import CLUSTER, Storm
from plimsoll_testbed.storms.workload import CUSTOM

RIGS: Final[dict[str, Callable[..., Run]]] = {
    "simulated": Simulation,
    "cluster": partial(Emulation, clusters=ControlPlanes, rig="cluster"),
}
AT: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One workload of one drill: what was foretold, and what it felt."""

    seed: int
    foretold: Outcome
    zero: float
    below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well a yes was foretold."""

    right: int
    false: int
    missed: int

    @property
    def precision(self) -> float:
        """Of what was foretold, the share that came."""
        return self.right / (self.right + self.false) if self.right + self.false else 1.0

    @property
    def recall(self) -> float:
        """Of what came, the share that was foretold."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


@click.command()
@click.option("--count", default=50, show_default=True, type=click.IntRange(min=1))
@click.option("--first", default=0, show_default=True, help="The seed of the first drill.")
@click.option("--rig", type=click.Choice(list(RIGS)), default="cluster", show_default=True)
@click.option("--verbose", is_flag=True, help="Name every workload that was foretold wrongly.")
def main(*, count: int, first: int, rig: str, verbose: bool) -> None:
    """Print precision and recall over so many drills."""
    out, told = Console(width=120), machine()
    pairs: list[Pair] = []
    for played, seed in enumerate(range(first, first + count), start=1):
        pairs += _drill(seed, RIGS[rig])
        print(f"{played} of {count} drills, {len(pairs)} workloads", file=sys.stderr)
    shown = table(
        f"{count} drills on the rig {rig}, {len(pairs)} workloads",
        "a workload is",
        "foretold and came",
        "foretold only",
        "came only",
        "precision",
        "recall",
    )
    for name, foretold, came in _questions():
        score = _score(pairs, foretold, came)
        shown.add_row(
            name,
            str(score.right),
            str(score.false),
            str(score.missed),
            f"{score.precision:.0%}",
            f"{score.recall:.0%}",
        )
        if verbose:
            for pair in pairs:
                if foretold(pair) != came(pair):
                    out.print(f"seed {pair.seed}: {name}: {pair}")
    out.print(shown)
    both = [p for p in pairs if p.zero and p.foretold.seconds_at_zero]
    if both:
        errors = [abs(p.zero - p.foretold.seconds_at_zero) for p in both]
        out.print(
            f"seconds at zero, where both say so: half are within {median(errors):.1f} s, all within {max(errors):.1f} s"
        )
    out.print(told)


def _questions() -> Iterator[tuple[str, Callable[[Pair], bool], Callable[[Pair], bool]]]:
    yield "at zero", lambda p: p.foretold.seconds_at_zero > 0, lambda p: p.zero > 0
    yield "below its floor", lambda p: p.foretold.seconds_below_floor > 0, lambda p: p.below > 0


def _score(
    pairs: Sequence[Pair], foretold: Callable[[Pair], bool], came: Callable[[Pair], bool]
) -> Score:
    return Score(
        right=sum(foretold(p) and came(p) for p in pairs),
        false=sum(foretold(p) and not came(p) for p in pairs),
        missed=sum(came(p) and not foretold(p) for p in pairs),
    )


def _drill(seed: int, make: Callable[..., Run]) -> list[Pair]:
    """Rehearse a drill at its time 0, play it, and return its workloads."""
    storm, scope = _drawn(seed)
    with make(read_storm(storm), responder="plimsoll", seed=seed) as run:
        run.prepare()
        found = _rehearsed(_live(run), scope)
        run.begin()
        report = run.report(settled=run.watch())
    felt = {f"{row['kind']} {row['namespace']}/{row['name']}": row for row in report["workloads"]}
    return [
        Pair(
            seed=seed,
            foretold=each,
            zero=felt[each.workload]["seconds_at_zero"],
            below=felt[each.workload]["seconds_below_floor"],
        )
        for each in found.outcomes
        if each.workload in felt and each.workload.split()[0] in COUNTED
    ]


def _drawn(seed: int) -> tuple[Storm, Scope]:
    """Draw a cluster, and what of it goes."""
    rnd = random.Random(f"rehearsal/{seed}")
    groups = draw_groups(rnd, small=False)
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
    entry = NoticeEntry(at=AT, notice="spot-interruption", nodes=Selector(**nodes))
    return Storm(seed=seed, groups=groups, workloads=workloads, events=(entry,)), scope


def _live(run: Run) -> LiveCluster:
    rig_cluster = run.rig_clusters[CLUSTER]
    clock: Clock = run.clock
    match rig_cluster:
        case HollowRigCluster():
            requests = Requests(
                transport=HollowTransport(rig_cluster.cluster, run.clock), cluster=CLUSTER
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
