"""Which running gangs make way: Kueue's documented cases as tables, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll_batch.domain.quota.cohorts import (
    Flavor,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    Quota,
    Reclaim,
    ResourceGroup,
    Strategy,
    WithinQueue,
)
from tests.support.builders import NOON
from tests.support.queued import (
    ANY,
    DEFAULT,
    FAIR,
    GPU,
    a_cohort,
    a_configuration,
    a_gang,
    a_gpu_node,
    a_queue,
    admitted,
    carried_out,
    planned,
    runs,
    victims,
    waiting,
)

LOWER = Preemption(within_queue=WithinQueue.LOWER_PRIORITY)
NEWER = Preemption(within_queue=WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)
RECLAIM = Preemption(reclaim=Reclaim.ANY)
RECLAIM_LOWER = Preemption(reclaim=Reclaim.LOWER_PRIORITY)


def standing(*specs):
    """Running gangs, from (name, queue, GPUs, priority), admitted one minute after the other."""
    return [
        runs(
            a_gang(name, queue, gpus, priority=priority, minute=-60),
            admitted=NOON + timedelta(minutes=n - 60),
        )
        for n, (name, queue, gpus, priority) in enumerate(specs)
    ]


# --- Within a queue -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "priority", "minute", "expected"),
    [
        (Preemption(), 5, 0, {}),
        (LOWER, 5, 0, {"new": ["low"]}),
        (LOWER, 1, 0, {}),
        (LOWER, 2, 0, {"new": ["low"]}),
        (NEWER, 1, 0, {}),  # those that run are older
        (NEWER, 1, -90, {"new": ["low"]}),  # here they are newer
    ],
)
def test_within_its_queue_a_gang_preempts_what_its_policy_says(policy, priority, minute, expected):
    configuration = a_configuration(a_queue("q", 2, None, preemption=policy))
    running = standing(("high", "q", 1, 3), ("low", "q", 1, 1))
    plan = planned(configuration, [a_gang("new", "q", priority=priority, minute=minute)], running)
    assert victims(plan) == expected


def test_the_lowest_priority_goes_first_and_of_equals_the_last_admitted():
    configuration = a_configuration(a_queue("q", 4, None, preemption=LOWER))
    running = standing(("a", "q", 1, 1), ("b", "q", 1, 0), ("c", "q", 1, 0), ("d", "q", 1, 1))
    plan = planned(configuration, [a_gang("new", "q", 3, priority=9)], running)
    assert victims(plan)["new"] == ["c", "b", "d"]


def test_who_is_stopping_already_goes_before_all_others():
    configuration = a_configuration(a_queue("q", 2, None, preemption=LOWER))
    running = [
        runs(a_gang("stops", "q", priority=3), stopping=True),
        runs(a_gang("runs", "q", priority=0)),
    ]
    plan = planned(configuration, [a_gang("new", "q", priority=9)], running)
    assert victims(plan) == {"new": ["stops"]}
    assert plan.preempting[0].reason == "waits until lab/stops stopped"


def test_who_need_not_have_been_taken_is_put_back():
    configuration = a_configuration(a_queue("q", 5, None, preemption=LOWER))
    running = standing(("small", "q", 1, 0), ("large", "q", 4, 1))
    plan = planned(configuration, [a_gang("new", "q", 4, priority=9)], running)
    assert victims(plan) == {"new": ["large"]}


def test_nobody_is_stopped_for_a_gang_that_does_not_fit_all_the_same():
    configuration = a_configuration(a_queue("q", 5, None, preemption=LOWER))
    running = standing(("low", "q", 1, 0), ("high", "q", 4, 9))
    plan = planned(configuration, [a_gang("new", "q", 3, priority=5)], running)
    assert (victims(plan), plan.admitted) == ({}, ())


# --- Reclaim, by priority -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "priority", "expected"),
    [
        (Preemption(), 0, {}),
        (LOWER, 9, {}),
        (RECLAIM, 0, {"mine": ["a3"]}),
        (RECLAIM_LOWER, 0, {}),
        (RECLAIM_LOWER, 1, {"mine": ["a3"]}),
    ],
)
def test_who_is_entitled_to_quota_takes_it_from_who_borrows_it(policy, priority, expected):
    configuration = a_configuration(
        a_cohort(), a_queue("a", 10), a_queue("b", 10, preemption=policy)
    )
    running = standing(*((f"a{n}", "a", 5, 0) for n in range(4)))
    plan = planned(configuration, [a_gang("mine", "b", 5, priority=priority)], running)
    assert victims(plan) == expected


def test_nobody_loses_what_its_own_quota_holds():
    configuration = a_configuration(
        a_cohort(), a_queue("a", 10), a_queue("b", 10, preemption=RECLAIM)
    )
    running = standing(("a0", "a", 5, 0), ("a1", "a", 5, 0), ("b0", "b", 8, 0))
    plan = planned(configuration, [a_gang("mine", "b", 5, priority=99)], running)
    assert (victims(plan), plan.admitted) == ({}, ())


def test_who_would_borrow_itself_reclaims_nothing():
    configuration = a_configuration(
        a_cohort(), a_queue("a", 4), a_queue("b", 4, preemption=RECLAIM), a_queue("c", 4)
    )
    running = standing(("a0", "a", 4, 0), ("a1", "a", 4, 0), ("b0", "b", 4, 0))
    assert victims(planned(configuration, [a_gang("more", "b", 2, priority=9)], running)) == {}


@pytest.mark.parametrize(
    ("threshold", "priority", "expected"),
    [(None, 9, {"more": ["a1"]}), (None, 0, {}), (0, 9, {"more": ["a1"]}), (-1, 9, {})],
)
def test_who_may_preempt_while_it_borrows_takes_lower_priorities_up_to_a_threshold(
    threshold, priority, expected
):
    policy = Preemption(reclaim=Reclaim.ANY, borrow=True, borrow_threshold=threshold)
    configuration = a_configuration(
        a_cohort(), a_queue("a", 4), a_queue("b", 4, preemption=policy), a_queue("c", 4)
    )
    running = standing(("a0", "a", 4, 0), ("a1", "a", 4, 0), ("b0", "b", 4, 0))
    assert (
        victims(planned(configuration, [a_gang("more", "b", 2, priority=priority)], running))
        == expected
    )


def test_a_queue_takes_what_its_cohort_is_entitled_to_from_outside_and_not_from_a_sibling():
    configuration = a_configuration(
        a_cohort("root"),
        a_cohort("left", 4, "root"),
        a_cohort("right", 4, "root"),
        a_queue("mine", 0, "left", preemption=RECLAIM),
        a_queue("sibling", 0, "left"),
        a_queue("stranger", 0, "right"),
    )
    running = standing(
        ("sibling", "sibling", 2, 0), ("s1", "stranger", 3, 0), ("s2", "stranger", 3, 0)
    )
    plan = planned(configuration, [a_gang("new", "mine", 2)], running)
    assert victims(plan) == {"new": ["s2"]}


def test_what_waits_for_others_to_stop_is_not_given_to_anybody_else():
    configuration = a_configuration(
        a_cohort(), a_queue("a", 2), a_queue("b", 2, preemption=RECLAIM), a_queue("c")
    )
    running = standing(*((f"a{n}", "a", 1, 0) for n in range(4)))
    gangs = [a_gang("mine", "b", 2), a_gang("guest", "c", 1, minute=1)]
    plan = planned(configuration, gangs, running)
    assert (victims(plan), admitted(plan)) == ({"mine": ["a3", "a2"]}, [])


def test_what_victims_leave_over_is_used_only_once_they_have_stopped():
    configuration = a_configuration(a_queue("q", 4, None, preemption=LOWER))
    running = standing(("low", "q", 4, 0))
    gangs = [a_gang("first", "q", 2, priority=9), a_gang("second", "q", 2, priority=5)]
    plan = planned(configuration, gangs, running)
    assert (victims(plan), admitted(plan)) == ({"first": ["low"]}, [])
    assert "asked to stop" in waiting(plan)["second"]


# --- By shares ----------------------------------------------------------------------------------


def fair(*queues, gpus=10, **fields):
    return a_configuration(a_cohort("all", gpus, order=FAIR, **fields), *queues)


def test_the_queue_with_the_largest_share_loses_first():
    configuration = fair(a_queue("a"), a_queue("b"), a_queue("new", preemption=ANY))
    running = standing(
        *((f"a{n}", "a", 1, 0) for n in range(7)), *((f"b{n}", "b", 1, 0) for n in range(3))
    )
    assert victims(planned(configuration, [a_gang("g", "new", 2)], running)) == {"g": ["a6", "a5"]}


def test_a_weight_of_0_loses_first_however_little_it_has():
    configuration = fair(a_queue("a"), a_queue("b", weight=0), a_queue("new", preemption=ANY))
    running = standing(*((f"a{n}", "a", 1, 0) for n in range(9)), ("b0", "b", 1, 0))
    assert victims(planned(configuration, [a_gang("g", "new", 1)], running)) == {"g": ["b0"]}


def test_nobody_gains_a_larger_share_than_the_loser_keeps():
    configuration = fair(a_queue("a", preemption=ANY), a_queue("b"))
    running = standing(*((f"{q}{n}", q, 1, 0) for q in "ab" for n in range(5)))
    assert victims(planned(configuration, [a_gang("more", "a", 1)], running)) == {}


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        ((Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,), {}),
        ((Strategy.LESS_THAN_INITIAL_SHARE,), {"small": ["greedy"]}),
        (tuple(Strategy), {"small": ["greedy"]}),
    ],
)
def test_one_huge_gang_is_stopped_for_a_small_one_only_by_its_initial_share(strategies, expected):
    configuration = fair(a_queue("a"), a_queue("b", preemption=ANY), strategies=strategies)
    plan = planned(configuration, [a_gang("small", "b", 1)], standing(("greedy", "a", 10, 0)))
    assert victims(plan) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(59, {}), (60, {"g": ["a"]})])
def test_shares_stop_a_gang_only_after_its_minimum_run(seconds, expected):
    configuration = fair(a_queue("a"), a_queue("new", preemption=ANY))
    running = [runs(a_gang("a", "a", 10), admitted=NOON - timedelta(seconds=seconds))]
    assert victims(planned(configuration, [a_gang("g", "new", 1)], running)) == expected


def test_a_queue_says_for_how_long_its_gangs_run_at_least():
    patient = Preemption(minimum_run=timedelta(hours=1))
    configuration = fair(a_queue("a", preemption=patient), a_queue("new", preemption=ANY))
    running = [runs(a_gang("a", "a", 10), admitted=NOON - timedelta(minutes=59))]
    assert victims(planned(configuration, [a_gang("g", "new", 1)], running)) == {}


def test_what_a_queue_is_entitled_to_comes_back_at_once():
    configuration = fair(a_queue("owner", 4, preemption=ANY), a_queue("guest"), gpus=0)
    running = [runs(a_gang("guest", "guest", 4), admitted=NOON)]
    plan = planned(configuration, [a_gang("g", "owner", 4)], running)
    assert victims(plan) == {"g": ["guest"]}


def test_what_a_queue_is_entitled_to_comes_back_whatever_the_shares():
    configuration = fair(a_queue("owner", 4, preemption=ANY), a_queue("guest", weight=100), gpus=6)
    running = standing(*((f"g{n}", "guest", 2, 0) for n in range(5)))
    assert victims(planned(configuration, [a_gang("g", "owner", 4)], running)) == {
        "g": ["g4", "g3"]
    }


def test_a_queue_within_its_quota_loses_nothing_by_shares():
    configuration = fair(a_queue("owner", 4), a_queue("guest", preemption=ANY), gpus=0)
    running = standing(("o0", "owner", 4, 0))
    assert victims(planned(configuration, [a_gang("g", "guest", 1, priority=9)], running)) == {}


def test_what_a_lender_keeps_for_itself_is_never_preempted_for_a_borrower():
    configuration = fair(a_queue("lender", 6, lend=2), a_queue("guest", preemption=ANY), gpus=0)
    running = standing(("l0", "lender", 6, 0))
    plan = planned(configuration, [a_gang("g", "guest", 2, priority=9)], running)
    assert (victims(plan), admitted(plan)) == ({}, [])


def settled(configuration, gangs, running, *, rounds=60):
    """Plan and carry out until nothing changes any more; return who runs, and how often anybody stopped."""
    stops = 0
    for number in range(rounds):
        plan = planned(configuration, gangs, running)
        if not plan.admitted and not plan.preempting:
            return running, stops
        stops += sum(len(each) for each in victims(plan).values())
        gangs, running = carried_out(plan, gangs, running, NOON + timedelta(minutes=number))
    pytest.fail(f"still moving after {rounds} plans")


def gpus_by_queue(running):
    used: dict[str, int] = {}
    for each in running:
        used[each.gang.queue] = used.get(each.gang.queue, 0) + each.usage[DEFAULT, GPU]
    return used


def test_a_flooded_tree_settles_at_its_weights_level_by_level():
    configuration = a_configuration(
        a_cohort("root", 300, order=FAIR),
        a_cohort("c1", 0, "root"),
        a_cohort("c2", 0, "root"),
        a_queue("1a", 0, "c1", preemption=ANY),
        a_queue("1b", 0, "c1", preemption=ANY),
        a_queue("1c", 0, "c1", weight=3, preemption=ANY),
        a_queue("2a", 0, "c2", preemption=ANY),
    )
    running = standing(*((f"flood{n}", "1a", 10, 0) for n in range(30)))
    gangs = [a_gang(f"{q}-{n}", q, 10) for q in ("1b", "1c", "2a") for n in range(30)]
    got, _ = settled(configuration, gangs, running)
    assert gpus_by_queue(got) == {"1a": 30, "1b": 30, "1c": 90, "2a": 150}


# --- Flavors ------------------------------------------------------------------------------------


def test_of_flavors_in_which_it_preempts_a_gang_takes_the_first():
    quotas = {(flavor, GPU): Quota(nominal=10) for flavor in ("on-demand", "spot")}
    none = {(flavor, GPU): Quota(nominal=0) for flavor in ("on-demand", "spot")}
    group = ResourceGroup(resources=(GPU,), flavors=("on-demand", "spot"))
    configuration = QueueConfiguration(
        flavors=(Flavor(name="on-demand"), Flavor(name="spot")),
        cohorts=(a_cohort("all", 0),),
        queues=(
            Queue(name="mine", cohort="all", quotas=quotas, groups=(group,), preemption=LOWER),
            Queue(name="guest", cohort="all", quotas=none, groups=(group,)),
        ),
    )

    def on(flavor, name, queue, gpus, priority):
        each = runs(a_gang(name, queue, gpus, priority=priority), admitted=NOON)
        return replace(each, usage={(flavor, GPU): gpus})

    # On spot it would borrow nothing, on on-demand it would: it takes the first all the same.
    running = [
        on("on-demand", "first", "mine", 6, 0),
        on("spot", "second", "mine", 5, 0),
        on("spot", "lent", "guest", 5, 9),
    ]
    plan = planned(configuration, [a_gang("g", "mine", 5, priority=1)], running)
    assert victims(plan) == {"g": ["first"]}


# --- Nodes --------------------------------------------------------------------------------------


def test_nobody_is_stopped_for_a_gang_that_would_find_no_place():
    configuration = a_configuration(a_queue("q", 4, None, preemption=LOWER))
    running = [runs(a_gang(f"low{n}", "q", 2), on={f"n{n}": 2}) for n in range(2)]
    nodes = [a_gpu_node("n0", 2), a_gpu_node("n1", 2)]
    plan = planned(configuration, [a_gang("new", "q", 4, priority=9)], running, nodes)
    assert (victims(plan), admitted(plan)) == ({}, [])


def test_where_quota_is_free_and_nodes_are_not_lower_priorities_make_way():
    configuration = a_configuration(a_queue("q", 100, None, preemption=LOWER))
    running = [
        runs(a_gang("scattered", "q", 2), on={"n0": 1, "n1": 1}),
        runs(a_gang("whole", "q", 4, priority=1), on={"n2": 4}),
    ]
    nodes = [a_gpu_node("n0", 2), a_gpu_node("n1", 2), a_gpu_node("n2", 4)]
    plan = planned(configuration, [a_gang("new", "q", 4, priority=9)], running, nodes)
    assert victims(plan) == {"new": ["whole"]}


def test_the_place_of_victims_is_kept_for_the_gang_they_stop_for():
    configuration = a_configuration(a_queue("q", 100, None, preemption=LOWER))
    running = [runs(a_gang("low", "q", 4), on={"n0": 4})]
    gangs = [a_gang("new", "q", 3, priority=9), a_gang("next", "q", 1, priority=5)]
    plan = planned(configuration, gangs, running, [a_gpu_node("n0", 4)])
    assert victims(plan) == {"new": ["low"]}
    assert admitted(plan) == []


# --- What holds for all -------------------------------------------------------------------------

_RUNNING = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 2)), max_size=8
)
_WAITING = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 6), st.integers(0, 2)), max_size=6
)


def three_queues(order, *, policy=ANY, lend=None, borrow=None):
    return a_configuration(
        a_cohort("all", 3, order=order),
        a_queue("a", 4, preemption=policy, lend=lend, borrow=borrow),
        a_queue("b", 2, preemption=policy, borrow=borrow),
        a_queue("c", 0, weight=2, preemption=policy, borrow=borrow),
    )


def drawn_gangs(specs, prefix, minute=0):
    return [
        a_gang(f"{prefix}{n}", queue, size, priority=priority, minute=minute + n)
        for n, (queue, size, priority) in enumerate(specs)
    ]


def drawn_running(configuration, specs):
    """What a plan would have admitted of them: nothing beyond quota."""
    plan = planned(configuration, drawn_gangs(specs, "r", -60))
    _, running = carried_out(plan, [], [], NOON)
    return running


def cohorts_of_cohorts(order):
    return a_configuration(
        a_cohort("root", 3, order=order),
        a_cohort("left", 2, "root"),
        a_cohort("right", 0, "root", weight=2),
        a_queue("a", 2, "left", preemption=ANY),
        a_queue("b", 0, "left", preemption=ANY),
        a_queue("c", 2, "right", preemption=ANY),
    )


@pytest.mark.parametrize("make", [three_queues, cohorts_of_cohorts])
@pytest.mark.parametrize("order", [*Order], ids=str)
@given(_RUNNING, _WAITING)
def test_plans_settle_nobody_is_stopped_back_and_forth(make, order, running, gangs):
    configuration = make(order)
    settled(configuration, drawn_gangs(gangs, "w"), drawn_running(configuration, running))


def beyond_quota(configuration, queue, running):
    """Return by how much a queue is above its nominal quota with what runs in it."""
    (nominal,) = (
        q.nominal
        for each in configuration.queues
        if each.name == queue
        for q in each.quotas.values()
    )
    return sum(sum(r.usage.values()) for r in running if r.gang.queue == queue) - nominal


@given(st.sampled_from([*Order]), _RUNNING, _WAITING)
@example(Order.PRIORITY, [("a", 1, 0), ("a", 1, 0), ("a", 1, 0), ("b", 4, 0)], [("a", 3, 1)])
def test_no_victim_could_have_been_spared(order, running, gangs):
    """By priority a queue first tries not to borrow, and stops more of its own for that, as Kueue's."""
    configuration = three_queues(order)
    standing_now = drawn_running(configuration, running)
    for gang in drawn_gangs(gangs, "w"):
        plan = planned(configuration, [gang], standing_now)
        for preempting in plan.preempting:
            names = {v.holder.running.gang.uid for v in preempting.victims}
            kept = [r for r in standing_now if r.gang.uid not in names]
            size = sum(role.pods for role in gang.shape.roles)
            within = (
                order is Order.PRIORITY
                and beyond_quota(configuration, gang.queue, kept) + size <= 0
            )
            no_preemption = three_queues(order, policy=Preemption(), borrow=0 if within else None)
            for spared in names:
                rest = [r for r in standing_now if r.gang.uid not in names - {spared}]
                assert admitted(planned(no_preemption, [gang], rest)) == []


@given(st.sampled_from([*Order]), _RUNNING, _WAITING)
def test_a_gang_for_which_others_stopped_starts_next(order, running, gangs):
    configuration = three_queues(order)
    standing_now = drawn_running(configuration, running)
    waits = drawn_gangs(gangs, "w")
    plan = planned(configuration, waits, standing_now)
    promised = set(victims(plan))
    waits, standing_now = carried_out(plan, waits, standing_now, NOON)
    assert promised <= set(admitted(planned(configuration, waits, standing_now)))


@given(_RUNNING, _WAITING)
def test_a_lender_gets_back_what_it_does_not_lend_at_once(running, gangs):
    configuration = three_queues(FAIR, lend=1)
    others = [spec for spec in running if spec[0] != "a"]
    standing_now = drawn_running(configuration, others)
    mine = a_gang("mine", "a", 3)
    plan = planned(
        configuration, [mine, *drawn_gangs([g for g in gangs if g[0] != "a"], "w")], standing_now
    )
    assert "mine" in admitted(plan)
