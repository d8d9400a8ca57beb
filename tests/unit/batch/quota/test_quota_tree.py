"""The arithmetic of quotas: what may be used, borrowed and lent, in flat and deep trees."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_batch.domain.quota.cohorts import Cohort, Queue, QueueConfiguration
from plimsoll_batch.domain.quota.quota_tree import QuotaNode, QuotaTrees
from plimsoll_batch.domain.quota.shares import DominantResourceShare, water_fill
from tests.support.queued import DEFAULT, GPU, a_cohort, a_configuration, a_queue


def trees(*parts: Queue | Cohort) -> QuotaTrees:
    return QuotaTrees(a_configuration(*parts))


def test_a_queue_alone_has_its_quota():
    quotas = trees(a_queue("a", 10, None))
    queue = quotas.queues["a"]
    queue.add(0, 4)
    assert (queue.available(0), queue.potential[0]) == (6, 10)


@pytest.mark.parametrize(
    ("borrow", "lend", "a_may", "a_potential"),
    [
        (None, None, 16, 20),
        (0, None, 6, 10),
        (3, None, 9, 13),
        (None, 0, 6, 10),
        (None, 4, 10, 14),
        (3, 4, 9, 13),
    ],
)
def test_borrowing_is_limited_by_the_borrower_and_by_the_lender(borrow, lend, a_may, a_potential):
    quotas = trees(a_cohort(), a_queue("a", 10, borrow=borrow), a_queue("b", 10, lend=lend))
    a = quotas.queues["a"]
    a.add(0, 4)
    assert (a.available(0), a.potential[0]) == (a_may, a_potential)


def test_what_is_not_lent_stays_available_to_its_queue_however_much_others_use():
    quotas = trees(a_cohort(), a_queue("a", 10), a_queue("b", 10, lend=4))
    quotas.queues["a"].add(0, 14)
    assert quotas.queues["a"].available(0) == 0
    assert quotas.queues["b"].available(0) == 6


def test_use_within_what_is_not_lent_is_not_seen_above():
    quotas = trees(a_cohort(), a_queue("a", 10), a_queue("b", 10, lend=4))
    b = quotas.queues["b"]
    b.add(0, 6)
    assert quotas.queues["a"].available(0) == 14
    b.add(0, 2)
    assert quotas.queues["a"].available(0) == 12


def test_a_queue_borrows_through_cohorts_and_each_limits_it():
    quotas = trees(
        a_cohort("root", 5),
        Cohort(
            name="left",
            parent="root",
            quotas={(DEFAULT, GPU): a_queue("x", 2, borrow=4).quotas[DEFAULT, GPU]},
        ),
        a_cohort("right", parent="root"),
        a_queue("a", 10, "left"),
        a_queue("b", 20, "right"),
    )
    assert quotas.queues["a"].available(0) == 10 + 2 + 4
    assert quotas.queues["b"].available(0) == 20 + 5 + 12


def test_after_a_cut_of_quota_less_than_nothing_is_left():
    quotas = trees(a_cohort(), a_queue("a", 1), a_queue("b", 1))
    quotas.queues["a"].add(0, 5)
    assert quotas.queues["b"].available(0) == -3


def test_the_largest_quantities_add_up_without_overflow():
    most = 2**63 - 1
    quotas = trees(a_cohort(), *(a_queue(name, most) for name in "abc"))
    quotas.queues["a"].add(0, 2 * most)
    assert quotas.queues["b"].available(0) == most


def test_how_far_up_a_queue_borrows_is_the_height_of_the_subtree_that_holds_it():
    quotas = trees(
        a_cohort("root", 100),
        a_cohort("left", 5, "root"),
        a_queue("a", 10, "left"),
        a_queue("b", 2, "left"),
    )
    a = quotas.queues["a"]
    assert [a.lowest_holding(0, n).height for n in (10, 11, 17, 18)] == [0, 1, 1, 2]


@st.composite
def random_trees(draw: st.DrawFn) -> QueueConfiguration:
    """Up to three levels, with all limits."""
    limit = st.none() | st.integers(0, 12)
    cohorts = [a_cohort("c0", draw(st.integers(0, 9)))]
    for number in range(1, draw(st.integers(1, 4))):
        parent = draw(st.sampled_from([c.name for c in cohorts]))
        cohorts.append(a_cohort(f"c{number}", draw(st.integers(0, 9)), parent))
    queues = [
        a_queue(
            f"q{number}",
            draw(st.integers(0, 12)),
            draw(st.sampled_from([c.name for c in cohorts])),
            borrow=draw(limit),
            lend=draw(limit),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return a_configuration(*cohorts, *queues)


def usage_above(node: QuotaNode) -> int:
    """What a node uses by the definition, from below."""
    if not node.children:
        return node.usage[0]
    return sum(max(0, usage_above(child) - child.local[0]) for child in node.children)


@given(random_trees(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=8))
def test_use_added_and_removed_in_any_order_is_what_the_definition_says(configuration, changes):
    quotas = QuotaTrees(configuration)
    queues = list(quotas.queues.values())
    for index, amount in changes:
        queues[index % len(queues)].add(0, amount)
    for index, amount in changes[::2]:
        queues[index % len(queues)].remove(0, amount)
    for queue in queues:
        for node in queue.path():
            assert node.usage[0] == usage_above(node)


@given(random_trees(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=8))
def test_no_queue_can_use_more_than_its_potential_nor_the_tree_more_than_it_has(
    configuration, wishes
):
    quotas = QuotaTrees(configuration)
    queues = list(quotas.queues.values())
    for index, wish in wishes:
        queue = queues[index % len(queues)]
        queue.add(0, max(0, min(wish, queue.available(0))))
    for queue in queues:
        assert queue.usage[0] <= queue.potential[0]
    for root in quotas.roots:
        assert root.usage[0] <= root.subtree[0]
        assert root.available(0) >= 0


@given(random_trees(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=8))
def test_what_a_queue_does_not_lend_is_never_lost_to_others(configuration, wishes):
    quotas = QuotaTrees(configuration)
    queues = list(quotas.queues.values())
    patient = queues[0]
    for index, wish in wishes:
        queue = queues[index % len(queues)]
        if queue is not patient:
            queue.add(0, max(0, min(wish, queue.available(0))))
    assert patient.available(0) >= patient.local[0]


def test_a_share_is_what_is_borrowed_of_what_the_parent_could_lend():
    quotas = trees(a_cohort(order=None), a_queue("a", 10, weight=2), a_queue("b", 10))
    share = DominantResourceShare(quotas.frs)
    a = quotas.queues["a"]
    a.add(0, 10)
    assert share.of(a) == (False, 0.0)
    a.add(0, 5)
    assert share.of(a) == (False, 1000 * 5 / 20 / 2)


def test_who_borrows_at_a_weight_of_0_has_more_than_any_share():
    quotas = trees(a_cohort(), a_queue("a", 10, weight=0), a_queue("b", 10), a_queue("c", 10))
    share = DominantResourceShare(quotas.frs)
    quotas.queues["a"].add(0, 11)
    quotas.queues["b"].add(0, 20)
    assert share.of(quotas.queues["a"]) > share.of(quotas.queues["b"])


@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 10), st.integers(0, 30)), min_size=1),
)
def test_water_filling_gives_out_all_that_is_wanted_and_raises_nobody_at_the_cost_of_a_lower(
    amount, drawn
):
    vessels = [(Fraction(w), Fraction(min(a, b)), Fraction(b)) for w, a, b in drawn]
    got = water_fill(Fraction(amount), vessels)
    least = sum(least for _, least, _ in vessels)
    most = sum(most for *_, most in vessels)
    assert sum(got) == min(amount, most)
    if amount >= least:
        for (_, low, high), mine in zip(vessels, got, strict=True):
            assert low <= mine <= high
        levels = [
            (mine / w, mine < high, mine > low)
            for (w, low, high), mine in zip(vessels, got, strict=True)
        ]
        for level, unmet, _ in levels:
            for other, _, above_its_least in levels:
                assert not (unmet and above_its_least and other > level)
