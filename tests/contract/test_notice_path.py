"""A notice reaches the API server on a short way: few frames on the stack, and each decision once."""

from __future__ import annotations

from typing import Final

from tests.support.notice_trace import traced

MOST_FRAMES: Final = 12


def test_few_frames_of_ours_are_on_the_stack_when_the_patch_is_sent():
    trace = traced()
    assert trace.at_patch[0] == "handler"
    assert len(trace.at_patch) <= MOST_FRAMES, trace.at_patch


def test_a_notice_is_parsed_and_decided_once():
    names = {code.co_qualname: count for code, count in traced().calls.items()}
    assert names["NoticeService._read"] == names["actionable"] == names["merge"] == 1
