"""Panels of the boards: each answers the question in its title, and shows the limit where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from grafana_foundation_sdk.builders import cloudwatch, common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.cloudwatch import (
    CloudWatchQueryMode,
    Dimensions,
    MetricEditorMode,
    MetricQueryType,
)
from grafana_foundation_sdk.models.common import BigValueGraphMode, GraphThresholdsStyleMode
from grafana_foundation_sdk.models.dashboard import DashboardLink as Link
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)

from infra.grafana.alarms import ALARMS, Alarm, timeout_seconds
from plimsoll.domain.reports import Metric
from plimsoll.observability import NAMESPACE
from plimsoll_batch.domain.queue_metrics import QueueMetric

type Panel = timeseries.Panel | stat.Panel
type Query = cloudwatch.CloudWatchMetricsQuery | prometheus.Dataquery

CLOUDWATCH: Final = DataSourceRef(type_val="cloudwatch", uid="${cloudwatch}")
PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="${prometheus}")
HEIGHT: Final = 8
WIDTH: Final = 8
"""Of 24 columns."""
_NAMESPACES: Final = {"FunctionName": "AWS/Lambda", "QueueName": "AWS/SQS"}
_UNITS: Final = {"Seconds": units.Seconds, "Percent": units.Percent, "Count": units.Number}
_AGE: Final = "ApproximateAgeOfOldestMessage"


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit of a panel, and the limit from which on its values are bad, or below which."""

    unit: str = units.Number
    limit: float | None = None
    below: bool = False

    def thresholds(self) -> ThresholdsConfig:
        """Return its colours: red from the limit on, or below it."""
        first, second = ("red", "green") if self.below else ("green", "red")
        steps = [Threshold(value=None, color=first)]
        if self.limit is not None:
            steps.append(Threshold(value=self.limit, color=second))
        return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


COUNT: Final = Scale()


def panel(
    title: str, queries: Sequence[Query], about: str, scale: Scale = COUNT, *, width: int = WIDTH
) -> timeseries.Panel:
    """Return a graph over time of queries to one source, with a line at the limit if there is one."""
    source = PROMETHEUS if isinstance(queries[0], prometheus.Dataquery) else CLOUDWATCH
    line = GraphThresholdsStyleMode.OFF if scale.limit is None else GraphThresholdsStyleMode.DASHED
    made = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(source)
        .unit(scale.unit)
        .min(0)
        .fill_opacity(10)
        .thresholds(scale.thresholds())
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(line))
        .height(HEIGHT)
        .span(width)
    )
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        made.with_target(query.ref_id(letter))
    return made


def number(title: str, name: str, *, width: int = WIDTH) -> stat.Panel:
    """Return an alarm's metric as one number: its sum over the time shown, or what it is now."""
    alarm = ALARMS[name]
    calculation = "sum" if alarm.statistic == "Sum" else "lastNotNull"
    return (
        stat.Panel()
        .title(title)
        .description(_about(alarm))
        .links(_answers(alarm))
        .datasource(CLOUDWATCH)
        .unit(_scale(alarm).unit)
        .no_value("0")
        .thresholds(_scale(alarm).thresholds())
        .graph_mode(BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs([calculation]))
        .height(HEIGHT)
        .span(width)
        .with_target(_watched(alarm, by_cluster=False).ref_id("A"))
    )


def alarms(
    title: str,
    *names: str,
    more: Sequence[Query] = (),
    by_cluster: bool = False,
    width: int = WIDTH,
) -> timeseries.Panel:
    """Return what alarms of one limit watch, with that limit and links to the page that answers them.

    Args:
        title: The question.
        names: The alarms.
        more: Queries beside those of the alarms.
        by_cluster: Shows a line for each cluster, where an alarm watches their sum or maximum.
        width: In columns.
    """
    watched = [ALARMS[name] for name in names]
    first, *others = watched
    if any((a.threshold, a.rings_below) != (first.threshold, first.rings_below) for a in others):
        raise ValueError(f"{title}: one panel has one limit, those of {names} differ")
    queries = [*(_watched(alarm, by_cluster=by_cluster) for alarm in watched), *more]
    made = panel(title, queries, "\n\n".join(map(_about, watched)), _scale(first), width=width)
    made.links([link for alarm in watched for link in _answers(alarm)])
    return to_console(made, "") if by_cluster else made


def duration(stack: str, function: str, title: str) -> timeseries.Panel:
    """Return how long a function takes, with its timeout as the limit."""
    seconds = timeout_seconds(stack, function)
    queries = [
        metric("Duration", statistic, dimensions={"FunctionName": f"${function}"}, label=statistic)
        for statistic in ("Maximum", "p50")
    ]
    about = f"Lambda stops {function} after {seconds} s."
    return panel(title, queries, about, Scale(units.Milliseconds, seconds * 1000))


def metric(
    name: str,
    statistic: str,
    *,
    dimensions: Dimensions | None = None,
    period_seconds: int = 60,
    label: str,
) -> cloudwatch.CloudWatchMetricsQuery:
    """Return a query of one metric: of the whole stack, if no other dimensions are given."""
    dimensions = dimensions or {"service": "$stack"}
    return (
        cloudwatch.CloudWatchMetricsQuery()
        .query_mode(CloudWatchQueryMode.METRICS)
        .metric_query_type(MetricQueryType.SEARCH)
        .metric_editor_mode(MetricEditorMode.BUILDER)
        .region("$region")
        .namespace(_NAMESPACES.get(next(iter(dimensions)), NAMESPACE))
        .metric_name(name)
        .dimensions(dimensions)
        .match_exact(match_exact=True)
        .statistic(statistic)
        .period(str(period_seconds))
        .label(label)
    )


def each_cluster(
    name: Metric, statistic: str, *, period_seconds: int = 60
) -> cloudwatch.CloudWatchMetricsQuery:
    """Return a query of a metric with a line for each cluster."""
    return metric(
        name,
        statistic,
        dimensions={"service": "$stack", "cluster": "*"},
        period_seconds=period_seconds,
        label="${PROP('Dim.cluster')}",
    )


def each_queue(
    name: QueueMetric, statistic: str, *, by: Sequence[str] = ()
) -> cloudwatch.CloudWatchMetricsQuery:
    """Return a query of a metric with a line for each queue, and for each value of more dimensions."""
    dimensions = ("cluster", "queue", *by)
    return metric(
        name,
        statistic,
        dimensions={"service": "$stack", **dict.fromkeys(dimensions, "*")},
        label=" ".join(f"${{PROP('Dim.{each}')}}" for each in dimensions),
    )


def samples(expression: str, legend: str) -> prometheus.Dataquery:
    """Return a PromQL query."""
    return prometheus.Dataquery().expr(expression).legend_format(legend).range()


def to_console(made: timeseries.Panel, screen: str) -> timeseries.Panel:
    """Link each line of a panel by cluster to a screen of the console about that cluster."""
    address = "${console}/c/${__field.labels.cluster}" + screen
    return made.data_links([_link("Open ${__field.labels.cluster} in the console", address)])


def _watched(alarm: Alarm, *, by_cluster: bool) -> cloudwatch.CloudWatchMetricsQuery:
    if by_cluster:
        return each_cluster(
            Metric(alarm.metric), alarm.statistic, period_seconds=alarm.period_seconds
        )
    return metric(
        alarm.metric,
        alarm.statistic,
        dimensions={alarm.dimension: f"${alarm.resource or 'stack'}"},
        period_seconds=alarm.period_seconds,
        label=alarm.resource or alarm.statistic,
    )


def _scale(alarm: Alarm) -> Scale:
    ours = alarm.metric in set(Metric)
    kind = Metric(alarm.metric).unit if ours else "Seconds" if alarm.metric == _AGE else "Count"
    # A step begins at its value, and an alarm rings beyond: of things that are counted, from the next on.
    beyond = 0 if alarm.rings_below or kind != "Count" else 1
    return Scale(_UNITS[kind], alarm.threshold + beyond, alarm.rings_below)


def _about(alarm: Alarm) -> str:
    return f"{alarm.name}: {alarm.about}."


def _answers(alarm: Alarm) -> list[Builder[Link]]:
    return [_link(f"What to do about {alarm.name}", f"${{alarms}}#{alarm.name.lower()}")]


def _link(title: str, address: str) -> Builder[Link]:
    return (
        DashboardLink(title)
        .type(DashboardLinkType.LINK)
        .url(address)
        .target_blank(target_blank=True)
    )
