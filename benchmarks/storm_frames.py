"""What the frames of storms cost a drain: interleaved runs without them, with them, and without them once more.

The last column is the noise: the same code against itself. A frame is made after the actions of a plan, in the
pause before the next, so its own time is no part of these runs; the last line tells it. Run it from the repository:

    .venv/bin/python -m benchmarks.storm_frames [--runs 7]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import batched
from typing import Any, Final

import pytest
from rich.console import Console

from benchmarks.drain_plan import SIZES, cluster, planned
from benchmarks.output import machine, table
from benchmarks.simulated_drill import read
from plimsoll.services.reconcile import PAUSE_SECONDS
from plimsoll.services.storm_frames import StormFrames
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.rigs.simulated.rig import Simulation
from tests.support.workload_sets import Telemetry, WiredServices

LARGE: Final = SIZES[0]
NODES, PODS = 20, 200
NOTICES: Final = 200


def notices(*, frames: bool) -> float:
    """Return the processor time of a storm's notices, each up to the cordon of its node and the wake-up."""
    services = WiredServices(frames=MemoryFrames() if frames else None)
    instances = [services.join(f"spot-{n}", capacity="spot") for n in range(NOTICES)]
    services.resync.run()
    bodies = [services.spot_event(instance) for instance in instances]
    began = time.process_time()
    failed = [
        why for ten in batched(bodies, 10, strict=True) for why in services.notices.receive(ten)
    ]
    took = time.process_time() - began
    assert not any(failed)
    return took


def plan(*, frames: bool) -> float:
    """Return the processor time of a plan of 500 nodes, after the frame of the one before it."""
    seen = cluster(LARGE, "none")
    shown = StormFrames(
        cluster=seen.cluster, sink=MemoryFrames() if frames else None, telemetry=Telemetry()
    )
    shown.show(planned(seen, LARGE.after), (), {})
    began = time.process_time()
    planned(seen, LARGE.after)
    return time.process_time() - began


def frame() -> float:
    """Return the processor time of a frame of 500 nodes."""
    seen = cluster(LARGE, "none")
    shown = StormFrames(cluster=seen.cluster, sink=MemoryFrames(), telemetry=Telemetry())
    made = planned(seen, LARGE.after)
    began = time.process_time()
    shown.show(made, (), {})
    took = time.process_time() - began
    assert shown.last is not None  # 500 nodes that go are a storm
    return took


def storm(*, frames: bool) -> float:
    """Return the processor time of a drill of ten minutes, without that of its frames: they are made in pauses."""
    drill = read(NODES, PODS)
    with (
        Simulation(
            drill, responder="plimsoll", seed=0, frames=MemoryFrames() if frames else None
        ) as simulation,
        pauses() as paused,
    ):
        simulation.prepare()
        began = time.process_time()
        simulation.begin()
        simulation.watch()
        return time.process_time() - began - sum(paused)


@contextmanager
def pauses() -> Iterator[list[float]]:
    """Note how long each frame takes, which is made in the second between two plans."""
    show, took = StormFrames.show, list[float]()

    def timed(self: StormFrames, *given: Any) -> None:
        began = time.process_time()
        show(self, *given)
        took.append(time.process_time() - began)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StormFrames, "show", timed)
        yield took


MEASURED: Final[dict[str, Callable[..., float]]] = {
    f"{NOTICES} notices": notices,
    f"plan of {LARGE.name}": plan,
    f"simulated drill of {NODES} nodes, {PODS} pods": storm,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    chosen = parser.parse_args()
    console = Console(width=130)
    console.print(f"{machine('plimsoll')}; {chosen.runs} runs each, medians of processor time")
    shown = table("frames", "what", "without", "with", "with : without", "without : without")
    for name, measure in MEASURED.items():
        measure(frames=True)  # imports and caches
        rounds = [
            (
                measured(measure, frames=False),
                measured(measure, frames=True),
                measured(measure, frames=False),
            )
            for _ in range(chosen.runs)
        ]
        shown.add_row(
            name,
            f"{statistics.median(first for first, _, _ in rounds):.2f} s",
            f"{statistics.median(second for _, second, _ in rounds):.2f} s",
            f"{statistics.median(second / first for first, second, _ in rounds):.3f}",
            f"{statistics.median(third / first for first, _, third in rounds):.3f}",
        )
    console.print(shown)
    took = statistics.median(frame() for _ in range(chosen.runs))
    console.print(f"a frame of {LARGE.name}: {took:.3f} s, in a pause of {PAUSE_SECONDS:g} s")


def measured(measure: Callable[..., float], *, frames: bool) -> float:
    """Measure without the garbage of the run before."""
    gc.collect()
    return measure(frames=frames)


if __name__ == "__main__":
    main()
