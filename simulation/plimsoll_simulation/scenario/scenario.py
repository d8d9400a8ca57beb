"""The scenario of a drill: what its file may say, what each field means, and what it may not contradict.

The models are types, checks and reference at once: `validation.py` reads a file by them, and
`reference.py` makes the tables of the page and the JSON Schema from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, override

from pydantic import Field

from plimsoll_simulation.declared import Contradiction, Declared, Name, repeated
from plimsoll_simulation.durations import Duration, words
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.expect import Expect
from plimsoll_simulation.scenario.selectors import Share
from plimsoll_simulation.scenario.timeline import Entry
from plimsoll_simulation.scenario.yamlfiles import Document

MAX_HORIZON: Final = timedelta(hours=24)


class Latency(Declared):
    """How slow the simulated rig is."""

    notice: Duration = timedelta(milliseconds=300)
    """From the event to the start of the function; default 300ms."""
    function: Duration = timedelta(milliseconds=200)
    """From the start of a function to its first call; default 200ms."""
    api: Duration = timedelta(milliseconds=20)
    """One API call; default 20ms."""


class Prices(Declared):
    """Prices for the cost figure."""

    spot: Share = 0.35
    """The spot price as a share of on-demand; default 0.35."""


class Spec(Declared):
    """The clusters, the timeline and what is expected."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of everything that is drawn; default 0. --seed beats it."""
    horizon: Duration = timedelta(minutes=15)
    """The drill ends here at the latest, and earlier once it is settled; default 15m."""
    latency: Latency = Latency()
    prices: Prices = Prices()
    clusters: Annotated[tuple[ClusterSpec, ...], Field(min_length=1)]
    """The clusters at the start."""
    timeline: tuple[Entry, ...] = ()
    """What happens, in any order; each entry is one of notice, fault, scale and apply."""
    expect: Expect | None = None

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if not timedelta(0) < self.horizon <= MAX_HORIZON:
            yield Contradiction(
                path=("horizon",),
                found=words(self.horizon),
                allowed=f"more than 0s, at most {words(MAX_HORIZON)}",
                cure="Choose when the drill shall end at the latest",
            )
        yield from repeated("clusters", [cluster.name for cluster in self.clusters], "cluster")
        for i, entry in enumerate(self.timeline):
            if entry.at > self.horizon:
                yield Contradiction(
                    path=("timeline", i, "at"),
                    found=words(entry.at),
                    allowed=f"at most the horizon, {words(self.horizon)}",
                    cure="Raise spec.horizon, or let it happen earlier",
                )
            yield from (each.under("timeline", i) for each in entry.mismatches(self.clusters))


class Metadata(Declared):
    """The name of the drill."""

    name: Name
    """The drill's name; the report carries it."""
    description: Annotated[str, Field(max_length=2000)] = ""
    """What it is about, in a sentence."""


class DrillFile(Declared):
    """A timeline of interruptions and faults, played against a cluster to measure what its workloads feel."""

    api_version: Literal["plimsoll.dev/v1"]
    """The version of this format."""
    kind: Literal["Drill"]
    """The kind of this file."""
    metadata: Metadata
    spec: Spec


class Scenario(Spec):
    """One drill, as rigs use it: its timeline sorted, and the one cluster named where it was left out."""

    name: str
    description: str = ""
    file: Path
    document: Document = Field(repr=False)
    """The file as plain values, and the line of each."""

    def cluster(self, name: str) -> ClusterSpec:
        """Return one of its clusters by name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)
