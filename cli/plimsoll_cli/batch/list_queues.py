"""`plimsoll queues list`: the queues of a cluster as a table, as data, or as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from plimsoll_batch.domain.admission import plan_queues
from plimsoll_batch.domain.overview import QueueOverview, QuotaUse, overview
from plimsoll_batch.domain.quota import amount_text
from plimsoll_cli.batch.gangs import Queues
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import console, environment_of, print_answer, table
from plimsoll_cli.terminal import say

_MILLI: Final = 1000
GAUGES: Final = {
    "plimsoll_queue_quota": "Quota of the queue itself.",
    "plimsoll_queue_used": "What running gangs of the queue use.",
    "plimsoll_queue_borrowed": "What of that is beyond the quota of the queue.",
    "plimsoll_queue_share": "Share of the queue in its tree, by the order of the tree.",
    "plimsoll_queue_running_gangs": "Gangs that run.",
    "plimsoll_queue_waiting_gangs": "Gangs that wait, by what they wait for.",
    "plimsoll_queue_preempted_gangs": "Gangs that wait because they were stopped for others.",
    "plimsoll_queue_longest_wait_seconds": "How long the first waiting gang has waited.",
}
"""https://prometheus.io/docs/instrumenting/exposition_formats/"""


@click.command(name="list")
@kubeconfig_options
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "prometheus"]),
    default="table",
    show_default=True,
    help="Print text and tables, or only JSON, YAML or metrics.",
)
@click.pass_context
def list_command(
    ctx: click.Context, context: str | None, kubeconfig: Path | None, output: str
) -> None:
    """List the queues of a cluster with their quota, use, borrowed quota, share and waiting gangs."""
    environment = environment_of(ctx)
    seen = Queues.of(environment, kubeconfig, context).seen
    now = environment.clock.now()
    found = overview(seen.state, plan_queues(seen.state, now), now)
    if output == "prometheus":
        for line in metrics(found):
            say(line)
    elif output == "table":
        _print(found)
    else:
        print_answer([_data(each) for each in found], "json" if output == "json" else "yaml")


def metrics(queues: Sequence[QueueOverview]) -> Iterator[str]:
    """Yield the lines of a scrape: CPU in cores, memory in bytes."""
    samples: dict[str, list[str]] = {name: [] for name in GAUGES}

    def add(name: str, value: float, **labels: str) -> None:
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        samples[f"plimsoll_queue_{name}"].append(f"{{{said}}} {value:.15g}")

    for queue in queues:
        for use in queue.quotas:
            labels = {"queue": queue.name, "flavor": use.flavor, "resource": use.resource}
            add("quota", _base(use, use.quota), **labels)
            add("used", _base(use, use.used), **labels)
            add("borrowed", _base(use, use.borrowed), **labels)
        if queue.share is not None:
            add("share", queue.share, queue=queue.name)
        add("running_gangs", queue.running, queue=queue.name)
        for wait, count in sorted(queue.waiting.items()):
            add("waiting_gangs", count, queue=queue.name, reason=wait)
        add("preempted_gangs", queue.preempted, queue=queue.name)
        add("longest_wait_seconds", queue.longest_seconds, queue=queue.name)
    for name, about in GAUGES.items():
        if samples[name]:
            yield f"# HELP {name} {about}"
            yield f"# TYPE {name} gauge"
            yield from (f"{name}{sample}" for sample in samples[name])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _base(use: QuotaUse, amount: int) -> float:
    return amount / _MILLI if use.resource == "cpu" else amount


def _print(queues: Sequence[QueueOverview]) -> None:
    shown = table("QUEUE", "FLAVOR", "RESOURCE", "QUOTA", "USED", "BORROWED", "SHARE", "RUNNING", "WAITING")  # fmt: skip
    for queue in queues:
        share = "" if queue.share is None else f"{queue.share:.3g}"
        waiting = ", ".join(f"{n} {wait}" for wait, n in sorted(queue.waiting.items())) or "0"
        running = "stopped" if queue.stopped and not queue.running else str(queue.running)
        first = [queue.name, share, running, waiting]
        uses: list[QuotaUse | None] = [*queue.quotas]
        for use in uses or [None]:
            amounts = [""] * 5 if use is None else _amounts(use)
            shown.add_row(first[0], *amounts, *first[1:])
            first = [""] * 4  # once for each queue
    console().print(shown)


def _amounts(use: QuotaUse) -> list[str]:
    said = (use.quota, use.used, use.borrowed)
    return [use.flavor, use.resource, *(amount_text(use.resource, amount) for amount in said)]


def _data(queue: QueueOverview) -> Mapping[str, Any]:
    return {
        "queue": queue.name,
        "cohort": queue.cohort,
        "stopped": queue.stopped,
        "quotas": [
            {
                "flavor": use.flavor,
                "resource": use.resource,
                "quota": amount_text(use.resource, use.quota),
                "most": amount_text(use.resource, use.most),
                "used": amount_text(use.resource, use.used),
                "borrowed": amount_text(use.resource, use.borrowed),
            }
            for use in queue.quotas
        ],
        "share": queue.share,
        "running": queue.running,
        "waiting": {str(wait): count for wait, count in sorted(queue.waiting.items())},
        "preempted": queue.preempted,
        "longest_wait_seconds": round(queue.longest_seconds),
    }
