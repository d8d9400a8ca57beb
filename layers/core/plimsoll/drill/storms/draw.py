"""Draws a storm: a seed is a storm, on every machine and in every run.

Clusters are drawn with room for what stands in them, but not with much more, so that rules bite:
few zones, one or two pods to a node, groups that may or may not grow.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from plimsoll.domain.names import HOSTNAME, ZONE
from plimsoll.drill.storms.model import (
    Event,
    Fault,
    Group,
    Notices,
    Rescale,
    Rollout,
    Storm,
    Workload,
)

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
SMALL: Final = 0.4
"""The share of storms that are small enough to be searched through."""
PLAIN: Final = 0.5
"""The share of small storms with one batch of notices and nothing else."""
FULL: Final = 0.7
"""How full a cluster is at most when it starts."""
GRACES: Final = (5, 30, 30, 60, 110, 180)
_WITH_DEADLINE: Final = (
    "spot-interruption",
    "spot-interruption",
    "spot-interruption",
    "lifecycle-terminate",
    "health-scheduled-change",
    "capacity-reservation-interruption",
)
_WITHOUT: Final = ("rebalance-recommendation", "rebalance-recommendation", "state-change", "none")


def draw_storm(seed: int, *, small: bool | None = None) -> Storm:
    """Return the storm of a seed.

    Args:
        seed: any number.
        small: whether few pods shall be in it; None leaves it to the seed.
    """
    return _Draw(seed, small=small).storm()


class _Draw:
    def __init__(self, seed: int, *, small: bool | None) -> None:
        self.seed = seed
        self.random = random.Random(f"storm/{seed}")  # noqa: S311 - a drill, no secret
        by_seed = self.random.random() < SMALL
        self.small = by_seed if small is None else small

    def storm(self) -> Storm:
        zones = ZONES[: self.random.randint(1, 3)]
        groups = tuple(self._groups(zones))
        workloads = tuple(self._workloads(groups))
        events = sorted(self._events(groups, workloads), key=lambda event: event.at)
        return Storm(seed=self.seed, groups=groups, workloads=workloads, events=tuple(events))

    def _groups(self, zones: tuple[str, ...]) -> Iterator[Group]:
        rnd = self.random
        spots = 1 if self.small else rnd.randint(1, 3)
        for number in range(1 + spots):
            spot = number > 0
            size = rnd.randint(1, 3) if self.small else rnd.randint(1, 8)
            kind = rnd.choice(("asg", "asg", "asg", "eks-nodegroup", "static"))
            yield Group(
                name=f"spot-{number}" if spot else "base",
                kind=kind,
                capacity="spot" if spot else "on-demand",
                zones=tuple(rnd.sample(zones, rnd.randint(1, len(zones)))),
                size=size,
                most=size if kind == "static" else size + rnd.choice((0, 2, 10, 10)),
                startup_seconds=rnd.choice((20, 40, 70, 100)),
                cpu=rnd.choice((2000, 4000)),
            )

    def _workloads(self, groups: tuple[Group, ...]) -> Iterator[Workload]:
        rnd = self.random
        room = int(FULL * sum(group.size * (group.cpu // 500) for group in groups))
        """In pods of half a core."""
        if rnd.random() < 0.5:  # noqa: PLR2004 - a coin
            yield self._daemon()
        for number in range(rnd.randint(1, 3) if self.small else rnd.randint(2, 7)):
            pods = rnd.choice((1, 1, 2, 2, 3)) if self.small else rnd.choice((1, 2, 2, 3, 4, 6, 9))
            halves = rnd.choice((1, 1, 2, 3))
            pods = min(pods, room // halves)
            if pods < 1:
                return
            room -= pods * halves
            yield self._workload(f"w{number}", pods, halves * 500 - 50)

    def _daemon(self) -> Workload:
        return Workload(
            kind="DaemonSet",
            name="agent",
            replicas=0,
            cpu=50,
            grace_seconds=30,
            stop_seconds=3,
            startup_seconds=2,
        )

    def _workload(self, name: str, replicas: int, cpu: int) -> Workload:
        rnd = self.random
        grace = rnd.choice(GRACES)
        common = {
            "name": name,
            "replicas": replicas,
            "cpu": cpu,
            "grace_seconds": grace,
            "stop_seconds": rnd.choice((1, 3, 3, min(grace - 1, 20), grace - 1, grace + 10)),
            "startup_seconds": rnd.choice((2, 5, 15, 15, 40)),
            "budget": self._budget(replicas),
            "spread": rnd.choice((None, None, None, None, HOSTNAME if replicas == 1 else ZONE)),
        }
        if rnd.random() < 0.3:  # noqa: PLR2004 - three in ten
            return Workload(
                kind="StatefulSet",
                volumes=rnd.random() < 0.5,  # noqa: PLR2004 - a coin
                parallel=rnd.random() < 0.3,  # noqa: PLR2004 - three in ten
                **common,  # type: ignore[arg-type]  # of many types
            )
        strategy = rnd.choice(("RollingUpdate", "RollingUpdate", "RollingUpdate", "Recreate"))
        surge, unavailable = rnd.choice((("25%", "25%"), (1, 0), (0, 1), ("50%", "50%"), (2, 1)))
        return Workload(
            kind="Deployment",
            strategy=strategy,
            max_surge=surge,
            max_unavailable=unavailable,
            gitops=rnd.random() < 0.2,  # noqa: PLR2004 - one in five
            **common,  # type: ignore[arg-type]  # of many types
        )

    def _budget(self, replicas: int) -> tuple[str, int | str] | None:
        return self.random.choice(
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

    def _events(
        self, groups: tuple[Group, ...], workloads: tuple[Workload, ...]
    ) -> Iterator[Event]:
        rnd = self.random
        spots = [group for group in groups if group.capacity == "spot"]
        if self.small and rnd.random() < PLAIN:
            kind = rnd.choice(("spot-interruption", "spot-interruption", "health-scheduled-change"))
            plain = self._notices(rnd.choice((*spots, groups[0])), kind)
            yield replace(plain, spread_seconds=0)
            return
        for _ in range(rnd.choice((1, 1, 2)) if self.small else rnd.randint(1, 4)):
            first = self._notices(rnd.choice((*spots, *spots, groups[0])))
            yield first
            if rnd.random() < 0.3:  # noqa: PLR2004 - three in ten: the same group again
                yield self._notices(next(g for g in groups if g.name == first.group))
        for _ in range(rnd.choice((0, 0, 0, 1) if self.small else (0, 0, 1, 2))):
            yield self._fault()
        declared = [w for w in workloads if w.kind != "DaemonSet"]
        for _ in range(rnd.choice((0, 0, 0, 1) if self.small else (0, 0, 1, 2)) if declared else 0):
            workload = rnd.choice(declared)
            at = rnd.randint(0, 150)
            if rnd.random() < 0.5:  # noqa: PLR2004 - a coin
                count = max(1, workload.replicas + rnd.choice((-2, -1, 1, 2)))
                yield Rescale(at=at, workload=workload.name, replicas=count)
            else:
                yield Rollout(at=at, workload=workload.name)

    def _notices(self, group: Group, kind: str | None = None) -> Notices:
        rnd = self.random
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

    def _fault(self) -> Fault:
        rnd = self.random
        at = rnd.randint(0, 120)
        if rnd.random() < 0.6:  # noqa: PLR2004 - more often than not
            return Fault(at=at, fault="api-server-down", seconds=rnd.choice((5, 20, 40)))
        return Fault(
            at=at,
            fault="notices-duplicated",
            seconds=rnd.choice((30, 120)),
            more=(("delay", rnd.choice(("1s", "20s"))),),
        )
