"""What a stack costs in a month: worked out from the tables of docs/install.md, template and code.

    .venv/bin/python -m tests.package.monthly_cost

prints the page's tables of results for the prices and the use that stand on the page now. Memory,
schedules, queues, tables, metrics and alarms are counted in the template and the code, so that the
page cannot say what is no longer so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click

from plimsoll.adapters.secrets import KEPT
from plimsoll.domain.metrics import Metric
from plimsoll.services.delivery import URGENT_WAKE_UPS
from plimsoll.services.resync import REFRESH
from tests.package.template import ROOT, functions, resources

PAGE: Final = ROOT / "docs" / "install.md"
CLUSTERS: Final = (1, 10, 100)
MILLION: Final = 1_000_000
TEN_THOUSAND: Final = 10_000
SQS_CALLS: Final = 3
"""Of one message: sent, received, deleted."""
LONG_POLL_SECONDS: Final = 20
REPORTS_READ: Final = 50
"""How many reports of a cluster a resync looks at."""
READ_KB: Final = 4
KEY_MINUTES: Final = 5
"""For how long DynamoDB keeps the key of a table before it asks KMS again."""
ENDPOINTS: Final = ("sqs", "ec2", "autoscaling", "eks", "secretsmanager")
"""Services that functions in a network without NAT reach through interface endpoints."""
ZONES: Final = 2


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the page's table whose first column has that heading."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(
        rf"^\| {re.escape(heading)} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE
    )
    if len(found) != 1:
        raise LookupError(f"{len(found)} tables of {PAGE.name} begin with {heading!r}")
    return [[c.strip() for c in line.strip("|").split("|")] for line in found[0].splitlines()]


def numbers(heading: str) -> dict[str, float]:
    """Return a table of the page: name -> the number in its second column."""
    return {row[0]: float(row[1].replace(",", "")) for row in rows(heading)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What the template says that costs money."""

    gigabytes: Mapping[str, float]
    """By the name of the function."""
    resync_minutes: float
    canary_minutes: float
    polled_queues: int
    tables: int
    alarms: int

    @classmethod
    def of_the_template(cls) -> Stack:
        """Read it."""
        events = {
            (name, event["Type"]): event["Properties"]
            for name, function in functions().items()
            for event in function["Properties"]["Events"].values()
        }
        [canary] = resources("AWS::Scheduler::Schedule").values()
        return cls(
            gigabytes={n: f["Properties"]["MemorySize"] / 1024 for n, f in functions().items()},
            resync_minutes=_minutes(events["SweepFunction", "Schedule"]["Schedule"]),
            canary_minutes=_minutes(canary["Properties"]["ScheduleExpression"]),
            polled_queues=sum(kind == "SQS" for _, kind in events),
            tables=len(resources("AWS::DynamoDB::Table")),
            alarms=len(resources("AWS::CloudWatch::Alarm")),
        )


def _minutes(rate: str) -> float:
    found = re.fullmatch(r"rate\((\d+) minutes?\)", rate)
    if found is None:
        raise LookupError(f"the schedule {rate} is no rate in minutes")
    return float(found[1])


def monthly(
    clusters: int, price: Mapping[str, float], use: Mapping[str, float], stack: Stack
) -> dict[str, float]:
    """Return the dollars of a month by what they are for, the total last."""
    hours = use["hours in a month"]
    resyncs = hours * 60 / stack.resync_minutes
    canaries = hours * 60 / stack.canary_minutes
    drained = clusters * use["interruptions in a cluster"]
    notices = drained * use["notices of an interruption"]
    wake_ups = drained * len(URGENT_WAKE_UPS)

    def lambdas(function: str, invocations: float, seconds: float) -> float:
        time = seconds * stack.gigabytes[function] * price["Lambda time, arm64"]
        return time + invocations * price["Lambda request"] / MILLION

    asked = hours * 3600 / LONG_POLL_SECONDS * use["pollers of a queue"] * stack.polled_queues
    reads, writes = _units(clusters, resyncs, drained, use, hours)
    keys = stack.tables * hours * 60 / KEY_MINUTES
    invocations = resyncs + canaries + notices + wake_ups
    logs = invocations * use["kB of logs of an invocation"] + drained * use["kB of logs of a drain"]
    lines = {
        "resyncs": lambdas(
            "SweepFunction",
            resyncs,
            resyncs
            * (use["seconds of a resync"] + clusters * use["seconds of a resync for a cluster"]),
        ),
        "notices and canaries": lambdas(
            "NoticesFunction",
            notices + canaries,
            (notices + canaries) * use["seconds of a batch of notices"],
        )
        + canaries * (price["event put by ourselves"] + price["scheduled invocation"]) / MILLION,
        "drains": lambdas(
            "DrainsFunction", wake_ups, drained * use["seconds of reconciles in a drain"]
        ),
        "asking empty queues": asked * price["SQS request"] / MILLION,
        "messages": (notices + wake_ups + canaries) * SQS_CALLS * price["SQS request"] / MILLION,
        "tables and their keys": (reads * price["DynamoDB read"] + writes * price["DynamoDB write"])
        / MILLION
        + keys * price["KMS request"] / TEN_THOUSAND,
        "metrics and alarms": len(Metric) * price["metric"] + stack.alarms * price["alarm"],
        "logs": logs / MILLION * (price["log taken in"] + price["log kept"]),
    }
    return lines | {"**together**": sum(lines.values())}


def _units(
    clusters: int, resyncs: float, drained: float, use: Mapping[str, float], hours: float
) -> tuple[float, float]:
    """Return the read and write request units: an eventually consistent read is half a unit."""
    nodes, kb = use["nodes in a cluster"], use["kB of a report"]
    rewritten = clusters * nodes * hours * 60 / (REFRESH.total_seconds() / 60)
    looked = clusters * resyncs * (nodes + REPORTS_READ * kb / READ_KB) / 2
    merges = drained * use["writes of a report in a drain"]
    in_table_and_index = 2
    return (
        resyncs + looked + rewritten / 2 + merges,
        rewritten + merges * kb * in_table_and_index,
    )


def beside(price: Mapping[str, float], use: Mapping[str, float]) -> dict[str, float]:
    """Return the dollars of a month of what only some installations need."""
    hours = use["hours in a month"]
    reads = hours * 3600 / KEPT.total_seconds()
    return {
        "each cluster that is not EKS: its secret": price["secret"]
        + reads * price["secret read"] / TEN_THOUSAND,
        "private endpoints: a NAT gateway": hours * price["NAT gateway"],
        f"or {len(ENDPOINTS)} interface endpoints in {ZONES} zones": hours
        * len(ENDPOINTS)
        * ZONES
        * price["interface endpoint"],
    }


def cost_table() -> Sequence[str]:
    """Return the lines of the page's table of results."""
    price, use, stack = numbers("price"), numbers("use"), Stack.of_the_template()
    columns = [monthly(clusters, price, use, stack) for clusters in CLUSTERS]
    head = " | ".join(f"{n} cluster{'' if n == 1 else 's'}" for n in CLUSTERS)
    return [
        f"| for | {head} |",
        "|---|" + "---:|" * len(CLUSTERS),
        *(
            f"| {name} | " + " | ".join(f"{column[name]:,.2f}" for column in columns) + " |"
            for name in columns[0]
        ),
    ]


def beside_table() -> Sequence[str]:
    """Return the lines of the page's table of what only some installations need."""
    found = beside(numbers("price"), numbers("use"))
    return [
        "| besides | USD |",
        "|---|---:|",
        *(f"| {name} | {dollars:,.2f} |" for name, dollars in found.items()),
    ]


if __name__ == "__main__":
    click.echo("\n".join([*cost_table(), "", *beside_table()]))
