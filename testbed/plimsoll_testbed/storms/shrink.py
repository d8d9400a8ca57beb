"""Makes a failing storm small: takes out whatever it fails without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from plimsoll_testbed.scenario.problems import BadScenario
from plimsoll_testbed.storms.model import Storm
from plimsoll_testbed.storms.timeline import Notices, Rescale, Rollout

TRIES = 80


def shrink(storm: Storm, fails: Callable[[Storm], bool], *, tries: int = TRIES) -> Storm:
    """Return a smaller storm that still fails, greedily.

    Args:
        storm: one that fails.
        fails: whether a storm fails in the way that is looked for.
        tries: how many storms to play at most.
    """
    left = tries
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(storm):
            left -= 1
            if left < 0:
                break
            try:
                failed = fails(candidate)
            except BadScenario:
                continue
            if failed:
                storm, smaller = candidate, True
                break
    return storm


def _smaller(storm: Storm) -> Iterator[Storm]:
    for i in range(len(storm.events)):
        yield replace(storm, events=storm.events[:i] + storm.events[i + 1 :])
    for workload in storm.workloads if len(storm.workloads) > 1 else ():
        yield replace(
            storm,
            workloads=tuple(w for w in storm.workloads if w is not workload),
            events=tuple(
                e
                for e in storm.events
                if not (isinstance(e, Rescale | Rollout) and e.workload == workload.name)
            ),
        )
    for group in storm.groups if len(storm.groups) > 1 else ():
        yield replace(
            storm,
            groups=tuple(g for g in storm.groups if g is not group),
            events=tuple(e for e in storm.events if getattr(e, "group", None) != group.name),
        )
    for i, workload in enumerate(storm.workloads):
        plain: list[dict[str, Any]] = [
            {"budget": None},
            {"volumes": False},
            {"spread": None},
            {"apart": False},
            {"gitops": False},
            {"autoscaled": None},
            {"priority": 0},
            {"run_seconds": None},
            {"replicas": workload.replicas - 1},
        ]
        for change in plain:
            changed = replace(workload, **change)
            if changed != workload and (changed.replicas > 0 or changed.kind == "DaemonSet"):
                if changed.replicas < 0:
                    continue
                yield replace(
                    storm, workloads=(*storm.workloads[:i], changed, *storm.workloads[i + 1 :])
                )
    for i, group in enumerate(storm.groups):
        if group.size > 1:
            smaller = replace(group, size=group.size - 1, most=group.most - 1)
            events = tuple(
                replace(e, count=min(e.count, smaller.size))
                if isinstance(e, Notices) and e.group == group.name and e.count is not None
                else e
                for e in storm.events
            )
            groups = (*storm.groups[:i], smaller, *storm.groups[i + 1 :])
            yield replace(storm, groups=groups, events=events)
