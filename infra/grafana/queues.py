"""The batch queues: who waits and for what, does the planner run, who holds what?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.grafana.boards import board
from infra.grafana.panels import Scale, alarms, duration, each_queue, panel, samples
from plimsoll_batch.domain.queue_metrics import QueueMetric

_OF: Final = '{cluster=~"$cluster"}'
_QUOTA: Final = ("flavor", "resource")
_QUEUE: Final = "{{cluster}} {{queue}}"
_HELD: Final = "{{cluster}} {{queue}}: {{resource}} of {{flavor}}"


def make() -> Dashboard:
    """Return the board."""
    return board(
        "queues",
        "Who waits in the batch queues and for what, whether the planner runs, and who holds the "
        "quota. The planner writes to CloudWatch; the other metrics of queues are those of "
        "`plimsoll queues list --output prometheus`.",
        {
            "Who waits?": [
                panel(
                    "How long has the first gang of each queue waited?",
                    [samples(_max("longest_wait_seconds"), _QUEUE)],
                    "`plimsoll jobs why` says what holds a gang.",
                    Scale(units.Seconds),
                ),
                panel(
                    "How many gangs wait, and for what?",
                    [samples(_max("waiting_gangs", "reason"), f"{_QUEUE}: {{{{reason}}}}")],
                    "By queue and reason.",
                ),
                panel(
                    "How many gangs wait because they were stopped for others?",
                    [samples(_max("preempted_gangs"), _QUEUE)],
                    "`plimsoll queues history` says which, by whom and when.",
                ),
                panel(
                    "How many gangs run?",
                    [samples(_max("running_gangs"), _QUEUE)],
                    "By queue.",
                ),
            ],
            "How long do gangs wait, and are they stopped?": [
                panel(
                    "How long had gangs waited when they were admitted?",
                    [each_queue(QueueMetric.ADMISSION_WAIT, "Maximum")],
                    "The longest wait of a minute, since a gang was submitted or lost its place.",
                    Scale(units.Seconds),
                ),
                panel(
                    "How many gangs does the planner start?",
                    [each_queue(QueueMetric.GANGS_ADMITTED, "Sum")],
                    "By queue and minute.",
                ),
                panel(
                    "How many gangs are stopped for others?",
                    [each_queue(QueueMetric.GANGS_PREEMPTED, "Sum")],
                    "By queue and minute. `plimsoll queues history` says for whom and why.",
                ),
                panel(
                    "For what do gangs wait, as the planner saw it?",
                    [each_queue(QueueMetric.GANGS_WAITING, "Maximum", by=["reason"])],
                    "By queue and reason, also where nobody runs `plimsoll queues list`.",
                ),
            ],
            "Does the planner run?": [
                alarms("Can the queues of a cluster not be planned?", "QueuesNotPlanned"),
                alarms("Does the schedule fail?", "ScheduleErrors"),
                duration("batch.yaml", "BatchFunction", "How long does a plan take?"),
            ],
            "Who holds what?": [
                panel(
                    "How much of its quota does each queue use?",
                    [
                        samples(
                            f"100 * {_max('used', *_QUOTA)} / ({_max('quota', *_QUOTA)} > 0)",
                            _HELD,
                        )
                    ],
                    "Beyond 100 % it is borrowed.",
                    Scale(units.Percent, 100),
                ),
                panel(
                    "Who borrows how much?",
                    [samples(_max("borrowed", *_QUOTA), _HELD)],
                    "CPU in cores, memory in bytes.",
                    Scale(units.Short),
                ),
                panel(
                    "What share of its tree does each queue have?",
                    [samples(_max("share"), _QUEUE)],
                    "By the order of the tree. The queue with the smaller share is served first.",
                ),
            ],
        },
        stack="plimsoll-batch",
        clusters_of="plimsoll_queue_running_gangs",
    )


def _max(name: str, *labels: str) -> str:
    """Return a gauge: several collectors that tell of one cluster count once."""
    by = ", ".join(["cluster", "queue", *labels])
    return f"max by ({by}) (plimsoll_queue_{name}{_OF})"
