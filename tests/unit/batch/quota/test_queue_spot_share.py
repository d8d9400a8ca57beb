"""How much of a queue may ride on spot: what starts there, what waits for it, and who makes way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_batch.domain.admission.queue_state import QueueState
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.jobs.gangs import Gang, RunningGang
from plimsoll_batch.domain.quota.cohorts import Flavor, QueueConfiguration, problems_of
from tests.support.builders import NOON
from tests.support.queued import (
    ANY,
    GPU,
    a_configuration,
    a_gang,
    a_queue,
    a_shape,
    planned,
    runs,
    waiting,
)

FLAVORS = (
    Flavor(name="spot", node_labels={"karpenter.sh/capacity-type": "spot"}),
    Flavor(name="base", node_labels={"karpenter.sh/capacity-type": "on-demand"}),
)
SHARES = st.sampled_from([Fraction(n, 4) for n in range(5)])


def a_tree(share: Fraction | None, spot: int = 9, base: int = 9, **fields) -> QueueConfiguration:
    quota = {"spot": spot, "base": base}
    queue = a_queue("q", cohort=None, flavors=quota, spot_share=share, **fields)
    return a_configuration(queue, flavors=FLAVORS)


def flavors(plan) -> list[str]:
    return [flavor for each in plan.admitted for flavor, _ in each.usage]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (None, ["spot", "spot", "spot", "spot"]),
        (Fraction(1), ["spot", "spot", "spot", "spot"]),
        (Fraction(1, 2), ["base", "spot", "base", "spot"]),
        (Fraction(1, 3), ["base", "base", "spot", "base"]),
        (Fraction(0), ["base", "base", "base", "base"]),
    ],
)
def test_a_gang_rides_on_spot_as_long_as_the_share_of_its_queue_holds_it(share, expected):
    gangs = [a_gang(f"g{n}", "q", minute=n) for n in range(4)]
    assert flavors(planned(a_tree(share), gangs)) == expected


def test_what_runs_counts():
    gangs, running = [a_gang("new", "q", 2)], [runs(a_gang("old", "q", 2), flavor="base")]
    assert flavors(planned(a_tree(Fraction(1, 2)), gangs, running)) == ["spot"]
    assert flavors(planned(a_tree(Fraction(2, 5)), gangs, running)) == ["base"]


def test_who_finds_no_quota_beside_spot_waits_and_is_told_the_share():
    configuration, gang = a_tree(Fraction(1, 2), base=1), a_gang("g", "q", 2)
    told = f"spotShare: queue q lets 50% of its {GPU} ride on spot, and with it 2 of 2 would"
    assert told in waiting(planned(configuration, [gang]))["g"]
    found = why(QueueState(configuration=configuration, gangs=(gang,)), "g", NOON)
    assert found is not None
    assert told in in_words(found)


def test_a_share_without_a_flavor_that_is_spot_by_its_labels_is_a_mistake():
    queue = a_queue("q", 1, cohort=None, spot_share=Fraction(1, 2))
    [told] = problems_of(a_configuration(queue))
    assert told.startswith("queue q: spotShare: none of its flavors is spot by a node label")


_GANGS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=12)


@given(SHARES, st.integers(0, 9), st.integers(0, 9), _GANGS)
def test_no_start_on_spot_leaves_more_than_the_share_on_spot(share, spot, base, drawn):
    gangs = [
        a_gang(f"g{n}", "q", gpus, priority=priority, minute=n)
        for n, (gpus, priority) in enumerate(drawn)
    ]
    used: Counter[str] = Counter()
    for each in planned(a_tree(share, spot, base), gangs).admitted:
        used.update({flavor: amount for (flavor, _), amount in each.usage.items()})
        on_spot = any(flavor == "spot" for flavor, _ in each.usage)
        assert not on_spot or used["spot"] <= share * used.total()


def uses(name: str, spot: int, base: int, priority: int = 0) -> RunningGang:
    """Return a gang of two roles that runs in both flavors."""
    usage = {("spot", GPU): spot, ("base", GPU): base}
    return replace(runs(a_gang(name, "q", priority=priority)), usage=usage)


def on_spot_only(gpus: int, **fields) -> Gang:
    shape = a_shape(gpus, selector=FLAVORS[0].node_labels)
    return a_gang("new", "q", shape=shape, priority=1, minute=1, **fields)


@pytest.mark.parametrize(("share", "makes_way"), [(Fraction(1, 2), []), (Fraction(1), ["both"])])
def test_nobody_makes_way_where_what_is_left_on_demand_would_be_too_little(share, makes_way):
    configuration = a_tree(share, spot=7, base=8, preemption=ANY)
    plan = planned(
        configuration, [on_spot_only(1)], [uses("both", 4, 8), uses("kept", 3, 0, priority=2)]
    )
    assert [v.holder.running.gang.name for p in plan.preempting for v in p.victims] == makes_way


_RUN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), max_size=6)


@given(SHARES, _RUN, st.integers(1, 4))
def test_nobody_makes_way_for_a_gang_that_would_exceed_the_share(share, drawn, gpus):
    running = [
        uses(f"r{n}", spot, base, priority) for n, (spot, base, priority) in enumerate(drawn)
    ]
    plan = planned(a_tree(share, preemption=ANY), [on_spot_only(gpus)], running)
    for each in plan.preempting:
        left = {v.holder.running.gang.uid for v in each.victims}
        used: Counter[str] = Counter()
        for usage in (each.usage, *(r.usage for r in running if r.gang.uid not in left)):
            used.update({flavor: amount for (flavor, _), amount in usage.items()})
        assert used["spot"] <= share * used.total()
