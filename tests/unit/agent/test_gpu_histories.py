"""2,000 histories of a change of GPUs, in virtual time: none strands a node."""

from __future__ import annotations

import pytest

from tests.support.gpu_histories import History
from tests.support.properties import IN_TEST_LONG

MANY = 2000
FEW = 20
BLOCK = 20


@pytest.mark.drawn
@pytest.mark.parametrize("first", range(0, MANY if IN_TEST_LONG else FEW, BLOCK))
def test_a_node_ends_in_service_or_cordoned_with_an_alert_or_gone(first):
    stranded = {}
    for seed in range(first, first + BLOCK):
        history = History(seed)
        history.play()
        if history.broken:
            stranded[seed] = (history.faults, history.broken)
    assert stranded == {}


def test_a_manager_that_hung_and_goes_on_later_takes_the_gpus_of_no_node_in_service():
    history = History(667)
    history.play()
    assert "manager up at 63.9 min" in history.faults
    assert history.broken == []
