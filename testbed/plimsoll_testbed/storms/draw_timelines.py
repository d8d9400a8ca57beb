"""Draws timelines: notices by node and by zone, faults, and what owners do meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from plimsoll_testbed.storms.chance import chance
from plimsoll_testbed.storms.model import Group
from plimsoll_testbed.storms.timeline import Event, Fault, Notices, Rescale, Rollout
from plimsoll_testbed.storms.workload import ROLLED, SCALED, Workload

PLAIN: Final = 0.5
"""The share of small storms with one batch of notices and nothing else."""
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
    rnd: random.Random, groups: Sequence[Group], workloads: Sequence[Workload], *, small: bool
) -> tuple[Event, ...]:
    """Draw what happens, in the order of time; there is at least one batch of notices."""
    events = _events(rnd, groups, workloads, small=small)
    return tuple(sorted(events, key=lambda event: event.at))


def _events(
    rnd: random.Random, groups: Sequence[Group], workloads: Sequence[Workload], *, small: bool
) -> Iterator[Event]:
    spots = [group for group in groups if group.capacity == "spot"]
    if small and not chance(rnd, 1 - PLAIN):
        kind = rnd.choice(("spot-interruption", "spot-interruption", "health-scheduled-change"))
        plain = _notices(rnd, rnd.choice((*spots, groups[0])), kind)
        yield replace(plain, spread_seconds=0)
        return
    for _ in range(rnd.choice((1, 1, 2)) if small else rnd.randint(1, 4)):
        group = rnd.choice((*spots, *spots, groups[0]))
        if chance(rnd, 0.12):
            first = _notices(rnd, group)
            yield replace(first, group=None, zone=rnd.choice(group.zones), count=None)
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
    at = rnd.randint(0, 150)
    kinds = ROLLED if chance(rnd, 0.5) else SCALED
    may = [w for w in workloads if w.kind in kinds]
    if not may:
        return
    workload = rnd.choice(may)
    if kinds is ROLLED:
        yield Rollout(at=at, workload=workload.name)
    else:
        count = max(1, workload.replicas + rnd.choice((-2, -1, 1, 2)))
        yield Rescale(at=at, workload=workload.name, replicas=count)


def _notices(rnd: random.Random, group: Group, kind: str | None = None) -> Notices:
    kind = kind or rnd.choice((*_WITH_DEADLINE, *_WITHOUT))
    reclaim = {
        "lifecycle-terminate": rnd.choice((300, 300, 120)),
        "health-scheduled-change": rnd.choice((200, 400)),
        "none": 0,
    }.get(kind)
    return Notices(
        at=rnd.choice((10, 10, 30, rnd.randint(5, 150))),
        notice=kind,
        group=group.name,
        count=rnd.choice((1, group.size, rnd.randint(1, group.size))),
        spread_seconds=rnd.choice((0, 0, 0, 10, 60)),
        reclaim_seconds=reclaim,
        state=rnd.choice(("stopping", "terminated")) if kind == "state-change" else None,
    )


def _fault(rnd: random.Random, groups: Sequence[Group]) -> Fault:
    """Draw something that fails for a while."""
    at, fault = rnd.randint(0, 120), rnd.choice(_FAULTS)
    seconds = rnd.choice((5, 20, 40)) if fault == _AWAY else rnd.choice((30, 120))
    more: dict[str, Any] = {}
    match fault:
        case "notices-duplicated":
            more["delay"] = rnd.choice(("1s", "20s"))
        case "notices-delayed":
            more |= {"delay": rnd.choice(("5s", "40s")), "fraction": rnd.choice((1.0, 0.5))}
        case "notices-lost":
            more["fraction"] = rnd.choice((0.3, 1.0))
        case "api-server-slow":
            more["latency"] = rnd.choice(("1s", "3s"))
        case "function-killed":
            more["function"] = rnd.choice(("drains", "notices", "sweep"))
        case "aws-throttled":
            more["service"] = rnd.choice(("autoscaling", "dynamodb", "ec2", "sqs"))
            more["fraction"] = rnd.choice((0.5, 1.0))
        case _:
            pass
    group = rnd.choice(groups).name if fault == "insufficient-capacity" else None
    return Fault(at=at, fault=fault, seconds=seconds, more=tuple(more.items()), group=group)
