"""A running drill drawn for a terminal: nodes on the left, workloads on the right, the log below.

Everything that a colour says is said by a sign or a word as well. The drawing fits the terminal: it
leaves out quiet rows first, and says how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll_simulation.measure.lines import Line
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.measure.snapshot import NodeSnapshot, Snapshot, WorkloadSnapshot

WIDE: Final = 110
"""Columns from which on a node's workloads are named."""
_LOG_AT_LEAST: Final = 4
_LOG_AT_MOST: Final = 12
_FRAME: Final = 3
"""Lines that are always there: title, phase, legend."""
_GAP: Final = 2
_BLOCKS: Final = 8
"""Pods that are drawn one by one; more are counted."""
_ALARMS: Final = {"error": "bold red", "warning": "yellow"}
_LATE: Final = 0.5
"""The share of its time from which on a node's end is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is drawn with."""

    ready: str = "█"
    starting: str = "▒"
    stopping: str = "░"
    missing: str = "·"
    floor: str = "│"
    left: str = "━"
    past: str = "╌"
    rule: str = "─"


_ASCII: Final = Signs(
    ready="#", starting="+", stopping="-", missing=".", floor="|", left="=", past="-", rule="-"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One drawing."""

    title: str
    snapshot: Snapshot
    of_seconds: float = 0.0
    """When the drill ends at the latest; 0 if that is not known."""
    lines: Sequence[Line] = ()
    others: Sequence[Report] = ()
    """How other responders fared in the same drill, which is over."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it as large as it may be."""
        signs = _ASCII if options.ascii_only else Signs()
        width = options.max_width
        height = (options.height or console.height) - 1  # the line below is the cursor's
        headroom = height - _FRAME - _LOG_AT_LEAST
        left = _nodes(self.snapshot, signs, headroom, wide=width >= WIDE)
        right = Group(*_workloads(self.snapshot, signs), *self._beside())
        right_width = min(console.measure(right, options=options).maximum, width // 2)
        body = Table.grid()
        body.add_column(width=width - right_width - _GAP)
        body.add_column(width=_GAP)
        body.add_column(width=right_width)
        body.add_row(Group(*left), "", right)
        end = f" of {self.of_seconds:.0f} s" if self.of_seconds else " s"
        yield _headline(self.title, f"{self.snapshot.seconds:.0f}{end}")
        yield Text(self.snapshot.phase, no_wrap=True, overflow="ellipsis")
        drawn = console.render_lines(body, options.update(height=None), pad=False)[:headroom]
        for row in drawn:
            yield from row
            yield Text("", end="\n")
        yield _legend(signs, width)
        rows = max(_LOG_AT_LEAST, min(_LOG_AT_MOST, height - _FRAME - len(drawn)))
        for line in self.lines[-rows:]:
            yield _log(line)

    def _beside(self) -> Iterator[RenderableType]:
        if not self.others:
            return
        yield Text("")
        table = _grid(9, 6, 7, 6, right=(1, 2, 3))
        table.add_row(*(Text(t, style="dim") for t in ("in all", "lost", "at zero", "killed")))
        workloads = self.snapshot.workloads
        here = {
            "ready_replica_seconds_lost": sum(w.lost for w in workloads),
            "seconds_at_zero": sum(w.at_zero for w in workloads),
            "pods_killed": sum(w.killed for w in workloads),
        }
        table.add_row(Text("here", style="bold"), *_felt(here))
        for other in self.others:
            table.add_row(other["responder"], *_felt(other["totals"]))
        yield table


def _felt(totals: Mapping[str, float]) -> Sequence[str]:
    lost, zero = totals["ready_replica_seconds_lost"], totals["seconds_at_zero"]
    return f"{lost:,.0f}", f"{zero:.0f} s", str(totals["pods_killed"])


def pods_bar(node: NodeSnapshot, signs: Signs) -> Text:
    """Return the pods of a node as blocks."""
    kinds = (
        (sum(p.ready for p in node.pods), signs.ready, "green"),
        (sum(p.starting for p in node.pods), signs.starting, "cyan"),
        (sum(p.stopping for p in node.pods), signs.stopping, "yellow"),
    )
    bar = Text()
    many = sum(count for count, _, _ in kinds) > _BLOCKS
    for count, sign, style in kinds:
        if count:
            bar.append(f"{count}{sign}" if many else sign * count, style=style)
    return bar


def ready_bar(workload: WorkloadSnapshot, signs: Signs, longest: int = _BLOCKS) -> Text:
    """Return what is Ready of a workload, with a mark where its floor is."""
    cells = min(workload.replicas, longest)
    scale = cells / workload.replicas if workload.replicas else 0.0
    full = int(min(workload.ready, workload.replicas) * scale)
    floor = round(workload.floor * scale)
    style = _health(workload.ready, workload)
    bar = Text()
    for cell in range(cells + 1):
        if cell == floor and workload.floor:
            bar.append(signs.floor, style="bold")
        if cell < cells:
            ready = cell < full
            bar.append(signs.ready if ready else signs.missing, style=style)
    return bar


def _headline(title: str, time: str) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    line.add_column(no_wrap=True, justify="right")
    line.add_row(Text(title, style="bold"), Text(time, style="bold"))
    return line


def _nodes(
    snapshot: Snapshot, signs: Signs, headroom: int, *, wide: bool
) -> Iterator[RenderableType]:
    table = _grid(0, 2, _BLOCKS, 21, *([0] if wide else []))
    kinds = [k for k in ("on-demand", "spot") if any(n.capacity == k for n in snapshot.nodes)]
    kept = _most_telling(snapshot.nodes, headroom - len(kinds))
    for kind in kinds:
        table.add_row(Text(kind, style="dim"))
        for node in snapshot.nodes:
            if node.capacity == kind and node in kept:
                zone = node.zone.rpartition("-")[2]
                row: list[RenderableType] = [node.name, zone, pods_bar(node, signs)]
                row += [_status(node, signs), *([_who(node)] if wide else [])]
                table.add_row(*row)
    yield table
    left_out = Counter(n.state for n in snapshot.nodes if n not in kept)
    if left_out:
        told = ", ".join(f"{count} {state}" for state, count in sorted(left_out.items()))
        yield Text(f"and {told}", style="dim", no_wrap=True, overflow="ellipsis")


def _grid(*widths: int, right: Sequence[int] = ()) -> Table:
    """Return a table whose columns have at least these widths; those with 0 give way."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for i, width in enumerate(widths):
        table.add_column(
            min_width=width or None,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if i in right else "left",
        )
    return table


def _most_telling(nodes: Sequence[NodeSnapshot], headroom: int) -> frozenset[NodeSnapshot]:
    """Return the nodes that fit into so many lines; one line is kept to count the others."""
    if len(nodes) <= headroom:
        return frozenset(nodes)
    ranked = sorted(
        nodes, key=lambda n: (not n.interrupted, n.state == "gone", n.state != "starting")
    )
    return frozenset(ranked[: max(0, headroom - 1)])


def _status(node: NodeSnapshot, signs: Signs) -> Text:
    if node.state == "gone":
        if not node.killed:
            return Text("gone", style="dim")
        return Text(f"gone, {node.killed} pods killed", style="bold red")
    status = Text()
    late = False
    if node.seconds_left is not None and node.seconds_given:
        share = node.seconds_left / node.seconds_given
        late = share < _LATE
        whole = 6
        full = min(whole, round(share * whole))
        style = "cyan" if not node.interrupted else "red" if late else "yellow"
        status.append(signs.left * full + signs.past * (whole - full), style=style)
        status.append(f" {node.seconds_left:3.0f} s ")
    if node.state == "starting":
        status.append("starts", style="cyan")
    elif node.cordoned and not node.pods:
        status.append("empty", style="green")
    elif node.cordoned:
        status.append("cordoned", style="red" if late else "yellow")
    elif node.interrupted:
        status.append("notice", style="bold red")
    return status


def _who(node: NodeSnapshot) -> Text:
    told = []
    for pods in node.pods:
        count = pods.ready + pods.starting + pods.stopping
        told.append(pods.workload if count == 1 else f"{pods.workload} {count}")
    return Text(", ".join(told), style="dim")


def _workloads(snapshot: Snapshot, signs: Signs) -> Iterator[RenderableType]:
    table = _grid(0, 0, 5, 3, 6, right=(2, 3, 4))
    table.add_row(*(Text(t, style="dim") for t in ("workload", "", "ready", "low", "killed")))
    for workload in snapshot.workloads:
        table.add_row(
            workload_name(workload, snapshot),
            ready_bar(workload, signs),
            Text(f"{workload.ready}/{workload.replicas}", style=_health(workload.ready, workload)),
            Text(str(workload.lowest), style=_health(workload.lowest, workload)),
            Text(str(workload.killed), style="bold red" if workload.killed else ""),
        )
    yield table
    if snapshot.waiting:
        told = "1 pod waits" if snapshot.waiting == 1 else f"{snapshot.waiting} pods wait"
        yield Text(f"{told} for a node", style="yellow", no_wrap=True, overflow="ellipsis")


def workload_name(workload: WorkloadSnapshot, snapshot: Snapshot) -> str:
    """Return the shortest name that tells it from the others."""
    names = Counter(other.name for other in snapshot.workloads)
    if names[workload.name] == 1:
        return workload.name
    clusters = {other.cluster for other in snapshot.workloads}
    where = f"{workload.cluster} " if len(clusters) > 1 else ""
    return f"{where}{workload.namespace}/{workload.name}"


def _health(ready: int, workload: WorkloadSnapshot) -> str:
    if ready >= workload.replicas:
        return "green"
    return "yellow" if ready >= max(1, workload.floor) else "bold red"


def _legend(signs: Signs, width: int) -> Text:
    legend = Text(f"{signs.rule * 2} ", style="dim", no_wrap=True, overflow="crop")
    told = (
        f"{signs.ready} ready  {signs.starting} starting  {signs.stopping} stopping  "
        f"{signs.missing} missing  {signs.floor} ready floor "
    )
    legend.append(told)
    legend.append(signs.rule * max(0, width - len(legend)))
    return legend


def _log(line: Line) -> Text:
    what, colon, why = line.what.partition(": ")
    text = Text(f"{line.seconds:6.1f}  ", no_wrap=True, overflow="ellipsis")
    text.append(what + colon, style=_ALARMS.get(what, ""))
    text.append(why, style="dim")
    return text
