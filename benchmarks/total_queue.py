"""Whether each snapshot that was acknowledged is accounted for: the total-queue test of the deployed service.

    .venv/bin/python -m benchmarks.total_queue [--clusters 8] [--minutes 240] [--seed 1] [--seconds 1500]

Needs `make setup build`. A short form of it is a test. Exit status 1: something was lost, counted twice,
or not worked off in time.
"""

from __future__ import annotations

import argparse
import sys

from plimsoll_testbed.rigs.emulated.snapshot_trial import Trial, faulty_rig, play


def main() -> None:
    """Play one trial, and print the checker's report."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--clusters", type=int, default=8)
    options.add_argument("--minutes", type=int, default=240, help="snapshots of each")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seconds", type=float, default=1500.0, help="the most that it may take")
    chosen = options.parse_args()
    trial = Trial(
        clusters=chosen.clusters,
        minutes=chosen.minutes,
        seed=chosen.seed,
        seconds=chosen.seconds,
    )
    with faulty_rig(trial.seed) as (rig, wire):
        verdict = play(rig, wire, trial)
    print(verdict)
    sys.exit(not verdict.holds)


if __name__ == "__main__":
    main()
