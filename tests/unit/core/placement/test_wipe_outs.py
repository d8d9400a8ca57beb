"""Months in which all spot instances of a cluster are reclaimed at once: no floor is ever undercut."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import ceil
from random import Random
from typing import Final

import pytest

from plimsoll.domain.actions import LabelNode, Release, SetDeletionCost
from plimsoll.domain.kubernetes import DELETION_COST, Node, Pod
from plimsoll.domain.placement import Layout, plan_placement
from plimsoll.domain.placement.spread_groups import LAYOUTS
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import (
    NOON,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    a_deployment,
    a_node,
    a_pod,
    pod_spec_json,
)
from tests.support.floors import spread_over
from tests.support.observations import looked

FAMILIES: Final = ("m5", "c5", "r5", "t3")
ZONES: Final = (ZONE_A, ZONE_B, ZONE_C)
RUN: Final = timedelta(minutes=5)


class Month:
    """One workload that is spread by a layout, and the nodes that it runs on; placement runs every five minutes."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"wipe-outs {seed}")
        self.layout: Layout = self.chance.choice([one for one in LAYOUTS if one.spot_groups])
        self.replicas = self.chance.randint(1, 24)
        self.now, self.made = NOON, 0
        floor = self.layout.floor(self.replicas)
        spec = spread_over(self.layout) | {"cpu": "1"}
        annotations = {"plimsoll.dev/min-on-demand": str(max(1, floor))}
        template = pod_spec_json(**spec)
        self.web = a_deployment(replicas=self.replicas, annotations=annotations, template=template)
        self.template = a_pod("web", **spec)
        count = self.chance.randint(1, 6)
        each = ceil(self.replicas / min(count, self.layout.on_demand_groups))
        room = self.chance.choice([each, each * 2])
        self.nodes: list[Node] = [
            a_node(f"od-{n}", zone=ZONES[n % 3], cpu=str(room)) for n in range(count)
        ]
        families = FAMILIES[: self.chance.randint(1, 4)]
        self.spot = [
            a_node(
                f"{family}-{n}",
                capacity="spot",
                zone=ZONES[n],
                cpu=str(self.chance.choice([4, 16])),
                labels={"node.kubernetes.io/instance-type": f"{family}.large"},
            )
            for family in families
            for n in range(3)
        ]
        self.nodes += self.spot
        self.pods: list[Pod] = []
        self.runs(4)
        self.pods = [self._new() for _ in range(self.replicas)]
        self.runs(6)

    def runs(self, count: int) -> None:
        for _ in range(count):
            self._schedule()
            plan = plan_placement(looked(self.nodes, self.pods, [self.web]), self.now)
            for step in plan.steps:
                match step.action:
                    case LabelNode(node=node, labels=change):
                        self._label(node.name, change)
                    case SetDeletionCost(pod=pod, cost=cost):
                        told = {} if cost is None else {DELETION_COST: cost}
                        self._put(replace(pod, annotations=told))
                    case Release(pod=pod):
                        self._put(self._new(), instead=pod.name)
                    case other:
                        pytest.fail(f"placement did {other}")
            self._schedule()
            self.now += RUN

    def lose(self, lost: list[Node]) -> None:
        names = {node.name for node in lost}
        self.nodes = [node for node in self.nodes if node.name not in names]
        self.pods = [self._new() if pod.node in names else pod for pod in self.pods]

    def bring_back(self) -> None:
        there = {node.name for node in self.nodes}
        self.nodes += [node for node in self.spot if node.name not in there]

    @property
    def on_demand(self) -> int:
        return sum((pod.node or "").startswith("od") for pod in self.pods)

    def _new(self) -> Pod:
        self.made += 1
        name = f"web-{self.made}"
        return replace(self.template, name=name, uid=name, created=self.now)

    def _put(self, pod: Pod, *, instead: str | None = None) -> None:
        name = instead or pod.name
        self.pods = [pod if one.name == name else one for one in self.pods]

    def _label(self, name: str, change: object) -> None:
        assert isinstance(change, dict)
        self.nodes = [
            replace(
                node,
                labels={k: v for k, v in {**node.labels, **change}.items() if v is not None},
            )
            if node.name == name
            else node
            for node in self.nodes
        ]

    def _schedule(self) -> None:
        snapshot = ClusterSnapshot(self.nodes, [pod for pod in self.pods if pod.node])
        for pod in [pod for pod in self.pods if not pod.node]:
            node = snapshot.choose(pod)
            if node is not None:
                snapshot.place(pod, node.name)
                self._put(replace(pod, node=node.name, phase="Running", ready=True))


@pytest.mark.parametrize(
    "seeds",
    [
        range(4),
        *(pytest.param(range(n, n + 100), marks=pytest.mark.long) for n in range(0, 1000, 100)),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop}",
)
def test_no_floor_is_undercut_in_months_with_total_wipe_outs(seeds):
    for seed in seeds:
        month = Month(seed)
        floor = month.layout.floor(month.replicas)
        assert month.on_demand >= floor, f"{seed}: before"
        for _ in range(3):
            spot = [node for node in month.nodes if node.capacity == "spot"]
            family = month.chance.choice(FAMILIES)
            lost = month.chance.choice(
                [spot, spot, [n for n in spot if n.name.startswith(family)], spot[:1]]
            )
            month.lose(lost)
            for _ in range(4):
                assert month.on_demand >= floor, f"{seed}: {month.layout} after a loss"
                month.runs(1)
            month.bring_back()
            for _ in range(5):
                assert month.on_demand >= floor, f"{seed}: {month.layout} after the return"
                month.runs(1)
