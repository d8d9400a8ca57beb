"""From counts and prices to the tables of docs/operate/cost.md."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Final

from benchmarks.bill.month import FUNCTIONS, Counts
from plimsoll.domain.registry import LABELLED_CLUSTERS
from plimsoll.domain.reports import Metric
from tests.package.template import functions, resources

HERE: Final = Path(__file__).parent
COUNTS: Final = HERE / "counts.json"
CLUSTERS: Final = (1, 10, 100)
HOURS: Final = 730
"""Of a month."""
INTERRUPTIONS: Final = 60
"""Of a cluster in a month: more than a node a day."""
SCHEDULED: Final = ("schedule", "placement")
"""Functions of which one invocation works for all clusters."""
SIDE_BY_SIDE: Final = 8
"""Clusters for which such an invocation works at a time."""
START_SECONDS: Final = 0.4
"""What an invocation is billed for besides its calls; for the first in a sandbox it is more."""
WARM_SECONDS: Final = 0.05
"""The same where a sandbox works every minute and is hardly ever the first."""
COLD_SECONDS: Final = 1.0
"""What a batch of notices is billed for besides: nearly always a cold start."""
DECODED_PER_SECOND: Final = 40e6
"""Bytes of lists that a function of 1,769 MB, which has a whole processor, reads and plans with."""
WHOLE_PROCESSOR: Final = 1769
POLLERS: Final = 5
"""Of a queue, Lambda's own; each waits up to 20 s for a message, in empty queues too."""
POLL_SECONDS: Final = 20
NOTICES: Final = 4
"""Of an interruption: recommendation, warning, two changes of state."""
SQS_CALLS: Final = 3
"""Of a message: sent, received, deleted."""
SENT_TOGETHER: Final = 10
"""Resyncs that one call sends."""
CANARIES: Final = HOURS * 4
KEY_REQUESTS: Final = HOURS * 12
"""Of a table: DynamoDB keeps its key for five minutes."""
LOG_BYTES: Final = {
    "of an invocation": 2_000,
    "of a resync": 1_000,  # three lines of Lambda's and one of metrics, less than 700
    "of an interruption": 300_000,
}
BY_CLUSTER: Final = 1 + 3 * INTERRUPTIONS / HOURS
"""Metrics of a cluster: its on-demand reserve always; for each interruption two hours of open ones, and in
one how old its notice was at the cordon."""
LABELLED_AND_OTHERS: Final = LABELLED_CLUSTERS + 1
TOGETHER: Final = "**together**"
NETWORKS: Final = {
    "private endpoints": ("AWS",),
    "public endpoints by a fixed address": ("AWS", "the API server"),
}
"""How a stack in a VPC reaches its clusters -> whose bytes pass the NAT gateway."""


def prices() -> Mapping[str, float]:
    """Return USD by name, of one: those for a million or ten thousand are divided."""
    pieces = {"million": 1e6, "ten thousand": 1e4, "GB": 1e9}
    with (HERE / "prices.csv").open(encoding="utf-8") as file:
        return {r["name"]: float(r["usd"]) / pieces.get(r["for"], 1) for r in csv.DictReader(file)}


def bill(
    clusters: int, counts: Mapping[str, Counts], through_nat: Sequence[str] | None = None
) -> Mapping[str, float]:
    """Return the dollars of a month by what they are for, the total last.

    Args:
        clusters: how many.
        counts: as `calm_and_interrupted` returns them.
        through_nat: whose bytes pass a NAT gateway; None: the functions are in no VPC.
    """
    price = prices()
    calm, more = counts["calm hour"], counts["interruption"]
    interruptions = INTERRUPTIONS * clusters

    def month(key: str, names: Sequence[str] = FUNCTIONS) -> float:
        """Return how much of something all clusters ask for."""
        quiet = sum(calm.get(name, {}).get(key, 0) for name in names) * HOURS * clusters
        return quiet + sum(more.get(name, {}).get(key, 0) for name in names) * interruptions

    def runs(name: str) -> float:
        """Return the invocations of a function."""
        quiet = calm.get(name, {}).get("invocations", 0) * HOURS
        quiet *= 1 if name in SCHEDULED else clusters
        return quiet + more.get(name, {}).get("invocations", 0) * interruptions

    def lambdas(name: str, *, besides: float = START_SECONDS) -> float:
        memory: int = functions()[f"{name.capitalize()}Function"]["Properties"]["MemorySize"]
        share = min(1.0, memory / WHOLE_PROCESSOR)
        rounds = ceil(clusters / SIDE_BY_SIDE) / clusters if name in SCHEDULED else 1.0
        seconds = (
            month("waited seconds", [name]) * rounds
            + month("bytes decoded", [name]) / DECODED_PER_SECOND / share
            + runs(name) * besides
        )
        gigabytes = memory / 1024
        return (
            seconds * gigabytes * price["Lambda time, arm64"] + runs(name) * price["Lambda request"]
        )

    polled = [e for f in functions().values() for e in f["Properties"]["Events"].values()]
    polls = HOURS * 3600 / POLL_SECONDS * POLLERS * sum(e["Type"] == "SQS" for e in polled)
    resyncs = runs("sweep")
    messages = interruptions * NOTICES + CANARIES + month("messages") - resyncs
    sqs = polls + messages * SQS_CALLS + resyncs * (SQS_CALLS - 1 + 1 / SENT_TOGETHER)
    canaries = CANARIES * (price["event put by ourselves"] + price["scheduled invocation"])
    invocations = sum(map(runs, FUNCTIONS)) - resyncs + CANARIES
    logs = (
        LOG_BYTES["of an interruption"] * interruptions
        + LOG_BYTES["of a resync"] * resyncs
        + LOG_BYTES["of an invocation"] * invocations
    )
    keys = len(resources("AWS::DynamoDB::Table")) * KEY_REQUESTS * price["KMS request"]
    lines = {
        "resyncs": lambdas("schedule", besides=WARM_SECONDS)
        + lambdas("sweep", besides=WARM_SECONDS),
        "placement": lambdas("placement"),
        "notices and canaries": lambdas("notices", besides=COLD_SECONDS)
        + CANARIES * (price["Lambda request"] + price["Lambda time, arm64"])
        + canaries,
        "drains": lambdas("drains"),
        "queues": sqs * price["SQS request"],
        "tables": month("reads") * price["DynamoDB read"]
        + month("writes") * price["DynamoDB write"]
        + keys,
        "metrics and alarms": (len(Metric) + min(clusters, LABELLED_AND_OTHERS) * BY_CLUSTER)
        * price["metric"]
        + len(resources("AWS::CloudWatch::Alarm")) * price["alarm"],
        "logs": logs * price["log taken in and kept"],
    }
    if through_nat is not None:
        lines["NAT gateway"] = HOURS * price["NAT gateway"]
        gigabytes = sum(month(f"bytes of {whose}") for whose in through_nat)
        lines["traffic through it"] = gigabytes * price["NAT gateway traffic"]
    return lines | {TOGETHER: sum(lines.values())}


def tables() -> Sequence[str]:
    """Return the lines that stand in docs/operate/cost.md."""
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    plain = [bill(n, counts) for n in CLUSTERS]
    lines = [
        "| USD in a month for | " + _heads() + " |",
        "|---|" + "---:|" * len(CLUSTERS),
        *(_row(name, [b[name] for b in plain]) for name in plain[0]),
        "",
        "| in a VPC, USD in a month for | " + _heads() + " |",
        "|---|" + "---:|" * len(CLUSTERS),
    ]
    for where, whose in NETWORKS.items():
        bills = [bill(n, counts, whose) for n in CLUSTERS]
        names = ["NAT gateway", "traffic through it", TOGETHER]
        lines += [_row(f"{where}: {name}", [b[name] for b in bills]) for name in names]
    lines += [
        "",
        "| of one cluster | requests to the API server | MB with gzip | MB without | requests to AWS | MB |",
        "|---|---:|---:|---:|---:|---:|",
        *(_asked(f"calm hour, `{name}`", found) for name, found in counts["calm hour"].items()),
        *(
            _asked(f"interruption, `{name}`", found)
            for name, found in counts["interruption"].items()
        ),
    ]
    return lines


def _heads() -> str:
    return " | ".join(f"{n} cluster{'' if n == 1 else 's'}" for n in CLUSTERS)


def _row(name: str, dollars: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{each:,.2f}" for each in dollars) + " |"


def _asked(name: str, found: Mapping[str, float]) -> str:
    sizes = ("bytes of the API server", "bytes without gzip", "bytes of AWS")
    zipped, plain, aws = (f"{found.get(key, 0) / 1e6:,.1f}" for key in sizes)
    kubernetes = found.get("requests to the API server", 0)
    requests = found.get("requests to AWS", 0)
    return f"| {name} | {kubernetes:,.0f} | {zipped} | {plain} | {requests:,.0f} | {aws} |"
