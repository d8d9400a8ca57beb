"""What happened to one workload, to one node, or to neither, as marks below a plot.

Marks that would cover each other are drawn as one. A line that was said belongs to the first object
that it names; the words of lines are those of `sentences.py` and of the timeline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Literal

from plimsoll_simulation.measure.history import History, PodFate
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.measure.sentences import routine
from plimsoll_simulation.measure.workload_metrics import WorkloadId
from plimsoll_simulation.scenario.problems import listed

type Kind = Literal[
    "killed", "cut short", "gone", "notice", "evicted", "cordoned", "empty", "fault", "acted"
]

SIGNS: Final[dict[Kind, tuple[str, str]]] = {
    "killed": ("\N{MULTIPLICATION SIGN}", "pods killed with their node"),
    "cut short": ("/", "pods cut short"),
    "gone": ("G", "node gone"),
    "notice": ("!", "notice"),
    "evicted": ("→", "pods evicted"),
    "cordoned": ("C", "node cordoned"),
    "empty": ("0", "node empty"),
    "fault": ("F", "fault, owner or warning"),
    "acted": ("•", "an action and its reason"),
}
"""Sign and meaning, the gravest first: it stands for all that is drawn as one."""

_ORDER: Final = tuple(SIGNS)
_NOTICE: Final = re.compile(r"^[a-z-]+ for (?P<node>\S+) of (?P<cluster>\S+)$")
_OBJECT: Final = re.compile(
    r"\b(Deployment|ReplicaSet|StatefulSet|Pod|Node) ([\w.-]+(?:/[\w.-]+)?)"
)
_UNPLACED: Final = ("fault ", "the owner ", "warning: ", "a notice ")
"""How lines begin that are about no single object, whatever they name."""

type NodeId = tuple[str, str]
"""Cluster and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing that happened."""

    seconds: float
    kind: Kind
    words: str


@dataclass(slots=True, kw_only=True)
class Marks:
    """All that happened in a drill."""

    workloads: dict[WorkloadId, list[Mark]] = field(default_factory=dict)
    nodes: dict[NodeId, list[Mark]] = field(default_factory=dict)
    elsewhere: list[Mark] = field(default_factory=list)


def marks_of(report: Report, history: History) -> Marks:
    """Sort out what happened."""
    marks, names = Marks(), _Names(history)
    for seconds, what in history.lines:
        if not routine(what):
            _place(marks, names, Mark(seconds=seconds, kind=_kind(what), words=what))
    for row in report["nodes"]:
        _milestones(marks, row)
    _fates(marks, history)
    return marks


class _Names:
    """Finds what a line is about; a name that two clusters share stands for both."""

    def __init__(self, history: History) -> None:
        self._pods = history.owners
        self._nodes: dict[str, list[NodeId]] = {}
        self._workloads: dict[str, list[WorkloadId]] = {}
        for track in history.nodes.values():
            found = self._nodes.setdefault(track.name, [])
            if (track.cluster, track.name) not in found:
                found.append((track.cluster, track.name))
        for who in history.levels:
            self._workloads.setdefault(f"{who[2]} {who[1]}/{who[3]}", []).append(who)

    def nodes(self, kind: str, name: str) -> Sequence[NodeId]:
        return self._nodes.get(name, ()) if kind == "Node" else ()

    def workloads(self, kind: str, name: str) -> Sequence[WorkloadId]:
        if kind == "Pod":
            return (self._pods[name],) if name in self._pods else ()
        return self._workloads.get(f"{kind} {name}", ())


def _kind(what: str) -> Kind:
    if what.startswith(_UNPLACED):
        return "fault"
    return "notice" if _NOTICE.match(what) else "acted"


def _place(marks: Marks, names: _Names, mark: Mark) -> None:
    notice, named = _NOTICE.match(mark.words), _OBJECT.search(mark.words)
    nodes: Sequence[NodeId] = ()
    workloads: Sequence[WorkloadId] = ()
    if notice is not None:
        nodes = ((notice["cluster"], notice["node"]),)
    elif named is not None and mark.kind == "acted":
        nodes, workloads = names.nodes(*named.groups()), names.workloads(*named.groups())
    for node in nodes:
        marks.nodes.setdefault(node, []).append(mark)
    for who in workloads:
        marks.workloads.setdefault(who, []).append(mark)
    if notice is not None or not (nodes or workloads):
        marks.elsewhere.append(mark)


def _milestones(marks: Marks, row: dict[str, Any]) -> None:
    found = marks.nodes.setdefault((row["cluster"], row["name"]), [])
    milestones: tuple[tuple[Kind, str, str], ...] = (
        ("notice", "noticed", f"notice: {row['notice']}"),
        ("cordoned", "cordoned", "cordoned"),
        ("empty", "empty", "empty: no pod is left but those of its daemons"),
        ("gone", "gone", "gone"),
    )
    for kind, name, words in milestones:
        if row[name] is None or (kind == "notice" and any(m.kind == kind for m in found)):
            continue
        found.append(Mark(seconds=row[name], kind=kind, words=words))


def _fates(marks: Marks, history: History) -> None:
    def place(fate: PodFate) -> tuple[float, str, str]:
        return fate.seconds, fate.fate, fate.instance or ""

    for _, group in groupby(sorted(history.fates, key=place), key=place):
        together = list(group)
        track = history.nodes.get(together[0].instance or "")
        where = "" if track is None else f" {_PREPOSITIONS[together[0].fate]} {track.name}"
        if track is not None:
            marks.nodes.setdefault((track.cluster, track.name), []).append(_ends(together, where))
        for who in dict.fromkeys(fate.workload for fate in together):
            own = [fate for fate in together if fate.workload == who]
            marks.workloads.setdefault(who, []).append(_ends(own, where))


_PREPOSITIONS: Final = {"evicted": "from", "killed": "with", "cut short": "on"}


def _ends(fates: Sequence[PodFate], where: str) -> Mark:
    pods = listed(sorted(fate.pod for fate in fates))
    return Mark(
        seconds=fates[0].seconds, kind=fates[0].fate, words=f"{fates[0].fate}{where}: {pods}"
    )


def gathered(marks: Iterable[Mark], gap: float) -> Sequence[Sequence[Mark]]:
    """Return marks in bunches; two are never nearer to each other than a gap in seconds."""
    bunches: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda m: (m.seconds, _ORDER.index(m.kind), m.words)):
        if bunches and mark.seconds - bunches[-1][0].seconds < gap:
            bunches[-1].append(mark)
        else:
            bunches.append([mark])
    return bunches


def gravest(bunch: Sequence[Mark]) -> Kind:
    """Return what a bunch is drawn as."""
    return min((mark.kind for mark in bunch), key=_ORDER.index)


def stacked(moments: Iterable[float], gap: float) -> Sequence[int]:
    """Return the row of each moment, in order: in one row two are never nearer than a gap."""
    lasts: list[float] = []
    found = []
    for moment in moments:
        row = next((n for n, last in enumerate(lasts) if moment - last >= gap), len(lasts))
        lasts[row : row + 1] = [moment]
        found.append(row)
    return found
