"""Reasons of reports: folded by workload and cause, bounded in bytes, and shown on one screen."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.reports.reasons import (
    CUT,
    MAX_BYTES,
    WAIT,
    Reason,
    merge_reasons,
    summary,
)
from tests.support.builders import NOON


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def evict(
    pod: str,
    seconds: int,
    *,
    about: str = "Deployment default/web",
    why: str = "its eviction deadline has come",
    urgent: bool = True,
) -> Reason:
    when = at(seconds)
    return Reason(
        verb="evict", about=about, pods=(pod,), why=why, first=when, last=when, urgent=urgent
    )


def wait(about: str, why: str, seconds: int) -> Reason:
    return Reason(verb=WAIT, about=about, why=why, first=at(seconds), last=at(seconds))


def test_pods_of_one_workload_and_cause_are_one_reason_with_their_times():
    (one,) = merge_reasons([evict("default/web-1", 0)], [evict("default/web-2", 40)])
    assert one.pods == ("default/web-1", "default/web-2")
    assert one.timed == (
        "12:00:00 to 12:00:40 evict 2 pods of Deployment default/web: its eviction deadline has come"
    )


def test_what_differs_in_its_figures_alone_is_one_reason_with_the_latest_words():
    later = wait("Deployment default/web", "2 of 4 are Ready elsewhere", 5)
    earlier = wait("Deployment default/web", "0 of 4 are Ready elsewhere", 1)
    for told in ([earlier, later], [later, earlier]):
        (one,) = merge_reasons(told)
        assert one.why == "2 of 4 are Ready elsewhere"
        assert (one.first, one.last) == (at(1), at(5))


def test_another_workload_or_another_cause_is_another_reason():
    told = [
        evict("default/web-1", 0),
        evict("default/web-2", 0, why="2 of 4 others are available", urgent=False),
        evict("default/api-1", 0, about="Deployment default/api"),
    ]
    assert merge_reasons(told) == tuple(told)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 9)), max_size=12))
def test_reasons_that_are_merged_twice_or_in_parts_are_the_same(drawn):
    told = [evict(f"default/{a}-{pod}", s, about=f"Deployment {a}") for pod, a, s in drawn]
    whole = merge_reasons(told)
    assert merge_reasons(whole, told) == whole
    assert merge_reasons(merge_reasons(told[:5]), merge_reasons(told[5:])) == whole


def test_a_report_that_is_full_keeps_the_urgent_and_the_last_reasons_and_says_so():
    words = "x" * 500
    urgent = evict("default/first", 0, about="Deployment default/first")
    many = [wait(f"Deployment default/app-{n}", words, n) for n in range(1000)]
    kept = merge_reasons([urgent], many)

    assert sum(len(one.why) for one in kept) < MAX_BYTES
    assert kept[0].why == CUT
    assert urgent in kept
    assert many[-1] in kept
    assert many[0] not in kept
    assert merge_reasons(kept, many) == merge_reasons(kept, kept)


def test_a_screen_joins_workloads_of_one_cause_before_it_joins_urgent_ones():
    late = [evict(f"default/late-{n}", 90, about=f"Deployment default/late-{n}") for n in range(9)]
    waits = [
        wait(f"Deployment default/app-{n}", f"{n} of 40 are Ready elsewhere", n) for n in range(40)
    ]
    lines = summary(merge_reasons(waits, late), 12)

    assert len(lines) == 10
    assert [line for line in lines if "late-" in line] == lines[:9]
    assert lines[9].startswith("12:00:00 to 12:00:39 wait: Deployment default/app-0, ")
    assert "and 37 more" in lines[9]


def test_a_screen_counts_the_pods_of_urgent_reasons_that_share_a_line():
    late = [evict(f"default/p-{n}", n, about=f"Deployment default/app-{n}") for n in range(60)]
    (line,) = summary(late, 3)
    assert line.startswith("12:00:00 to 12:00:59 evict 60 pods of 60 workloads (")


def test_a_screen_that_cannot_hold_all_causes_keeps_the_urgent_and_the_last_and_counts_the_rest():
    other = [wait("", "cause " + chr(97 + n), n) for n in range(20)]
    lines = summary([*other, evict("default/web-1", 50)], 5)
    assert lines[0].startswith("12:00:50 evict Pod default/web-1")
    assert lines[1:4] == [one.timed for one in other[-3:]]
    assert lines[4] == "17 more reasons are not shown"
    assert len(lines) == 5


def test_words_alone_are_kept_as_they_are():
    told = [Reason(why="12:00 label Node od-0: spot"), Reason(why="12:05 label Node od-1: spot")]
    assert merge_reasons(told, told) == tuple(told)
    assert summary(told, 40) == [one.why for one in told]
