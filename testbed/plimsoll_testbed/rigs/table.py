"""The rigs out of real processes that a drill can be played on. `plimsoll_simulation.rigs.registry` reads the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RIGS: Final[Mapping[str, str]] = {
    "emulated": "plimsoll_testbed.rigs.emulated.rig:run",
    "cluster": "plimsoll_testbed.rigs.cluster.clusters:run",
    "localstack": "plimsoll_testbed.rigs.localstack.localstack:run",
}
"""Name -> module and function."""
