"""Plimsoll beside others that drain: never worse than they alone, and nothing lost under the guard."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll_testbed.rigs.simulated.rig import Simulation
from plimsoll_testbed.storms import read_storm
from tests.support.storms import WEB, a_batch, a_group, a_storm

KINDS = {"karpenter": "karpenter", "managed-node-group": "eks-nodegroup"}
"""What each drains; the others drain Auto Scaling groups."""
SPOT, ADVICE = "spot-interruption", "rebalance-recommendation"


def lost(rival: str, notice: str, *, responder: str = "plimsoll", guard: bool = False) -> float:
    """Return the Ready replica seconds that a Deployment loses whose two pods fill two nodes."""
    spot = a_group("spot-1", "spot").model_copy(update={"kind": KINDS.get(rival, "asg")})
    storm = a_storm(
        groups=(a_group("base", "on-demand"), spot),
        workloads=(replace(WEB, cpu=1900, guarded=guard, startup_seconds=10),),
        events=(a_batch("spot-1", 1, notice=notice),),
        rivals=(rival,),
    )
    simulation = Simulation(read_storm(storm), responder=responder, seed=1)
    try:
        simulation.prepare()
        simulation.begin()
        clock = simulation.clock
        clock.run_until(clock.now() + timedelta(minutes=7))
        (web,) = simulation.report(settled=True)["workloads"]
        assert web["pods_killed"] == 0
        seconds: float = web["ready_replica_seconds_lost"]
        return seconds
    finally:
        simulation.close()


@pytest.mark.parametrize(
    ("rival", "notice"),
    [
        ("nth", SPOT),
        ("nth", ADVICE),
        ("nth-imds", SPOT),
        ("karpenter", SPOT),
        ("managed-node-group", SPOT),
        ("managed-node-group", ADVICE),
    ],
)
def test_with_the_guard_nothing_is_lost_beside_who_evicts_at_once(rival, notice):
    alone = lost(rival, notice, responder="none")
    beside = lost(rival, notice)
    assert alone >= beside > 0, "without the guard the other evicts first"
    assert lost(rival, notice, guard=True) == 0
