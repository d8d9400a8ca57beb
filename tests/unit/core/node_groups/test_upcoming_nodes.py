"""Nodes that were asked for are counted on as long as they can be expected."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Expectation, NodeGroup, OtherRefusal, expected_nodes
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group, a_node, a_pod


def seconds(number: int) -> timedelta:
    return timedelta(seconds=number)


def a_ready_node(instance: str, *, joined: timedelta, name: str = "node-1") -> Node:
    """Return a Node that joined so long before noon."""
    return replace(a_node(name), instance=instance, created=NOON - joined)


def a_growing_group(desired: int, **launched_before: int) -> NodeGroup:
    """Return a group whose instances were launched so many seconds before noon."""
    launched = {i.replace("_", "-"): NOON - seconds(s) for i, s in launched_before.items()}
    group = a_group(desired=desired, instances=list(launched), launchable=False)
    return replace(group, launched=launched)


def failed(group: NodeGroup, before: timedelta) -> NodeGroup:
    """Return a group whose newest failed launch was so long before noon."""
    told = OtherRefusal(at=NOON - before, why="no such capacity")
    return replace(group, refusals=(told,))


def test_a_group_whose_nodes_are_all_ready_owes_nothing():
    node = a_ready_node("i-1", joined=seconds(600))
    assert expected_nodes(a_growing_group(1, i_1=660), [node], NOON) == Expectation()


def test_a_node_that_was_launched_a_moment_ago_is_counted_on():
    assert expected_nodes(a_growing_group(2, i_1=30), [], NOON) == Expectation(upcoming=2)


@pytest.mark.parametrize(
    ("usual", "waited", "overdue"),
    [
        pytest.param(None, 170, 0, id="nothing is known of the group"),
        pytest.param(None, 190, 1, id="longer than most nodes take"),
        pytest.param(150, 290, 0, id="the nodes of the group take 150 seconds"),
        pytest.param(150, 310, 1, id="twice as long as they take"),
        pytest.param(10, 50, 0, id="a minute is always given"),
        pytest.param(10, 70, 1, id="much longer than they take"),
    ],
)
def test_a_node_is_expected_for_twice_as_long_as_others_of_its_group_took(
    usual: int | None, waited: int, overdue: int
):
    launched = {"i_2": waited} if usual is None else {"i_1": 900 + usual, "i_2": waited}
    nodes = [a_ready_node("i-1", joined=seconds(900))]
    group = a_growing_group(len(launched), **launched)
    found = expected_nodes(group, nodes, NOON)
    assert (found.upcoming, found.overdue) == (1, overdue)
    assert (found.doubt is not None) == bool(overdue)


def test_what_a_failed_launch_left_unlaunched_is_not_counted_on():
    found = expected_nodes(failed(a_growing_group(4, i_1=20), seconds(10)), [], NOON)
    assert (found.upcoming, found.overdue) == (4, 3)
    assert found.doubt == "its last launch failed: no such capacity"


def test_a_failed_launch_is_forgotten_after_three_minutes():
    group = failed(a_growing_group(4, i_1=20), seconds(181))
    assert expected_nodes(group, [], NOON) == Expectation(upcoming=4)


def test_a_node_that_stopped_being_ready_is_not_on_its_way():
    node = replace(a_ready_node("i-1", joined=timedelta(days=1)), ready=False)
    group = a_group(desired=1, instances=["i-1"])
    assert expected_nodes(group, [node], NOON).overdue == 1


def asked(group: NodeGroup, before: timedelta) -> NodeGroup:
    """Return a group that was asked so long before noon."""
    return replace(group, asked=NOON - before)


def test_a_launch_that_does_not_begin_is_not_counted_on_after_half_a_minute():
    assert expected_nodes(asked(a_growing_group(2), seconds(29)), [], NOON) == Expectation(
        upcoming=2
    )
    found = expected_nodes(asked(a_growing_group(2), seconds(30)), [], NOON)
    assert (found.upcoming, found.overdue) == (2, 2)
    assert found.doubt is not None
    assert "their launch has not begun" in found.doubt


def test_a_group_that_launches_one_instance_after_another_is_given_its_time():
    group = asked(a_growing_group(4, i_1=120, i_2=20), seconds(120))
    assert expected_nodes(group, [], NOON).overdue == 0
    assert expected_nodes(group, [], NOON + seconds(10)).overdue == 2


def test_nothing_is_expected_of_a_group_that_may_not_launch_but_what_starts():
    group = replace(a_growing_group(5, i_1=20), launches=False)
    assert expected_nodes(group, [], NOON) == Expectation(upcoming=1)
    assert expected_nodes(replace(group, instances=frozenset()), [], NOON) == Expectation()


def recommended(node: Node, before: timedelta) -> Node:
    """Return a Node that AWS advised to replace so long before noon."""
    told = NoticeRecord(kind="rebalance-recommendation", time=NOON - before, id="1")
    instance = node.instance or ""
    found = Interruption(instance=instance, launched=None, node=node.name, notices=(told,))
    return replace(node, interruption=found)


@pytest.mark.parametrize(
    ("rebalances", "before", "started", "upcoming"),
    [
        pytest.param(False, 5, (), 0, id="the group waits until the instance is gone"),
        pytest.param(True, 5, (), 1, id="the group is about to replace it"),
        pytest.param(True, 5, ("i-2",), 1, id="and has begun to"),
        pytest.param(True, 50, ("i-2",), 1, id="which takes its time"),
        pytest.param(True, 50, (), 0, id="it did not"),
    ],
)
def test_what_a_group_launches_on_a_recommendation_is_not_asked_for_again(
    before: int, started: tuple[str, ...], upcoming: int, *, rebalances: bool
):
    group = a_group(desired=1, instances=["i-1", *started], launchable=False)
    group = replace(group, rebalances=rebalances)
    node = recommended(a_ready_node("i-1", joined=timedelta(hours=1)), seconds(before))
    assert expected_nodes(group, [node], NOON) == Expectation(upcoming=upcoming)


def test_what_a_group_launches_to_balance_its_zones_counts_beyond_its_size():
    node = a_ready_node("i-1", joined=timedelta(hours=1))
    assert expected_nodes(a_growing_group(1, i_1=3660, i_2=20), [node], NOON) == Expectation(
        upcoming=1
    )


def grown(*groups: NodeGroup) -> dict[str, int]:
    """Return what is asked for one pod that fits nowhere."""
    expected = {g.key: expected_nodes(g, [], NOON) for g in groups}
    plan = plan_growth(
        ClusterSnapshot([], []),
        [a_pod()],
        groups,
        upcoming={(key, None): e.upcoming for key, e in expected.items() if e.upcoming},
        doubts={key: e for key, e in expected.items() if e.doubt},
        now=NOON,
    )
    assert not plan.unplaceable
    return {growth.group.name: growth.add for growth in plan.growths}


def test_another_group_is_asked_for_what_does_not_come():
    starved = failed(a_growing_group(1), seconds(5))
    assert grown(starved, a_group("spare", zones=[ZONE_A])) == {"spare": 1}


def test_a_group_that_already_tries_is_not_asked_twice_where_no_other_will_do():
    assert grown(failed(a_growing_group(1), seconds(5))) == {}


def test_another_group_is_asked_where_no_launch_begins():
    idle = asked(a_growing_group(1), seconds(40))
    assert grown(idle, a_group("spare", zones=[ZONE_A])) == {"spare": 1}


def test_a_node_on_its_way_is_expected_in_the_zone_that_its_group_tells():
    group = replace(a_growing_group(2, i_1=20), zone_of={"i-1": ZONE_B, "i-gone": ZONE_A})
    assert expected_nodes(group, [], NOON).zones == {ZONE_B: 1}
    assert expected_nodes(group, [a_ready_node("i-1", joined=timedelta(hours=1))], NOON).zones == {}


def test_what_only_has_to_be_started_is_asked_first():
    cold, warm = a_group("base", zones=[ZONE_A]), a_group("pool", zones=[ZONE_A])
    assert grown(cold, replace(warm, warm=1)) == {"pool": 1}
    assert grown(cold, warm) == {"base": 1}


def test_a_group_that_failed_is_asked_for_more_as_the_last_resort():
    assert grown(failed(a_growing_group(0), seconds(5))) == {"base": 1}
