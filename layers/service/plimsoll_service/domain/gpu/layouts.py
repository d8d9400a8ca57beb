"""Layouts of a node, and the names under which NVIDIA's mig-manager finds them.

A layout is the geometry of each GPU of a node, by index. Its name spells it, so that the label of a node
tells its layout: `7g.80gb.3g-1gx4` for all GPUs of a node, `7g.80gb.5-of-3g-1gx4.3-of-2gx3-1g` for the
first five and the next three. `1gd` is the 1g with twice the memory. A label holds 63 characters: a layout
of many geometries has a hash for a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import combinations, groupby
from typing import Any, Final

from plimsoll_service.domain.gpu.geometry import WHOLE_GPU, Counts, MigGeometries, fullest_first

type Layout = tuple[Counts, ...]
"""The geometry of each GPU of a node, by index."""

DISABLED: Final = "all-disabled"
"""NVIDIA's name of the configuration without MIG."""
LONGEST_LABEL_CHARACTERS: Final = 63
"""Characters of a label's value."""
_RUN: Final = re.compile(r"(?:(\d+)-of-)?(.+)")
_PART: Final = re.compile(r"(.+?)(?:x(\d+))?")


def supply(layout: Layout) -> Counts:
    """Return what the GPUs of a layout give together."""
    return tuple(map(sum, zip(*layout, strict=True)))


def geometry_name(geometries: MigGeometries, geometry: Counts) -> str:
    """Return the name of a geometry, such as `3g-1gx4`, fullest profiles first."""
    parts = [
        f"{short}x{number}" if number > 1 else short
        for short, number in zip(_shorts(geometries), geometry, strict=True)
        if number
    ]
    return "-".join(reversed(parts)) or "empty"


def layout_name(geometries: MigGeometries, layout: Layout) -> str:
    """Return the value of the label `nvidia.com/mig.config` for a layout."""
    runs = [(geometry_name(geometries, geometry), len(gpus)) for geometry, gpus in _runs(layout)]
    if runs == [(WHOLE_GPU, len(layout))]:
        return DISABLED
    if len(runs) == 1:
        return f"{geometries.names[-1]}.{runs[0][0]}"
    name = ".".join([geometries.names[-1], *(f"{gpus}-of-{of}" for of, gpus in runs)])
    if len(name) <= LONGEST_LABEL_CHARACTERS:
        return name
    return f"{geometries.names[-1]}.{sha256(name.encode()).hexdigest()[:12]}"


def layout_of(geometries: MigGeometries, name: str, gpus: int) -> Layout | None:
    """Return the layout that a name of ours or of NVIDIA's default configuration means; None: neither."""
    prefix = f"{geometries.names[-1]}."
    if name == DISABLED:
        return (geometries.counts({WHOLE_GPU: 1}),) * gpus
    if name == "all-balanced":
        # https://github.com/NVIDIA/mig-parted/blob/main/deployments/container/config.yaml
        shares = (("1g", 2), ("2g", 1), ("3g", 1))
        balanced = [dict(shares).get(short, 0) for short in _shorts(geometries)]
        return (tuple(balanced),) * gpus
    if name.removeprefix("all-") in geometries.names:
        place = geometries.names.index(name.removeprefix("all-"))
        most = max(geometry[place] for geometry in geometries.maximal)
        return (geometries.counts({geometries.names[place]: most}),) * gpus
    if not name.startswith(prefix):
        return None
    found: list[Counts] = []
    for run in map(_RUN.fullmatch, name.removeprefix(prefix).split(".")):
        geometry = None if run is None else _geometry(geometries, run[2])
        if run is None or geometry is None:
            return None
        found += [geometry] * int(run[1] or gpus)
    return tuple(found) if len(found) == gpus else None


def mig_config(geometries: MigGeometries, layout: Layout) -> list[dict[str, Any]]:
    """Return a layout as an entry of `mig-configs` in a configuration of mig-parted."""
    found: list[dict[str, Any]] = []
    first = 0
    for geometry, gpus in _runs(layout):
        whole = geometries.by_name(geometry) == {WHOLE_GPU: 1}
        devices = list(range(first, first + len(gpus)))
        entry = {
            "devices": "all" if len(gpus) == len(layout) else devices,
            "mig-enabled": not whole,
        }
        found.append(entry if whole else entry | {"mig-devices": geometries.by_name(geometry)})
        first += len(gpus)
    return found


def pair_layouts(geometries: Sequence[Counts], gpus: int) -> list[Layout]:
    """Return every layout of at most two geometries, so that only labels change from then on.

    Of the twelve geometries of a card of seven slices without double memory these are 474 on a node of eight.
    """
    ordered = sorted(geometries, key=fullest_first)
    alone = [(geometry,) * gpus for geometry in ordered]
    return alone + [
        (one,) * number + (other,) * (gpus - number)
        for one, other in combinations(ordered, 2)
        for number in range(1, gpus)
    ]


def in_order(layout: Sequence[Counts]) -> Layout:
    """Return a layout with fuller geometries first, as those of `pair_layouts` are."""
    return tuple(sorted(layout, key=fullest_first))


def _geometry(geometries: MigGeometries, name: str) -> Counts | None:
    shorts: Mapping[str, str] = dict(zip(_shorts(geometries), geometries.names, strict=True))
    found = {}
    for part in [] if name == "empty" else name.split("-"):
        read = _PART.fullmatch(part)
        if read is None or read[1] not in shorts:
            return None
        found[shorts[read[1]]] = int(read[2] or 1)
    return geometries.counts(found)


def _shorts(geometries: MigGeometries) -> list[str]:
    """Return a short name of each profile: its compute slices, with `d` for the one of double memory."""
    found: list[str] = []
    for name in geometries.names:
        short = name.partition(".")[0]
        found.append(f"{short}d" if short in found else short)
    return found


def _runs(layout: Layout) -> list[tuple[Counts, list[Counts]]]:
    return [(geometry, list(gpus)) for geometry, gpus in groupby(layout)]
