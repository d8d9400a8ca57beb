"""The outcome of a drill is the same under any redelivery, and when any run is killed at any call.

A small drill with one workload of each difficult kind is played again and again: with every notice
and every wake-up doubled and out of order, and with one run killed after its n-th call, for calls
spread over the whole drill and for every call that writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.fields import parse_time
from plimsoll.domain.kubernetes import INTERRUPTION, RELEASED
from plimsoll.services.lease import LEASE_SECONDS
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_simulation.rigs.simulated.time import EPOCH, Invocation
from plimsoll_simulation.scenario.drill import Drill, read_drill
from tests.support.properties import IN_TEST_LONG

HERE = Path(__file__).parent / "redelivery"
SPREAD = 24
"""How many reads are tried: being killed after a read is being killed before the next write."""


@cache
def drill() -> Drill:
    return read_drill(HERE / "drill.yaml")


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a drill ended, as far as it must not depend on luck."""

    settled: bool
    killed: int
    cut_short: int
    at_zero: tuple[str, ...]
    """Workloads that had no replica for a while, though they can run twice."""
    replicas: tuple[tuple[str, int, int], ...]
    """Workload, its spec.replicas, and how many of its pods are Ready."""
    leftovers: tuple[str, ...]


def play(hooks: FaultHooks) -> Ending:
    simulation = Simulation(drill(), responder="plimsoll", seed=0, hooks=hooks)
    try:
        return ending(simulation, simulation.run())
    finally:
        simulation.close()


def ending(simulation: Simulation, report: Report) -> Ending:
    store = simulation.rig_clusters["harbor"].cluster.store
    replicas = tuple(
        (
            f"{kind}/{obj['metadata']['name']}",
            obj["spec"]["replicas"],
            obj["status"]["readyReplicas"],
        )
        for kind in ("deployments", "statefulsets")
        for obj in store.all(kind)
    )
    return Ending(
        settled=report["settled"],
        killed=report["totals"]["pods_killed"],
        cut_short=report["totals"]["pods_cut_short"],
        at_zero=tuple(
            row["name"]
            for row in report["workloads"]
            if row["seconds_at_zero"] and row["ready_floor"]
        ),
        replicas=replicas,
        leftovers=tuple(leftovers(simulation)),
    )


def leftovers(simulation: Simulation) -> Iterator[str]:
    """Yield what a finished drill must not leave behind."""
    store = simulation.rig_clusters["harbor"].cluster.store
    gone = {m.node for m in simulation.rig_clusters["harbor"].fleet.machine.values() if m.gone}
    for pod in store.all("pods"):
        if pod["spec"].get("nodeName") not in gone and RELEASED in notes_on(pod):
            yield f"pod {pod['metadata']['name']} is still released"
    for node in store.all("nodes"):
        if node["metadata"]["name"] not in gone and INTERRUPTION in json.dumps(node):
            yield f"node {node['metadata']['name']} is marked, and stays"
    for lease in store.all("leases"):
        if held_until(lease) > simulation.clock.now() + timedelta(seconds=LEASE_SECONDS):
            yield f"the lease is held until {held_until(lease)}"


def held_until(lease: dict[str, Any]) -> datetime:
    spec = lease["spec"]
    if not spec.get("holderIdentity"):
        return EPOCH
    return parse_time(spec["renewTime"]) + timedelta(seconds=spec["leaseDurationSeconds"])


def notes_on(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found


@cache
def calls() -> tuple[str, ...]:
    """Return every call that the undisturbed drill makes, in order."""
    made: list[str] = []

    def note(invocation: Invocation) -> None:
        if invocation.name in {"notices", "drains", "schedule", "sweep"}:
            made.append(f"{invocation.name}: {invocation.last_call}")

    play(FaultHooks(on_call=note))
    return tuple(made)


@cache
def undisturbed() -> Ending:
    return play(FaultHooks())


def writes(call: str) -> bool:
    reading = ("GET ", "dynamodb:", "ec2:Describe", "autoscaling:Describe", "eks:Describe")
    return not call.partition(": ")[2].startswith(reading) and "/leases" not in call


def kill_points() -> list[int]:
    made = calls()
    step = max(1, len(made) // SPREAD)
    return sorted(
        {n for n, call in enumerate(made) if writes(call)} | set(range(0, len(made), step))
    )


def tried() -> list[int]:
    """Return the calls after which runs are killed: in `make test` every sixth, and the first of each function."""
    points = kill_points()
    if IN_TEST_LONG:
        return points
    first = {calls()[number].partition(":")[0]: number for number in reversed(points)}
    return sorted({*points[::6], *first.values()})


class Killer:
    """Kills the run that makes the call of one number, right after it."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.victim: Invocation | None = None

    def __call__(self, invocation: Invocation) -> None:
        if invocation.name not in {"notices", "drains", "schedule", "sweep"}:
            return
        if self._left == 0:
            self.victim = invocation
            invocation.kill()
        self._left -= 1


def killed_after(number: int) -> Ending:
    """Play the drill with one run killed after its n-th call."""
    killer = Killer(number)
    found = play(FaultHooks(on_call=killer))
    assert killer.victim is not None
    assert killer.victim.finished
    return found


def test_the_undisturbed_drill_ends_well():
    found = undisturbed()
    assert (found.settled, found.killed, found.cut_short) == (True, 0, 0)
    assert found.at_zero == ()
    assert found.leftovers == ()
    assert found.replicas == (
        ("deployments/legacy", 1, 1),
        ("deployments/payments", 2, 2),
        ("deployments/web", 3, 3),
        ("statefulsets/cart", 2, 2),
    )


def test_every_message_doubled_and_out_of_order_gives_the_same_outcome():
    assert play(FaultHooks(doubled=True)) == undisturbed()


@pytest.mark.drawn
def test_a_run_killed_after_any_one_call_gives_the_same_outcome():
    points = tried()
    # Processes of their own use both cores, and are not slowed down by whoever counts covered lines.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        endings = zip(points, pool.map(killed_after, points, chunksize=8), strict=True)
        wrong = {f"{n} ({calls()[n]})": end for n, end in endings if end != undisturbed()}
    assert wrong == {}


@pytest.mark.parametrize("function", ["notices", "drains", "schedule", "sweep"])
def test_the_kill_points_cover_every_function(function: str):
    assert any(calls()[number].startswith(function) for number in tried())
