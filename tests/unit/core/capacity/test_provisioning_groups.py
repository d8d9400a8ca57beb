"""Groups that make nodes for Pending pods by themselves are counted on, and never asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import Grow
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.node_groups import FIRST_SIGN_WITHIN, NodeGroup
from plimsoll.domain.observation import Observation
from tests.support.builders import a_deployment, a_group, a_pod, pods_of
from tests.support.observations import actions, interrupted, looked, noon

SECONDS = FIRST_SIGN_WITHIN.total_seconds()


def a_node_pool(max_size: int = 10) -> NodeGroup:
    known = a_group(
        "flexible", kind="karpenter", capacity="spot", max_size=max_size, launchable=False
    )
    return replace(known, provisions=True)


def begun(*groups: NodeGroup, cpu: str = "5", other: str = "5") -> Observation:
    """Return a workload of one pod whose replacement is Pending since noon, beside another Pending pod."""
    pods = [
        *pods_of("web", 1, node="spot", cpu=cpu),
        replace(a_pod("web-new", cpu=cpu), created=noon(0)),
        replace(a_pod("other", cpu=other), created=noon(0) - timedelta(days=1)),
    ]
    return looked([interrupted("spot")], pods, [a_deployment(replicas=1)], groups=groups)


def asked(seen: Observation, seconds: float) -> dict[str, int]:
    found = Counter[str]()
    for grow in actions(plan_drain(seen, noon(seconds)), Grow):
        found[grow.group.name] += grow.add
    return found


def test_nothing_is_asked_for_pods_that_karpenter_makes_nodes_for():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [interrupted("spot")], pods, [a_deployment(replicas=3)], groups=[a_group(), a_node_pool()]
    )
    assert asked(seen, 1) == {}


def test_at_the_limits_of_a_node_pool_the_others_are_asked():
    pods = pods_of("web", 3, node="spot", cpu="4")
    groups = [a_group(), a_node_pool(max_size=0)]
    seen = looked([interrupted("spot")], pods, [a_deployment(replicas=3)], groups=groups)
    assert asked(seen, 1) == {"base": 2}


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(None, {"base": 2}, id="it began none"),
        pytest.param(5, {}, id="it has just begun one"),
    ],
)
def test_where_karpenter_begins_no_node_for_a_pending_pod_others_are_asked(
    since: float | None, expected: dict[str, int]
):
    pool = replace(a_node_pool(), asked=None if since is None else noon(SECONDS - since))
    seen = begun(a_group(), pool)
    assert asked(replace(seen, pods=seen.pods[:2]), SECONDS - 1) == {}
    assert asked(seen, SECONDS) == expected


def test_a_pod_that_karpenter_cannot_make_a_node_for_says_nothing_about_it():
    seen = begun(a_group(cpu="64"), a_node_pool(), other="60")
    assert asked(seen, 1) == {"base": 1}  # for the large one alone
