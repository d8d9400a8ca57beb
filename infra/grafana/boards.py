"""What makes a board of rows of panels: its variables, and the links between the boards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    TextBoxVariable,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models.cloudwatch import CloudWatchMetricsQuery
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableHide,
    VariableOption,
    VariableRefresh,
)

from infra.grafana.panels import CLOUDWATCH, PROMETHEUS, Panel

type Variable = DatasourceVariable | QueryVariable | TextBoxVariable
type Rows = Mapping[str, Sequence[Panel]]

ALARMS_PAGE: Final = "https://plimsoll.example.com/operate/alarms/"
CONSOLE: Final = "https://plimsoll.example.com/console"
_TAG: Final = "plimsoll"


def board(
    name: str, about: str, rows: Rows, *, stack: str, clusters_of: str = ""
) -> dashboard.Dashboard:
    """Return a board.

    Args:
        name: What is seen on it.
        about: Which questions it answers.
        rows: Title -> panels, the most urgent first.
        stack: The usual name of the stack whose CloudWatch metrics it shows.
        clusters_of: A Prometheus metric, by whose label `cluster` panels can be narrowed.
    """
    made = (
        Dashboard(f"Plimsoll {name}")
        .uid(f"plimsoll-{name}")
        .description(about)
        .tags([_TAG])
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-6h", "now")
        .refresh("1m")
        .link(
            DashboardLink("Plimsoll")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([_TAG])
            .as_dropdown(as_dropdown=True)
            .keep_time(keep_time=True)
        )
    )
    for row, panels in rows.items():
        made.with_row(Row(row))
        for panel in panels:
            made.with_panel(panel)
    found = made.build()
    for variable in (*_asked(stack, clusters_of), *_resources(found)):
        made.with_variable(variable)
    if "${console}" in json.dumps(found, cls=JSONEncoder):
        made.with_variable(_text("console", "Console", CONSOLE))
    return made.build()


def _asked(stack: str, clusters_of: str) -> Iterator[Variable]:
    """Yield what a reader chooses."""
    yield DatasourceVariable("cloudwatch").label("CloudWatch").type("cloudwatch")
    yield (
        QueryVariable("region")
        .label("Region")
        .datasource(CLOUDWATCH)
        .query({"queryType": "regions", "region": "default", "refId": "variable"})
        .refresh(VariableRefresh.ON_DASHBOARD_LOAD)
        .current(VariableOption(text="default", value="default"))
    )
    yield _text("stack", "Stack", stack)
    if clusters_of:
        yield DatasourceVariable("prometheus").label("Prometheus").type("prometheus")
        yield (
            QueryVariable("cluster")
            .label("Cluster")
            .datasource(PROMETHEUS)
            .query(f"label_values({clusters_of}, cluster)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .include_all(include_all=True)
            .all_value(".*")  # also what has no such label
            .current(VariableOption(text="All", value="$__all"))
        )
    yield _text("alarms", "Page of alarms", ALARMS_PAGE)


def _resources(made: dashboard.Dashboard) -> Iterator[Variable]:
    """Yield a hidden variable for each queue and function: CloudFormation ends their names at random."""
    found = {
        str(value).removeprefix("$"): (query, dimension)
        for panel in made.panels or []
        if isinstance(panel, dashboard.Panel)
        for query in panel.targets or []
        if isinstance(query, CloudWatchMetricsQuery)
        for dimension, value in (query.dimensions or {}).items()
        if dimension in {"QueueName", "FunctionName"}
    }
    for resource, (query, dimension) in found.items():
        asked: dict[str, object] = {
            "queryType": "dimensionValues",
            "region": "$region",
            "namespace": query.namespace,
            "metricName": query.metric_name,
            "dimensionKey": dimension,
            "refId": "variable",
        }
        yield (
            QueryVariable(resource)
            .hide(VariableHide.HIDE_VARIABLE)
            .datasource(CLOUDWATCH)
            .query(asked)
            .regex(f"/^${{stack}}-{resource}-/")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )


def _text(name: str, label: str, value: str) -> TextBoxVariable:
    return (
        TextBoxVariable(name)
        .label(label)
        .default_value(value)
        .current(VariableOption(text=value, value=value))
    )
