"""Draws workloads that fit into the cluster and leave little headroom."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from plimsoll.domain.kubernetes import HOSTNAME, ZONE, Resources
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.workload import CUSTOM, TARGET_PERCENT, Workload

FULL: Final = 0.7
"""The share of the CPU that is requested at most when the storm starts."""
GRACES: Final = (5, 30, 30, 60, 110, 180, 600, 1800)
RANKED: Final = 0.15
"""The share of storms in which priorities differ."""
HIGH: Final = 1000
STATED: Final = 0.15
IGNORED: Final = 0.05
OPERATED: Final = 0.15
"""Shares of workloads."""
LONG: Final = 200
"""Seconds that no notice of two minutes leaves."""
_KINDS: Final = (*["Deployment"] * 12, *["StatefulSet"] * 5, "ReplicaSet", "Job", "Pod", CUSTOM)
_SURGES: Final[tuple[tuple[int | str, int | str], ...]] = (
    ("25%", "25%"),
    (1, 0),
    (0, 1),
    ("50%", "50%"),
    (2, 1),
)
_AGENT: Final = Workload(
    kind="DaemonSet",
    name="agent",
    replicas=0,
    cpu=50,
    grace_seconds=30,
    stop_seconds=3,
    startup_seconds=2,
)


def draw_workloads(
    rnd: random.Random, groups: Sequence[NodeGroupSpec], *, small: bool
) -> tuple[Workload, ...]:
    """Draw workloads that fit on these groups."""
    headroom = int(FULL * sum(g.size * (Resources.parse(g.allocatable).cpu // 500) for g in groups))
    """In pods of half a core."""
    drawn = [_AGENT] if chance(rnd, 0.5) else []
    ranked = chance(rnd, RANKED)
    for number in range(rnd.randint(1, 3) if small else rnd.randint(2, 7)):
        pods = rnd.choice((1, 1, 2, 2, 3)) if small else rnd.choice((1, 2, 2, 3, 4, 6, 9))
        halves = rnd.choice((1, 1, 2, 3))
        pods = min(pods, headroom // halves)
        if pods < 1:
            break
        workload = _workload(rnd, f"w{number}", pods, halves * 500 - 50)
        if ranked:
            workload = replace(workload, priority=rnd.choice((0, 0, HIGH)))
        headroom -= workload.replicas * halves
        drawn.append(workload)
    return tuple(drawn)


def _workload(rnd: random.Random, name: str, replicas: int, cpu: int) -> Workload:
    kind = rnd.choice(_KINDS)
    grace = rnd.choice(GRACES)
    common: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "cpu": cpu,
        "grace_seconds": grace,
        "stop_seconds": rnd.choice((1, 3, 3, 3, min(grace - 1, 20), *_long(grace))),
        "startup_seconds": rnd.choice((2, 5, 15, 15, 40)),
        "stated": chance(rnd, STATED),
        "ignored": chance(rnd, IGNORED),
    }
    if kind in {"Job", "Pod"}:
        count = 1 if kind == "Pod" else replicas
        return Workload(replicas=count, run_seconds=rnd.choice((None, None, 120, 300)), **common)
    common |= {"replicas": replicas, "budget": _budget(rnd, replicas), **_scatter(rnd, replicas)}
    if kind == CUSTOM:
        return Workload(**common)
    common["operated"] = chance(rnd, OPERATED)
    if kind == "StatefulSet":
        return Workload(volumes=chance(rnd, 0.5), parallel=chance(rnd, 0.3), **common)
    if kind == "ReplicaSet":
        return Workload(**common)
    surge, unavailable = rnd.choice(_SURGES)
    return Workload(
        strategy=rnd.choice(("RollingUpdate", "RollingUpdate", "RollingUpdate", "Recreate")),
        max_surge=surge,
        max_unavailable=unavailable,
        autoscaled=None if common["operated"] else _bounds(rnd, replicas),
        usage_percent=rnd.choice((TARGET_PERCENT, TARGET_PERCENT * 4 // 5)),
        **common,
    )


def _long(grace: int) -> tuple[int, int]:
    """Return stop times that come near the grace period, or overrun it."""
    return (grace - 1, grace + 10) if grace < LONG else (LONG, LONG)


def _scatter(rnd: random.Random, replicas: int) -> dict[str, Any]:
    """Draw topology spread, or anti-affinity, as a rule or as a preference."""
    plain: dict[str, Any] = {"spread": None}
    soft = chance(rnd, 0.5)
    spread = {"spread": HOSTNAME if replicas == 1 else ZONE, "soft": soft}
    apart = {"apart": True, "soft": soft or replicas > 2}  # noqa: PLR2004 - small clusters have few nodes
    return rnd.choice((*[plain] * 8, spread, spread, apart))


def _bounds(rnd: random.Random, replicas: int) -> tuple[int, int] | None:
    """Draw an autoscaler's bounds. None falls below the declared count, which is measured against."""
    return rnd.choice((None, None, (replicas, replicas + 2), (replicas, 2 * replicas)))


def _budget(rnd: random.Random, replicas: int) -> tuple[str, int | str] | None:
    return rnd.choice(
        (
            None,
            None,
            None,
            ("maxUnavailable", 1),
            ("maxUnavailable", 0),
            ("minAvailable", 1),
            ("minAvailable", max(1, replicas - 1)),
            ("minAvailable", "50%"),
        )
    )
