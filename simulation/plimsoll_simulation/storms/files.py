"""Storms as files: a storm is read like any drill, and one that failed can be played again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.storms.model import MAIN, Storm

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_storm(storm: Storm, folder: Path, *, comment: str = "") -> Path:
    """Write a storm into a folder, which is made; return the path of its scenario.

    Args:
        storm: the storm.
        folder: holds this storm only.
        comment: stands at the top of the scenario.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, documents in storm.files().items():
        head = "".join(f"# {line}\n" for line in comment.splitlines()) if name == MAIN else ""
        text = yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False)
        (folder / name).write_text(head + text, encoding="utf-8")
    return folder / MAIN


def read_storm(storm: Storm) -> Drill:
    """Return a storm's drill, read from files that are gone afterwards.

    Raises:
        BadScenario: the storm is no valid drill.
    """
    with tempfile.TemporaryDirectory(prefix="plimsoll-storm-") as folder:
        return read_drill(write_storm(storm, Path(folder)))
