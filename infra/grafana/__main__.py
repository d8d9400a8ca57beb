"""Write the boards of Grafana anew beside this module: `make references`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.grafana import agent, fleet, pipeline, queues

FOLDER: Final = Path(__file__).parent
BOARDS: Final[Mapping[str, Callable[[], Dashboard]]] = {
    "agent": agent.make,
    "fleet": fleet.make,
    "pipeline": pipeline.make,
    "queues": queues.make,
}
"""Name of a file -> what makes it."""


def rendered(name: str) -> str:
    """Return a board as Grafana imports it."""
    return json.dumps(BOARDS[name](), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for board in BOARDS:
        (FOLDER / f"{board}.json").write_text(rendered(board), encoding="utf-8")
