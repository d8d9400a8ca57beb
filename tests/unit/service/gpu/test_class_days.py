"""What is kept of GPUs: minutes of a snapshot, and days of classes that minutes make."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_service.domain.gpu import ClassDaySum, GpuMinute, gpu_minute_of, merged
from plimsoll_service.domain.gpu.minutes import MOST_CLASSES, ClassMinute, PodMinute
from plimsoll_service.wire.gpu import (
    MOST_PODS,
    SAMPLED,
    UNSEEN,
    ClassDay,
    GpuClass,
    GpuSample,
)
from plimsoll_service.wire.snapshot import Owner, Pod, Snapshot
from tests.support.snapshots import NOW, wire_node, wire_snapshot

H100 = "H100-80GB-HBM3"
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
OF = GpuClass(namespace="ml", kind="Deployment", owner="chat", template="abc", model=H100)


def a_node(name: str = "a", **labels: str) -> Any:
    said = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    return wire_node(name, labels=said | {f"nvidia.com/{k}": v for k, v in labels.items()})


def a_pod(uid: str, *, node: str = "a", owner: str = "chat", **changes: Any) -> Pod:
    facts: dict[str, Any] = {
        "uid": uid,
        "namespace": "ml",
        "name": uid,
        "owner": Owner(kind="Deployment", name=owner, uid=f"uid-{owner}"),
        "node": node,
        "gpus": {"nvidia.com/gpu": 1},
        "template": "abc",
        "created_at": NOW,
    }
    return Pod(**facts | changes)


def a_sample(pod: str, gpu: str = "GPU-0", **changes: Any) -> GpuSample:
    facts: dict[str, Any] = {
        "node": "a",
        "gpu": gpu,
        "model": H100,
        "pod": pod,
        "duty": 500,
        "memory_used_mib": 10_000,
        "dram_active": 100,
        "power_w": 300,
    }
    return GpuSample(**facts | changes)


def minute_of(*pods: Pod, samples: tuple[GpuSample, ...] = (), **changes: Any) -> GpuMinute:
    facts: dict[str, Any] = {"nodes": (a_node(),), "pods": pods, "gpus": samples}
    found = gpu_minute_of(wire_snapshot(**facts | changes))
    assert found is not None
    return found


def only(minute: GpuMinute) -> ClassMinute:
    (found,) = minute.classes
    return found


def days_of(*minutes: tuple[datetime, GpuMinute]) -> tuple[ClassDay, ...]:
    found = ClassDaySum()
    for at, minute in minutes:
        found.add(at, minute)
    return found.days


def test_a_cluster_without_gpus_keeps_nothing_of_them():
    assert gpu_minute_of(wire_snapshot()) is None


def test_a_pod_is_its_fullest_and_busiest_gpu_and_a_class_the_sum_of_its_pods():
    pods = (a_pod("p1", gpus={"nvidia.com/gpu": 2}), a_pod("p2"))
    samples = (
        a_sample("p1", "GPU-0", memory_used_mib=20_000, duty=0),
        a_sample("p1", "GPU-1", memory_used_mib=5_000, duty=700),
        a_sample("p2", "GPU-2"),
    )
    found = only(minute_of(*pods, samples=samples))
    assert found.of == OF
    assert (found.resource, found.sharing) == ("nvidia.com/gpu", "none")
    one, other = found.pods
    assert (one.memory_mib, one.duty, one.gpus, one.node_gpus, one.busy) == (
        20_000,
        700,
        2,
        3,
        True,
    )
    assert (other.memory_mib, other.duty, other.dram, other.power_w) == (10_000, 500, 100, 300)
    assert (found.joint_memory_mib, found.joint_duty) == (30_000, 1200)
    assert found.missing == (
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_PROF_SM_ACTIVE",
    )


def test_a_pod_of_which_no_exporter_tells_counts_and_is_never_called_idle():
    found = only(minute_of(a_pod("p1", gpus={"nvidia.com/gpu": 8})))
    (pod,) = found.pods
    assert (pod.gpus, pod.node_gpus, pod.busy, pod.memory_mib, pod.duty) == (8, 8, True, -1, -1)
    assert (found.joint_memory_mib, found.joint_duty) == (UNSEEN, UNSEEN)
    assert found.missing == tuple(sorted(SAMPLED.values()))


def test_a_pod_is_idle_only_if_each_of_its_gpus_is_known_to_be():
    def busy(*samples: GpuSample, **labels: str) -> bool:
        pod = a_pod("p1", gpus={"nvidia.com/gpu": 2})
        minute = minute_of(pod, samples=samples, nodes=(a_node(**labels),))
        return only(minute).pods[0].busy

    idle = a_sample("p1", duty=0), a_sample("p1", "GPU-1", duty=0)
    assert not busy(*idle)
    assert busy(idle[0])
    assert busy(idle[0], a_sample("p1", "GPU-1", duty=None))
    assert not busy(idle[0], **{"gpu.sharing-strategy": "time-slicing"})


def test_pods_of_slices_and_of_shared_gpus_are_told_as_such():
    sliced = a_pod("p1", gpus={"nvidia.com/mig-1g.10gb": 1})
    samples = (a_sample("p1", instance="1g.10gb", instance_id="7"),)
    assert only(minute_of(sliced, samples=samples)).resource == "nvidia.com/mig-1g.10gb"
    claimed = a_pod("p1", gpus={})
    assert only(minute_of(claimed, samples=samples)).resource == "nvidia.com/mig-1g.10gb"
    shared = a_node(
        **{"gpu.sharing-strategy": "mps", "gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"}
    )
    found = only(minute_of(a_pod("p1"), nodes=(shared,)))
    assert (found.sharing, found.of.model) == ("mps", H100)


def test_of_too_many_pods_and_classes_the_rest_is_in_the_sums_and_counted():
    pods = [a_pod(f"p{n:03}") for n in range(MOST_PODS + 6)]
    samples = tuple(a_sample(pod.uid, f"GPU-{pod.uid}", memory_used_mib=1) for pod in pods)
    found = only(minute_of(*pods, samples=samples))
    assert [pod.pod for pod in found.pods] == [pod.uid for pod in pods[:MOST_PODS]]
    assert (found.left_out, found.joint_memory_mib) == (6, MOST_PODS + 6)
    many = [a_pod(f"p{n:03}", owner=f"o{n:03}") for n in range(MOST_CLASSES + 3)]
    minute = minute_of(*many, gpus_left_out=4)
    assert (len(minute.classes), minute.left_out) == (MOST_CLASSES, 7)


def test_amounts_that_nobody_can_have_stay_within_a_document():
    huge = [a_pod(f"p{n}", gpus={"nvidia.com/gpu": 2**53, "nvidia.com/x": 2**53}) for n in range(3)]
    samples = tuple(a_sample(pod.uid, pod.uid, memory_used_mib=2**53) for pod in huge)
    claimed = a_pod("p9", gpus={}, owner="other")
    samples += (a_sample("p9", instance="x" * 256),)
    label = {"gpu.count": "9" * 200}
    minute = minute_of(*huge, claimed, samples=samples, nodes=(a_node(**label),))
    days = days_of((MIDNIGHT, minute))
    assert len(days) == 2
    for day in days:
        assert msgspec.json.decode(msgspec.json.encode(day), type=ClassDay) == day


def test_a_day_has_the_maximum_of_each_window_and_a_bit_for_each_minute():
    at = MIDNIGHT + timedelta(hours=1, minutes=14)
    low = minute_of(a_pod("p1"), samples=(a_sample("p1", duty=0, memory_used_mib=7),))
    high = minute_of(a_pod("p1"), samples=(a_sample("p1", duty=9, memory_used_mib=5),))
    (day,) = days_of((at, low), (at + timedelta(minutes=1), high))
    (pod,) = day.pods
    assert day.day == date(2026, 11, 22)
    assert int(pod.seen, 16) == 0b11 << 74
    assert int(pod.busy, 16) == 1 << 75
    assert (pod.memory_mib[4:6], pod.duty[4:6]) == ((7, 5), (0, 9))
    assert set(pod.memory_mib[:4] + pod.memory_mib[6:]) == {UNSEEN}
    assert (day.joint_memory_mib[4:6], day.joint_duty[4:6]) == ((7, 5), (0, 9))


def test_a_metric_is_missing_only_if_nobody_told_it_all_day():
    without = minute_of(a_pod("p1"))
    told = minute_of(a_pod("p1"), samples=(a_sample("p1", sm_active=5),))
    (day,) = days_of((MIDNIGHT, without), (MIDNIGHT + timedelta(minutes=1), told))
    assert day.missing == ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_XID_ERRORS")


def test_a_minute_survives_its_document():
    minute = minute_of(a_pod("p1"), a_pod("p2"), samples=(a_sample("p1"),))
    assert msgspec.json.decode(msgspec.json.encode(minute), type=GpuMinute) == minute


# Whatever the order in which minutes come.

FEW_PODS = 3 * MOST_PODS
AMOUNTS = st.integers(UNSEEN, 1000)


@st.composite
def class_minutes(draw: st.DrawFn) -> ClassMinute:
    # So many pods that two minutes have more than are kept.
    first = draw(st.integers(0, FEW_PODS))
    uids = [
        f"{(n * 61) % FEW_PODS:03}" for n in range(first, first + draw(st.sampled_from([1, 40])))
    ]
    amount = draw(AMOUNTS)
    pods = [
        PodMinute(
            pod=uid,
            node="a",
            instance_type="p5.48xlarge",
            capacity="spot",
            node_gpus=8,
            gpus=1 + amount % 2,
            busy=amount > 0,
            memory_mib=amount,
            duty=amount,
        )
        for uid in sorted(uids)
    ]
    return ClassMinute(
        of=OF,
        resource=draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"])),
        sharing=draw(st.sampled_from(["none", "mps", "time-slicing"])),
        pods=tuple(pods[:MOST_PODS]),
        joint_memory_mib=amount,
        joint_duty=amount,
        left_out=draw(st.integers(0, 2)),
        missing=tuple(sorted(draw(st.sets(st.sampled_from(sorted(SAMPLED.values())))))),
    )


MINUTES = st.tuples(st.integers(0, 1439), class_minutes())


def day_of(*minutes: tuple[int, ClassMinute]) -> ClassDay:
    at = [(MIDNIGHT + timedelta(minutes=n), GpuMinute(classes=(each,))) for n, each in minutes]
    (found,) = days_of(*at)
    return found


@given(st.lists(MINUTES, min_size=1, max_size=3).map(lambda m: day_of(*m)))
def test_a_day_that_is_merged_twice_is_itself(day: ClassDay):
    assert merged(day, day) == day


@given(st.lists(MINUTES, min_size=2, max_size=5), st.randoms())
def test_days_are_the_same_however_minutes_are_grouped_and_ordered(
    minutes: list[tuple[int, ClassMinute]], chance: Any
):
    whole = day_of(*minutes)
    apart = [day_of(each) for each in minutes]
    chance.shuffle(apart)
    assert reduce(merged, apart) == whole
    assert reduce(lambda found, each: merged(each, found), reversed(apart)) == whole
    cut = chance.randrange(1, len(minutes))
    assert merged(day_of(*minutes[:cut]), day_of(*minutes[cut:])) == whole
    assert msgspec.json.decode(msgspec.json.encode(whole), type=ClassDay) == whole


def test_an_hour_holds_so_many_classes_and_counts_the_rest():
    def named(first: int) -> Snapshot:
        pods = [a_pod(f"p{n}", owner=f"o{n:04}") for n in range(first, first + MOST_CLASSES)]
        return wire_snapshot(nodes=(a_node(),), pods=tuple(pods))

    found = ClassDaySum()
    for number in (0, 1):
        minute = gpu_minute_of(named(number * MOST_CLASSES))
        assert minute is not None
        found.add(MIDNIGHT + timedelta(minutes=number), minute)
    assert (len(found.days), found.left_out) == (MOST_CLASSES, MOST_CLASSES)
