"""A plan of layouts carried out on a real API server, beside real DaemonSets and a stand-in of mig-manager."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from plimsoll_agent.gpu_change import Limits
from plimsoll_simulation.rigs.mig_manager import MIG
from tests.cluster.gpu_fleet import ENDED, MIXED, SPARE, Fleet, a_fleet
from tests.support.gpu_nodes import HALVES, LARGE

pytestmark = pytest.mark.cluster

NODES = ("served", "fails", "unknown", "stuck", "short", "human")
LIMITS = Limits(
    empties=timedelta(seconds=60),
    begins=timedelta(seconds=6),
    changes=timedelta(seconds=15),
    reboots=timedelta(seconds=20),
    settles=timedelta(seconds=8),
    steady=timedelta(seconds=1.5),
)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with a_fleet(*NODES, limits=LIMITS) as fleet:
        yield fleet


def test_every_node_gets_its_first_layout_and_is_in_service_again(fleet: Fleet):
    fleet.plan(dict.fromkeys((*NODES, SPARE), "halves"))
    fleet.run(lambda: {fleet.step(name) for name in (*NODES, SPARE)} == {"done"})
    for name in NODES:
        assert (fleet.gpus(name), fleet.in_service(name)) == (HALVES, True)
    assert not fleet.heard.warnings


def test_whatever_mig_manager_does_no_node_is_stranded_and_pods_are_replaced_before_they_leave(
    fleet: Fleet,
):
    """A later change: now a failure of mig-manager leaves the device plugin away, also when the old label is put back."""
    ground = fleet.ground
    fleet.serve("web", LARGE, "served")
    fleet.managers["fails"].failing.add("slices")
    fleet.managers["unknown"].layouts = {"halves": HALVES}
    fleet.managers["short"].lacking.add("slices")
    stuck = fleet.plugin("stuck")
    fleet.hold(stuck, on=True)
    fleet.plan({"served": "mixed", **dict.fromkeys(NODES[1:], "slices")})

    def ended() -> bool:
        if fleet.step("human") == "changing":
            fleet.label("human", **{MIG: "mixed"})
        return all(fleet.step(name) in ENDED for name in NODES)

    fleet.run(ended)
    assert (fleet.step("served"), fleet.gpus("served")) == ("done", MIXED)
    (replacement,) = ground.until(lambda: ground.serving("web"))
    assert replacement["spec"]["nodeName"] == f"{ground.name}-{SPARE}"
    for name in ("fails", "unknown", "short"):
        assert (fleet.step(name), fleet.gpus(name), fleet.in_service(name)) == (
            "stopped",
            HALVES,
            True,
        )
    assert fleet.step("human") == "alert"
    for name in NODES:
        assert fleet.in_service(name) or (fleet.cordoned(name) and fleet.step(name) == "alert"), (
            name
        )
    fleet.hold(stuck, on=False)
