"""Which slice a class gets, which headroom a card, and why some are not split."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from plimsoll_service.domain.gpu import (
    DoNotSplit,
    Fit,
    Question,
    Size,
    Slice,
    TimeSlices,
    fit_classes,
    profiles_needed,
)
from plimsoll_service.domain.gpu.time_slicing import slowdown
from plimsoll_service.wire.gpu import UNSEEN, ClassDay
from tests.support.gpu_days import MONDAY, a_class_day, a_pod_day, always, never

Days = list[ClassDay]


def a_class(
    owner: str = "web",
    pods: int = 4,
    days: int = 10,
    memory: Callable[[int, int], Any] = lambda _pod, _day: 8_000,
    *,
    of: dict[str, Any] | None = None,
    **pod: Any,
) -> Days:
    """A class of pods that live for all days; `memory` is by the numbers of pod and day."""
    return [
        a_class_day(
            owner,
            [a_pod_day(pod=f"{owner}-{at}", memory=memory(at, day), **pod) for at in range(pods)],
            MONDAY + timedelta(days=day),
            **of or {},
        )
        for day in range(days)
    ]


def sizes(found: Fit) -> dict[str, Size]:
    return {each.of.owner: each.size for each in found.classes}


def advice(days: Days, **question: Any) -> Size:
    return sizes(fit_classes(days, Question(**question)))["web"]


def cause(size: Size) -> str:
    assert isinstance(size, DoNotSplit), size
    return size.cause


def profile(size: Size) -> str:
    assert isinstance(size, Slice), size
    return size.profile.name


def test_a_class_gets_the_smallest_slice_that_really_holds_it():
    assert profile(advice(a_class(memory=lambda *_: 9_984))) == "1g.10gb"
    assert profile(advice(a_class(memory=lambda *_: 9_985))) == "1g.20gb"


def test_a_slice_has_to_be_fast_enough_too():
    assert profile(advice(a_class(duty=250))) == "2g.20gb"
    assert cause(advice(a_class(duty=900))) == "duty"


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (a_class(dram=700), "memory bandwidth"),
        (a_class(memory=lambda *_: 60_000), "memory"),
        (a_class(gpus=2), "several GPUs"),
        (a_class(memory=lambda *_: UNSEEN), "unknown"),
        (a_class(of={"sharing": "time-slicing"}), "unknown"),
        (a_class(of={"model": "Quadro"}), "unknown"),
    ],
    ids=["bandwidth", "memory", "several", "unmeasured", "shared", "model"],
)
def test_a_class_that_is_not_split_has_its_cause(days: Days, expected: str):
    assert cause(advice(days)) == expected


def test_an_owner_that_is_told_to_be_bound_by_its_cpus_is_not_split():
    assert cause(advice(a_class(), cpu_bound=[("lab", "web")])) == "cpu"


def test_headroom_is_the_smallest_with_which_held_out_time_stays_within_the_bound():
    grows = a_class(pods=20, memory=lambda pod, day: 9_500 if day < 5 or pod else 10_900)
    found = fit_classes(grows, Question())
    card = found.cards[0]
    assert card.headroom == 0.1
    assert [told.over for told in card.judgements] == [0, 0, 0, 0, 0]
    assert profile(sizes(found)["web"]) == "1g.20gb"


def test_the_same_class_gets_another_headroom_on_a_card_with_larger_slices():
    grows = a_class(pods=20, memory=lambda pod, day: 9_500 if day < 5 or pod else 10_900)
    assert fit_classes(grows, Question(card="H200")).cards[0].headroom == 0.0


def test_a_card_on_which_no_headroom_holds_is_refused_and_says_how_many_overflow():
    bursts = a_class(pods=20, memory=lambda pod, day: 12_000 if day < 8 else 35_000 - pod)
    found = fit_classes(bursts, Question())
    assert found.cards[0].headroom is None
    assert found.cards[0].gpus == found.cards[0].gpus_after == 20
    assert cause(sizes(found)["web"]) == "bursts"
    assert "20 of 20 pods overflow" in found.cards[0].reason


def test_the_one_class_that_overflowed_is_not_split_where_the_bound_allows_it():
    calm = [day for n in range(30) for day in a_class(f"calm{n}", pods=4)]
    wild = a_class("web", pods=1, memory=lambda _, day: 9_000 if day < 8 else 70_000)
    found = fit_classes(calm + wild, Question())
    assert found.cards[0].headroom == 0.0
    assert cause(sizes(found)["web"]) == "bursts"
    assert profile(sizes(found)["calm0"]) == "1g.10gb"


def test_a_card_on_which_hardly_a_pod_fits_a_slice_is_refused():
    found = fit_classes(
        a_class(pods=1) + a_class("huge", pods=30, memory=lambda *_: 70_000), Question()
    )
    assert found.cards[0].headroom is None
    assert "1 of 31 pods fit a slice" in found.cards[0].reason


def test_a_claim_says_how_many_clean_pods_it_still_needs():
    told = fit_classes(a_class(pods=20), Question()).cards[0].judgements[2]
    assert (told.over, told.judged, told.needed(0.01)) == (0, 20, 279)
    assert told.bound == pytest.approx(0.139, abs=1e-3)


def test_pods_that_keep_the_whole_gpu_do_not_make_the_bound_smaller():
    days = a_class("web", pods=5) + a_class("huge", pods=50, memory=lambda *_: 70_000)
    assert fit_classes(days, Question(within=0.5)).cards[0].judgements[2].judged == 5


def test_without_held_out_time_nothing_is_split():
    days = [a_class_day("web", [a_pod_day(memory=lambda at: 8_000 if at == 0 else UNSEEN)])]
    assert cause(advice(days)) == "bursts"
    assert "wait for more days" in fit_classes(days, Question()).cards[0].reason


def test_few_days_are_said_to_be_few():
    assert (
        "low confidence: 2.0 days" in fit_classes(a_class(days=2), Question()).classes[0].notes[0]
    )
    assert not fit_classes(a_class(days=10), Question()).classes[0].notes[0].startswith("low")


def test_a_card_without_mig_gets_as_many_time_slices_as_its_largest_pods_fit():
    rare = a_class(
        memory=lambda pod, _: 9_000 if pod == 0 else 5_000, busy=never, of={"model": "L4"}
    )
    assert advice(rare) == TimeSlices(replicas=3, slowdown=1.0)


def test_pods_that_always_work_get_no_time_slices():
    assert cause(advice(a_class(busy=always, of={"model": "L4"}))) == "duty"


def test_slowdown_is_by_the_time_for_which_the_others_work():
    fifth = a_class(
        busy=lambda _, minute: minute % 5 == 0, memory=lambda *_: 100, of={"model": "L4"}
    )
    found = advice(fifth)
    assert isinstance(found, TimeSlices)
    assert found.replicas == 2
    assert found.slowdown == pytest.approx(slowdown([0.2]))


def test_only_the_template_that_was_seen_last_is_advised():
    old = a_class(days=5, of={"template": "old"})
    new = a_class(days=10, of={"template": "new"})
    assert [each.of.template for each in fit_classes(old + new, Question()).classes] == ["new"]


def test_demand_counts_pods_that_run_at_once_by_profile_and_whole_gpus():
    days = a_class("web", pods=3) + a_class("huge", pods=2, gpus=4)
    days += a_class("rare", of={"model": "L4"})
    assert profiles_needed(fit_classes(days, Question()).classes) == {
        "H100-80GB-HBM3": {"1g.10gb": 3, "gpu": 8}
    }
