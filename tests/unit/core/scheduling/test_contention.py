"""A pod leaves for a place only where nobody else can take it, whoever the scheduler asks first."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.scheduling import ClusterSnapshot, headroom_for
from plimsoll.domain.scheduling.contention import Contention
from plimsoll.domain.scheduling.preemption import PreemptingSnapshot
from tests.support.builders import (
    ZONE_A,
    ZONE_B,
    a_claim,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
)

SIZES = ("1", "2", "3")
ZONES = ("a", "b")


def a_snapshot(free: Sequence[tuple[str, str]]) -> ClusterSnapshot:
    """Return nodes with so many processors in such a zone."""
    nodes = [
        a_node(f"node-{n}", cpu=cpu, labels={"zone": zone}) for n, (cpu, zone) in enumerate(free)
    ]
    return ClusterSnapshot(nodes, [])


def can_be_shut_out(snapshot: ClusterSnapshot, pod: Pod, others: Sequence[Pod]) -> bool:
    """Whether the others, some or all of them, can be placed so that the pod has no place left."""
    if not snapshot.candidates(pod):
        return True
    for n, other in enumerate(others):
        for node in snapshot.candidates(other):
            snapshot.place(other, node.name)
            shut = can_be_shut_out(snapshot, pod, [*others[:n], *others[n + 1 :]])
            snapshot.remove(other)
            if shut:
                return True
    return False


wishes = st.lists(
    st.tuples(st.sampled_from(SIZES), st.sampled_from((None, *ZONES)), st.booleans()),
    min_size=1,
    max_size=4,
)
free = st.lists(st.tuples(st.sampled_from((*SIZES, "5")), st.sampled_from(ZONES)), max_size=3)


@given(free=free, wishes=wishes)
def test_who_may_leave_has_a_place_however_the_others_are_placed(free, wishes):
    snapshot = a_snapshot(free)
    contention = Contention(snapshot.copy())
    told: list[Pod] = []
    safe: list[Pod] = []
    for n, (cpu, zone, leaves) in enumerate(wishes):
        selector = {"nodeSelector": {"zone": zone}} if zone else {}
        pod = a_pod(f"pod-{n}", cpu=cpu, owner=None, **selector)
        if leaves and not contention.holds(pod):
            continue
        told.append(pod)
        if leaves:
            contention.promise(pod)
            safe.append(pod)
        elif contention.spares(pod, 1):
            contention.join(pod)
        else:
            told.pop()
    for pod in safe:
        assert not can_be_shut_out(snapshot, pod, [p for p in told if p is not pod])


@given(
    free=st.lists(st.tuples(st.sampled_from(SIZES), st.sampled_from(("0", *SIZES))), max_size=3),
    wishes=st.lists(
        st.tuples(st.sampled_from(SIZES), st.sampled_from((0, 0, -1)), st.booleans()),
        min_size=1,
        max_size=4,
    ),
)
def test_a_place_where_others_make_way_is_promised_once_and_balloons_take_none(free, wishes):
    nodes = [
        a_node(f"node-{n}", cpu=str(int(rest) + int(taken))) for n, (rest, taken) in enumerate(free)
    ]
    balloons = [
        a_pod(f"balloon-{n}", node=f"node-{n}", cpu=taken, priority=-10)
        for n, (_, taken) in enumerate(free)
    ]
    snapshot = PreemptingSnapshot(nodes, balloons)
    contention = Contention(snapshot.copy())
    told: list[Pod] = []
    safe: list[Pod] = []
    for n, (cpu, priority, leaves) in enumerate(wishes):
        pod = a_pod(f"pod-{n}", cpu=cpu, owner=None, priority=priority)
        if priority < 0:
            contention.join(pod, 9)
        elif leaves and contention.holds(pod):
            contention.promise(pod)
            safe.append(pod)
            told.append(pod)
        elif not leaves and contention.spares(pod, 1):
            contention.join(pod)
            told.append(pod)
    for pod in safe:
        others = [p for p in told if p is not pod]
        assert not can_be_shut_out(snapshot.without_yielding, pod, others)


def test_a_pod_that_preempts_nobody_has_no_place_where_others_make_way():
    balloon = a_pod("balloon", node="node-1", cpu="8", priority=-10)
    contention = Contention(PreemptingSnapshot([a_node("node-1")], [balloon]))
    assert contention.holds(a_pod("web", cpu="8"))
    assert not contention.holds(a_pod("polite", cpu="8", preemptionPolicy="Never"))
    assert not contention.holds(a_pod("other", cpu="8", priority=-1))


def test_a_place_that_is_kept_is_spared():
    snapshot = a_snapshot([("4", "a")])
    contention = Contention(snapshot.copy())
    later = a_pod("db-0", cpu="2")
    contention.keep(later)
    assert contention.spares(a_pod("web", cpu="1"), 9) == 2
    assert contention.holds(a_pod("leader", cpu="1"))
    assert contention.holds(later)
    contention.promise(later)
    assert contention.spares(a_pod("web", cpu="1"), 9) == 1


def test_a_pod_for_other_nodes_holds_nobody_back():
    snapshot = a_snapshot([("1", "a"), ("1", "b")])
    contention = Contention(snapshot.copy())
    contention.promise(a_pod("odd", cpu="1", nodeSelector={"zone": "a"}))
    assert contention.holds(a_pod("web", cpu="1", nodeSelector={"zone": "b"}))
    assert not contention.holds(a_pod("web", cpu="1"))


def test_of_pods_like_one_as_many_are_spared_as_leave_a_place_to_each_promise():
    snapshot = a_snapshot([("3", "a")])
    contention = Contention(snapshot.copy())
    contention.promise(a_pod("first", cpu="1"))
    assert contention.spares(a_pod("next", cpu="1"), 9) == 2
    assert contention.spares(a_pod("elsewhere", cpu="1", nodeSelector={"zone": "b"}), 9) == 9


def test_a_pod_that_a_stateful_set_owes_may_want_a_place_in_the_zone_of_any_of_its_volumes():
    db = {"owner": ("StatefulSet", "db"), "labels": {"app": "db"}, "volumes": mounting("data")}
    seen = Observation(
        cluster="harbor",
        nodes=[a_node("a", cpu="1", zone=ZONE_A), a_node("b", cpu="1", zone=ZONE_B)],
        pods=[a_pod("db-1", node="b", cpu="1", **db)],
        workloads=[a_stateful_set(replicas=2)],
        claims={("default", "data"): a_claim(zone=ZONE_B)},
    )
    headroom = headroom_for(seen, InterruptedNodes.of(seen))
    assert not headroom.contention.holds(a_pod("web", cpu="1"))
