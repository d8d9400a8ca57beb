"""Plimsoll beside others that drain: never worse than they alone, and nothing lost under the guard.

The figures stand in docs/guides/beside-karpenter.md, as what each of them costs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.interruptions import FOREIGN_CORDON, Policy, Response
from plimsoll.domain.kubernetes import GUARD
from plimsoll_simulation.rigs.simulated import responders
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drainer
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import read_storm
from tests.support.storms import WEB, a_batch, a_group, a_storm

KINDS = {"karpenter": "karpenter", "managed-node-group": "eks-nodegroup"}
"""What each drains; the others drain Auto Scaling groups."""
SPOT, ADVICE = "spot-interruption", "rebalance-recommendation"
MOVED = Policy(on=((FOREIGN_CORDON, Response.MOVE),))


def played(
    other_controller: str,
    notice: str | None,
    *,
    responder: str = "plimsoll",
    guard: str | None = None,
) -> Simulation:
    """Play seven minutes of a Deployment whose two pods fill two nodes."""
    spot = a_group("spot-1", "spot").model_copy(update={"kind": KINDS.get(other_controller, "asg")})
    storm = a_storm(
        groups=(a_group("base", "on-demand"), spot),
        workloads=(replace(WEB, cpu=1900, guarded=guard is not None, startup_seconds=10),),
        events=() if notice is None else (a_batch("spot-1", 1, notice=notice),),
        other_controllers=(other_controller,),
    )
    drill = read_storm(storm)
    for manifest in drill.objects["harbor"]:
        if GUARD in (labels := manifest.body["metadata"].get("labels", {})):
            labels[GUARD] = guard
    with Simulation(drill, responder=responder, seed=1) as simulation:
        simulation.prepare()
        simulation.begin()
        clock = simulation.clock
        clock.run_until(clock.now() + timedelta(minutes=7))
        return simulation


def lost(other_controller: str, notice: str | None, **how) -> float:
    """Return the Ready replica seconds that the Deployment loses."""
    (web,) = played(other_controller, notice, **how).report(settled=True)["workloads"]
    assert web["pods_killed"] == 0
    seconds: float = web["ready_replica_seconds_lost"]
    return seconds


def drained(simulation: Simulation) -> int:
    """Return how many nodes an administrator has emptied."""
    (other_controller,) = simulation.other_controllers
    assert isinstance(other_controller, Drainer)
    return sum(drain.emptied is not None for drain in other_controller.drains.values())


@pytest.mark.parametrize(
    ("other_controller", "notice", "alone", "beside", "warned"),
    [
        ("nth", SPOT, 159, 40, 40),
        ("nth", ADVICE, 409, 46, 46),
        ("nth-imds", SPOT, 159, 40, 40),
        ("karpenter", SPOT, 41, 40, 40),
        ("managed-node-group", SPOT, 44, 40, 40),
        ("managed-node-group", ADVICE, 10, 10, 0),
    ],
)
def test_with_the_guard_nothing_is_lost_beside_who_evicts_at_once(
    other_controller, notice, alone, beside, warned
):
    assert lost(other_controller, notice, responder="none") == pytest.approx(alone, abs=1)
    assert lost(other_controller, notice) == pytest.approx(beside, abs=1)
    assert lost(other_controller, notice, guard="warned") == pytest.approx(warned, abs=1)
    assert lost(other_controller, notice, guard="true") == 0


@pytest.mark.parametrize(
    ("policy", "guard", "seconds", "nodes"),
    [
        pytest.param(Policy(), None, 88, 2, id="without the guard he evicts"),
        pytest.param(Policy(), "true", 0, 0, id="the guard lets him wait"),
        pytest.param(MOVED, "true", 0, 2, id="until a cordon is answered, by another node too"),
    ],
)
def test_the_drain_of_an_administrator_waits_for_the_guard(
    monkeypatch, policy, guard, seconds, nodes
):
    alone = lost("kubectl-drain", None, responder="none")
    known = responders._registered
    monkeypatch.setattr(responders, "_registered", lambda each: replace(known(each), policy=policy))
    assert lost("kubectl-drain", None, guard=guard) == pytest.approx(seconds, abs=1)
    assert alone == pytest.approx(88, abs=1)
    assert drained(played("kubectl-drain", None, guard=guard)) == nodes
