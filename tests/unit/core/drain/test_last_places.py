"""Which workload has the last places, where none stands elsewhere and there is no place for all."""

from __future__ import annotations

import pytest

from plimsoll.domain.actions import Plan, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import Ref
from tests.support.builders import a_deployment, a_node, a_pod, pods_of
from tests.support.observations import actions, interrupted, looked, noon, released

MANY = a_deployment(replicas=3)
LONE = a_deployment("zoo", replicas=1)


def replaced(plan: Plan) -> list[str]:
    """Return the workloads whose replacements begin, once for each pod."""
    return sorted(action.pod.labels["app"] for action in actions(plan, Release))


def test_the_last_place_makes_a_single_replica_whole_before_it_goes_to_a_workload_of_many():
    nodes = [interrupted("spot", cpu="64"), a_node("od", cpu="1")]
    pods = [*pods_of("web", 3, node="spot", cpu="1"), *pods_of("zoo", 1, node="spot", cpu="1")]
    plan = plan_drain(looked(nodes, pods, [MANY, LONE]), noon(1))

    assert replaced(plan) == ["zoo"]


def test_no_workload_asks_for_a_second_place_before_another_has_its_first():
    nodes = [interrupted("spot", cpu="64"), a_node("od", cpu="2")]
    pods = [*pods_of("web", 3, node="spot", cpu="1"), *pods_of("zoo", 3, node="spot", cpu="1")]
    plan = plan_drain(looked(nodes, pods, [MANY, a_deployment("zoo", replicas=3)]), noon(1))

    assert replaced(plan) == ["web", "zoo"]


def test_those_without_a_place_are_replaced_once_the_first_have_asked_for_theirs():
    nodes = [interrupted("spot", cpu="64"), a_node("od", cpu="1")]
    pods = [
        *pods_of("web", 3, node="spot", cpu="1"),
        released(pods_of("zoo", 1, node="spot", cpu="1")[0], Ref("Deployment", "default", "zoo")),
        a_pod("zoo-9", labels={"app": "zoo"}, owner=("ReplicaSet", "zoo-abc"), cpu="1"),
    ]
    plan = plan_drain(looked(nodes, pods, [MANY, LONE]), noon(2))

    assert replaced(plan) == ["web", "web", "web"]


@pytest.mark.parametrize(
    ("of_web", "of_zoo", "first"), [(0, 0, "zoo"), (5, 0, "web"), (0, 5, "zoo")]
)
def test_the_last_place_goes_to_the_higher_priority(of_web, of_zoo, first):
    nodes = [interrupted("spot", cpu="64"), a_node("od", cpu="1")]
    pods = [
        *pods_of("web", 3, node="spot", cpu="1", priority=of_web),
        *pods_of("zoo", 1, node="spot", cpu="1", priority=of_zoo),
    ]
    plan = plan_drain(looked(nodes, pods, [MANY, LONE]), noon(1))

    assert replaced(plan) == [first]


@pytest.mark.parametrize("later", [500, 5000, None])
def test_the_last_place_goes_to_whose_last_pod_goes_first(later):
    nodes = [
        interrupted("late", cpu="64", ends=later),
        interrupted("soon", cpu="64"),
        a_node("od", cpu="1"),
    ]
    pods = [*pods_of("api", 1, node="late", cpu="1"), *pods_of("zoo", 1, node="soon", cpu="1")]
    plan = plan_drain(looked(nodes, pods, [a_deployment("api", replicas=1), LONE]), noon(1))

    assert replaced(plan) == ["zoo"]


def test_the_second_replacement_of_a_workload_begins_after_the_first_of_each():
    """A run may die after any of its actions."""
    nodes = [interrupted("spot", cpu="64"), a_node("od", cpu="64")]
    pods = [*pods_of("web", 3, node="spot", cpu="1"), *pods_of("zoo", 3, node="spot", cpu="1")]
    plan = plan_drain(looked(nodes, pods, [MANY, a_deployment("zoo", replicas=3)]), noon(1))

    begun = [action.pod.labels["app"] for action in actions(plan, Release)]
    assert [set(begun[turn : turn + 2]) for turn in (0, 2, 4)] == [{"web", "zoo"}] * 3
