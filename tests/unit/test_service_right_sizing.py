"""Requests out of what was used, and never less than was seen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_service.domain.right_sizing import Resize, resizes
from plimsoll_service.domain.usage import MIB, Histogram, WorkloadUsage
from plimsoll_service.domain.view import View
from plimsoll_service.wire.snapshot import Amounts, Autoscaler
from tests.support.snapshots import GIB, amounts, wire_snapshot, wire_workload


def used(cpu_m: list[int], mebibytes: list[int]) -> WorkloadUsage:
    return WorkloadUsage(cpu_m=Histogram.of(cpu_m), memory_mib=Histogram.of(mebibytes))


LITTLE = used([50] * 950 + [90] * 50, [200] * 1000)


def resized(usage: WorkloadUsage = LITTLE, **changes: Any) -> Resize | str:
    """Return the other requests of a workload, or why they stay."""
    scaled = changes.pop("scaled", False)
    earlier = changes.pop("earlier", {"uid-web"})
    web = wire_workload("web", **changes)
    scalers = (Autoscaler(uid="h", namespace="shop", name="web", workload=web.uid, max_replicas=9),)
    seen = wire_snapshot(workloads=(web,), pods=(), autoscalers=scalers if scaled else ())
    (found,) = resizes(View(seen=seen), {web.uid: usage}, dict.fromkeys(earlier, usage))
    return found if isinstance(found, Resize) else found[1]


def test_processors_follow_a_percentile_and_memory_the_most_that_was_seen():
    found = resized()
    assert isinstance(found, Resize)
    assert 50 * 1.15 <= found.then.cpu_m <= 70
    assert 200 * 1.2 * MIB <= found.then.memory <= 272 * MIB
    assert "1000 samples of 7 days" in found.reason
    assert "15% headroom" in found.reason


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scaled": True}, "an autoscaler"),
        ({"annotations": {"plimsoll.dev/ignore": "true"}}, "opted out"),
        ({"limits": amounts(500, GIB)}, "Guaranteed"),
        ({"usage": used([50] * 999, [200] * 999)}, "999 samples do not show its peak"),
        ({"usage": WorkloadUsage()}, "0 samples"),
        ({"earlier": set()}, "do not show its peak"),
        ({"requests": amounts(60, 250 * MIB)}, "they are right"),
    ],
    ids=["scaled", "ignored", "guaranteed", "few", "none", "young", "right"],
)
def test_requests_stay_where_nothing_shows_that_others_are_better(changes, why):
    found = resized(**changes)
    assert isinstance(found, str)
    assert why in found


def test_a_pod_that_asks_for_too_little_is_told_to_ask_for_more():
    found = resized(requests=amounts(10, 64 * MIB))
    assert isinstance(found, Resize)
    assert found.then.cpu_m > 10
    assert found.then.memory > 64 * MIB


def test_no_request_is_advised_above_its_limit():
    found = resized(used([800] * 1000, [900] * 1000), limits=amounts(700, GIB // 2))
    assert isinstance(found, Resize)
    assert found.then == Amounts(cpu_m=700, memory=GIB // 2)


@given(cpu=st.integers(0, 10_000), mebibytes=st.integers(0, 100_000), now=st.integers(1, 10_000))
def test_memory_is_never_below_what_was_seen(cpu, mebibytes, now):
    found = resized(used([cpu] * 1000, [mebibytes] * 1000), requests=amounts(now, now * MIB))
    if isinstance(found, Resize):
        assert found.then.memory >= min(mebibytes, now) * MIB
        if found.then.memory != now * MIB:
            assert found.then.memory >= mebibytes * 1.2 * MIB
        assert found.then.cpu_m >= min(cpu, now)
