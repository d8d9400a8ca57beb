"""GPU models: their MIG profiles, the memory that a slice really gives, and who has them on EC2.

Placements and profiles are those of NVIDIA's MIG user guide (supported MIG profiles). A profile gives
less memory than its name says, so that pods are sized against `usable_mib`. A node's own label
`nvidia.com/mig-PROFILE.memory` goes before this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A kind of MIG instance."""

    name: str
    """Such as 3g.40gb: the resource is nvidia.com/mig-3g.40gb."""
    compute: int
    """Compute slices."""
    memory: int
    """Memory slices, which it takes from a legal start on."""
    starts: tuple[int, ...]
    """Memory slices at which it may begin."""
    usable_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A model of GPU."""

    model: str
    memory_mib: int
    """Usable, of the whole GPU."""
    compute: int = 0
    """Compute slices: 7, 4, or 0 for a GPU that cannot be split by MIG."""
    memory: int = 0
    """Memory slices: 8, 4 or 0."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """By name, smallest first."""
    instance_types: Mapping[str, int] = field(default_factory=dict)
    """How many of them an EC2 instance has, by its type."""


def _seven(model: str, gb: tuple[int, ...], mib: tuple[int, ...], **types: int) -> Card:
    """Return a card of seven slices, from what 1g, double-memory 1g, 2g, 3g, 4g and 7g hold."""
    shapes = (
        (1, 1, (0, 1, 2, 3, 4, 5, 6)),
        (1, 2, (0, 2, 4, 6)),
        (2, 2, (0, 2, 4)),
        (3, 4, (0, 4)),
        (4, 4, (0,)),
        (7, 8, (0,)),
    )
    return _card(model, shapes, gb, mib, types)


def _four(model: str, gb: tuple[int, ...], mib: tuple[int, ...], **types: int) -> Card:
    """Return a card of four slices, from what 1g, 2g and 4g hold."""
    shapes = ((1, 1, (0, 1, 2, 3)), (2, 2, (0, 2)), (4, 4, (0,)))
    return _card(model, shapes, gb, mib, types)


def _card(
    model: str,
    shapes: tuple[tuple[int, int, tuple[int, ...]], ...],
    gb: tuple[int, ...],
    mib: tuple[int, ...],
    types: Mapping[str, int],
) -> Card:
    profiles = [
        Profile(
            name=f"{compute}g.{size}gb",
            compute=compute,
            memory=memory,
            starts=starts,
            usable_mib=usable,
        )
        for (compute, memory, starts), size, usable in zip(shapes, gb, mib, strict=True)
    ]
    return Card(
        model=model,
        memory_mib=mib[-1],
        compute=profiles[-1].compute,
        memory=profiles[-1].memory,
        profiles={each.name: each for each in profiles},
        instance_types={name.replace("_", "."): count for name, count in types.items()},
    )


_CARDS: Final = (
    _seven(
        "A100-SXM4-40GB",
        (5, 10, 10, 20, 20, 40),
        (4864, 9856, 9856, 19968, 19968, 40192),
        p4d_24xlarge=8,
    ),
    _seven(
        "A100-SXM4-80GB",
        (10, 20, 20, 40, 40, 80),
        (9856, 19968, 19968, 40192, 40192, 80384),
        p4de_24xlarge=8,
    ),
    _seven(
        "H100-80GB-HBM3",
        (10, 20, 20, 40, 40, 80),
        (9984, 20096, 20096, 40320, 40320, 81152),
        p5_4xlarge=1,
        p5_48xlarge=8,
    ),
    _seven(
        "H200",
        (18, 35, 35, 71, 71, 141),
        (16384, 33280, 33280, 71000, 71000, 143360),
        p5e_48xlarge=8,
        p5en_48xlarge=8,
    ),
    _four("A30", (6, 12, 24), (5836, 11672, 23344)),
    _four(
        "RTX-PRO-6000-Blackwell-Server-Edition",
        (24, 48, 96),
        (24000, 48000, 97000),
        g7e_2xlarge=1,
        g7e_4xlarge=1,
        g7e_8xlarge=1,
        g7e_12xlarge=2,
        g7e_24xlarge=4,
        g7e_48xlarge=8,
    ),
    Card(
        model="Tesla-T4",
        memory_mib=15360,
        instance_types={"g4dn.xlarge": 1, "g4dn.2xlarge": 1, "g4dn.12xlarge": 4},
    ),
    Card(
        model="A10G",
        memory_mib=22888,
        instance_types={"g5.xlarge": 1, "g5.2xlarge": 1, "g5.12xlarge": 4, "g5.48xlarge": 8},
    ),
    Card(
        model="L4",
        memory_mib=22888,
        instance_types={"g6.xlarge": 1, "g6.2xlarge": 1, "g6.12xlarge": 4, "g6.48xlarge": 8},
    ),
    Card(
        model="L40S",
        memory_mib=45776,
        instance_types={"g6e.xlarge": 1, "g6e.12xlarge": 4, "g6e.48xlarge": 8},
    ),
)
CARDS: Final[Mapping[str, Card]] = {each.model: each for each in _CARDS}
"""By model."""
