"""docs/reference/annotations.md and metrics.md: names that stand in the code with a docstring each."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from plimsoll.domain.reports import Metric
from plimsoll_batch.domain import names as batch_names
from plimsoll_batch.domain.overview import Wait
from plimsoll_batch.domain.queue_metrics import LABELLED_QUEUES, QueueMetric
from plimsoll_cli.batch.list_queues import GAUGES
from plimsoll_cli.references.markdown import code, page, table, text
from plimsoll_cli.references.templates import STACKS, loaded
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_simulation.fake_cluster import pod_annotations

# What is read is their source: the docstrings of constants, which no face exports.
names = import_module("plimsoll.domain.kubernetes.names")
clusters = import_module("plimsoll.domain.registry.clusters")
queue_changes = import_module("plimsoll.domain.registry.queue_changes")
_MODULES: Final = {
    "Interruptions, capacity and placement": (names,),
    "Batch queues": (queue_changes, batch_names),
    "Drills": (pod_annotations,),
}
_NAMES: Final = (
    "Every annotation, label, taint and tag that Plimsoll reads or writes. You set those that state a wish. "
    "Plimsoll writes those that record its own work; you never need to change them."
)
_GAUGES: Final = (
    "[`plimsoll queues list --output prometheus`](../guides/batch.md#submit-a-gang) prints these gauges, each with the label "
    "`queue`; those of quota also have `flavor` and `resource`, with CPU in cores and memory in bytes."
)
_METRICS: Final = (
    "The functions write these metrics to CloudWatch, namespace `Plimsoll`, with the name of the stack as the dimension "
    f"`service`. Metrics of one cluster also have the dimension `cluster`; from cluster {clusters.LABELLED_CLUSTERS + 1} on it is "
    f"`{clusters.OTHERS}`. Metrics of gangs always name their `cluster`, and have the dimension `queue`; `GangsWaiting` also has `reason`: "
    f"{', '.join(f'`{wait}`' for wait in Wait)}. From queue {LABELLED_QUEUES + 1} of a cluster on, `queue` is "
    f"`{clusters.OTHERS}`; where no gang waits, nothing is written. [Alarms](../operate/alarms.md) says what to do about each alarm."
)


def render_names(_: Path) -> str:
    """Return the page of annotations, labels, taints and tags."""
    parts = [_NAMES]
    for title, modules in _MODULES.items():
        rows = [
            (code(value if isinstance(value, tuple) else (value,)), about)
            for module in modules
            for value, about in _documented(module)
            if isinstance(value, str | tuple) and "/" in str(value)
        ]
        parts.append(f"## {title}\n\n{table(('name', 'where, and what it says'), rows)}")
    return page("Annotations, labels, taints and tags", *parts)


def render_metrics(root: Path) -> str:
    """Return the page of metrics and alarms."""
    alarms = {
        name: (stack, resource["Properties"])
        for stack in STACKS
        for name, resource in loaded(root, stack)["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    ours = [
        (f"`{m}`", unit, about, code(n for n, (_, a) in alarms.items() if a["MetricName"] == m))
        for m, unit, about in (
            *((m, m.unit, about) for m, about in _documented(Metric)),
            *((m, "Count", about) for m, about in _documented(ServiceMetric)),
            *((m, m.unit, about) for m, about in _documented(QueueMetric)),
        )
    ]
    rows = [
        (f"`{name}`", f"`{stack}`", text(alarm["AlarmDescription"]), code(_metric(alarm)))
        for name, (stack, alarm) in alarms.items()
    ]
    return page(
        "Metrics and alarms",
        _METRICS,
        "## Metrics\n\n" + table(("metric", "unit", "meaning", "alarm"), ours),
        "## Metrics of queues for Prometheus",
        _GAUGES,
        table(("metric", "meaning"), [(f"`{name}`", about) for name, about in GAUGES.items()]),
        "## Alarms\n\n" + table(("alarm", "stack", "it rings when", "metric"), rows),
    )


def _metric(alarm: dict[str, Any]) -> list[str]:
    return [name for name in (alarm["Namespace"], alarm["MetricName"]) if name != "Plimsoll"]


def _documented(scope: ModuleType | type) -> Iterator[tuple[Any, str]]:
    """Yield the constants of a module or a class that have a docstring: value and docstring."""
    tree: ast.AST = ast.parse(inspect.getsource(scope))
    while not isinstance(scope, ModuleType) and not isinstance(tree, ast.ClassDef):
        tree = next(ast.iter_child_nodes(tree))
    for node, after in pairwise(ast.iter_child_nodes(tree)):
        match node, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                said = re.sub(r"`([A-Z_]{2,})`", lambda m: f"`{getattr(scope, m[1])}`", said)
                yield getattr(scope, name), text(said.partition("\nhttps://")[0])
            case _:
                pass
