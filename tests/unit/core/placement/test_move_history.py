"""Marks of voluntary moves: what a workload is left alone for, and what not."""

from __future__ import annotations

from plimsoll.domain.kubernetes import MOVED
from plimsoll.domain.placement.move_history import Mark, next_mark
from tests.support.builders import a_pod
from tests.support.observations import noon


def test_a_pod_that_stands_where_it_was_moved_from_lets_its_workload_be_left_alone():
    vain = a_pod(node="od", annotations={MOVED: str(Mark(1, noon(0), "on-demand"))})

    assert next_mark("on-demand", [vain], noon(299)) is None
    assert next_mark("on-demand", [vain], noon(300)) == Mark(2, noon(300), "on-demand")


def test_a_pod_that_stands_where_it_was_moved_to_does_not():
    done = a_pod(node="spot", annotations={MOVED: str(Mark(1, noon(0), "on-demand"))})

    assert next_mark("spot-1", [done], noon(1)) == Mark(1, noon(1), "spot-1")
