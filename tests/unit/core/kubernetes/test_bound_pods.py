"""Pods that are bound to nodes are listed by node and by namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.kubernetes import BoundPods, Pod
from tests.support.builders import a_pod
from tests.support.cluster_strategies import pods

NODES = ["a", "b", "c"]
lists = st.lists(
    st.builds(
        replace, pods("p", nodes=NODES), namespace=st.sampled_from(["default", "kube-system"])
    ),
    max_size=8,
)


def by(key: Callable[[Pod], str], some: list[Pod]) -> dict[str, list[Pod]]:
    return {name: [pod for pod in some if key(pod) == name] for name in {*map(key, some)}}


def test_pods_that_are_finished_or_wait_for_a_node_are_not_bound():
    bound = BoundPods.of([a_pod("done", node="a", phase="Succeeded"), a_pod("waits")])
    assert (bound.on_node, bound.in_namespace, bound.requests) == ({}, {}, {})


@given(drawn=lists)
def test_each_pod_is_on_its_node_and_in_its_namespace(drawn: list[Pod]):
    bound = BoundPods.of(drawn)
    assert bound.on_node == by(attrgetter("node"), drawn)
    assert bound.in_namespace == by(attrgetter("namespace"), drawn)
    for node, on in bound.on_node.items():
        assert bound.requests[node].cpu == sum(pod.scheduling.requests.cpu for pod in on)


@given(drawn=lists, nodes=st.sets(st.sampled_from(NODES)))
def test_those_on_some_nodes_are_as_if_the_others_had_never_been(drawn: list[Pod], nodes: set[str]):
    fewer = BoundPods.of(drawn).only_on(nodes)
    alone = BoundPods.of(pod for pod in drawn if pod.node in nodes)
    assert (fewer.on_node, fewer.requests, fewer.affecting) == (
        alone.on_node,
        alone.requests,
        alone.affecting,
    )
    assert {name: there for name, there in fewer.in_namespace.items() if there} == (
        alone.in_namespace
    )
