"""Draws timelines: notices by node and by zone, faults, and what owners do meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.selectors import Selector
from plimsoll_simulation.scenario.timeline import (
    FaultEntry,
    NoticeEntry,
    ScaleEntry,
    ZonalShiftEntry,
)
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.model import Event, Rollout
from plimsoll_simulation.storms.workload import ROLLED, SCALED, Workload

PLAIN: Final = 0.5
"""The share of small storms with one batch of notices and nothing else."""
ADVISED: Final = 0.05
"""The share of storms with a recommendation that nothing follows."""
STOPPED: Final = 0.5
"""The share of spot interruptions and state changes in static groups after which instances return."""
BY_OWNER: Final = 0.5
"""The share of the other state changes that are an owner's scale-in."""
OTHERS_HOOK: Final = 0.4
"""The share of lifecycle actions for which a hook of somebody else waits too."""
SHIFTED: Final = 0.15
"""The share of storms in which traffic is shifted away from a zone."""
PRACTISED: Final = 0.3
"""The share of these in which that is a practice run."""
_RETURNS: Final = (30, 60, 180)
_SHUTDOWN: Final = (0, 10, 20, 30)
"""Seconds from the state `stopping` or `shutting-down` until its operating system has ended all containers."""
_WITH_DEADLINE: Final = (
    "spot-interruption",
    "spot-interruption",
    "spot-interruption",
    "lifecycle-terminate",
    "health-scheduled-change",
    "capacity-reservation-interruption",
)
_WITHOUT: Final = ("rebalance-recommendation", "rebalance-recommendation", "state-change", "none")
_AWAY: Final = "api-server-down"
_FAULTS: Final = (
    *[_AWAY] * 6,
    *["notices-duplicated"] * 3,
    *["insufficient-capacity"] * 2,
    "api-server-slow",
    "notices-delayed",
    "notices-lost",
    "function-killed",
    "aws-throttled",
)


def draw_timeline(
    rnd: random.Random,
    groups: Sequence[NodeGroupSpec],
    workloads: Sequence[Workload],
    *,
    small: bool,
) -> tuple[Event, ...]:
    """Draw what happens, in the order of time; there is at least one batch of notices."""
    events = _events(rnd, groups, workloads, small=small)
    return tuple(sorted(events, key=lambda event: event.at))


def with_shift(
    rnd: random.Random, groups: Sequence[NodeGroupSpec], events: Sequence[Event]
) -> tuple[Event, ...]:
    """Return a timeline in which traffic may leave a zone too, before, in or after the notices.

    Drawn after all else of a storm: a seed that draws no shift is the storm that it was before there were any.
    """
    if not chance(rnd, SHIFTED):
        return tuple(events)
    zones = sorted({zone for group in groups for zone in group.zones})
    entry = {
        "at": timedelta(seconds=rnd.choice((10, 0, 30, rnd.randint(0, 150)))),
        "zonalShift": rnd.choice(zones),
        "for": timedelta(seconds=rnd.choice((300, 60, 5, 600, 3600))),
        **({"practice": True} if chance(rnd, PRACTISED) else {}),
    }
    shift = ZonalShiftEntry.model_validate(entry)
    return tuple(sorted((*events, shift), key=lambda event: event.at))


def _events(
    rnd: random.Random,
    groups: Sequence[NodeGroupSpec],
    workloads: Sequence[Workload],
    *,
    small: bool,
) -> Iterator[Event]:
    spots = [group for group in groups if group.capacity == "spot"]
    if small and not chance(rnd, 1 - PLAIN):
        kind = rnd.choice(("spot-interruption", "spot-interruption", "health-scheduled-change"))
        plain = _notices(rnd, rnd.choice((*spots, groups[0])), kind)
        yield plain.model_copy(update={"spread": timedelta(0)})
        return
    if chance(rnd, ADVISED):
        yield _notices(rnd, rnd.choice(spots), "rebalance-recommendation")
        return
    for _ in range(rnd.choice((1, 1, 2)) if small else rnd.randint(1, 4)):
        group = rnd.choice((*spots, *spots, groups[0]))
        if chance(rnd, 0.12):
            zone = Selector(zone=rnd.choice(group.zones))
            yield _notices(rnd, group, stays_gone=True).model_copy(update={"nodes": zone})
            continue
        yield _notices(rnd, group)
        if chance(rnd, 0.3):
            yield _notices(rnd, group)  # the same group again
    for _ in range(rnd.choice((0, 0, 0, 1) if small else (0, 0, 1, 2))):
        yield _fault(rnd, groups)
    for _ in range(rnd.choice((0, 0, 0, 1) if small else (0, 0, 1, 2))):
        yield from _owner(rnd, workloads)


def _owner(rnd: random.Random, workloads: Sequence[Workload]) -> Iterator[Event]:
    """Draw what the owner of a workload does, if one of the cluster allows it."""
    at = timedelta(seconds=rnd.randint(0, 150))
    kinds = ROLLED if chance(rnd, 0.5) else SCALED
    may = [w for w in workloads if w.kind in kinds]
    if not may:
        return
    workload = rnd.choice(may)
    if kinds is ROLLED:
        yield Rollout(at=at, workload=workload.name)
    else:
        count = max(1, workload.replicas + rnd.choice((-2, -1, 1, 2)))
        scale = {"kind": workload.kind, "name": workload.name, "replicas": count}
        yield ScaleEntry.model_validate({"at": at, "scale": scale})


def _notices(
    rnd: random.Random,
    group: NodeGroupSpec,
    kind: str | None = None,
    *,
    stays_gone: bool = False,
) -> NoticeEntry:
    kind = kind or rnd.choice((*_WITH_DEADLINE, *_WITHOUT))
    if kind == "lifecycle-terminate" and group.kind == "static":
        kind = "state-change"  # Auto Scaling knows none of its instances
    stops = group.kind == "static" and not stays_gone and chance(rnd, STOPPED)
    ends: dict[str, Any] = {}
    match kind:
        case "spot-interruption" if stops:  # hibernation begins with its notice
            ends |= rnd.choice(({}, {"reclaim": timedelta(0)}))
            ends["returns"] = timedelta(seconds=rnd.choice(_RETURNS))
        case "state-change" if stops:
            ends["state"] = "stopping"
            ends["reclaim"] = timedelta(seconds=rnd.choice(_SHUTDOWN))
            ends["returns"] = timedelta(seconds=rnd.choice(_RETURNS))
        case "state-change" if chance(rnd, BY_OWNER):
            ends |= {"state": "shutting-down", "byOwner": True}
            ends["reclaim"] = timedelta(seconds=rnd.choice(_SHUTDOWN))
        case "lifecycle-terminate":
            ends["reclaim"] = timedelta(seconds=rnd.choice((300, 300, 120)))
            if chance(rnd, OTHERS_HOOK):
                ends["otherHook"] = timedelta(seconds=rnd.choice((60, 200, 600)))
        case "health-scheduled-change":
            ends["reclaim"] = timedelta(seconds=rnd.choice((200, 400)))
        case "state-change":
            ends["state"] = rnd.choice(("stopping", "terminated"))
            if ends["state"] == "stopping":
                ends["reclaim"] = timedelta(seconds=rnd.choice(_SHUTDOWN))
        case _:
            pass
    return NoticeEntry.model_validate(
        {
            "at": timedelta(seconds=rnd.choice((10, 10, 30, rnd.randint(5, 150)))),
            "notice": kind,
            "nodes": {
                "group": group.name,
                "count": rnd.choice((1, group.size, rnd.randint(1, group.size))),
            },
            "spread": timedelta(seconds=rnd.choice((0, 0, 0, 10, 60))),
            **ends,
        }
    )


def _fault(rnd: random.Random, groups: Sequence[NodeGroupSpec]) -> FaultEntry:
    """Draw something that fails for a while."""
    at, fault = timedelta(seconds=rnd.randint(0, 120)), rnd.choice(_FAULTS)
    seconds = rnd.choice((5, 20, 40)) if fault == _AWAY else rnd.choice((30, 120))
    more: dict[str, Any] = {}
    match fault:
        case "notices-duplicated":
            more["delay"] = timedelta(seconds=rnd.choice((1, 20)))
        case "notices-delayed":
            more["delay"] = timedelta(seconds=rnd.choice((5, 40)))
            more["fraction"] = rnd.choice((1.0, 0.5))
        case "notices-lost":
            more["fraction"] = rnd.choice((0.3, 1.0))
        case "api-server-slow":
            more["latency"] = timedelta(seconds=rnd.choice((1, 3)))
        case "function-killed":
            more["function"] = rnd.choice(("drains", "notices", "sweep"))
        case "aws-throttled":
            more["service"] = rnd.choice(("autoscaling", "dynamodb", "ec2", "sqs"))
            more["fraction"] = rnd.choice((0.5, 1.0))
        case "insufficient-capacity":
            more["nodes"] = {"group": rnd.choice(groups).name}
        case _:
            pass
    return FaultEntry.model_validate(
        {"at": at, "fault": fault, "for": timedelta(seconds=seconds), **more}
    )
