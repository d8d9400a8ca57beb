"""`plimsoll clusters list`; with --wide, a part that cannot be read hides no other part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import click

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import ONE_EVENT_WITHIN, Report
from plimsoll_cli.environment import Deployed, warn
from plimsoll_cli.options import (
    Output,
    clock_text,
    console,
    environment_of,
    output_option,
    print_answer,
    stack_option,
    table,
)
from plimsoll_cli.terminal import first_of, say

_UNSAID: Final = frozenset({"ca", "external_id"})
"""Fields of a cluster that are not printed: too long, or secret."""
SEARCHED: Final = 1000
"""How many of a cluster's newest reports are looked through for its last storm."""
_NAMED: Final = 4
"""Missing rights that are named in a row; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Interruptions with a deadline whose notices came together, of one node or of many."""

    noticed: datetime
    nodes: int
    killed: int
    """Pods that were still there when their instances were gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """One cluster as it answers now."""

    name: str
    version: str | None = None
    """Of its API server."""
    rights_held: int | None = None
    rights_missing: Sequence[str] = ()
    nodes: int | None = None
    """EC2 instances among its Nodes."""
    indexed: int | None = None
    """Of these, those in the node index."""
    oldest: datetime | None = None
    """When a resync wrote the oldest of their entries."""
    storm: Storm | None = None
    not_read: Sequence[str] = ()
    """What could not be read, and why."""

    def cells(self, now: datetime) -> Sequence[str]:
        """Return its row, but for the name."""
        return (
            self.version or "?",
            self._rights(),
            self._index(now),
            self._storm(),
        )

    def _rights(self) -> str:
        if self.rights_held is None:
            return "?"
        missing = list(self.rights_missing)
        told = f"{self.rights_held} of {self.rights_held + len(missing)}"
        if not missing:
            return told
        return f"{told}; missing: {first_of(missing, _NAMED)}"

    def _index(self, now: datetime) -> str:
        if self.nodes is None or self.indexed is None:
            return "?"
        age = "" if self.oldest is None else f", {(now - self.oldest).total_seconds():.0f} s old"
        return f"{self.indexed} of {self.nodes} nodes{age}"

    def _storm(self) -> str:
        if self.storm is None:
            return "-"
        killed = f", {self.storm.killed} pods killed" if self.storm.killed else ""
        return f"{clock_text(self.storm.noticed)}: {self.storm.nodes} nodes{killed}"


@click.command("list")
@click.option(
    "--wide",
    is_flag=True,
    help="Also read from each cluster its version, held and missing rights, the age of its node index and its last "
    "storm. Rights in an EKS cluster need an administrator of the cluster.",
)
@output_option
@stack_option
@click.pass_context
def list_(
    ctx: click.Context,
    wide: bool,
    output: Output,
    stack: str,
) -> None:
    """List the registered clusters."""
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    found = deployed.registry.list()
    answers = {c.name: _wide(deployed, c) for c in found} if wide else {}
    if output != "table":
        print_answer(
            {
                "stack": deployed.stack.name,
                "kill_switch": deployed.stack.kill_switch,
                "clusters": [
                    {name: said for name, said in asdict(c).items() if name not in _UNSAID}
                    | ({"wide": asdict(answers[c.name])} if wide else {})
                    for c in found
                ],
            },
            output,
        )
        return
    if not found:
        say("No cluster is registered: add one with `plimsoll clusters add NAME`.")
    else:
        _show_clusters(found, answers, environment.clock.now())
    if deployed.stack.kill_switch:
        warn("the kill switch of the stack is on: Plimsoll writes to no cluster")


def _show_clusters(found: Sequence[Cluster], answers: Mapping[str, Wide], now: datetime) -> None:
    if not answers:
        shown = table("NAME", "MODE", "REACHED BY", "REGION", "ADDED")
        for c in found:
            shown.add_row(c.name, c.mode, c.endpoint or "EKS", c.region, clock_text(c.added))
        console().print(shown)
        return
    shown = table(
        "NAME", "MODE", "ACCOUNT", "REGION", "VERSION", "RIGHTS", "NODE INDEX", "LAST STORM"
    )
    for c in found:
        shown.add_row(c.name, c.mode, c.account or "-", c.region, *answers[c.name].cells(now))
    console().print(shown)
    for answer in answers.values():
        for words in answer.not_read:
            warn(f"{answer.name}: {words}")


def _wide(deployed: Deployed, cluster: Cluster) -> Wide:
    """Return how a cluster answers now."""
    failed: list[str] = []

    def asked[T](what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except PlimsollError as error:
            failed.append(f"{what}: {error}")
            return None

    probe = deployed.probe(cluster)
    version = asked("version", probe.version)
    rights = asked("rights", probe.rights) if version is not None else None
    nodes = asked("nodes", deployed.clusters.open(cluster).nodes) if version is not None else None
    ids = None if nodes is None else [node.instance for node in nodes if node.instance]
    entries = None if ids is None else asked("node index", lambda: deployed.index.find(ids))
    seen = [entry.seen for entry in (entries or {}).values() if entry.cluster == cluster.name]
    reports = asked("reports", lambda: deployed.reports.list(cluster.name, limit=SEARCHED))
    return Wide(
        name=cluster.name,
        version=version,
        rights_held=None if rights is None else sum(right.held for right in rights),
        rights_missing=[f"{r.verb} {r.resource}" for r in rights or () if not r.held],
        nodes=None if ids is None else len(ids),
        indexed=None if entries is None else len(seen),
        oldest=min(seen, default=None),
        storm=last_storm(reports or ()),
        not_read=failed,
    )


def last_storm(reports: Sequence[Report]) -> Storm | None:
    """Return the newest interruptions that came together; None where there was none with a deadline."""
    final = [report for report in reports if report.deadline is not None]
    if not final:
        return None
    newest = max(report.noticed for report in final)
    together = [report for report in final if newest - report.noticed <= ONE_EVENT_WITHIN]
    return Storm(
        noticed=min(report.noticed for report in together),
        nodes=len(together),
        killed=sum(len(report.killed) for report in together),
    )
