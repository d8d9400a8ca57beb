"""When a node group that refused is asked for the same again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.capacity import grow_token
from plimsoll.domain.node_groups import InsufficientCapacity, NotGrown, not_asked_again
from plimsoll.services.reconcile_memory import ReconcileMemory
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group
from tests.support.observations import noon


def refused(seconds: float, zone: str = ZONE_A) -> InsufficientCapacity:
    """Return a refusal so many seconds after noon."""
    return InsufficientCapacity(at=noon(seconds), why="no", zone=zone, instance_type="m5.large")


@pytest.mark.parametrize(
    ("told", "again"),
    [([0], 15), ([0, 15], 45), ([0, 15, 45], 105), ([0, 15, 45, 105], 165)],
)
def test_the_pause_doubles_after_each_refusal_of_the_same_up_to_a_minute(told, again):
    refusals = [refused(at) for at in reversed(told)]
    assert not_asked_again(refusals, noon(again - 1)) == [refusals[0]]
    assert not_asked_again(refusals, noon(again)) == []


def test_another_zone_is_asked_at_once_and_refusals_of_long_ago_lengthen_no_pause():
    refusals = [refused(20, ZONE_B), refused(0), refused(-200), refused(-300)]
    assert not_asked_again(refusals, noon(14)) == [refused(20, ZONE_B), refused(0)]
    assert not_asked_again(refusals, noon(16)) == [refused(20, ZONE_B)]


def test_a_request_after_a_refusal_is_another_one_and_two_that_know_of_no_refusal_ask_the_same():
    def token(seconds: float, at: float | None) -> str:
        known = None if at is None else noon(at)
        return grow_token("harbor", a_group(), ZONE_A, 1, noon(seconds), refused=known)

    assert token(1, None) == token(20, None)
    assert len({token(20, None), token(20, 1), token(40, 21)}) == 3


def test_an_answer_that_is_repeated_counts_from_when_it_came_again():
    memory, group = ReconcileMemory(), a_group()
    for seconds in (0, 15):
        memory.not_grown(group, NotGrown("launch", refused(0)), noon(seconds))
    assert [refusal.at for refusal in memory.refusals[group.key]] == [noon(15), NOON]


def test_a_reconcile_knows_what_was_refused_in_the_one_before_and_forgets_it_after_minutes():
    before, after = ReconcileMemory(), ReconcileMemory()
    before.not_grown(a_group(), NotGrown("launch", refused(0)), NOON)
    after.keep_refusals(before.refusals, NOON + timedelta(minutes=2))
    assert after.refusals == {"asg/base": (replace(refused(0), at=NOON),)}

    later = ReconcileMemory()
    later.keep_refusals(before.refusals, NOON + timedelta(minutes=4))
    assert later.refusals == {"asg/base": ()}
