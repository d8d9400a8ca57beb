"""What pods used: a sum of histograms is the histogram of all, and no percentile is below the truth."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from math import ceil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll_service.domain.snapshots.usage import (
    MOST_NAMES,
    MOST_OF_HOUR,
    WORKLOAD_WEIGHT,
    ContainerUsage,
    Histogram,
    Packed,
    UsageSum,
    WorkloadUsage,
    unpacked,
    usage_by_workload,
)
from plimsoll_service.wire.snapshot import Container, Restarted, Usage
from plimsoll_service.wire.snapshot import ContainerUsage as ContainerTold
from tests.support.snapshots import GIB, NOW, wire_pods, wire_snapshot, wire_workload
from tests.support.snapshots import amounts as wire_amounts

HOUR = timedelta(hours=1)

amounts = st.lists(st.integers(0, 2**53), max_size=40)


@given(here=amounts, there=amounts)
def test_the_histogram_of_two_hours_is_their_sum(here, there):
    parts = [WorkloadUsage(cpu_m=Histogram.of(amounts)) for amounts in (here, there)]
    assert summed(*parts).cpu_m == Histogram.of(here + there)


@given(seen=amounts.filter(bool), percent=st.sampled_from([50, 90, 95, 99, 100]))
def test_a_percentile_is_at_most_a_bucket_above_the_true_one(seen, percent):
    true = sorted(seen)[ceil(len(seen) * percent / 100) - 1]
    assert true <= Histogram.of(seen).percentile(percent) <= max(1, true * 1.051 + 1)


def summed(*parts: WorkloadUsage) -> WorkloadUsage:
    found = UsageSum(MOST_OF_HOUR)
    for part in parts:
        found.add({"uid": part})
    return unpacked(found.usage)["uid"]


def one(*cpu_m: int) -> WorkloadUsage:
    return WorkloadUsage(cpu_m=Histogram.of(cpu_m))


def test_of_too_many_workloads_the_first_ones_are_kept_whole_and_the_others_counted():
    two = 2 * (WORKLOAD_WEIGHT + 1)
    found = UsageSum(two)
    for _ in range(3):
        found.add({"large": one(100), "middling": one(10), "small": one(1)}, left_out=4)
    assert found.usage.keys() == {"large", "middling"}
    assert {its.cpu_m.samples for its in unpacked(found.usage).values()} == {3}
    assert found.left_out == 5


def test_a_minute_keeps_the_usage_of_the_workloads_that_ask_for_most():
    small, large = (
        wire_workload(name, replicas=1, requests=wire_amounts(cpu, GIB))
        for name, cpu in (("a", 10), ("z", 1000))
    )
    pods = (*wire_pods(small, "n"), *wire_pods(large, "n"))
    used = tuple(Usage(uid=pod.uid, cpu_m=1, memory=1) for pod in pods)
    seen = wire_snapshot(workloads=(small, large), pods=pods, usage=used)
    found = usage_by_workload(seen, most=WORKLOAD_WEIGHT + 2)
    assert (list(found.usage), found.left_out) == ([large.uid], 1)


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
    assert unpacked(found.usage) == {
        web.uid: WorkloadUsage(
            cpu_m=Histogram.of([100, 300]), memory_mib=Histogram.of([1024, 1024])
        )
    }


TWO = wire_workload("web", template=(Container(name="main"), Container(name="tail")))


def containers_of(*restarted: Restarted, **states: bool) -> Mapping[str, ContainerUsage]:
    """Return what is known of the containers of a workload by one of its pods."""
    (pod,) = wire_pods(TWO, "a", restarted=restarted, **states)
    containers = [("main", 100, GIB), ("tail", 10, GIB // 4), ("injected", 900, GIB)]
    told = tuple(ContainerTold(name=n, cpu_m=cpu, memory=memory) for n, cpu, memory in containers)
    used = (Usage(uid=pod.uid, cpu_m=1010, memory=2 * GIB, containers=told),)
    seen = wire_snapshot(workloads=(TWO,), pods=(pod,), usage=used)
    return unpacked(usage_by_workload(seen).usage)[TWO.uid].containers


def test_containers_of_the_template_are_samples_of_their_own_and_what_is_injected_is_not():
    assert containers_of() == {
        "main": ContainerUsage(cpu_m=Histogram.of([100]), memory_mib=Histogram.of([1024])),
        "tail": ContainerUsage(cpu_m=Histogram.of([10]), memory_mib=Histogram.of([256])),
    }


@pytest.mark.parametrize(
    ("reason", "at", "killed"),
    [
        ("OOMKilled", NOW - HOUR, NOW - HOUR),
        ("OOMKilled", NOW + HOUR, NOW),
        ("OOMKilled", None, NOW),
        ("", None, NOW),
        ("ContainerStatusUnknown", None, NOW),
        ("Error", NOW - HOUR, None),
    ],
)
def test_when_a_container_was_oom_killed_is_known_of_pods_that_are_not_ready_too(
    reason, at, killed
):
    ended = Restarted(name="main", restarts=1, reason=reason, at=at)
    assert containers_of(ended)["main"].killed == killed
    found = containers_of(ended, ready=False) if killed else {}
    assert {name: (its.cpu_m.samples, its.killed) for name, its in found.items()} == (
        {"main": (0, killed)} if killed else {}
    )


def test_the_last_oom_kill_of_all_hours_is_kept():
    hours = [
        WorkloadUsage(containers={"main": ContainerUsage(killed=killed)})
        for killed in (None, NOW, NOW - HOUR, None)
    ]
    assert summed(*hours).containers["main"].killed == NOW


def test_an_owner_who_renames_containers_all_the_time_fills_no_memory_but_hides_no_oom_kill():
    parts = [WorkloadUsage(containers={"main": ContainerUsage(killed=NOW)})]
    for number in range(500):
        names = {f"{number}-{n}": ContainerUsage(cpu_m=Histogram.of([1])) for n in range(20)}
        parts.append(WorkloadUsage(containers=names))
    whole = summed(*parts)
    assert len(whole.containers) == MOST_NAMES
    assert whole.containers["main"].killed == NOW


def test_containers_in_another_order_or_of_another_template_are_told_apart():
    def of(**cpu_m: int) -> WorkloadUsage:
        containers = {n: ContainerUsage(cpu_m=Histogram.of([c])) for n, c in cpu_m.items()}
        return WorkloadUsage(cpu_m=Histogram.of([sum(cpu_m.values())]), containers=containers)

    whole = summed(of(main=100, tail=10), of(tail=10, main=100), of(other=1))
    assert whole == WorkloadUsage(
        cpu_m=Histogram.of([110, 110, 1]),
        containers={
            "main": ContainerUsage(cpu_m=Histogram.of([100, 100])),
            "tail": ContainerUsage(cpu_m=Histogram.of([10, 10])),
            "other": ContainerUsage(cpu_m=Histogram.of([1])),
        },
    )


def test_a_minute_keeps_the_usage_of_thousands_of_workloads():
    template = (Container(name="main"), Container(name="tail"))
    workloads = tuple(wire_workload(f"w{n}", template=template) for n in range(1600))
    pods = tuple(pod for each in workloads for pod in wire_pods(each, "a"))
    told = tuple(ContainerTold(name=c.name, cpu_m=1, memory=GIB) for c in template)
    used = tuple(Usage(uid=pod.uid, cpu_m=2, memory=GIB, containers=told) for pod in pods)
    found = usage_by_workload(wire_snapshot(workloads=workloads, pods=pods, usage=used))
    assert (len(found.usage), found.left_out) == (1600, 0)


def test_usage_in_a_document_of_an_older_version_is_read_and_added_to():
    old = b'{"uid":{"cpu_m":{"counts":{"3":1}},"memory_mib":{"counts":{}}},"new":[["main"],[3,1]]}'
    found = UsageSum(MOST_OF_HOUR)
    for _ in range(2):
        found.add(msgspec.json.decode(old, type=dict[str, Packed | WorkloadUsage]))
    again = msgspec.json.decode(msgspec.json.encode(found.usage), type=dict[str, Packed])
    assert {uid: its.cpu_m.counts for uid, its in unpacked(again).items()} == {
        "uid": {3: 2},
        "new": {3: 2},
    }
