"""A rehearsal names the workloads whose replacements are Ready after the pods that they replace have stopped."""

from __future__ import annotations

from dataclasses import replace

from plimsoll_simulation.rehearsal.obstacles import obstacles
from tests.support.builders import NOON, a_deployment, a_node, a_pod
from tests.support.observations import looked


def test_a_slow_start_is_an_obstacle_until_a_node_that_stays_has_a_place():
    spot = a_node("spot", capacity="spot")
    pod = replace(a_pod("web-1", node="spot"), start_seconds=45, ready_since=NOON)

    def found(*nodes):
        seen = looked([spot, *nodes], [pod], [a_deployment(replicas=1)])
        return [each for each in obstacles(seen, [spot], NOON) if each.kind == "slow start"]

    (obstacle,) = found()
    assert obstacle.workload == "Deployment default/web"
    assert "Ready 117 s after a spot notice (70 s for a node and 45 s to start)" in obstacle.why
    assert obstacle.change.startswith("keep places for its pods free")
    assert not found(a_node("od"))
