"""Pods and nodes that their owners protect: no voluntary move touches them, and interruptions move them as ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.domain.actions import Evict, Plan, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import (
    DO_NOT_DISRUPT,
    PROTECTED,
    SAFE_TO_EVICT,
    ZONAL_SHIFT,
    Node,
    Pod,
    why_protected,
)
from plimsoll.domain.observation import ShiftedZone
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_deployment, a_node, a_pod
from tests.support.observations import actions, interrupted, looked, noon

FOREVER, FOR_AN_HOUR = {DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "1h"}
KEPT = {SAFE_TO_EVICT: "false"}


def webs(**how: Any) -> list[Pod]:
    """Return two pods of a Deployment on one node, of which the first is as told."""
    return [a_pod("web-0", node="old", **how), a_pod("web-1", node="old")]


def left(plan: Plan) -> list[str]:
    return sorted(a.pod.name for a in actions(plan, Release) + actions(plan, Evict))


def on_advice(pods: list[Pod], **node: Any) -> list[str]:
    """Return the pods that a rebalance recommendation moves."""
    old = interrupted("old", kind="rebalance-recommendation", ends=None, **node)
    seen = looked([old, a_node("new")], pods, [a_deployment(replicas=len(pods))])
    return left(plan_drain(seen, noon(1)))


def for_a_shift(pods: list[Pod], **node: Any) -> list[str]:
    """Return the pods that leave a zone for a zonal shift."""
    taint = {"key": ZONAL_SHIFT, "effect": "PreferNoSchedule"}
    old = a_node("old", zone=ZONE_A, taints=[taint], **node)
    seen = looked(
        [old, a_node("new", zone=ZONE_B)],
        pods,
        [a_deployment(replicas=len(pods))],
        shifts={ZONE_A: ShiftedZone(since=NOON)},
    )
    return left(plan_drain(seen, noon(60)))


@pytest.mark.parametrize("moved", [on_advice, for_a_shift])
@pytest.mark.parametrize("said", [FOREVER, KEPT, FOR_AN_HOUR])
def test_a_protected_pod_stays_at_voluntary_moves_and_the_pod_beside_it_goes(moved, said):
    pod, other = webs(annotations=said)
    assert moved([replace(pod, started=NOON), other]) == ["web-1"]


@pytest.mark.parametrize("moved", [on_advice, for_a_shift])
def test_all_pods_of_a_protected_node_stay_at_voluntary_moves(moved):
    assert moved(webs()) == ["web-0", "web-1"]
    assert moved(webs(), annotations=FOREVER) == []


@pytest.mark.parametrize("said", [FOREVER, KEPT])
def test_a_protected_pod_leaves_at_an_interruption(said):
    nodes = [interrupted("old", annotations=said), a_node("new")]
    seen = looked(nodes, webs(annotations=said), [a_deployment(replicas=2)])
    assert left(plan_drain(seen, noon(1))) == ["web-0", "web-1"]


def test_a_protected_pod_leaves_a_node_with_advice_once_a_deadline_is_near():
    old = interrupted("old", kind="health-scheduled-change", ends=540)
    pods = webs(annotations=FOREVER)
    seen = looked([old, a_node("new")], pods, [a_deployment(replicas=2)])
    assert left(plan_drain(seen, noon(1))) == ["web-0", "web-1"]


def why(said: dict[str, str], node: Node | None = None) -> str | None:
    """Return why a pod is protected an hour after it started."""
    pod = replace(a_pod(annotations=said), started=NOON)
    return why_protected(pod, node, NOON + timedelta(hours=1))


@pytest.mark.parametrize(
    ("said", "protects"),
    [
        ({DO_NOT_DISRUPT: "true"}, True),
        ({DO_NOT_DISRUPT: "61m"}, True),
        ({DO_NOT_DISRUPT: "1h"}, False),
        ({DO_NOT_DISRUPT: "false"}, False),
        ({DO_NOT_DISRUPT: "0s"}, False),
        ({DO_NOT_DISRUPT: "61m", PROTECTED: "61m"}, False),
        ({DO_NOT_DISRUPT: "true", PROTECTED: "61m"}, True),
        ({SAFE_TO_EVICT: "false"}, True),
        ({SAFE_TO_EVICT: "true"}, False),
        ({}, False),
    ],
)
def test_an_annotation_protects_as_karpenter_and_cluster_autoscaler_read_it(
    said: dict[str, str], *, protects: bool
):
    assert (why(said) is not None) == protects


def test_a_node_is_protected_for_good_or_not_at_all():
    assert why({}, a_node(annotations=FOREVER))
    assert why({}, a_node(annotations=FOR_AN_HOUR)) is None
