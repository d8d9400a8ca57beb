"""Topology spread as the scheduler keeps it, from manifest to node.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.settings import Choice, Settings
from tests.support.fake_clusters import (
    START,
    a_deployment,
    a_node,
    a_template,
)


@pytest.mark.parametrize(("choice", "nodes"), [("packed", 1), ("any", 3), ("best", 3)])
def test_the_scheduler_may_be_told_to_choose_whatever_the_scores(choice: Choice, nodes: int):
    cluster = FakeCluster(now=START, settings=Settings(choice=choice))
    for name in "abc":
        cluster.join(a_node(name), now=START)
    cluster.apply([a_deployment("web", 15)], now=START)
    cluster.step(START + timedelta(seconds=20))
    assert len({pod["spec"]["nodeName"] for pod in cluster.store.all("pods")}) == nodes


def test_who_waited_together_is_tried_in_an_order_that_any_draws():
    def served(choice: Choice, seed: int) -> str:
        cluster = FakeCluster(now=START, seed=seed, settings=Settings(choice=choice))
        for name in ("first", "second"):
            cluster.apply([a_deployment(name, 1, a_template(name, cpu="1500m"))], now=START)
        cluster.step(START + timedelta(seconds=20))
        cluster.join(a_node("a", cpu="2"), now=START + timedelta(seconds=20))
        cluster.step(START + timedelta(seconds=60))
        [pod] = [p for p in cluster.store.all("pods") if "nodeName" in p["spec"]]
        return str(pod["metadata"]["labels"]["app"])

    assert {served("any", seed) for seed in range(8)} == {"first", "second"}
    assert {served("best", seed) for seed in range(8)} == {"first"}
