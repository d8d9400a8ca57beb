"""What pods used: a sum of histograms is the histogram of all, and no percentile is below the truth."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll_service.domain.usage import Histogram, WorkloadUsage, usage_by_workload
from plimsoll_service.wire.snapshot import Usage
from tests.support.snapshots import GIB, wire_pods, wire_snapshot, wire_workload

amounts = st.lists(st.integers(0, 2**53), max_size=40)


@given(here=amounts, there=amounts)
def test_the_histogram_of_two_hours_is_their_sum(here, there):
    assert Histogram.of(here) + Histogram.of(there) == Histogram.of(here + there)


@given(seen=amounts.filter(bool), percent=st.sampled_from([50, 90, 95, 99, 100]))
def test_a_percentile_is_at_most_a_bucket_above_the_true_one(seen, percent):
    true = sorted(seen)[ceil(len(seen) * percent / 100) - 1]
    assert true <= Histogram.of(seen).percentile(percent) <= max(1, true * 1.051 + 1)


def test_without_samples_nothing_was_used():
    assert Histogram().percentile(95) == 0


def test_pods_of_a_workload_are_samples_of_the_same_and_only_ready_ones_count():
    web = wire_workload("web")
    here, there, starting, stopping = wire_pods(web, "a", "a", "a", "a")
    found = usage_by_workload(
        wire_snapshot(
            pods=(here, there, replace(starting, ready=False), replace(stopping, deleting=True)),
            usage=(
                Usage(uid=here.uid, cpu_m=100, memory=GIB),
                Usage(uid=there.uid, cpu_m=300, memory=GIB),
                Usage(uid=starting.uid, cpu_m=4000, memory=GIB),
                Usage(uid=stopping.uid, cpu_m=4000, memory=GIB),
                Usage(uid="nobody", cpu_m=4000, memory=GIB),
            ),
        )
    )
    assert found == {
        web.uid: WorkloadUsage(
            cpu_m=Histogram.of([100, 300]), memory_mib=Histogram.of([1024, 1024])
        )
    }
