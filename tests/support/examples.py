"""The drills of `examples/`, and what each has to come to, on whatever rig it is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "examples"

VERDICTS: Final[Mapping[str, tuple[str, ...]]] = {
    "all-spot-and-back": (),
    "all-spot-at-once": (),
    "api-server-away": (),
    "jobs": (),
    "late-and-doubled-notices": (),
    "lost-notices": (),
    "one-capacity-pool": (),
    "one-family": (),
    "one-family-by-policy": (),
    "one-family-with-floor": (),
    "one-node": (),
    "one-zone": (),
    "refused-capacity": (),
    "rollout-in-the-middle": (),
    "slow-and-throttled": (),
    "statefulset-with-volumes": (),
    "zonal-shift": (),
}
"""Of each drill the failures to be seen, by a word of each: what is still to be made better."""


def unexpected(name: str, failures: Sequence[str]) -> list[str]:
    """Return in words in what the failures of a drill differ from its verdict."""
    expected = VERDICTS[name]
    return [
        *(f"held: {word}" for word in expected if not any(word in line for line in failures)),
        *(f"failed: {line}" for line in failures if not any(word in line for word in expected)),
    ]
