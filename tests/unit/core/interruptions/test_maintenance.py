"""Changes that AWS announced far ahead, and the window in which an owner wants them prepared."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import Cordon, Evict, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import MaintenanceWindow, Policy, marked
from plimsoll.domain.interruptions.maintenance import DAYS
from plimsoll.domain.interruptions.model import join
from plimsoll.domain.kubernetes import Node
from tests.support.builders import NOON, a_node, a_stateful_set, pods_of
from tests.support.observations import actions, interrupted, looked, noon, sets_of

HEALTH = "health-scheduled-change"
DAY = 24 * 3600
FRIDAY = "fri 22:00-04:00"
"""NOON is on a Friday: it opens ten hours later."""
OPENS = 10 * 3600


def scheduled(seconds: float, *, cordoned: bool = False) -> Node:
    """Return a node that AWS takes so many seconds after noon, as was announced at noon."""
    node = interrupted("spot", kind=HEALTH, ends=seconds + 2)
    if cordoned or node.interruption is None:
        return node
    return replace(
        node, interruption=replace(node.interruption, cordoned=None), unschedulable=False
    )


def plan(node: Node, seconds: float, window: str | None = None, pods=(), workloads=()):
    policy = Policy(window=None if window is None else MaintenanceWindow.parse(window))
    seen = looked([node, a_node("od")], list(pods), list(workloads))
    return plan_drain(replace(seen, policy=policy), noon(seconds))


@pytest.mark.parametrize(
    ("change", "window", "now", "turn"),
    [
        pytest.param(14 * DAY, None, 0, False, id="two weeks ahead"),
        pytest.param(14 * DAY, None, 13 * DAY - 1, False, id="more than a day ahead"),
        pytest.param(14 * DAY, None, 13 * DAY, True, id="a day ahead"),
        pytest.param(14 * DAY, FRIDAY, OPENS - 1, False, id="before the window"),
        pytest.param(14 * DAY, FRIDAY, OPENS, True, id="in the window"),
        pytest.param(14 * DAY, FRIDAY, OPENS + 6 * 3600 - 1, True, id="at its end"),
        pytest.param(14 * DAY, FRIDAY, OPENS + 6 * 3600, False, id="after it"),
        pytest.param(OPENS + 700, FRIDAY, 0, False, id="a window opens before the change"),
        pytest.param(OPENS + 600, FRIDAY, 5, True, id="it opens too late"),
        pytest.param(7 * DAY + 100, FRIDAY, DAY, False, id="no window opens, and it is far"),
        pytest.param(599, FRIDAY, 0, True, id="ten minutes ahead"),
    ],
)
def test_a_scheduled_change_waits_for_the_window_or_for_its_last_day(change, window, now, turn):
    found = plan(scheduled(change), now, window)

    assert bool(actions(found, Cordon)) is turn
    assert ("spot" in found.waiting) is not turn


def test_other_advice_does_not_wait_for_a_window():
    advised = interrupted("spot", kind="rebalance-recommendation", ends=None).interruption
    node = scheduled(14 * DAY)
    assert advised is not None
    assert node.interruption is not None
    both = replace(node, interruption=replace(join(node.interruption, advised), cordoned=None))

    assert actions(plan(both, 5, FRIDAY), Cordon)


@pytest.mark.parametrize(
    ("now", "moves"), [(OPENS - 1, False), (OPENS, True), (OPENS + 6 * 3600, False)]
)
def test_what_cannot_be_released_moves_while_the_window_is_open(now, moves):
    node = scheduled(14 * DAY, cordoned=True)
    found = plan(node, now, FRIDAY, sets_of("db", ["spot"]), [a_stateful_set(replicas=1)])

    evicted = actions(found, Evict)
    assert [(e.pod.name, e.overrule) for e in evicted] == [("db-0", False)][: int(moves)]


def test_a_node_that_waits_for_its_window_serves_on():
    found = plan(scheduled(14 * DAY), 0, FRIDAY, pods_of("web", 1, node="spot"))

    assert actions(found, Release) == []
    assert found.steps == ()
    assert not found.busy


def test_a_change_that_was_called_off_moves_nothing_in_the_window():
    node = scheduled(14 * DAY, cordoned=True)
    assert node.interruption is not None
    (notice,) = node.interruption.notices
    off = replace(notice, about="arn", state="closed", ends=None)
    node = replace(node, interruption=marked(replace(node.interruption, notices=(off,))))

    found = plan(node, OPENS, FRIDAY, sets_of("db", ["spot"]), [a_stateful_set(replicas=1)])
    assert actions(found, Evict) == []


@pytest.mark.parametrize(
    "text",
    ["", "sat", "sat 22:00", "sat 24:00-25:00", "day 22:00-23:00", "sat,, 22:00-23:00", "x" * 9999],
)
def test_a_window_that_means_nothing_is_refused_with_an_example(text):
    with pytest.raises(BadInput, match=r"sat,sun 22:00-04:00"):
        MaintenanceWindow.parse(text)


windows = st.builds(
    MaintenanceWindow,
    days=st.sets(st.sampled_from(range(len(DAYS))), min_size=1).map(lambda d: tuple(sorted(d))),
    opens=st.integers(0, 24 * 60 - 1),
    minutes=st.integers(1, 24 * 60),
)


@given(windows, st.integers(0, 366 * DAY).map(noon))
def test_a_window_is_open_from_its_opening_for_its_minutes(window, now):
    start = window.next_start(now)

    assert start.weekday() in window.days
    assert (start.hour * 60 + start.minute) == window.opens
    assert now - timedelta(minutes=window.minutes) < start <= now + timedelta(days=7)
    assert window.is_open(now) == (start <= now)
    assert not window.is_open(start - timedelta(seconds=1)) or window.minutes == 24 * 60


@given(windows)
def test_a_window_is_read_as_it_was_written(window):
    assert MaintenanceWindow.parse(str(window)) == window


def test_noon_is_on_a_friday():
    assert NOON.weekday() == DAYS.index("fri")
