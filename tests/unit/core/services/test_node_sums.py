"""A cluster as the node index remembers it."""

from __future__ import annotations

import pytest

from plimsoll.domain.capacity import estimated_observation
from plimsoll.domain.kubernetes import Resources
from plimsoll.domain.registry import IndexEntry
from tests.support.builders import NOON
from tests.support.observations import interrupted

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("pods", [1, 3, 7])
def test_the_shares_of_a_node_are_nearly_equal_and_together_its_sum(pods):
    total = Resources(cpu=1000, memory=2**30 + 1, pods=pods, extended=((GPU, 8),))
    entry = IndexEntry(instance="i-1", cluster="harbor", node="spot", requests=total, seen=NOON)
    record = interrupted("spot").interruption
    assert record is not None
    shares = [
        pod.scheduling.requests
        for pod in estimated_observation("harbor", [entry], [], {"spot": record}).pods
    ]

    assert len(shares) == pods
    for amounts, whole in (
        ([share.cpu for share in shares], total.cpu),
        ([share.memory for share in shares], total.memory),
        ([dict(share.extended)[GPU] for share in shares], 8),
    ):
        assert (sum(amounts), max(amounts) - min(amounts) <= 1) == (whole, True)
