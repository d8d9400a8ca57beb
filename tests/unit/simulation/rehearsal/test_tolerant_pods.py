"""A rehearsal names the workloads whose pods may return to an interrupted node."""

from __future__ import annotations

from plimsoll_simulation.rehearsal.obstacles import obstacles
from tests.support.builders import NOON, a_deployment, a_node, a_pod
from tests.support.observations import looked


def test_a_pod_that_tolerates_every_taint_is_an_obstacle_until_it_names_the_taints():
    node = a_node("spot", capacity="spot")
    dedicated = [{"key": "dedicated", "operator": "Exists"}]
    found = {}
    for name, tolerations in (("every", [{"operator": "Exists"}]), ("named", dedicated)):
        pod = a_pod("web-1", node="spot", tolerations=tolerations)
        seen = looked([node, a_node("od")], [pod], [a_deployment(replicas=1)])
        found[name] = [each for each in obstacles(seen, [node], NOON) if each.kind == "tolerations"]

    assert found["named"] == []
    (obstacle,) = found["every"]
    assert obstacle.workload == "Deployment default/web"
    assert "start on the same node" in obstacle.why
    assert obstacle.change.startswith("tolerate named taints")
