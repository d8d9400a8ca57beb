"""Which gangs start: order, shares, flavors, kinds that are hopeless, places and reservations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Taint, Toleration
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_batch.domain.admission.fair_sharing_order import age_of
from plimsoll_batch.domain.admission.pending_queues import PendingQueue
from plimsoll_batch.domain.jobs.gangs import Topology
from plimsoll_batch.domain.quota.cohorts import Flavor, Order, QueueOrder
from tests.support.builders import NOON
from tests.support.queued import (
    DEFAULT,
    FAIR,
    GPU,
    a_cohort,
    a_configuration,
    a_gang,
    a_gpu_node,
    a_queue,
    a_shape,
    admitted,
    place_of,
    planned,
    runs,
    waiting,
)

STRICT = QueueOrder.STRICT_FIFO


# --- One queue -----------------------------------------------------------------------------------


def test_gangs_start_by_priority_and_then_by_age():
    configuration = a_configuration(a_queue("q", 3, None))
    gangs = [
        a_gang("late", "q", minute=2),
        a_gang("early", "q", minute=1),
        a_gang("urgent", "q", minute=3, priority=10),
    ]
    assert admitted(planned(configuration, gangs)) == ["urgent", "early", "late"]


def test_who_others_were_stopped_for_comes_before_everybody():
    configuration = a_configuration(a_queue("q", 1, None))
    gangs = [a_gang("urgent", "q", priority=10), a_gang("promised", "q", nominated=True)]
    assert admitted(planned(configuration, gangs)) == ["promised"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [(QueueOrder.BEST_EFFORT_FIFO, ["small"]), (STRICT, [])],
)
def test_a_gang_that_does_not_fit_is_overtaken_only_in_best_effort_order(order, expected):
    configuration = a_configuration(a_queue("q", 2, None, order=order))
    running = [runs(a_gang("old", "q"))]
    gangs = [a_gang("large", "q", 2, minute=1), a_gang("small", "q", 1, minute=2)]
    plan = planned(configuration, gangs, running)
    assert admitted(plan) == expected
    assert "no quota left" in waiting(plan)["large"]


def test_who_is_behind_in_a_strict_queue_is_told_who_is_first():
    configuration = a_configuration(a_queue("q", 2, None, order=STRICT))
    gangs = [a_gang("large", "q", 2), a_gang("small", "q", minute=1)]
    told = waiting(planned(configuration, gangs, [runs(a_gang("old", "q"))]))["small"]
    assert "lab/large is first" in told


@pytest.mark.parametrize(
    ("gang", "reason"),
    [
        (a_gang("g", "nowhere"), "there is no queue nowhere"),
        (a_gang("g", "stopped"), "queue stopped is stopped"),
        (a_gang("g", "q", gates=("its Jobs have 4 of 6 pods",)), "its Jobs have 4 of 6 pods"),
        (a_gang("g", "q", 9), "can never have more than 2"),
        (a_gang("g", "q", shape=a_shape(1, cpu=1)), "has no quota for cpu"),
    ],
)
def test_who_cannot_be_considered_is_told_why_and_others_go_on(gang, reason):
    configuration = a_configuration(
        a_queue("q", 2, None), a_queue("stopped", 2, None, stopped=True)
    )
    plan = planned(configuration, [gang, a_gang("other", "q")])
    assert admitted(plan) == ["other"]
    assert reason in waiting(plan)["g"]


def test_a_configuration_with_problems_is_refused():
    with pytest.raises(BadInput, match="queue q: cohort: there is no cohort all"):
        planned(a_configuration(a_queue("q", 1)), [])


def test_no_more_pods_start_than_the_control_plane_takes():
    configuration = a_configuration(a_queue("q", 100, None))
    gangs = [a_gang(f"g{n}", "q", shape=a_shape(1, 4), minute=n) for n in range(5)]
    plan = planned(configuration, gangs, most_pods=10)
    assert admitted(plan) == ["g0", "g1"]
    assert "control plane" in waiting(plan)["g2"]


# --- Order in a tree -----------------------------------------------------------------------------


def test_by_priority_who_need_not_borrow_comes_before_who_must():
    configuration = a_configuration(a_cohort(), a_queue("poor", 0), a_queue("rich", 2))
    gangs = [a_gang("borrower", "poor", 2, priority=10), a_gang("owner", "rich", 2)]
    assert admitted(planned(configuration, gangs)) == ["owner"]


def test_a_queue_that_borrows_from_its_own_cohort_comes_before_one_that_borrows_from_further_up():
    configuration = a_configuration(
        a_cohort("root", 1),
        a_cohort("left", 1, "root"),
        a_cohort("right", 0, "root"),
        a_queue("near", 0, "left"),
        a_queue("far", 0, "right"),
    )
    gangs = [a_gang("far", "far", priority=10), a_gang("near", "near")]
    assert admitted(planned(configuration, gangs)) == ["near", "far"]


def shares_of(order, queues, gpus, each=200, cohorts=(), **minutes):
    """How many of a tree's GPUs each queue gets while all want more than there are."""
    configuration = a_configuration(a_cohort("root", gpus, order=order), *cohorts, *queues)
    gangs = [
        a_gang(f"{queue.name}-{n:03}", queue.name, minute=minutes.get(queue.name, 0) + n)
        for queue in queues
        for n in range(each)
    ]
    counted = dict.fromkeys((queue.name for queue in queues), 0)
    for each_admitted in planned(configuration, gangs).admitted:
        counted[each_admitted.gang.queue] += 1
    return counted


@pytest.mark.parametrize(
    "order", [FAIR, Order.DRF, Order.HIERARCHICAL_DRF, Order.WATER_FILLING], ids=str
)
def test_shares_follow_weights_whoever_came_first(order):
    queues = [a_queue("a", 0, "root"), a_queue("b", 0, "root"), a_queue("c", 0, "root", weight=3)]
    got = shares_of(order, queues, 100, a=0, b=500, c=1000)
    assert got == {"a": 20, "b": 20, "c": 60}


def test_by_priority_and_age_the_first_comer_gets_everything():
    queues = [a_queue("a", 0, "root"), a_queue("b", 0, "root")]
    got = shares_of(None, queues, 100, b=500)
    assert got == {"a": 100, "b": 0}


def test_cohorts_share_first_and_their_queues_after_them():
    cohorts = [a_cohort("c1", 0, "root"), a_cohort("c2", 0, "root")]
    queues = [
        a_queue("a", 0, "c1"),
        a_queue("b", 0, "c1"),
        a_queue("c", 0, "c1", weight=3),
        a_queue("d", 0, "c2"),
    ]
    got = shares_of(FAIR, queues, 300, cohorts=cohorts, each=300)
    assert got == {"a": 30, "b": 30, "c": 90, "d": 150}


def test_textbook_shares_look_at_queues_whatever_their_cohort():
    cohorts = [a_cohort("c1", 0, "root"), a_cohort("c2", 0, "root")]
    queues = [a_queue("a", 0, "c1"), a_queue("b", 0, "c1"), a_queue("d", 0, "c2")]
    got = shares_of(Order.DRF, queues, 90, cohorts=cohorts)
    assert got == {"a": 30, "b": 30, "d": 30}


def test_use_within_quota_counts_nothing_for_the_borrowed_share_and_everything_for_the_textbook():
    queues = [a_queue("owner", 40, "root"), a_queue("guest", 0, "root")]
    assert shares_of(FAIR, queues, 20) == {"owner": 50, "guest": 10}
    assert shares_of(Order.DRF, queues, 20) == {"owner": 30, "guest": 30}


def test_water_filling_gives_what_a_queue_does_not_want_to_the_others():
    configuration = a_configuration(
        a_cohort("root", 90, order=Order.WATER_FILLING),
        *(a_queue(name, 0, "root") for name in "abc"),
    )
    gangs = [a_gang(f"a{n:02}", "a") for n in range(10)]
    gangs += [a_gang(f"{q}{n:02}", q) for q in "bc" for n in range(90)]
    got = [each.gang.queue for each in planned(configuration, gangs).admitted]
    assert {q: got.count(q) for q in "abc"} == {"a": 10, "b": 40, "c": 40}


def test_a_weight_of_0_borrows_only_what_nobody_else_wants():
    queues = [a_queue("last", 0, "root", weight=0), a_queue("first", 0, "root")]
    assert shares_of(FAIR, queues, 50, each=40) == {"first": 40, "last": 10}


# --- Flavors ------------------------------------------------------------------------------------


SPOT = Flavor(name="spot", node_labels={"capacity": "spot"})
ON_DEMAND = Flavor(name="on-demand", node_labels={"capacity": "on-demand"})


def flavors_of(plan):
    return {each.gang.name: next(iter(each.flavors.values())) for each in plan.admitted}


def test_flavors_are_taken_in_their_order_as_long_as_quota_lasts():
    configuration = a_configuration(a_queue("q", cohort=None, flavors={"spot": 1, "on-demand": 1}))
    gangs = [a_gang("first", "q"), a_gang("second", "q", minute=1)]
    assert flavors_of(planned(configuration, gangs)) == {
        "first": ("spot",),
        "second": ("on-demand",),
    }


def test_a_gang_that_selects_nodes_of_one_flavor_gets_no_other():
    configuration = a_configuration(
        a_queue("q", cohort=None, flavors={"spot": 5, "on-demand": 5}), flavors=(SPOT, ON_DEMAND)
    )
    gang = a_gang("g", "q", shape=a_shape(selector={"capacity": "on-demand", "disk": "fast"}))
    assert flavors_of(planned(configuration, [gang])) == {"g": ("on-demand",)}


@pytest.mark.parametrize("tolerated", [True, False])
def test_a_taint_of_a_flavor_has_to_be_tolerated(tolerated):
    tainted = Flavor(
        name="spot",
        taints=(Taint(key="spot"),),
        tolerations=(Toleration(key="spot", operator="Exists"),) if tolerated else (),
    )
    configuration = a_configuration(
        a_queue("q", cohort=None, flavors={"spot": 5}), flavors=(tainted,)
    )
    plan = planned(configuration, [a_gang("g", "q")])
    assert admitted(plan) == (["g"] if tolerated else [])
    assert tolerated or "untolerated taint {spot: }" in waiting(plan)["g"]


@pytest.mark.parametrize(("borrow_first", "flavor"), [(True, "spot"), (False, "on-demand")])
def test_a_queue_says_whether_it_borrows_before_it_tries_the_next_flavor(borrow_first, flavor):
    configuration = a_configuration(
        a_cohort(),
        a_queue("q", flavors={"spot": 0, "on-demand": 1}, borrow_first=borrow_first),
        a_queue("other", flavors={"spot": 1, "on-demand": 0}),
    )
    assert flavors_of(planned(configuration, [a_gang("g", "q")])) == {"g": (flavor,)}


def test_each_role_has_a_flavor_of_its_own_and_all_count_together():
    configuration = a_configuration(a_queue("q", cohort=None, flavors={"spot": 4, "on-demand": 2}))
    gang = a_gang("g", "q", shape=a_shape(roles=(("workers", 4, 1), ("ps", 2, 1))))
    plan = planned(configuration, [gang])
    assert plan.admitted[0].flavors == {"workers": ("spot",), "ps": ("on-demand",)}
    assert plan.admitted[0].usage == {("spot", GPU): 4, ("on-demand", GPU): 2}


# --- Places -------------------------------------------------------------------------------------

PLENTY = a_configuration(a_queue("q", 1000, None))


def test_a_gang_starts_only_when_all_its_pods_have_a_place():
    nodes = [a_gpu_node("n1", 3), a_gpu_node("n2", 2)]
    gangs = [
        a_gang("six", "q", shape=a_shape(1, 6)),
        a_gang("four", "q", shape=a_shape(roles=(("ps", 2, 1), ("workers", 2, 1))), minute=1),
    ]
    plan = planned(PLENTY, gangs, nodes=nodes)
    assert admitted(plan) == ["four"]
    assert "5 of 6 pods have a place" in waiting(plan)["six"]


def test_pods_have_to_fit_on_nodes_and_not_only_in_sum():
    nodes = [a_gpu_node(f"n{n}", 3) for n in range(4)]
    plan = planned(PLENTY, [a_gang("g", "q", shape=a_shape(2, 6))], nodes=nodes)
    assert admitted(plan) == []


def test_what_runs_takes_its_place():
    running = [runs(a_gang("old", "q", 3), on={"n1": 3})]
    plan = planned(PLENTY, [a_gang("g", "q", 2)], running, [a_gpu_node("n1", 4)])
    assert "g" not in admitted(plan)


def test_a_gang_goes_to_the_next_flavor_where_nodes_of_the_first_are_full():
    configuration = a_configuration(
        a_queue("q", cohort=None, flavors={"spot": 9, "on-demand": 9}), flavors=(SPOT, ON_DEMAND)
    )
    nodes = [a_gpu_node("s", 1, capacity="spot"), a_gpu_node("o", 2, capacity="on-demand")]
    plan = planned(configuration, [a_gang("g", "q", shape=a_shape(1, 2))], nodes=nodes)
    assert flavors_of(plan) == {"g": ("on-demand",)}
    assert place_of(plan).nodes == {"workers": {"o": 2}}


@pytest.mark.parametrize(("required", "starts"), [(True, []), (False, ["g"])])
def test_a_topology_that_no_domain_can_hold_is_a_wish_or_a_condition(required, starts):
    nodes = [a_gpu_node("n1", 2, rack="r1"), a_gpu_node("n2", 2, rack="r2")]
    shape = a_shape(1, 3, topology=Topology(label="rack", required=required))
    assert admitted(planned(PLENTY, [a_gang("g", "q", shape=shape)], nodes=nodes)) == starts


def test_all_pods_stand_in_the_smallest_domain_that_holds_them():
    nodes = [
        a_gpu_node("n1", 8, rack="large"),
        a_gpu_node("n2", 1, rack="small"),
        a_gpu_node("n3", 2, rack="small"),
    ]
    shape = a_shape(1, 3, topology=Topology(label="rack", required=True))
    plan = planned(PLENTY, [a_gang("g", "q", shape=shape)], nodes=nodes)
    assert place_of(plan).domain == (("rack", "small"),)
    assert place_of(plan).nodes == {"workers": {"n2": 1, "n3": 2}}


def test_ten_thousand_hopeless_gangs_cost_one_search_for_a_place(monkeypatch):
    tries = []
    choose = ClusterSnapshot.choose

    def counted(*args):
        tries.append(1)
        return choose(*args)

    monkeypatch.setattr(ClusterSnapshot, "choose", counted)
    gangs = [a_gang(f"g{n}", "q", shape=a_shape(8)) for n in range(10_000)]
    plan = planned(a_configuration(a_queue("q", 10**9, None)), gangs, nodes=[a_gpu_node("n", 4)])
    assert len(plan.waiting) == 1
    assert len(plan.waiting[0].gangs) == 10_000
    assert len(tries) < 10


# --- Reservations -------------------------------------------------------------------------------


def crowded(*, minutes: int | None = 60):
    """A node of 4 GPUs: 3 are taken for so long."""
    limit = None if minutes is None else timedelta(minutes=minutes)
    return [runs(a_gang("old", "q", 3, limit=limit), on={"n1": 3}, admitted=NOON)]


def test_nodes_are_kept_free_for_the_first_that_has_quota_and_no_place():
    gangs = [a_gang("large", "q", 4), a_gang("small", "q", 1, minute=1)]
    plan = planned(PLENTY, gangs, crowded(), [a_gpu_node("n1", 4)])
    assert admitted(plan) == []
    assert [(r.gang.name, r.at) for r in plan.reserved] == [("large", NOON + timedelta(hours=1))]
    assert [gang.name for gang in plan.reserved[0].after] == ["old"]


@pytest.mark.parametrize(("minutes", "starts"), [(60, ["small"]), (61, [])])
def test_a_gang_that_ends_in_time_runs_on_reserved_nodes_meanwhile(minutes, starts):
    small = a_gang("small", "q", 1, minute=1, limit=timedelta(minutes=minutes))
    plan = planned(PLENTY, [a_gang("large", "q", 4), small], crowded(), [a_gpu_node("n1", 4)])
    assert admitted(plan) == starts


def test_nodes_that_the_first_does_not_need_are_open_to_others():
    gangs = [a_gang("large", "q", 4), a_gang("small", "q", 1, minute=1)]
    nodes = [a_gpu_node("n1", 4), a_gpu_node("n2", 2)]
    plan = planned(PLENTY, gangs, crowded(), nodes)
    assert place_of(plan).nodes == {"workers": {"n2": 1}}


def test_nothing_is_reserved_for_a_gang_that_would_not_fit_on_empty_nodes():
    gangs = [a_gang("huge", "q", 5), a_gang("small", "q", 1, minute=1)]
    plan = planned(PLENTY, gangs, crowded(), [a_gpu_node("n1", 4)])
    assert (admitted(plan), plan.reserved) == (["small"], ())


def test_where_nobody_says_when_gangs_end_nothing_runs_on_reserved_nodes():
    small = a_gang("small", "q", 1, minute=1, limit=timedelta(minutes=1))
    gangs = [a_gang("large", "q", 4), small]
    plan = planned(PLENTY, gangs, crowded(minutes=None), [a_gpu_node("n1", 4)])
    assert (admitted(plan), plan.reserved[0].at) == ([], None)


# --- Properties ---------------------------------------------------------------------------------


@given(
    st.sampled_from([*Order]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 2)), max_size=30),
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
)
def test_every_gang_is_in_one_decision_and_neither_quota_nor_nodes_are_exceeded(
    order, drawn, sizes
):
    configuration = a_configuration(
        a_cohort("all", 4, order=order),
        a_queue("q0", 5),
        a_queue("q1", 3, borrow=2),
        a_queue("q2", 6, lend=2),
        a_queue("q3", 2, order=STRICT),
    )
    gangs = [
        a_gang(f"g{n}", f"q{q}", shape=a_shape(1, pods), priority=priority, minute=n)
        for n, (q, pods, priority) in enumerate(drawn)
    ]
    nodes = [a_gpu_node(f"n{n}", size) for n, size in enumerate(sizes)]
    plan = planned(configuration, gangs, nodes=nodes)
    decided = [*admitted(plan), *waiting(plan), *(r.gang.name for r in plan.reserved)]
    assert sorted(decided) == sorted(gang.name for gang in gangs)
    used = dict.fromkeys(("q0", "q1", "q2", "q3"), 0)
    on_node = dict.fromkeys((node.name for node in nodes), 0)
    for each in plan.admitted:
        used[each.gang.queue] += each.usage[DEFAULT, GPU]
        for placed in place_of(plan, each.gang.name).nodes.values():
            for name, pods in placed.items():
                on_node[name] += pods
    assert used["q1"] <= 3 + 2
    assert sum(used.values()) <= 4 + 5 + 3 + 6 + 2
    assert used["q0"] + used["q1"] + used["q3"] <= 4 + 5 + 3 + 2 + 2
    for node, size in zip(nodes, sizes, strict=True):
        assert on_node[node.name] <= size


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(-2, 2), st.integers(0, 3)), min_size=1, max_size=12
    )
)
def test_a_line_gives_its_gangs_in_the_order_of_their_age(drawn):
    gangs = [
        a_gang(f"g{n}", "q", nominated=nominated, priority=priority, minute=minute)
        for n, (nominated, priority, minute) in enumerate(drawn)
    ]
    line = PendingQueue(a_queue("q", 1), gangs)
    (waiting,) = line.rest("")
    assert list(waiting.gangs) == sorted(gangs, key=age_of)
    taken = []
    while (head := line.head()) is not None:
        taken.append(head)
        line.pop()
    assert taken == sorted(gangs, key=age_of)
