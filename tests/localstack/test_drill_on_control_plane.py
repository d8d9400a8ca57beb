"""LocalStack before a real control plane: the deployed stack drains it through its API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_simulation.measure.report import exit_status
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.localstack.localstack import LocalStack

pytestmark = [pytest.mark.localstack, pytest.mark.cluster, pytest.mark.long]

DRILL = Path(__file__).parents[1] / "cluster" / "rig" / "two-nodes.yaml"


def test_it_carries_a_real_kubernetes_through_an_interruption():
    with Emulation(
        read_drill(DRILL),
        clusters=ControlPlanes,
        emulators=LocalStack,
        rig="localstack",
        responder="plimsoll",
        seed=0,
    ) as run:
        report = run.run()
    assert report["totals"]["pods_killed"] == 0
    assert report["nodes"], "nothing was interrupted"
    assert all(node["cordoned"] < node["empty"] < node["gone"] for node in report["nodes"])
    assert report["api"]["kubernetes"]["PATCH"] >= len(report["nodes"])
    assert exit_status(report) == 0
