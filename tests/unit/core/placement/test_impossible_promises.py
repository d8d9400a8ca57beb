"""Promises that no layout with spot keeps: what is too long, and what would mend it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement import LossWindow, PromisedWorkload
from plimsoll.domain.placement.impossible_promises import why_not_possible
from plimsoll.domain.placement.load_line import lines, load_line
from tests.support.builders import a_deployment
from tests.unit.core.placement.test_layout_choice import CALM, ROUGH, promised

WEB = a_deployment("web", replicas=10)


def with_window(
    text: str, window: StartWindow, rates: tuple[float, ...] = ROUGH
) -> PromisedWorkload:
    found = promised(rates, text)
    layouts = tuple(lines(found.replicas, found.wanted, found.spot, LossWindow.of(window)))
    line = load_line(layouts, 0, found.promise.broken)
    return replace(found, window=window, layouts=layouts, line=line)


def said(found: PromisedWorkload) -> str:
    event = why_not_possible(WEB, found)
    assert event is not None
    assert event.reason == "PromiseNotPossible"
    return event.message


def test_a_promise_that_spot_keeps_is_possible():
    assert why_not_possible(WEB, promised(ROUGH, "80%")) is None


def test_where_all_are_to_stand_on_on_demand_or_there_is_no_spot_nothing_is_told():
    assert why_not_possible(WEB, replace(promised(ROUGH, "100%"), hard=10)) is None
    assert why_not_possible(WEB, promised((), "100%")) is None


def test_more_than_all_replicas_are_no_promise_and_change_nothing():
    assert "11 replicas are promised, and it has 10" in said(promised(ROUGH, "11"))


@pytest.mark.parametrize(
    ("seconds", "text", "told"),
    [
        ((60, 90, 10), "90%, 99.8%", "the start of a node (90 s): keep places for its pods free"),
        ((40, 0, 110), "90%", "the stop of its pods (110 s): let its pods stop within 10 s"),
        ((170, 0, 10), "9", "the start of its pods (170 s): run 12 replicas, and promise"),
        ((300, 0, 10), "9, 99.99%", "pods (300 s): shorten the start of its pods from 300 s to"),
        ((300, 90, 60), "10, 100%", "the start of its pods (300 s): promise fewer replicas"),
    ],
)
def test_the_first_cure_that_is_enough_by_itself_is_named(seconds, text, told):
    start, node, stop = seconds
    window = StartWindow(start_seconds=start, node_seconds=node, stop_seconds=stop)
    assert told in said(with_window(text, window))


def test_the_start_that_is_named_is_enough_and_one_second_more_is_not():
    window = StartWindow(start_seconds=300, node_seconds=0, stop_seconds=10)
    told = said(with_window("9, 99.99%", window))
    start = int(told.rpartition(" to ")[2].removesuffix(" s"))
    for seconds, possible in ((start, True), (start + 1, False)):
        found = with_window("9, 99.99%", replace(window, start_seconds=seconds))
        assert (why_not_possible(WEB, found) is None) is possible


def test_a_calmer_market_makes_it_possible_again():
    window = StartWindow(start_seconds=170, node_seconds=0, stop_seconds=10)
    assert why_not_possible(WEB, with_window("9", window)) is not None
    assert why_not_possible(WEB, with_window("9", window, CALM)) is None
