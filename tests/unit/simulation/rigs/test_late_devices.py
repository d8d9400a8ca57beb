"""Device plugins that report late in a simulated drill."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.workload import DEVICE
from tests.support.storms import WEB, a_group, a_storm


def test_a_node_that_joins_has_its_devices_once_their_plugins_report():
    allocatable = {"cpu": "2", "memory": "16Gi", DEVICE: "1"}
    late = {"allocatable": allocatable, "devices_after": timedelta(seconds=30)}
    group = a_group("base", "on-demand").model_copy(update=late)
    web = replace(WEB, replicas=1, devices=1)
    storm = a_storm(groups=(group,), workloads=(web,), events=())
    simulation = Simulation(read_storm(storm), responder="none", seed=1)
    try:
        simulation.run()
        rig_cluster, clock = simulation.rig_clusters["harbor"], simulation.clock
        rig_cluster.fleet.launch("base", 1, None, clock.now())
        clock.touch(rig_cluster.fleet)
        seen = []
        for seconds in (31, 30):
            clock.run_until(clock.now() + timedelta(seconds=seconds))
            node = rig_cluster.get("nodes", "", "base-2")
            assert node is not None
            seen.append(node["status"]["allocatable"].get(DEVICE))
        assert seen == [None, "1"]
    finally:
        simulation.close()
