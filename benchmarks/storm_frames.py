"""What the frames of storms cost a drain: interleaved runs without them, with them, and without them once more.

The last column is the noise: the same code against itself. Run it from the repository:

    .venv/bin/python -m benchmarks.storm_frames [--runs 7]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import batched
from typing import Final

from rich.console import Console

from benchmarks.drain_plan import SIZES, cluster, planned
from benchmarks.output import machine, table
from benchmarks.simulated_drill import read
from plimsoll.adapters.dynamodb.frames import encoded
from plimsoll.domain.frames import Frame, frame_of
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.rigs.simulated.rig import Simulation
from tests.support.workload_sets import WiredServices

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
    """Return the processor time of a plan of 500 nodes, with its frame as it is written."""
    seen = cluster(LARGE, "none")
    began = time.process_time()
    made = planned(seen, LARGE.after)
    if frames:
        frame = frame_of(made, None)
        assert isinstance(frame, Frame)  # 500 nodes that go are a storm
        encoded(frame)
    return time.process_time() - began


def storm(*, frames: bool) -> float:
    """Return the processor time of a drill of ten minutes, with a frame of each plan."""
    drill = read(NODES, PODS)
    began = time.process_time()
    with Simulation(
        drill, responder="plimsoll", seed=0, frames=MemoryFrames() if frames else None
    ) as simulation:
        simulation.prepare()
        simulation.begin()
        simulation.watch()
    return time.process_time() - began


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
            (measure(frames=False), measure(frames=True), measure(frames=False))
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


if __name__ == "__main__":
    main()
