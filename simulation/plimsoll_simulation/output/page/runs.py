"""One drill as a page shows it: its report and its history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from plimsoll_simulation.measure.history import History, NodeTrack
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.measure.sentences import routine
from plimsoll_simulation.measure.workload_metrics import WorkloadId
from plimsoll_simulation.output.page.marks import Marks, NodeId, marks_of
from plimsoll_simulation.scenario.kinds import COUNTED
from plimsoll_simulation.scenario.problems import listed

LINES: Final = 3000
"""Of what was said in one drill; a page with more would be slow to read in every sense."""

type TableRows = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One drill that is over."""

    report: Report
    history: History

    @cached_property
    def marks(self) -> Marks:
        """All that happened."""
        return marks_of(self.report, self.history)

    @cached_property
    def workloads(self) -> dict[WorkloadId, dict[str, Any]]:
        """The rows of the workloads whose Ready pods are measured."""
        return {
            (row["cluster"], row["namespace"], row["kind"], row["name"]): row
            for row in self.report["workloads"]
            if row["kind"] in COUNTED
        }

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of the nodes, by instance."""
        return {row["instance"]: row for row in self.report["nodes"]}

    @cached_property
    def reasons(self) -> dict[str, Sequence[str]]:
        """What was reported of an instance."""
        found: dict[str, list[str]] = {}
        for report in self.report["reports"]:
            instance = report["interruption"].partition("@")[0]
            found.setdefault(instance, []).extend(report["reasons"])
        return {instance: list(dict.fromkeys(told)) for instance, told in found.items()}

    @cached_property
    def nodes(self) -> dict[NodeId, list[NodeTrack]]:
        """The instances to be drawn: those of the report, and those that started or took pods."""
        tracks = [self.history.nodes[instance] for instance in self.rows]
        tracks += [
            track
            for track in self.history.nodes.values()
            if track.instance not in self.rows and (track.launched or len(track.loads) > 1)
        ]
        found: dict[NodeId, list[NodeTrack]] = {}
        for track in tracks:
            found.setdefault((track.cluster, track.name), []).append(track)
        return found

    @cached_property
    def reasons_told(self) -> TableRows:
        """Every reason that was reported, once, with the interruptions that it is about."""
        names = {track.instance: track.name for track in self.history.nodes.values()}
        about: dict[str, list[str]] = {}
        for report in self.report["reports"]:
            instance = report["interruption"].partition("@")[0]
            for reason in report["reasons"]:
                about.setdefault(reason, []).append(names.get(instance, report["interruption"]))
        whole = len(self.report["reports"])
        return [
            [reason, f"all {whole}" if len(who) == whole > 1 else listed(sorted(who))]
            for reason, who in about.items()
        ]

    @property
    def done(self) -> TableRows:
        """All that was said, in order."""
        lines = [line for line in self.history.lines if not routine(line.what)]
        rows = [[f"{line.seconds:.1f} s", line.what] for line in lines[:LINES]]
        if len(lines) > LINES:
            rows.append(["later", f"and {len(lines) - LINES} more lines"])
        return rows

    @property
    def capacity(self) -> TableRows:
        """What the node groups did."""
        return [
            [
                f"{row['cluster']} {row['group']}",
                row["capacity"],
                "never" if row["first_asked"] is None else f"{row['first_asked']:g} s",
                str(row["nodes_added"]),
                str(row["peak"]),
                f"{row['node_hours']:g}",
            ]
            for row in self.report["capacity"]
        ]
