"""The interruption path: is a notice lost, is one late, does every part run?"""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.grafana.boards import board
from infra.grafana.panels import alarms, duration, metric, number, panel
from plimsoll.domain.reports import Metric

_STACK = "template.yaml"
_UNEXPECTED = {
    Metric.NOTICES_FOUND_BY_RESYNC: "no event told of it",
    Metric.NOTICES_NOT_OURS: "of no registered cluster",
    Metric.NOTICES_IGNORED: "asks for nothing, or malformed",
}


def make() -> Dashboard:
    """Return the board."""
    unexpected = [metric(name, "Sum", label=label) for name, label in _UNEXPECTED.items()]
    return board(
        "pipeline",
        "Whether notices arrive, in time, and are handled. Begin here when an alarm rings.",
        {
            "Is a notice lost?": [
                number("How many notices are in the dead-letter queue?", "NoticesDead", width=6),
                number("How many notices were set aside?", "NoticesDeadLettered", width=6),
                alarms("Do notices arrive? Canaries in 15 minutes", "CanaryMissing", width=6),
                alarms("Does the resync run? Resyncs in a minute", "ResyncMissing", width=6),
            ],
            "Is a notice late?": [
                alarms(
                    "How long after its notice is a node cordoned?",
                    "CordonLate",
                    more=[metric(Metric.NOTICE_AGE_AT_CORDON, "p50", label="p50")],
                ),
                alarms("How long has the oldest notice waited?", "NoticesWaiting"),
                alarms("How old are notices whose attempts fail?", "NoticesRetried"),
            ],
            "Does every part run?": [
                alarms(
                    "Which functions crash or time out?",
                    "NoticesErrors",
                    "DrainsErrors",
                    "ResyncErrors",
                ),
                alarms(
                    "Which functions does Lambda refuse to run?",
                    "NoticesThrottled",
                    "DrainsThrottled",
                ),
                alarms("How long has the oldest wake-up waited?", "WakeUpsWaiting"),
                alarms("Do reconciles of a drain fail?", "WakeUpsDead"),
                alarms("Do resyncs die?", "ResyncsDead"),
                panel(
                    "Which notices lead to nothing?",
                    unexpected,
                    "Many found by the resync mean that events do not arrive.",
                ),
            ],
            "How near is each function to its timeout?": [
                duration(_STACK, "NoticesFunction", "How long do notices take?"),
                duration(_STACK, "DrainsFunction", "How long do reconciles take?"),
                duration(_STACK, "SweepFunction", "How long do resyncs take?"),
            ],
        },
        stack="plimsoll",
    )
