"""Requests out of what each container used: never less than was seen, and never what would be refused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.advice.recommendations import merged
from plimsoll_service.domain.analysis.analysis import analyse, resized_view
from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.analysis.right_sizing import Resize, resizes
from plimsoll_service.domain.snapshots.usage import MIB, ContainerUsage, Histogram, WorkloadUsage
from plimsoll_service.wire.advice import About, Recommendation
from plimsoll_service.wire.documents import decode, encode
from plimsoll_service.wire.snapshot import (
    MOST_CONTAINERS,
    Amounts,
    Autoscaler,
    Bounds,
    Container,
    LimitRanges,
    Workload,
)
from tests.support.snapshots import GIB, NOW, amounts, wire_pods, wire_snapshot, wire_workload


def used(cpu_m: list[int], mebibytes: list[int], **how: Any) -> ContainerUsage:
    return ContainerUsage(cpu_m=Histogram.of(cpu_m), memory_mib=Histogram.of(mebibytes), **how)


LITTLE = used([50] * 950 + [90] * 50, [200] * 1000)


def of_containers(**containers: ContainerUsage) -> WorkloadUsage:
    return WorkloadUsage(containers=containers)


def analysed(
    web: Workload,
    week: WorkloadUsage,
    earlier: WorkloadUsage | None = None,
    *,
    scaled: bool = False,
) -> Resize | str:
    """Return the other requests of a workload, or why they stay."""
    scalers = (Autoscaler(uid="h", namespace="shop", name="web", workload=web.uid, max_replicas=9),)
    seen = wire_snapshot(workloads=(web,), pods=(), autoscalers=scalers if scaled else ())
    known = week if earlier is None else earlier
    (found,) = resizes(View(seen=seen), {web.uid: week}, {web.uid: known})
    return found if isinstance(found, Resize) else found[1]


def resized(usage: ContainerUsage = LITTLE, **changes: Any) -> Amounts | str:
    """Return the other requests of the one container of a workload, or why they stay."""
    scaled = changes.pop("scaled", False)
    earlier = changes.pop("earlier", of_containers(main=usage))
    web = wire_workload("web", **changes)
    found = analysed(web, of_containers(main=usage), earlier, scaled=scaled)
    return found.template[0].requests if isinstance(found, Resize) else found


def a_container(name: str, cpu_m: int = 500, memory: int = GIB, **how: Any) -> Container:
    return Container(name=name, requests=amounts(cpu_m, memory), **how)


def patch_of(web: Workload, week: WorkloadUsage) -> Any:
    """Return the patch of the one recommendation, and what it keeps of the workload's containers."""
    seen = wire_snapshot(workloads=(web,), pods=wire_pods(web, "a", "b"))
    found = analyse(
        View(seen=seen), price_table(), week={web.uid: week}, earlier={web.uid: week}, idle={}
    )
    (each,) = [each for each in found.recommendations if each.kind == "right-size"]
    assert decode(encode(each), Recommendation) == each  # it can be kept
    return json.loads(each.patch) if each.patch else ""


# --- One container ---------------------------------------------------------------------------------


def test_processors_follow_a_percentile_and_memory_the_most_that_was_seen():
    found = analysed(wire_workload("web"), of_containers(main=LITTLE))
    assert isinstance(found, Resize)
    then = found.template[0].requests
    assert 50 * 1.15 <= then.cpu_m <= 70
    assert 200 * 1.2 * MIB <= then.memory <= 272 * MIB
    assert "main: 60m and 256 MiB instead of 500m and 1024 MiB" in found.reason
    assert "1000 samples of 7 days" in found.reason


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scaled": True}, "an autoscaler"),
        ({"vertical_scaler": "web-vpa"}, "the VerticalPodAutoscaler web-vpa writes the requests"),
        ({"annotations": {"plimsoll.dev/ignore": "true"}}, "opted out"),
        ({"annotations": {"plimsoll.dev/ignore": "Yes"}}, "opted out"),
        ({"limits": amounts(500, GIB)}, "Guaranteed"),
        ({"usage": used([50] * 999, [200] * 999)}, "999 samples do not show its peak"),
        ({"usage": ContainerUsage()}, "0 samples"),
        ({"earlier": WorkloadUsage()}, "do not show its peak"),
        ({"requests": amounts(60, 250 * MIB)}, "are right"),
        ({"kind": "Job"}, "its pods end"),
        ({"kind": "CronJob"}, "its pods end"),
    ],
)
def test_requests_stay_where_nothing_shows_that_others_are_better(changes, why):
    found = resized(**changes)
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"template": ()}, "requests of each of its containers"),
        ({"limit_ranges": None}, "LimitRanges"),
    ],
)
def test_what_an_older_agent_does_not_tell_is_not_guessed(changes, why):
    assert why in str(resized(**changes))


def test_usage_of_pods_alone_sizes_no_container():
    whole = WorkloadUsage(cpu_m=LITTLE.cpu_m, memory_mib=LITTLE.memory_mib)
    assert "0 samples" in str(analysed(wire_workload("web"), whole))


def test_a_pod_that_asks_for_too_little_is_told_to_ask_for_more():
    found = resized(requests=amounts(10, 64 * MIB))
    assert isinstance(found, Amounts)
    assert found.cpu_m > 10
    assert found.memory > 64 * MIB


def test_no_request_is_advised_above_its_limit():
    found = resized(used([800] * 1000, [900] * 1000), limits=amounts(700, GIB // 2))
    assert found == Amounts(cpu_m=700, memory=GIB // 2)


# --- OOM kills -------------------------------------------------------------------------------------


def test_a_container_that_was_oom_killed_in_the_window_keeps_its_requests():
    found = resized(used([50] * 1000, [200] * 1000, killed=NOW - timedelta(days=6)))
    assert isinstance(found, str)
    assert "was OOM-killed" in found
    assert "at 2026-11-16 12:00 UTC" in found


def test_it_may_be_told_to_ask_for_more():
    killed = used([50] * 1000, [1000] * 1000, killed=NOW)
    assert resized(killed) == Amounts(cpu_m=500, memory=1200 * MIB + 16 * MIB * 2)


def test_an_oom_kill_before_the_window_is_over():
    found = resized(used([50] * 1000, [200] * 1000, killed=NOW - timedelta(days=8)))
    assert found == Amounts(cpu_m=60, memory=256 * MIB)


def test_an_oom_kill_binds_its_own_container_only():
    web = wire_workload("web", template=(a_container("main"), a_container("cache")))
    killed = used([50] * 1000, [200] * 1000, killed=NOW)
    found = analysed(web, of_containers(main=LITTLE, cache=killed))
    assert isinstance(found, Resize)
    assert [then.name for _, then in found.changed] == ["main"]


# --- Several containers ----------------------------------------------------------------------------


def test_each_container_gets_its_own_usage_and_sidecars_are_patched_in_their_own_list():
    template = (
        a_container("main"),
        a_container("tail", 100, 256 * MIB),
        a_container("proxy", 400, 512 * MIB, sidecar=True),
    )
    usage = of_containers(
        main=LITTLE, tail=used([86] * 1000, [190] * 1000), proxy=used([20] * 1000, [40] * 1000)
    )
    assert patch_of(wire_workload("web", template=template), usage) == {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "resources": {"requests": {"cpu": "60m", "memory": "256Mi"}},
                        }
                    ],
                    "initContainers": [
                        {
                            "name": "proxy",
                            "resources": {"requests": {"cpu": "30m", "memory": "64Mi"}},
                        }
                    ],
                }
            }
        }
    }


def test_what_admission_adds_to_the_pods_is_not_given_to_the_containers_of_the_template():
    usage = of_containers(main=LITTLE, injected=used([4000] * 1000, [4000] * 1000))
    patch = patch_of(wire_workload("web"), usage)
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "60m", "memory": "256Mi"}


def test_a_new_container_waits_for_its_history_and_the_others_do_not():
    web = wire_workload("web", template=(a_container("main"), a_container("new")))
    found = analysed(web, of_containers(main=LITTLE, new=LITTLE), of_containers(main=LITTLE))
    assert isinstance(found, Resize)
    assert [then.name for _, then in found.changed] == ["main"]
    assert "new: 1000 samples do not show its peak yet" in found.reason


def test_only_what_changes_is_patched_and_bytes_never_pass_a_limit():
    limited = a_container("main", 60, GIB, limits=amounts(0, 200 * MIB + 1))
    web = wire_workload("web", template=(replace(limited, requests=amounts(60, 100 * MIB)),))
    patch = patch_of(web, of_containers(main=LITTLE))
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"memory": str(200 * MIB + 1)}


def test_of_a_rollout_no_patch_would_leave_its_other_containers_as_they_are():
    assert patch_of(wire_workload("web", kind="Rollout"), of_containers(main=LITTLE)) == ""


def test_advice_for_the_most_and_longest_named_containers_can_be_kept():
    names = [f"{number:02}{'x' * 61}" for number in range(MOST_CONTAINERS)]
    template = tuple(a_container(name, 10**15, 2**52) for name in names)
    huge = used([8 * 10**15] * 1000, [2**30] * 1000)
    patch = patch_of(
        wire_workload("web", template=template), of_containers(**dict.fromkeys(names, huge))
    )
    assert len(patch["spec"]["template"]["spec"]["containers"]) == MOST_CONTAINERS


def test_pods_keep_what_is_not_of_the_template():
    web = wire_workload("web")
    injected = wire_pods(web, "a", requests=amounts(600, GIB + 128 * MIB))
    found = analysed(web, of_containers(main=LITTLE))
    assert isinstance(found, Resize)
    seen = wire_snapshot(workloads=(web,), pods=injected)
    then = resized_view(View(seen=seen), [found]).seen
    assert then.pods[0].requests == amounts(160, (256 + 128) * MIB)
    assert then.workloads[0].requests == amounts(60, 256 * MIB)


def states_after(each: Recommendation, web: Workload) -> list[str]:
    """Return what an accepted recommendation becomes once the cluster shows that workload."""
    view = View(seen=wire_snapshot(workloads=(web,), pods=()))
    return [after.state for after in merged({each.id: each}, (), view)]


def test_it_is_done_once_each_container_asks_for_what_was_advised():
    web = wire_workload("web", template=(a_container("main"), a_container("tail")))
    usage = of_containers(main=LITTLE, tail=used([10] * 1000, [20] * 1000))
    seen = wire_snapshot(workloads=(web,), pods=())
    week = {web.uid: usage}
    analysis = analyse(View(seen=seen), price_table(), week=week, earlier=week, idle={})
    (found,) = [each for each in analysis.recommendations if each.kind == "right-size"]
    accepted = replace(found, state="accepted")
    main, tail = found.containers
    then = (
        a_container("main", main.cpu_m, main.memory),
        a_container("tail", tail.cpu_m, tail.memory),
    )
    assert states_after(accepted, replace(web, template=(then[0], web.template[1]))) == []
    assert states_after(accepted, replace(web, template=then)) == ["done"]


def test_what_an_older_version_advised_is_done_by_the_sum_of_the_pod():
    about = About(kind="Deployment", namespace="shop", name="web", uid="uid-web")
    old = Recommendation(
        id="r-1",
        kind="right-size",
        about=about,
        reason="",
        monthly=1.0,
        cpu_m=60,
        memory=GIB,
        state="accepted",
        since=NOW,
        changed_at=NOW,
    )
    assert states_after(old, wire_workload("web")) == []
    assert states_after(old, wire_workload("web", requests=amounts(60, GIB))) == ["done"]


# --- LimitRanges -----------------------------------------------------------------------------------


def limited(**bounds: Amounts) -> LimitRanges:
    return LimitRanges(container=Bounds(**bounds))


@pytest.mark.parametrize(
    ("allowed", "limits", "then"),
    [
        (limited(least=amounts(200, 512 * MIB)), amounts(), amounts(200, 512 * MIB)),
        (limited(ratio=amounts(4000)), amounts(1000), amounts(250, 256 * MIB)),
        (limited(ratio=amounts(0, 1500)), amounts(0, GIB), amounts(60, -(-GIB * 1000 // 1500))),
        (limited(most=amounts(2000)), amounts(1000), amounts(60, 256 * MIB)),
    ],
    ids=["min", "ratio of cpu", "ratio of memory", "max"],
)
def test_requests_stay_within_the_limit_range_of_the_namespace(allowed, limits, then):
    assert resized(limits=limits, limit_ranges=allowed) == then


def test_a_request_that_is_nearly_right_and_below_the_minimum_is_raised_to_it():
    allowed = limited(least=amounts(60))
    found = resized(requests=amounts(55, GIB), limit_ranges=allowed)
    assert found == amounts(60, 256 * MIB)


@pytest.mark.parametrize(
    ("allowed", "limits"),
    [
        (limited(most=amounts(400)), amounts(1000)),
        (limited(most=amounts(2000)), amounts()),
        (limited(ratio=amounts(2000)), amounts()),
        (LimitRanges(pod=Bounds(least=amounts(400))), amounts()),
        (LimitRanges(pod=Bounds(ratio=amounts(4000))), amounts(1000)),
    ],
    ids=["limit above max", "no limit", "no limit for a ratio", "pod min", "pod ratio"],
)
def test_a_workload_whose_next_pods_would_be_refused_is_left_alone(allowed, limits):
    found = resized(limits=limits, limit_ranges=allowed)
    assert isinstance(found, str)
    assert "a LimitRange of its namespace would refuse" in found


def passes(requests: Amounts, limits: Amounts, bounds: Bounds) -> bool:
    """Whether the admission plugin LimitRanger takes it: its three rules, written down once more."""
    for resource in ("cpu_m", "memory"):
        request, limit = getattr(requests, resource), getattr(limits, resource)
        least, most = getattr(bounds.least, resource), getattr(bounds.most, resource)
        ratio = getattr(bounds.ratio, resource)
        if least and (request < least or (limit and limit < least)):
            return False
        if most and (not limit or limit > most or request > most):
            return False
        if ratio and (not request or not limit or 1000 * limit > ratio * request):
            return False
    return True


sizes = st.builds(amounts, st.integers(0, 4000), st.integers(0, 4 * GIB))
some = st.one_of(st.just(amounts()), sizes)
ratios = st.one_of(st.just(amounts()), st.builds(amounts, *[st.integers(1000, 8000)] * 2))
bounds = st.builds(Bounds, least=some, most=some, ratio=ratios)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Workload, WorkloadUsage]:
    template, usage = [], {}
    for name in draw(st.sampled_from([["main"], ["main", "tail"], ["main", "tail", "proxy"]])):
        limits, asked = draw(some), draw(sizes)
        requests = amounts(
            *(
                min(a, limit) if limit else a
                for a, limit in zip(
                    (asked.cpu_m, asked.memory), (limits.cpu_m, limits.memory), strict=True
                )
            )
        )
        template.append(
            Container(name=name, sidecar=name == "proxy", requests=requests, limits=limits)
        )
        usage[name] = used(
            [draw(st.integers(0, 4000))] * draw(st.sampled_from([0, 1000])),
            [draw(st.integers(0, 4096))] * 1000,
            killed=draw(st.sampled_from([None, None, NOW, NOW - timedelta(days=9)])),
        )
    allowed = LimitRanges(container=draw(bounds), pod=draw(st.one_of(st.just(Bounds()), bounds)))
    web = wire_workload("web", template=tuple(template), limit_ranges=allowed)
    return web, WorkloadUsage(containers=usage)


@given(drawn=workloads())
def test_whatever_is_advised_is_admitted_and_covers_what_was_used(drawn):
    web, usage = drawn
    found = analysed(web, usage)
    if isinstance(found, str):
        return
    allowed = web.limit_ranges
    for now, then in zip(web.template, found.template, strict=True):
        assert replace(then, requests=now.requests) == now
        assert passes(then.requests, then.limits, allowed.container)
        its = usage.containers[now.name]
        if its.killed == NOW or not its.cpu_m.samples:
            assert then.requests.cpu_m >= now.requests.cpu_m
            assert then.requests.memory >= now.requests.memory
        if its.cpu_m.samples:
            for resource, seen in (
                ("cpu_m", its.cpu_m.percentile(95)),
                ("memory", its.memory_mib.percentile(100) * MIB),
            ):
                limit = getattr(then.limits, resource) or 2**60
                most = getattr(allowed.container.most, resource) or 2**60
                floor = min(seen, limit, most)
                if getattr(then.requests, resource) < getattr(now.requests, resource):
                    assert getattr(then.requests, resource) >= floor
                assert getattr(then.requests, resource) >= min(
                    floor, getattr(now.requests, resource) / 1.15
                )
    requests = [each.requests for each in found.template]
    total = amounts(sum(e.cpu_m for e in requests), sum(e.memory for e in requests))
    limits = [each.limits for each in found.template]
    together = amounts(sum(e.cpu_m for e in limits), sum(e.memory for e in limits))
    assert passes(total, together, allowed.pod)


@given(cpu=st.integers(0, 10_000), mebibytes=st.integers(0, 100_000), now=st.integers(1, 10_000))
def test_memory_is_never_below_what_was_seen(cpu, mebibytes, now):
    found = resized(used([cpu] * 1000, [mebibytes] * 1000), requests=amounts(now, now * MIB))
    if isinstance(found, Amounts):
        assert found.memory >= min(mebibytes, now) * MIB
        if found.memory != now * MIB:
            assert found.memory >= mebibytes * 1.2 * MIB
        assert found.cpu_m >= min(cpu, now)
