"""The clusters of a stack: what interruptions cost, and what the next storm would meet."""

from __future__ import annotations

from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.grafana.boards import board
from infra.grafana.panels import (
    Scale,
    alarms,
    each_cluster,
    metric,
    number,
    panel,
    to_console,
)
from plimsoll.domain.reports import Metric


def make() -> Dashboard:
    """Return the board."""
    interruptions = panel(
        "Which clusters are interrupted now?",
        [each_cluster(Metric.OPEN_INTERRUPTIONS, "Maximum")],
        "Open interruptions, as the last resync found them. The console shows each second.",
    )
    reserve = panel(
        "How much of their spot pods would on-demand nodes hold?",
        [each_cluster(Metric.ON_DEMAND_RESERVE, "Minimum", period_seconds=300)],
        "Free on-demand capacity, in percent of the requests of all pods on spot nodes.",
        Scale(units.Percent),
    )
    left_out = panel(
        "What could not be read or kept?",
        [
            metric(Metric.OBJECTS_LEFT_OUT, "Sum", label="objects of clusters"),
            metric(Metric.FRAMES_LOST, "Sum", label="frames of storms"),
        ],
        "The log of the resync names the objects.",
    )
    return board(
        "fleet",
        "What interruptions cost the clusters of a stack, and what stands in the way of the next.",
        {
            "What do interruptions cost?": [
                number("How many pods were killed?", "PodsKilled"),
                number("How many budgets were overruled?", "BudgetsOverruled"),
                to_console(interruptions, "/storm"),
            ],
            "Which clusters need a hand?": [
                alarms(
                    "Which clusters cannot be resynced or placed?",
                    "ClustersNotResynced",
                    by_cluster=True,
                ),
                alarms("Where are admission policies missing?", "PoliciesMissing", by_cluster=True),
                alarms("Was an injection policy unbound?", "InjectionsRemoved"),
            ],
            "What would the next storm meet?": [
                alarms("What would keep nodes from coming?", "CapacityShort", by_cluster=True),
                to_console(reserve, ""),
                left_out,
            ],
        },
        stack="plimsoll",
    )
