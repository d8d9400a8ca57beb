"""Pods that want to be near others, and pods that keep others away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.domain.kubernetes import Node, Pod, with_namespaces
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_node, a_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
FENCED = "node(s) didn't satisfy existing pods anti-affinity rules"

A1, A2, B1 = a_node("a1", zone=ZONE_A), a_node("a2", zone=ZONE_A), a_node("b1", zone=ZONE_B)


def term(app: str, key: str = HOST, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def labelled(app: str, name: str | None = None, **how: Any) -> Pod:
    return a_pod(name or app, labels={"app": app}, **how)


def snapshot(*pods: Pod) -> ClusterSnapshot:
    return ClusterSnapshot([A1, A2, B1], pods)


def nodes_named(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


class TestAffinity:
    def test_a_pod_goes_where_the_other_is(self):
        cache = labelled("cache", node="a1")
        assert nodes_named(
            snapshot(cache).candidates(labelled("web", affinity=near(term("cache"))))
        ) == ["a1"]
        by_zone = labelled("web", affinity=near(term("cache", ZONE)))
        assert nodes_named(snapshot(cache).candidates(by_zone)) == ["a1", "a2"]

    def test_nothing_fits_while_the_other_is_nowhere(self):
        pod = labelled("web", affinity=near(term("cache")))
        assert snapshot().why_not(pod, A1) == NEAR

    def test_the_first_of_a_group_that_wants_itself_may_go_anywhere(self):
        first = labelled("web", "web-1", affinity=near(term("web", ZONE)))
        placed = snapshot()
        assert nodes_named(placed.candidates(first)) == ["a1", "a2", "b1"]
        placed.place(first, "b1")
        second = labelled("web", "web-2", affinity=near(term("web", ZONE)))
        assert nodes_named(placed.candidates(second)) == ["b1"]

    def test_even_the_first_needs_the_topology_key(self):
        bare = a_node("bare")
        pod = labelled("web", affinity=near(term("web", "rack")))
        assert ClusterSnapshot([bare], []).why_not(pod, bare) == NEAR

    def test_with_several_terms_only_a_pod_that_matches_all_counts(self):
        both = near(
            term("cache"), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"v": "2"}}}
        )
        pod = labelled("web", affinity=both)
        old = labelled("cache", node="a1")
        new = a_pod("cache-2", labels={"app": "cache", "v": "2"}, node="a2")
        assert nodes_named(snapshot(old).candidates(pod)) == []
        assert nodes_named(snapshot(old, new).candidates(pod)) == ["a2"]

    def test_a_pod_that_is_terminating_still_counts(self):
        cache = labelled("cache", node="a1", deleting=NOON)
        assert nodes_named(
            snapshot(cache).candidates(labelled("web", affinity=near(term("cache"))))
        ) == ["a1"]


class TestAntiAffinity:
    def test_a_pod_keeps_away_from_those_it_names(self):
        web = labelled("web", "web-1", node="a1")
        pod = labelled("web", "web-2", affinity=apart(term("web")))
        assert nodes_named(snapshot(web).candidates(pod)) == ["a2", "b1"]
        assert snapshot(web).why_not(pod, A1) == APART

    def test_a_pod_that_is_placed_keeps_later_ones_away_too(self):
        loner = labelled("loner", affinity=apart(term("web", ZONE)), node="a1")
        pod = labelled("web")
        placed = snapshot(loner)
        assert nodes_named(placed.candidates(pod)) == ["b1"]
        assert placed.why_not(pod, A2) == FENCED
        placed.remove(loner)
        assert nodes_named(placed.candidates(pod)) == ["a1", "a2", "b1"]

    def test_a_node_without_the_key_is_no_domain(self):
        loner = labelled("loner", affinity=apart(term("web", "rack")), node="a1")
        assert nodes_named(snapshot(loner).candidates(labelled("web"))) == ["a1", "a2", "b1"]
        other = labelled("web", "web-2", affinity=apart(term("web", "rack")))
        assert nodes_named(snapshot(labelled("web", node="a1")).candidates(other)) == [
            "a1",
            "a2",
            "b1",
        ]

    def test_an_absent_selector_names_nobody(self):
        pod = labelled("web", "web-2", affinity=apart({"topologyKey": HOST}))
        assert nodes_named(snapshot(labelled("web", node="a1")).candidates(pod)) == [
            "a1",
            "a2",
            "b1",
        ]


class TestNamespaces:
    @pytest.mark.parametrize(
        ("more", "seen"),
        [
            ({}, False),
            ({"namespaces": ["shop"]}, True),
            ({"namespaces": ["other"]}, False),
            ({"namespaceSelector": {}}, True),
            (
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}},
                True,
            ),
            ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, False),
            ({"namespaces": ["shop"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ],
    )
    def test_a_term_looks_at_its_own_namespace_or_at_those_it_names(self, more, seen):
        web = labelled("web", namespace="shop", node="a1")
        pod = labelled("api", affinity=apart(term("web", **more)))
        assert (snapshot(web).why_not(pod, A1) == APART) is seen
        fence = labelled("api", affinity=apart(term("web", **more)), node="a1")
        assert (snapshot(fence).why_not(labelled("web", namespace="shop"), A1) == FENCED) is seen


def test_namespaces_that_a_selector_names_by_their_labels_are_known_by_name():
    keeping: dict[str, Any] = {
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "namespaces": ["lab"],
    }
    web = labelled("web", node="a1", affinity=apart(term("web", **keeping)))
    teams = {"shop": {"team": "x"}, "bank": {"team": "y"}, "lab": {}}
    known = replace(web, scheduling=with_namespaces(web.scheduling, teams))
    for namespace, fits in (("shop", False), ("bank", True), ("lab", False), ("default", True)):
        other = labelled("web", "other", namespace=namespace)
        assert (snapshot(known).why_not(other, A1) is None) is fits, namespace


def test_a_selector_that_no_namespace_meets_keeps_nobody_away():
    keeping: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    web = labelled("web", node="a1", affinity=apart(term("web", **keeping)))
    known = replace(web, scheduling=with_namespaces(web.scheduling, {"default": {}}))
    assert snapshot(known).why_not(labelled("web", "other"), A1) is None
