"""All spot goes on a real control plane, beside Karpenter itself, whose queue is delayed: four minutes each."""

from __future__ import annotations

import pytest

from benchmarks.beside_karpenter import SITUATIONS, played_on_cluster

pytestmark = pytest.mark.cluster

MOST_LOST = 5.0
"""Ready replica seconds of all Deployments."""
NODES = 6
"""How many Karpenter alone launches."""


@pytest.mark.parametrize(
    "situation",
    [
        "the queue is delayed by 15 s",
        pytest.param("the NodePool is at its limit", marks=pytest.mark.long),
    ],
)
def test_deployments_lose_nothing_and_no_more_than_one_node_is_launched_beyond_those_that_go(
    situation: str,
):
    setting = SITUATIONS[situation].setting
    assert setting is not None
    found = played_on_cluster(setting, "plimsoll")
    assert found.lost <= MOST_LOST
    assert found.zero == 0
    assert found.killed == 0
    assert found.nodes <= NODES + 1
