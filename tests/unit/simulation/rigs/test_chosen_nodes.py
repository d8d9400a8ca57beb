"""Which nodes a notice takes that names only how many: the same ones, whatever a responder has done before."""

from __future__ import annotations

from typing import override

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.notice_delivery import NOTICE
from tests.support.storms import WEB, a_batch, a_group, a_storm

NODES = {"spot-1-1", "spot-1-2", "spot-1-3", "spot-1-4"}


class _Notices(Quiet):
    """Notes the nodes that are interrupted by a notice."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()

    @override
    def say(self, seconds: float, what: str) -> None:
        if (notice := NOTICE.match(what)) and notice["kind"] == "spot-interruption":
            self.nodes.add(notice["node"])


def taken(*gone: str, count: int = 2) -> set[str]:
    """Return the nodes that a notice takes after these are gone, and their group has replaced them."""
    groups = a_group("base", "on-demand"), a_group("spot-1", "spot", size=4)
    ends = {"group": "spot-1", "names": sorted(gone)} if gone else {"group": "spot-1"}
    ended = a_batch("spot-1", 1, notice="none", nodes=ends)
    nothing = a_batch("base", 1, notice="state-change", state="running")
    events = (ended if gone else nothing, a_batch("spot-1", count, at="100s"))
    notices = _Notices()
    storm = a_storm(groups=groups, workloads=(WEB,), events=events)
    simulation = Simulation(read_storm(storm), responder="none", seed=1, listener=notices)
    try:
        simulation.run()
    finally:
        simulation.close()
    return notices.nodes


@pytest.mark.parametrize("gone", sorted(NODES))
def test_a_node_that_is_gone_changes_nothing_about_the_others(gone: str):
    undisturbed, found = taken(), taken(gone)
    assert len(found) == 2
    assert undisturbed - {gone} <= found <= NODES - {gone}


def test_nodes_that_came_later_make_up_for_those_that_are_gone():
    gone = taken()
    assert NODES - gone < taken(*gone, count=3)
    assert len(taken(*gone, count=3)) == 3
