"""What an autoscaler makes of a drain: released pods stand beside their replacements, and it counts both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import override

import pytest

from plimsoll_simulation.measure.listening import Progress, Quiet
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import Storm, read_storm
from plimsoll_simulation.storms.model import CLUSTER
from tests.support.storms import WEB, a_batch, a_group, a_storm

LONG = timedelta(minutes=8)
"""Longer than an autoscaler waits before it lowers a count."""


class _Counts(Quiet):
    """Notes the counts that the Deployment is set to."""

    def __init__(self, storm: Storm) -> None:
        self.seen: list[int] = []
        self._simulation = Simulation(
            read_storm(storm), responder="plimsoll", seed=storm.seed, listener=self
        )

    @override
    def progress(self, progress: Progress) -> None:
        store = self._simulation.rig_clusters[CLUSTER].cluster.store
        self.seen += [obj["spec"]["replicas"] for obj in store.all("deployments")]

    def play(self) -> Sequence[int]:
        try:
            self._simulation.run()
            clock = self._simulation.clock
            until = clock.now() + LONG
            while clock.now() < until:
                clock.run_until(clock.now() + timedelta(seconds=5))
                self.progress(Progress(seconds=0, of_seconds=0))
        finally:
            self._simulation.close()
        return self.seen


def busy(usage: int, startup: int) -> Storm:
    web = replace(
        WEB,
        replicas=12,
        cpu=100,
        autoscaled=(2, 16),
        usage_percent=usage,
        startup_seconds=startup,
    )
    groups = (a_group("base", "on-demand"), a_group("spot-1", "spot", size=2))
    return a_storm(workloads=(web,), other_controllers=("hpa",), groups=groups)


@cache
def undisturbed(usage: int, startup: int) -> Sequence[int]:
    nothing = a_batch("spot-1", 1, notice="none", at="14m")
    return _Counts(replace(busy(usage, startup), events=(nothing,))).play()


@pytest.mark.parametrize("startup", [5, 60], ids=["starts at once", "starts for a minute"])
@pytest.mark.parametrize("usage", [44, 50, 65], ids=["below", "at", "above"])
@pytest.mark.parametrize("interrupted", [1, 2], ids=["one of two nodes", "both nodes"])
def test_the_count_is_at_most_one_off_what_it_is_without_an_interruption(
    usage: int, startup: int, interrupted: int
):
    drained = replace(busy(usage, startup), events=(a_batch("spot-1", interrupted),))
    control, counts = undisturbed(usage, startup), _Counts(drained).play()

    assert len(set(control)) > 1 or usage == 50
    assert min(control) - 1 <= min(counts)
    assert max(counts) <= max(control) + 1
