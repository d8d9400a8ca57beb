"""Shrinks a failing storm with Hypothesis: it removes what the failure does not need."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.problems import BadScenario
from plimsoll_simulation.scenario.selectors import Selector
from plimsoll_simulation.scenario.timeline import (
    FaultEntry,
    NoticeEntry,
    ScaleEntry,
    ZonalShiftEntry,
)
from plimsoll_simulation.storms.model import Applied, Event, Rollout, Storm
from plimsoll_simulation.storms.workload import Workload

EXAMPLES: Final = 50
"""How many smaller storms to draw until one fails, from which Hypothesis goes on."""
_OPTIONS: Final = frozenset(
    {"budget", "volumes", "spread", "apart", "autoscaled", "priority", "run_seconds"}
    | {"operated", "ignored", "stated", "guarded", "shared", "hook_seconds", "on_demand", "nodes"}
    | {"sidecar_cpu", "held", "resized_cpu", "devices"}
)
"""Fields of a workload that shrink to their default."""
_KEEP: Final = st.integers(0, 39).map(bool)
"""Whether a part stays. Most draws say yes, so that most storms still fail; the plainest says no."""


def shrink(storm: Storm, fails: Callable[[Storm], bool]) -> Storm:
    """Return a smaller storm that still fails; the storm itself where there is none.

    Args:
        storm: one that fails.
        fails: whether a storm fails in the same way. It is asked some fifty to two hundred times.
    """
    tried: dict[str, bool] = {}

    def failed(candidate: Storm) -> bool:
        key = repr(candidate)
        if key not in tried:
            try:
                tried[key] = fails(candidate)
            except BadScenario:
                tried[key] = False
        return tried[key]

    options = settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    rnd = Random(storm.seed)  # noqa: S311 - a drill, no secret
    try:
        return find(_parts(storm), failed, settings=options, random=rnd)
    except NoSuchExample:
        return storm


@st.composite
def _parts(draw: st.DrawFn, storm: Storm) -> Storm:
    """Draw a storm out of parts of this one, with a group and a workload at least."""
    groups = [g for g in storm.groups if draw(_KEEP)] or storm.groups[:1]
    workloads = [w for w in storm.workloads if draw(_KEEP)] or storm.workloads[:1]
    smaller = {group.name: draw(_smaller(group)) for group in groups}
    names = {workload.name for workload in workloads}
    zones = {zone for group in groups for zone in group.zones}
    return replace(
        storm,
        groups=tuple(smaller.values()),
        other_controllers=tuple(name for name in storm.other_controllers if draw(_KEEP)),
        objects=tuple(each for each in storm.objects if draw(_KEEP)),
        detach_seconds=storm.detach_seconds if draw(_KEEP) else None,
        workloads=tuple(draw(_simpler(workload)) for workload in workloads),
        events=tuple(
            _fitting(event, smaller)
            for event in storm.events
            if draw(_KEEP) and _possible(event, smaller.keys() | names | zones)
        ),
    )


@st.composite
def _smaller(draw: st.DrawFn, group: NodeGroupSpec) -> NodeGroupSpec:
    size = max(1, sum(draw(_KEEP) for _ in range(group.size)))
    return group.model_copy(update={"size": size, "max": group.max - group.size + size})


@st.composite
def _simpler(draw: st.DrawFn, workload: Workload) -> Workload:
    replicas = sum(draw(_KEEP) for _ in range(workload.replicas))
    dropped: dict[str, Any] = {
        field.name: field.default
        for field in fields(Workload)
        if field.name in _OPTIONS
        and getattr(workload, field.name) != field.default
        and not draw(_KEEP)
    }
    return replace(workload, replicas=max(replicas, min(workload.replicas, 1)), **dropped)


def _possible(event: Event, names: AbstractSet[str]) -> bool:
    """Whether the group, the workload or the zone of an event is still there."""
    match event:
        case NoticeEntry() | FaultEntry():
            return event.nodes.group is None or event.nodes.group in names
        case ScaleEntry():
            return event.scale.name in names
        case ZonalShiftEntry():
            return event.zone in names
        case Rollout():
            return event.workload in names
        case Applied():
            return True


def _fitting(event: Event, groups: dict[str, NodeGroupSpec]) -> Event:
    match event:
        case NoticeEntry(nodes=Selector(group=str(name), count=int(count)) as nodes):
            fitting = nodes.model_copy(update={"count": min(count, groups[name].size)})
            return event.model_copy(update={"nodes": fitting})
        case _:
            return event
