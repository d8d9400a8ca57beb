"""What the pods of a workload told of their stop and start times, and what is reckoned with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.disruptions import Basis, disruptions_of
from plimsoll.domain.disruptions.stop_times import stop_time
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import (
    MOST_SAMPLES,
    TIMES_KEPT,
    Count,
    InterruptedNodes,
    ObservedTime,
    Sample,
    Samples,
    WorkloadTimes,
    chosen_workloads,
    start_samples,
    times_are_kept,
)
from plimsoll.domain.observation.observed_times import COUNT_KEPT, LONGEST_KEY_BYTES
from plimsoll.services.observed_times import disrupted
from tests.support.builders import NOON, a_pod, mounting, pods_of
from tests.support.observations import WEB, interrupted, looked, noon


def sample(pod: int, seconds: int, at: float | None = None) -> Sample:
    return Sample(uid=f"pod-{pod}", at=noon(pod if at is None else at), seconds=seconds)


def stopped(*seconds: int) -> Samples:
    return Samples(stop=tuple(sample(n, took) for n, took in enumerate(seconds)))


def killed(*seconds: int) -> Samples:
    return Samples(killed=tuple(sample(1000 + n, took) for n, took in enumerate(seconds)))


def reckoned(samples: Samples, *, grace: int = 300, **how) -> tuple[int, Basis]:
    found = stop_time(a_pod(grace_seconds=grace, **how), samples.times(NOON).stop)
    return found.seconds, found.basis


def test_the_95th_percentile_of_the_last_twenty_pods_counts():
    times = Samples().merged(stopped(*range(100, 130))).times(NOON)
    assert times.stop == ObservedTime(pods=20, p95_seconds=128)
    assert times.start is None


def test_three_pods_that_stopped_by_themselves_shorten_an_assumption_and_two_do_not():
    assert reckoned(stopped(5, 6)) == (30, Basis.ASSUMED)
    assert reckoned(stopped(5, 6, 4)) == (6, Basis.OBSERVED)


def test_one_pod_that_took_longer_lengthens_an_assumption():
    assert reckoned(stopped(90)) == (90, Basis.ASSUMED)


def test_a_pod_with_a_claim_is_given_twice_as_long():
    assert reckoned(stopped(20, 20, 20), volumes=mounting("data")) == (40, Basis.OBSERVED)
    assert reckoned(stopped(2, 2, 2), volumes=mounting("data")) == (30, Basis.OBSERVED)


def test_pods_that_were_killed_never_shorten_an_assumption():
    assert reckoned(killed(*[2] * MOST_SAMPLES)) == (30, Basis.ASSUMED)
    assert reckoned(killed(*[2] * MOST_SAMPLES), volumes=mounting("data")) == (300, Basis.ASSUMED)


def test_a_kill_after_longer_than_was_observed_says_that_nobody_knows_how_long_it_takes():
    assert reckoned(stopped(5, 5, 5).merged(killed(4))) == (5, Basis.OBSERVED)
    assert reckoned(stopped(5, 5, 5).merged(killed(60))) == (60, Basis.ASSUMED)
    assert reckoned(stopped(5, 5, 5).merged(killed(60)), grace=20) == (20, Basis.ASSUMED)


def test_one_kill_beside_nineteen_that_stopped_is_an_outlier():
    assert reckoned(stopped(*[5] * 19).merged(killed(60))) == (5, Basis.OBSERVED)
    assert reckoned(stopped(*[5] * 19).merged(killed(60, 70))) == (70, Basis.ASSUMED)


SECONDS = st.integers(0, 900)
MANY = st.lists(st.tuples(st.integers(0, 30), SECONDS), max_size=40, unique_by=lambda each: each[0])


@given(stops=MANY, kills=MANY, next_kill=SECONDS, claim=st.booleans())
def test_one_more_kill_never_shortens_what_is_reckoned_with(stops, kills, next_kill, claim):
    known = Samples().merged(
        Samples(
            stop=tuple(sample(n, took) for n, took in stops),
            killed=tuple(sample(100 + n, took) for n, took in kills),
        )
    )
    then = known.merged(killed(next_kill))
    volumes = mounting("data") if claim else []
    assert reckoned(then, volumes=volumes)[0] >= reckoned(known, volumes=volumes)[0]


@given(told=MANY, data=st.data())
def test_in_any_order_twice_and_late_it_is_the_same(told, data):
    each = [
        kind
        for n, took in told
        for kind in (
            Samples(stop=(sample(n, took),)),
            Samples(killed=(sample(n, took),)),
            Samples(start=(sample(n, took),)),
            Samples(checkpoint=(sample(n, took),)),
            Samples(count=Count(at=noon(n), pods=took)),
        )
    ]
    once, again = Samples(), Samples()
    for one in each:
        once = once.merged(one)
    for one in data.draw(st.permutations(each + each[: len(each) // 2])):
        again = again.merged(one)
    assert once == again
    assert once.merged(again) == once
    assert max(map(len, (once.stop, once.killed, once.start, once.checkpoint))) <= MOST_SAMPLES


def test_the_last_count_of_pods_stands_for_a_quarter_of_an_hour():
    known = Samples(count=Count(at=NOON, pods=5))
    assert known.times(NOON + COUNT_KEPT - timedelta(seconds=1)).pods == 5
    assert known.times(NOON + COUNT_KEPT).pods is None
    assert known.merged(Samples(count=Count(at=noon(1), pods=3))).times(noon(2)).pods == 3


def test_the_longest_of_the_last_checkpoints_counts():
    told = tuple(sample(n, took) for n, took in enumerate([90, *[20] * (MOST_SAMPLES - 1)]))
    known = Samples().merged(Samples(checkpoint=told))
    assert known.times(NOON).checkpoint_seconds == 90
    later = known.merged(Samples(checkpoint=(sample(99, 30, at=200),)))
    assert later.times(NOON).checkpoint_seconds == 30
    assert Samples().times(NOON).checkpoint_seconds is None


def test_the_class_of_a_gang_with_pods_on_an_interrupted_node_is_asked_for():
    pod = a_pod(
        "a", node="spot", owner=("RayCluster", "llm-x7bqz"), labels={"ray.io/cluster": "llm-x7bqz"}
    )
    seen = looked([interrupted("spot")], [pod])
    assert Ref("RayCluster", "default", "llm") in disrupted(seen)


def test_what_is_older_than_ninety_days_does_not_count():
    known = stopped(5, 5, 5)
    assert known.times(NOON + TIMES_KEPT - timedelta(minutes=1)).stop is not None
    assert known.times(NOON + TIMES_KEPT + timedelta(minutes=1)).stop is None
    fresh = Samples(stop=(sample(9, 7, at=(TIMES_KEPT + timedelta(days=1)).total_seconds()),))
    assert known.merged(fresh) == fresh


def test_a_pod_that_was_ready_once_more_tells_how_long_it_took_the_first_time():
    first, later = sample(1, 20, at=20), sample(1, 600, at=600)
    for one, other in ((first, later), (later, first)):
        assert Samples(start=(one,)).merged(Samples(start=(other,))) == Samples(start=(first,))


def test_running_pods_tell_how_long_they_took_to_start():
    pod = replace(a_pod(node="n"), start_seconds=12, ready_since=NOON)
    stopping, starting = replace(pod, uid="b", deleting=NOON), replace(a_pod(node="n"), uid="c")
    assert start_samples({WEB: [pod, stopping, starting]}) == {
        WEB: Samples(start=(Sample(uid=pod.uid, at=NOON, seconds=12),))
    }


@pytest.mark.parametrize("kind", ["Job", "Pod", "DaemonSet", "Node"])
def test_nothing_is_remembered_of_what_has_another_name_the_next_time(kind):
    pod = replace(a_pod(node="n"), start_seconds=12, ready_since=NOON)
    assert start_samples({Ref(kind, "default", "x"): [pod]}) == {}


def test_a_workload_of_which_the_kind_fills_a_key_is_not_remembered():
    assert times_are_kept(Ref("Database", "default", "x"))
    assert not times_are_kept(Ref("D" * LONGEST_KEY_BYTES, "default", "x"))


def test_a_tenant_of_many_workloads_does_not_keep_others_from_being_remembered():
    many = [Ref("Deployment", "noisy", f"w-{n}") for n in range(1000)]
    few = [Ref("Deployment", "quiet", f"w-{n}") for n in range(5)]
    turn = chosen_workloads([*many, *few], NOON, 20)
    assert len(turn) == 20
    assert {*few} <= {*turn}


def test_each_workload_has_its_turn():
    workloads = {Ref("Deployment", "default", f"w-{n}") for n in range(100)}
    turns = [chosen_workloads(workloads, noon(300 * run), 20) for run in range(60)]
    assert set().union(*turns) == workloads


@pytest.mark.parametrize(("p95", "seconds"), [(5, 30), (90, 90)])
def test_pods_that_started_lengthen_what_a_replacement_is_reckoned_to_take(p95, seconds):
    times = {WEB: WorkloadTimes(start=ObservedTime(pods=20, p95_seconds=p95))}
    seen = looked([interrupted("spot")], pods_of("web", 2, node="spot"), times=times)
    (disruption,) = disruptions_of(seen, InterruptedNodes.of(seen), NOON)
    assert disruption.start == timedelta(seconds=seconds)
