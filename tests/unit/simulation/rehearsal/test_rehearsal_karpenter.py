"""A rehearsal of a cluster whose nodes Karpenter makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rehearsal.prediction import Prediction, prediction_of
from plimsoll_simulation.rehearsal.scenario import modelled
from plimsoll_simulation.rehearsal.scope import Scope
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.rig import Simulation, run
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.storms import read_storm
from tests.support.storms import WEB, a_group, a_storm

SPOT = a_group("flexible", "spot", 2).model_copy(update={"kind": "karpenter"})
ON_DEMAND = a_group("steady", "on-demand", 0).model_copy(update={"kind": "karpenter"})


def live() -> LiveCluster:
    """A cluster of two full spot nodes, and a NodePool that buys on-demand nodes."""
    storm = a_storm(groups=(SPOT, ON_DEMAND), workloads=(replace(WEB, cpu=1900),), events=())
    with Simulation(read_storm(storm), responder="none", seed=1) as simulation:
        simulation.prepare()
        (rig_cluster,) = simulation.rig_clusters.values()
        requests = Requests(
            transport=FakeTransport(rig_cluster.cluster, simulation.clock), cluster="harbor"
        )
        groups = [group_of(group) for group in rig_cluster.fleet.groups.values()]
        return replace(read_cluster(requests, simulation.clock), groups=groups)


def rehearsed(cluster: LiveCluster, folder: Path) -> Prediction:
    drill = modelled(cluster, Scope())
    report = run(read_drill(drill.write(folder)), responder="plimsoll", seed=0)
    return prediction_of(cluster, Scope(), drill, report)


def test_karpenter_makes_nodes_of_the_node_pools_that_were_read(tmp_path: Path) -> None:
    found = rehearsed(live(), tmp_path)
    # EC2 has no more of the spot pool that is reclaimed, and Karpenter tries the next.
    assert {each.group: each.nodes_added for each in found.asked} == {"flexible": 0, "steady": 2}
    assert found.at_zero == []


def test_where_no_node_pool_was_read_it_makes_none(tmp_path: Path) -> None:
    found = rehearsed(replace(live(), groups=()), tmp_path)
    assert found.asked == []
    assert [each.workload for each in found.at_zero] == ["Deployment default/web"]
