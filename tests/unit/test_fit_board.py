"""The board keeps its counts as pods and nodes come and go, and its copies to themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from plimsoll.domain.fit import Board
from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_node, a_pod, pods_of
from tests.support.cluster_strategies import CLAIMS, node_lists, pods, zones


class TestPlacing:
    def test_a_pod_takes_its_room_and_gives_it_back(self):
        board, pod = Board([a_node("a", cpu="2")], []), a_pod(cpu="2")
        board.place(pod, "a")
        assert (board.free("a").cpu, board.where(pod), board.on("a")) == (0, "a", (pod,))
        board.remove(pod)
        assert (board.free("a").cpu, board.where(pod), board.on("a")) == (2000, None, ())
        board.remove(pod)
        assert board.free("a").cpu == 2000

    def test_placing_again_moves_or_replaces(self):
        board = Board([a_node("a", cpu="2"), a_node("b", cpu="2")], [a_pod(cpu="2", node="a")])
        board.place(a_pod(cpu="1"), "b")
        assert (board.free("a").cpu, board.free("b").cpu) == (2000, 1000)

    def test_a_node_that_is_not_there_takes_nothing_and_moves_nothing(self):
        board, pod = Board([a_node("a")], []), a_pod()
        board.place(pod, "a")
        with pytest.raises(KeyError):
            board.place(pod, "b")
        assert board.where(pod) == "a"

    def test_a_pod_on_the_board_is_seen_as_if_it_had_left(self):
        node, pod = a_node("a", cpu="2"), a_pod(cpu="2", node="a")
        board = Board([node], [pod])
        assert board.candidates(pod) == [node]
        assert board.why_not(pod, node) is None
        assert board.where(pod) == "a"
        assert board.why_not(replace(pod, uid="another"), node) == "Insufficient cpu"

    def test_a_node_that_leaves_takes_its_pods_along(self):
        pod = a_pod(node="a")
        board = Board([a_node("a")], [pod])
        board.remove_node("a")
        board.remove_node("a")
        assert (list(board.nodes), board.where(pod)) == ([], None)

    def test_a_changed_node_keeps_its_pods(self):
        board = Board([a_node("a", cpu="2")], [a_pod(node="a", cpu="1")])
        board.add_node(a_node("a", cpu="4", unschedulable=True))
        assert board.free("a").cpu == 3000
        heartbeat = replace(board.nodes["a"], resource_version="2")
        board.add_node(heartbeat)
        assert board.nodes["a"] is heartbeat
        assert board.free("a").cpu == 3000


class TestBest:
    A1, A2 = a_node("a1", zone=ZONE_A), a_node("a2", zone=ZONE_A)
    B1 = a_node("b1", zone=ZONE_B)

    def test_the_emptiest_node_is_taken_and_ties_go_by_name(self):
        board = Board([self.A2, self.A1, self.B1], [a_pod("x", node="a1", owner=None)])
        assert board.best(a_pod(), [self.A2, self.A1, self.B1]) is self.A2

    def test_pods_of_an_owner_keep_apart_by_zone_and_node(self):
        board = Board([self.A1, self.A2, self.B1], [])
        for pod in pods_of("web", 3):
            board.place(pod, board.best(pod, board.candidates(pod)).name)
        assert {name: len(board.on(name)) for name in board.nodes} == {"a1": 1, "a2": 1, "b1": 1}

    def test_a_node_that_would_rather_not_is_taken_last(self):
        taint = {"key": "k", "effect": "PreferNoSchedule"}
        shy = a_node("a0", taints=[taint])
        board = Board([shy, self.A1], [])
        assert board.best(a_pod(), [shy, self.A1]) is self.A1
        assert board.best(a_pod(tolerations=[{"operator": "Exists"}]), [shy, self.A1]) is shy

    def test_a_node_that_says_nothing_of_its_size_is_full(self):
        bare = a_node("a0", cpu="0", memory="0")
        assert Board([bare, self.A1], []).best(a_pod(), [bare, self.A1]) is self.A1


class Boards(RuleBasedStateMachine):
    """A board that was changed step by step answers like one made anew, and so does its copy."""

    nodes = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self.board = Board([], [], CLAIMS)
        self.now: dict[str, Node] = {}
        self.placed: dict[str, tuple[Pod, str]] = {}
        self.kept: tuple[Board, list[Pod], list[list[str]]] | None = None
        self.probes: list[Pod] = []

    @rule(target=nodes, found=node_lists(least=1), zone=zones)
    def a_node_comes_or_changes(self, found: list[Node], zone: str):
        node = replace(found[0], name=f"{zone}-{len(found)}")
        self.board.add_node(node)
        self.now[node.name] = node
        return node.name

    @rule(name=consumes(nodes))
    def a_node_leaves(self, name: str):
        self.board.remove_node(name)
        self.now.pop(name, None)
        self.placed = {u: (p, n) for u, (p, n) in self.placed.items() if n != name}

    @rule(name=nodes, pod=pods("p", nodes=[]), number=st.integers(0, 5), going=st.booleans())
    def a_pod_is_placed(self, name: str, pod: Pod, number: int, going: bool):  # noqa: FBT001 - drawn
        pod = replace(pod, uid=f"u{number}", deleting=NOON if going else None)
        if name in self.now:
            self.board.place(pod, name)
            self.placed[pod.uid] = (pod, name)

    @rule(number=st.integers(0, 5))
    def a_pod_leaves(self, number: int):
        if f"u{number}" in self.placed:
            self.board.remove(self.placed.pop(f"u{number}")[0])

    @rule(pod=pods("probe", nodes=[]))
    def a_pod_is_asked_for(self, pod: Pod):
        self.probes = [*self.probes[-3:], pod]

    @rule()
    def a_copy_is_taken_and_kept(self):
        probes = list(self.probes)
        self.kept = (self.board.copy(), probes, self.answers(self.board, probes))

    @rule()
    def a_copy_goes_on_in_place_of_the_board(self):
        self.board = self.board.copy()

    @invariant()
    def answers_are_those_of_a_new_board(self):
        fresh = Board(self.now.values(), [], CLAIMS)
        for pod, name in self.placed.values():
            fresh.place(pod, name)
        assert self.answers(self.board, self.probes) == self.answers(fresh, self.probes)
        assert {n: self.board.free(n) for n in self.now} == {n: fresh.free(n) for n in self.now}
        for pod in self.probes:
            fitting = [n for n in self.now.values() if self.board.why_not(pod, n) is None]
            assert sorted(n.name for n in fitting) == self.names(self.board, pod)

    @invariant()
    def what_is_chosen_is_the_best_of_the_candidates(self):
        for pod in self.probes:
            nodes = self.board.candidates(pod)
            best = self.board.best(pod, nodes) if nodes else None
            assert [self.board.choose(pod) for _ in range(2)] == [best, best]

    @invariant()
    def a_copy_does_not_see_what_came_later(self):
        if self.kept is not None:
            board, probes, answers = self.kept
            assert self.answers(board, probes) == answers

    def answers(self, board: Board, probes: list[Pod]) -> list[list[str]]:
        return [self.names(board, pod) for pod in probes]

    @staticmethod
    def names(board: Board, pod: Pod) -> list[str]:
        return sorted(node.name for node in board.candidates(pod))


TestBoards = Boards.TestCase
