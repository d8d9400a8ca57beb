"""The board keeps its counts as pods and nodes come and go, and its copies to themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from plimsoll.domain.kubernetes import Node, Pod, why_never
from plimsoll.domain.scheduling import ClusterSnapshot, Headroom
from plimsoll.domain.scheduling.contention import Contention
from plimsoll.domain.scheduling.node_filter_cache import in_reach
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_node, a_pod, pods_of
from tests.support.cluster_strategies import CLAIMS, node_lists, pods, zones


class TestPlacing:
    def test_a_pod_takes_its_room_and_gives_it_back(self):
        snapshot, pod = ClusterSnapshot([a_node("a", cpu="2")], []), a_pod(cpu="2")
        snapshot.place(pod, "a")
        assert (snapshot.free("a").cpu, snapshot.where(pod), snapshot.on("a")) == (0, "a", (pod,))
        snapshot.remove(pod)
        assert (snapshot.free("a").cpu, snapshot.where(pod), snapshot.on("a")) == (2000, None, ())
        snapshot.remove(pod)
        assert snapshot.free("a").cpu == 2000

    def test_placing_again_moves_or_replaces(self):
        snapshot = ClusterSnapshot(
            [a_node("a", cpu="2"), a_node("b", cpu="2")], [a_pod(cpu="2", node="a")]
        )
        snapshot.place(a_pod(cpu="1"), "b")
        assert (snapshot.free("a").cpu, snapshot.free("b").cpu) == (2000, 1000)

    def test_a_node_that_is_not_there_takes_nothing_and_moves_nothing(self):
        snapshot, pod = ClusterSnapshot([a_node("a")], []), a_pod()
        snapshot.place(pod, "a")
        with pytest.raises(KeyError):
            snapshot.place(pod, "b")
        assert snapshot.where(pod) == "a"

    def test_a_pod_on_the_board_is_seen_as_if_it_had_left(self):
        node, pod = a_node("a", cpu="2"), a_pod(cpu="2", node="a")
        snapshot = ClusterSnapshot([node], [pod])
        assert snapshot.candidates(pod) == [node]
        assert snapshot.why_not(pod, node) is None
        assert snapshot.where(pod) == "a"
        assert snapshot.why_not(replace(pod, uid="another"), node) == "Insufficient cpu"

    def test_a_node_that_leaves_takes_its_pods_along(self):
        pod = a_pod(node="a")
        snapshot = ClusterSnapshot([a_node("a")], [pod])
        snapshot.remove_node("a")
        snapshot.remove_node("a")
        assert (list(snapshot.nodes), snapshot.where(pod)) == ([], None)

    def test_a_changed_node_keeps_its_pods(self):
        snapshot = ClusterSnapshot([a_node("a", cpu="2")], [a_pod(node="a", cpu="1")])
        snapshot.add_node(a_node("a", cpu="4", unschedulable=True))
        assert snapshot.free("a").cpu == 3000
        heartbeat = replace(snapshot.nodes["a"], resource_version="2")
        snapshot.add_node(heartbeat)
        assert snapshot.nodes["a"] is heartbeat
        assert snapshot.free("a").cpu == 3000


class TestBest:
    A1, A2 = a_node("a1", zone=ZONE_A), a_node("a2", zone=ZONE_A)
    B1 = a_node("b1", zone=ZONE_B)

    def test_the_emptiest_node_is_taken_and_ties_go_by_name(self):
        snapshot = ClusterSnapshot([self.A2, self.A1, self.B1], [a_pod("x", node="a1", owner=None)])
        assert snapshot.best(a_pod(), [self.A2, self.A1, self.B1]) is self.A2

    def test_pods_of_an_owner_keep_apart_by_zone_and_node(self):
        snapshot = ClusterSnapshot([self.A1, self.A2, self.B1], [])
        for pod in pods_of("web", 3):
            snapshot.place(pod, snapshot.best(pod, snapshot.candidates(pod)).name)
        assert {name: len(snapshot.on(name)) for name in snapshot.nodes} == {
            "a1": 1,
            "a2": 1,
            "b1": 1,
        }

    def test_a_node_that_a_pod_of_the_owner_has_left_is_as_good_as_any(self):
        snapshot = ClusterSnapshot([self.A1, self.A2, self.B1], [])
        [pod] = pods_of("web", 1)
        snapshot.place(pod, "a1")
        snapshot.remove(pod)
        for other in (self.A2, self.B1):
            assert snapshot.best(pod, [self.A1, other]) is self.A1

    def test_a_node_that_becomes_ready_or_ceases_to_be_is_judged_anew(self):
        snapshot = ClusterSnapshot([self.A1], [])
        for ready in (False, True, False):
            snapshot.add_node(replace(self.A1, ready=ready))
            assert len(snapshot.candidates(a_pod())) == ready

    def test_a_node_that_would_rather_not_is_taken_last(self):
        taint = {"key": "k", "effect": "PreferNoSchedule"}
        shy = a_node("a0", taints=[taint])
        snapshot = ClusterSnapshot([shy, self.A1], [])
        assert snapshot.best(a_pod(), [shy, self.A1]) is self.A1
        assert snapshot.best(a_pod(tolerations=[{"operator": "Exists"}]), [shy, self.A1]) is shy

    def test_a_node_that_says_nothing_of_its_size_is_full(self):
        bare = a_node("a0", cpu="0", memory="0")
        assert ClusterSnapshot([bare, self.A1], []).best(a_pod(), [bare, self.A1]) is self.A1


def test_asking_what_would_fit_without_a_pod_leaves_that_pod_where_it_is():
    one, other = a_pod("one", cpu="2"), a_pod("other", node="a1", cpu="2")
    snapshot = ClusterSnapshot([a_node("a1", cpu="2")], [other])
    headroom = Headroom(snapshot=snapshot, contention=Contention(snapshot.copy(), frozenset()))
    for _ in range(2):
        assert headroom.fits_without(one, other)
        assert snapshot.where(other) == "a1"
        assert snapshot.choose(one) is None


def test_a_pod_that_has_a_place_anyway_waits_for_nobody_to_leave():
    one, other = a_pod("one", cpu="2"), a_pod("other", node="a1", cpu="2")
    snapshot = ClusterSnapshot([a_node("a1", cpu="2"), a_node("a2", cpu="2")], [other])
    headroom = Headroom(snapshot=snapshot, contention=Contention(snapshot.copy(), frozenset()))
    assert not headroom.fits_without(one, other)


@pytest.mark.parametrize(
    "unfit",
    [
        a_node("b", taints=[{"key": "apart", "effect": "NoSchedule"}]),
        a_node("b", unschedulable=True),
        a_node("b", ready=False),
        a_node("b", labels={"disk": "hdd"}),
    ],
    ids=["tainted", "cordoned", "not Ready", "other label"],
)
def test_nodes_that_differ_in_what_a_template_requires_are_judged_apart(unfit):
    fit = a_node("a", labels={"disk": "ssd"})
    if "disk" not in unfit.labels:
        unfit = replace(unfit, labels={**unfit.labels, "disk": "ssd"})
    pod = a_pod(nodeSelector={"disk": "ssd"})
    for nodes in ([fit, unfit], [unfit, fit]):
        snapshot = ClusterSnapshot(nodes, [])
        assert list(snapshot.suitable(pod)) == ["a"]
        assert [node.name for node in nodes if snapshot.why_not(pod, node) is None] == ["a"]


def test_a_template_that_names_its_node_is_judged_by_the_name():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = a_pod(affinity={"nodeAffinity": required})
    assert list(ClusterSnapshot([a_node("a"), a_node("b")], []).suitable(pod)) == ["b"]


class Boards(RuleBasedStateMachine):
    """A board that was changed step by step answers like one made anew, and so does its copy."""

    nodes = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = ClusterSnapshot([], [], CLAIMS)
        self.now: dict[str, Node] = {}
        self.placed: dict[str, tuple[Pod, str]] = {}
        self.kept: tuple[ClusterSnapshot, list[Pod], list[list[str]]] | None = None
        self.probes: list[Pod] = []

    @rule(target=nodes, found=node_lists(least=1), zone=zones)
    def a_node_comes_or_changes(self, found: list[Node], zone: str):
        node = replace(found[0], name=f"{zone}-{len(found)}")
        self.snapshot.add_node(node)
        self.now[node.name] = node
        return node.name

    @rule(name=consumes(nodes))
    def a_node_leaves(self, name: str):
        self.snapshot.remove_node(name)
        self.now.pop(name, None)
        self.placed = {u: (p, n) for u, (p, n) in self.placed.items() if n != name}

    @rule(name=nodes, pod=pods("p", nodes=[]), number=st.integers(0, 5), interrupted=st.booleans())
    def a_pod_is_placed(self, name: str, pod: Pod, number: int, interrupted: bool):  # noqa: FBT001 - drawn
        pod = replace(pod, uid=f"u{number}", deleting=NOON if interrupted else None)
        if name in self.now:
            self.snapshot.place(pod, name)
            self.placed[pod.uid] = (pod, name)

    @rule(number=st.integers(0, 5))
    def a_pod_leaves(self, number: int):
        if f"u{number}" in self.placed:
            self.snapshot.remove(self.placed.pop(f"u{number}")[0])

    @rule(pod=pods("probe", nodes=[]))
    def a_pod_is_asked_for(self, pod: Pod):
        self.probes = [*self.probes[-3:], pod]

    @rule()
    def a_copy_is_taken_and_kept(self):
        probes = list(self.probes)
        self.kept = (self.snapshot.copy(), probes, self.answers(self.snapshot, probes))

    @rule()
    def a_copy_goes_on_in_place_of_the_board(self):
        self.snapshot = self.snapshot.copy()

    @invariant()
    def answers_are_those_of_a_new_board(self):
        standing = [replace(pod, node=name) for pod, name in self.placed.values()]
        fresh = ClusterSnapshot(self.now.values(), standing, CLAIMS)
        assert self.answers(self.snapshot, self.probes) == self.answers(fresh, self.probes)
        assert {n: self.snapshot.free(n) for n in self.now} == {n: fresh.free(n) for n in self.now}
        for pod in self.probes:
            fitting = [n for n in self.now.values() if self.snapshot.why_not(pod, n) is None]
            assert sorted(n.name for n in fitting) == self.names(self.snapshot, pod)

    @invariant()
    def what_is_chosen_is_the_best_of_the_candidates(self):
        for pod in self.probes:
            nodes = self.snapshot.candidates(pod)
            best = self.snapshot.best(pod, nodes) if nodes else None
            assert [self.snapshot.choose(pod) for _ in range(2)] == [best, best]

    @invariant()
    def the_first_of_some_nodes_is_the_first_candidate_among_them(self):
        for pod in self.probes:
            fitting = self.snapshot.candidates(pod)
            backwards = list(self.snapshot.nodes.values())[::-1]
            first = next((node for node in backwards if node in fitting), None)
            assert self.snapshot.first(pod, backwards) == first

    @invariant()
    def a_node_is_suitable_where_it_alone_meets_what_a_template_requires(self):
        for pod in self.probes:
            volumes = [
                CLAIMS[pod.namespace, name].node_terms
                for name in pod.scheduling.claims
                if (pod.namespace, name) in CLAIMS
            ]
            meeting = [
                node.name
                for node in self.snapshot.nodes.values()
                if why_never(pod.scheduling, node) is None
                and in_reach(tuple(terms for terms in volumes if terms is not None), node)
            ]
            assert list(self.snapshot.suitable(pod)) == meeting

    @invariant()
    def a_copy_does_not_see_what_came_later(self):
        if self.kept is not None:
            snapshot, probes, answers = self.kept
            assert self.answers(snapshot, probes) == answers

    def answers(self, snapshot: ClusterSnapshot, probes: list[Pod]) -> list[list[str]]:
        return [self.names(snapshot, pod) for pod in probes]

    @staticmethod
    def names(snapshot: ClusterSnapshot, pod: Pod) -> list[str]:
        return sorted(node.name for node in snapshot.candidates(pod))


TestBoards = Boards.TestCase
