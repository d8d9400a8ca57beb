"""When a workload fell below how many Ready replicas: told twice, late and in any order it is the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.reports import Report
from tests.support.builders import NOON
from tests.support.observations import noon

WEB = "Deployment shop/web"
REPORT = Report(
    interruption="i-1@x", cluster="harbor", node="spot-1", kind="spot-interruption", noticed=NOON
)
SEEN = st.tuples(st.integers(0, 12), st.integers(0, 300)).map(
    lambda each: replace(REPORT, fell={WEB: {each[0]: noon(each[1])}})
)


@given(seen=st.lists(SEEN, min_size=1, max_size=30), data=st.data())
def test_reports_of_one_interruption_tell_the_same_in_any_order_and_twice(seen, data):
    def all_of(reports: list[Report]) -> Report:
        first, *others = reports
        for each in others:
            first = first.merged(each)
        return first.merged(first)

    again = data.draw(st.permutations([*seen, *seen[:3]]))
    assert all_of(seen).fell == all_of(again).fell
    assert len(all_of(seen).fell[WEB]) <= 8


@pytest.mark.parametrize(
    ("wanted", "below"), [(6, None), (7, noon(110)), (9, noon(108)), (10, noon(40))]
)
def test_it_fell_below_a_number_when_it_first_had_any_smaller_one(
    wanted: int, below: datetime | None
):
    report = REPORT
    for ready, at in ((8, 108), (9, 40), (6, 110), (9, 200)):
        report = report.merged(replace(REPORT, fell={WEB: {ready: noon(at)}}))
    assert report.below(WEB, wanted) == below
    assert report.below("Deployment shop/other", wanted) is None
