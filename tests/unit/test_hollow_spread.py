"""Topology spread as the scheduler keeps it, from manifest to node.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.model.hollow.settings import Choice, Settings
from tests.support.hollows import (
    DEPLOYMENTS,
    NODES,
    START,
    ZONE,
    Play,
    a_deployment,
    a_node,
    a_template,
)


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a1", "a2", zone="us-east-1a", tier="web")
    play.nodes("b1", zone="us-east-1b", tier="web")
    play.nodes("c1", zone="us-east-1c")
    return play


def spread(play: Play, replicas: int, *, spec: dict[str, Any] | None = None, **rule: Any) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **rule,
    }
    template = a_template("web", topologySpreadConstraints=[constraint], **(spec or {}))
    play.apply(a_deployment("web", replicas, template))
    play.wait(20)


def by_zone(play: Play) -> dict[str, int]:
    zones = {n["metadata"]["name"]: n["metadata"]["labels"][ZONE] for n in play.get(NODES)["items"]}
    running = [p for p in play.pods() if p["metadata"]["name"] in play.serving()]
    return dict(Counter(zones[p["spec"]["nodeName"]][-1] for p in running))


def test_no_zone_gets_more_than_max_skew_ahead(play: Play):
    spread(play, 7)
    assert sorted(by_zone(play).values()) == [2, 2, 3]


def test_with_too_few_domains_the_emptiest_counts_as_empty(play: Play):
    spread(play, 6, minDomains=4)
    assert by_zone(play) == {"a": 1, "b": 1, "c": 1}
    play.nodes("d1", zone="us-east-1d")
    play.wait(20)
    assert sorted(by_zone(play).values()) == [1, 1, 2, 2]


def test_match_label_keys_spread_each_template_by_itself(play: Play):
    rolling = {"maxSurge": 3, "maxUnavailable": 0}
    spread(play, 3, matchLabelKeys=["pod-template-hash"])
    change = {"strategy": {"rollingUpdate": rolling}, "template": {"spec": {"hostname": "x"}}}
    play.patch(f"{DEPLOYMENTS}/web", {"spec": change})
    play.wait(60)
    assert by_zone(play) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(("policy", "expected"), [("Honor", 4), ("Ignore", 2)])
def test_nodes_that_affinity_rules_out_count_only_where_it_is_ignored(
    play: Play, policy: str, expected: int
):
    spread(play, 4, spec={"nodeSelector": {"tier": "web"}}, nodeAffinityPolicy=policy)
    assert len(play.serving()) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", 4), ("Ignore", 2)])
def test_tainted_nodes_count_only_where_taints_are_ignored(play: Play, policy: str, expected: int):
    play.cordon("c1")
    play.wait(1)
    spread(play, 4, nodeTaintsPolicy=policy)
    assert len(play.serving()) == expected


@pytest.mark.parametrize(("choice", "nodes"), [("packed", 1), ("any", 3), ("best", 3)])
def test_the_scheduler_may_be_told_to_choose_whatever_the_scores(choice: Choice, nodes: int):
    cluster = HollowCluster(now=START, settings=Settings(choice=choice))
    for name in "abc":
        cluster.join(a_node(name), now=START)
    cluster.apply([a_deployment("web", 15)], now=START)
    cluster.step(START + timedelta(seconds=20))
    assert len({pod["spec"]["nodeName"] for pod in cluster.store.all("pods")}) == nodes


def test_who_waited_together_is_tried_in_an_order_that_any_draws():
    def served(choice: Choice, seed: int) -> str:
        cluster = HollowCluster(now=START, seed=seed, settings=Settings(choice=choice))
        for name in ("first", "second"):
            cluster.apply([a_deployment(name, 1, a_template(name, cpu="1500m"))], now=START)
        cluster.step(START + timedelta(seconds=20))
        cluster.join(a_node("a", cpu="2"), now=START + timedelta(seconds=20))
        cluster.step(START + timedelta(seconds=60))
        [pod] = [p for p in cluster.store.all("pods") if "nodeName" in p["spec"]]
        return str(pod["metadata"]["labels"]["app"])

    assert {served("any", seed) for seed in range(8)} == {"first", "second"}
    assert {served("best", seed) for seed in range(8)} == {"first"}


def test_a_pod_that_waits_for_a_neighbour_follows_it(play: Play):
    together = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": ZONE}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [together]}}
    play.apply(a_deployment("second", 2, a_template("second", affinity=near)))
    play.wait(20)
    assert not play.serving()
    play.apply(a_deployment("first", 1))
    play.wait(40)
    assert len(play.serving("second")) == 2
