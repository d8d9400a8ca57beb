"""The alarms of the templates, from which panels are made: a board and its alarms cannot disagree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from plimsoll_cli.references.templates import STACKS, loaded
from plimsoll_simulation.checkout import Checkout

ROOT: Final = Checkout.find().root
_RESOURCE: Final = re.compile(r"\$\{(\w+)(?:\.\w+)?\}")


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of a template.

    Args:
        rings_below: It rings where the metric is below the threshold, else where it is above.
        resource: Logical id of the queue or function that it watches; None if it watches the stack.
    """

    name: str
    about: str
    namespace: str
    metric: str
    statistic: str
    period_seconds: int
    threshold: float
    rings_below: bool
    dimension: str
    resource: str | None


def _alarm(name: str, properties: dict[str, Any]) -> Alarm:
    (dimension,) = properties["Dimensions"]
    found = _RESOURCE.fullmatch(dimension["Value"])
    return Alarm(
        name=name,
        about=properties["AlarmDescription"],
        namespace=properties["Namespace"],
        metric=properties["MetricName"],
        statistic=properties["Statistic"],
        period_seconds=properties["Period"],
        threshold=properties["Threshold"],
        rings_below=properties["ComparisonOperator"] == "LessThanThreshold",
        dimension=dimension["Name"],
        resource=found and found[1],
    )


ALARMS: Final = {
    name: _alarm(name, resource["Properties"])
    for stack in STACKS
    for name, resource in loaded(ROOT, stack)["Resources"].items()
    if resource["Type"] == "AWS::CloudWatch::Alarm"
}
"""By name, which no two stacks share."""


def timeout_seconds(stack: str, function: str) -> int:
    """Return when Lambda stops a function."""
    return int(loaded(ROOT, stack)["Resources"][function]["Properties"]["Timeout"])
