"""`plimsoll rehearse --event`: the plan for an event, with its reasons; nothing is written."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Plan, Release
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.notices import BODY_LIMIT_BYTES, About, InstanceNotice, Notice, Unknown, parse
from plimsoll.domain.registry import Cluster, IndexEntry, Mode
from plimsoll.domain.reports import merge_reasons
from plimsoll.services.dry_run import DryRun, DryRunResult, NoticeOutcome, Planned
from plimsoll.services.instance_locator import InstanceLocator, Locate, Owner
from plimsoll.services.ports import ClusterApi
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll_cli.environment import Deployed, Environment, Said
from plimsoll_cli.options import (
    Choice,
    Output,
    Terminal,
    clock_text,
    console,
    print_answer,
    registered,
    table,
    unregistered,
)

STDIN: Final = "-"
_INSTANCE: Final = re.compile("i-[0-9a-f]{8,17}")


def show_event(  # noqa: PLR0913 - the event and its two changes, the cluster, the format
    environment: Environment,
    choice: Choice,
    output: Output,
    file: str,
    *,
    instance: str | None,
    now: bool,
) -> None:
    """Print the plan for the event in a file, or for one from standard input.

    Args:
        environment: reads the stack and the cluster.
        choice: names the cluster; without one, the node index of the stack and the instance's tags do.
        output: the format.
        file: holds the event; `-` is standard input.
        instance: replaces the instance of the event.
        now: replace the time of the event by the present.

    Raises:
        BadInput: the event cannot be read or has an unknown kind, or `instance` is no instance id.
    """
    if instance is not None and _INSTANCE.fullmatch(instance) is None:
        raise BadInput(f"--instance {instance}: give an instance id such as i-0123456789abcdef0")
    changes: dict[str, Any] = {"instance": instance} if instance else {}
    if now:
        changes["time"] = environment.clock.now()
    notices = [
        replace(n, **changes) if isinstance(n, About) else n for n in _notices(file, environment)
    ]
    result = _dry_run(environment, choice, notices)
    if output != "table":
        print_answer(_as_data(file, result), output)
    else:
        _show(console(), result, environment.clock.now())


def _notices(file: str, environment: Environment) -> tuple[Notice, ...]:
    try:
        notices = parse(_body(file), received=environment.clock.now(), drills=True)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error
    for notice in notices:
        if isinstance(notice, Unknown):
            raise BadInput(
                f"{file}: {notice.detail_type!r} from {notice.source!r} is {notice.why}; "
                "tests/events has an example of each kind"
            )
    return notices


def _body(file: str) -> bytes:
    """Read no more than an event can have, and one byte to see that there is more."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(BODY_LIMIT_BYTES + 1)
        with Path(file).open("rb") as opened:
            return opened.read(BODY_LIMIT_BYTES + 1)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}") from error


def _dry_run(environment: Environment, choice: Choice, notices: Sequence[Notice]) -> DryRunResult:
    dry_run = partial(DryRun, clock=environment.clock, workers=SerialWorkers(), telemetry=Said())
    if choice.by_kubeconfig:
        cluster, api = unregistered(environment, choice)
        in_named = partial(_all_in, environment, None, cluster)
        return dry_run(groups=lambda *_: ()).of(notices, in_named, lambda _: (cluster, api))
    deployed = environment.deployed(choice.stack)
    named = None if choice.cluster is None else registered(deployed, choice.cluster)

    def connect(name: str) -> tuple[Cluster, ClusterApi] | None:
        cluster = deployed.registry.get(name)
        return None if cluster is None else (cluster, deployed.clusters.open(cluster))

    if named is not None:
        locate: Locate = partial(_all_in, environment, deployed, named)
    else:
        locate = InstanceLocator(
            registry=deployed.registry,
            index=deployed.index,
            instances=deployed.instances,
            instances_of=deployed.instances_of,
            sources=TrustedSources(account=deployed.stack.account, region=deployed.stack.region),
            clock=environment.clock,
            telemetry=Said(),
        ).of
    planner = dry_run(
        groups=lambda cluster, nodes: deployed.groups(cluster).list(nodes),
        observed_times=deployed.observed_times(environment.clock, Said()),
    )
    return planner.of(notices, locate, connect)


def _all_in(
    environment: Environment,
    deployed: Deployed | None,
    cluster: Cluster,
    notices: Sequence[InstanceNotice],
) -> Mapping[str, Owner]:
    """Look for every instance in the named cluster; the index only saves calls."""
    nowhere = partial(IndexEntry, cluster=cluster.name, node="", seen=environment.clock.now())
    owners = {notice.instance: nowhere(instance=notice.instance) for notice in notices}
    if deployed is not None:
        try:
            found = deployed.index.find(list(owners))
        except PlimsollError as error:
            Said().warn("node index not read", because=error)
        else:
            owners |= {i: entry for i, entry in found.items() if entry.cluster == cluster.name}
    return owners


def _show(out: Terminal, result: DryRunResult, now: datetime) -> None:
    for outcome in result.outcomes:
        out.print(f"{_subject(outcome)}: {outcome.reason}", soft_wrap=True)
    for cluster, planned in result.plans:
        out.print()
        _show_plan(out, cluster, planned.plan, now)
        if planned.stops:
            out.print("\nTime that its pods need to stop:")
        for workload, stop in sorted(planned.stops.items()):
            out.print(f"  {workload}: {stop}", soft_wrap=True)
    if not result.plans:
        out.print("Plimsoll would do nothing.")


def _subject(outcome: NoticeOutcome) -> str:
    subject = f"{outcome.notice.kind}, {clock_text(outcome.notice.time)}"
    instance = getattr(outcome.notice, "instance", None)
    if instance is not None:
        subject += f", {instance}"
    if outcome.node is not None:
        subject += f" (node {outcome.node} of {outcome.cluster})"
    return subject


def _show_plan(out: Terminal, cluster: Cluster, plan: Plan, now: datetime) -> None:
    mode = "" if cluster.mode is Mode.ACT else " in the mode act"
    if not plan.steps:
        out.print(f"{cluster.name}: Plimsoll would do nothing now{mode}")
    else:
        title = f"{cluster.name}: Plimsoll would do this now{mode}"
        shown = table("WAVE", "ACTION", "ON", "BECAUSE", title=title)
        for wave, steps in groupby(plan.steps, key=lambda step: step.action.wave):
            for reason in merge_reasons(step.reason(now) for step in steps):
                shown.add_row(wave.name.lower(), reason.verb, reason.what, reason.why)
        out.print(shown)
    for node, texts in plan.waiting.items():
        out.print(f"\nOn node {node} Plimsoll would wait:")
        for text in texts:
            out.print(f"  {text}", soft_wrap=True)
    notes = dict.fromkeys(text for texts in plan.notes.values() for text in texts)
    for text in notes:
        out.print(f"\n{text}.", soft_wrap=True)
    out.print(f"\n{cluster.name}: what comes next:")
    for at, what in _next(plan):
        out.print(f"  {clock_text(at) or '-':<20}  {what}", soft_wrap=True)


def _next(plan: Plan) -> Iterator[tuple[datetime | None, str]]:
    """Yield what follows this plan, and when."""
    if any(isinstance(action, Release) for action in plan.actions):
        yield None, "evict each released pod as soon as its replacement is Ready"
    ends = [
        (report.deadline, f"node {report.node} must be empty: its instance ends")
        for report in plan.reports
        if report.deadline is not None
    ]
    yield from sorted([*((due.at, str(due)) for due in plan.due), *ends])
    if not ends:
        yield None, "no instance ends at a known time: pods wait until they are replaced"


def _as_data(file: str, result: DryRunResult) -> Mapping[str, Any]:
    return {
        "event": file,
        "notices": [
            {
                "kind": a.notice.kind,
                "instance": getattr(a.notice, "instance", None),
                "time": a.notice.time,
                "effect": a.effect,
                "because": a.reason,
                "cluster": a.cluster,
                "node": a.node,
            }
            for a in result.outcomes
        ],
        "plans": [_plan_as_data(cluster, planned) for cluster, planned in result.plans],
    }


def _plan_as_data(cluster: Cluster, planned: Planned) -> Mapping[str, Any]:
    plan = planned.plan
    return {
        "cluster": cluster.name,
        "mode": cluster.mode,
        "steps": [
            {
                "wave": step.action.wave.name.lower(),
                "action": step.action.verb,
                "target": step.action.target,
                "because": step.action.reason,
                "nodes": sorted(step.nodes),
            }
            for step in plan.steps
        ],
        "waiting": plan.waiting,
        "notes": plan.notes,
        "next": [{"at": at, "what": what} for at, what in _next(plan)],
        "deadlines": {report.node: report.deadline for report in plan.reports},
        "stop_times": {str(workload): str(stop) for workload, stop in planned.stops.items()},
    }
