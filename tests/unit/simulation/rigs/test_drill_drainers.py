"""Programs that drain beside the responder, each by its own rules. Here nobody else responds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drainer
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.timeline import FaultEntry
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.workload import Workload
from tests.support.storms import WEB, a_batch, a_group, a_storm

HELD = ("maxUnavailable", 0)
POOL = (
    a_group("base", "on-demand"),
    a_group("spot-1", "spot", 2).model_copy(update={"kind": "karpenter"}),
)
"""A node of a group, and two of a NodePool."""


class Cluster:
    """A cluster with one on-demand node and one of spot, at some time of its drill."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rig_cluster = simulation.rig_clusters["harbor"]
        self.wait(until=0)

    def wait(self, until: float) -> None:
        """Let the drill go on until so many seconds after time 0."""
        self.simulation.clock.run_until(self.zero + timedelta(seconds=until))

    @property
    def zero(self):
        started = self.simulation.measurement.started
        assert started is not None
        return started

    def machine(self, node: str) -> Machine:
        machines = self.rig_cluster.fleet.machine.values()
        return next(machine for machine in machines if machine.node == node)

    def gone(self, node: str) -> float | None:
        """When an instance went, in seconds after time 0."""
        gone = self.machine(node).gone
        return None if gone is None else (gone - self.zero).total_seconds()

    def node(self, name: str) -> dict[str, Any]:
        found = self.rig_cluster.get("nodes", "", name)
        assert found is not None
        return found

    def taints(self, name: str) -> list[str]:
        return [taint["key"] for taint in self.node(name)["spec"].get("taints") or ()]

    def cordoned(self) -> list[str]:
        nodes = self.rig_cluster.all("nodes")
        return [n["metadata"]["name"] for n in nodes if n["spec"].get("unschedulable")]

    def on(self, node: str) -> list[str]:
        """The pods on a node that were not told to go."""
        pods = self.rig_cluster.on_node(node)
        return sorted(
            p["metadata"]["name"].split("-")[0]
            for p in pods
            if "deletionTimestamp" not in p["metadata"]
        )

    @property
    def nodes(self) -> list[str]:
        return [m.node for m in self.rig_cluster.fleet.alive()]


@contextmanager
def playing(
    *workloads: Workload,
    other_controller: str,
    kind: str = "asg",
    notice: str = "spot-interruption",
    **changes,
) -> Iterator[Cluster]:
    """Play a drill of two full nodes; the one of spot, with half of the pods, gets a notice after ten seconds."""
    spot = a_group("spot-1", "spot").model_copy(update={"kind": kind})
    storm = a_storm(
        groups=(a_group("base", "on-demand"), spot),
        workloads=tuple(replace(each, cpu=1900) for each in workloads),
        events=(a_batch("spot-1", 1, notice=notice),),
        other_controllers=(other_controller,),
    )
    simulation = Simulation(read_storm(replace(storm, **changes)), responder="none", seed=1)
    try:
        simulation.prepare()
        simulation.begin()
        yield Cluster(simulation)
    finally:
        simulation.close()


def test_the_termination_handler_cordons_and_evicts_although_nothing_serves_elsewhere():
    with playing(WEB, other_controller="nth") as cluster:
        cluster.wait(9)
        assert (cluster.cordoned(), cluster.on("spot-1-1")) == ([], ["web"])
        cluster.wait(13)
        assert (cluster.cordoned(), cluster.on("spot-1-1")) == (["spot-1-1"], [])
        cluster.wait(131)
        assert cluster.gone("spot-1-1") == 130, "it terminates nothing itself"


@pytest.mark.parametrize(
    ("other_controller", "notice", "drains"),
    [
        ("nth", "rebalance-recommendation", True),
        ("nth", "capacity-reservation-interruption", False),
        ("nth-imds", "spot-interruption", True),
        ("nth-imds", "rebalance-recommendation", False),
        ("karpenter", "health-scheduled-change", False),  # of no NodePool
        ("managed-node-group", "spot-interruption", False),  # of no managed group
        ("managed-node-group", "rebalance-recommendation", False),
    ],
)
def test_each_hears_of_its_own_notices_and_nodes_only(other_controller, notice, drains):
    with playing(WEB, other_controller=other_controller, notice=notice) as cluster:
        cluster.wait(60)
        assert (cluster.on("spot-1-1") == []) == drains


@pytest.mark.parametrize(
    ("other_controller", "kind"),
    [("nth", "asg"), ("managed-node-group", "eks-nodegroup")],
)
def test_a_budget_holds_their_evictions_back_until_it_opens(other_controller, kind):
    held = replace(WEB, budget=HELD)
    with playing(held, other_controller=other_controller, kind=kind) as cluster:
        cluster.wait(60)
        assert cluster.on("spot-1-1") == ["web"]
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
        now, opened = cluster.simulation.clock.now(), {"spec": {"maxUnavailable": 1}}
        cluster.rig_cluster.cluster.handle(
            "PATCH", path, None, opened, "application/merge-patch+json", now=now
        )
        cluster.simulation.clock.touch(cluster.rig_cluster.cluster)
        cluster.wait(75)
        assert cluster.on("spot-1-1") == []


def test_eks_asks_again_for_a_replacement_while_its_group_launches_nothing():
    stalled = FaultEntry.model_validate({"at": "0s", "fault": "launches-stalled", "for": "60s"})
    spot = a_group("spot-1", "spot").model_copy(update={"kind": "eks-nodegroup"})
    storm = a_storm(
        groups=(a_group("base", "on-demand"), spot),
        events=(a_batch("spot-1", 1, notice="rebalance-recommendation"), stalled),
        other_controllers=("managed-node-group",),
    )
    with Simulation(read_storm(storm), responder="none", seed=1) as simulation:
        simulation.run()
        machines = simulation.rig_clusters["harbor"].fleet.groups["spot-1"].machines
        started = simulation.measurement.started
    assert started is not None
    assert [(m.launched - started).total_seconds() > 60 for m in machines] == [False, True]


def test_eks_ends_an_instance_a_quarter_of_an_hour_after_it_began_to_drain_it_whatever_a_budget_refuses():
    held = replace(WEB, budget=HELD)
    notice, kind = "rebalance-recommendation", "eks-nodegroup"
    with playing(held, other_controller="managed-node-group", kind=kind, notice=notice) as cluster:
        cluster.wait(300)
        (other,) = cluster.simulation.other_controllers
        assert isinstance(other, Drainer)
        (drain,) = other.drains.values()
        began = (drain.began - cluster.zero).total_seconds()
        cluster.wait(began + 890)
        assert (cluster.on("spot-1-1"), cluster.gone("spot-1-1")) == (["web"], None)
        cluster.wait(began + 905)
        assert cluster.gone("spot-1-1") == pytest.approx(began + 900, abs=1)


def test_a_drill_says_how_long_after_a_notice_eks_begins_to_drain():
    with playing(
        WEB, other_controller="managed-node-group", kind="eks-nodegroup", queue_delay_seconds=15
    ) as cluster:
        cluster.wait(25)
        assert cluster.on("spot-1-1") == ["web"]
        cluster.wait(28)
        assert cluster.on("spot-1-1") == []


def test_karpenter_only_tells_of_a_recommendation():
    with playing(
        WEB, other_controller="karpenter", kind="karpenter", notice="rebalance-recommendation"
    ) as cluster:
        cluster.wait(120)
        assert (cluster.on("spot-1-1"), cluster.taints("spot-1-1")) == (["web"], [])


@pytest.mark.parametrize("budget", [None, HELD])
def test_the_cluster_autoscaler_removes_an_underused_node_unless_a_budget_keeps_it(budget):
    small = replace(WEB, budget=budget, replicas=4)
    groups = (a_group("base", "on-demand"), a_group("spot-1", "spot", 2))
    with playing(
        other_controller="cluster-autoscaler",
        events=(),
        groups=groups,
        workloads=(replace(small, cpu=200),),
    ) as cluster:
        cluster.wait(500)
        assert len(cluster.nodes) == 3
        cluster.wait(700)
        assert len(cluster.nodes) == (3 if budget else 2), "the last of a group stays"


@pytest.mark.parametrize("budget", [None, HELD])
def test_karpenter_consolidates_an_underused_node_unless_a_budget_keeps_it(budget):
    small = replace(WEB, budget=budget, replicas=4, cpu=200)
    with playing(
        other_controller="karpenter-consolidation", events=(), groups=POOL, workloads=(small,)
    ) as cluster:
        cluster.wait(10)
        assert len(cluster.nodes) == 3
        cluster.wait(120)
        assert len(cluster.nodes) == (3 if budget else 1)
