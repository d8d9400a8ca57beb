"""Pods that tolerate the taints of an interrupted node, and return to it: the node is not empty, and ends with nobody's help."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import (
    CompleteLifecycle,
    Evict,
    ForceDelete,
    Heartbeat,
    Release,
    TerminateInstance,
)
from plimsoll.domain.disruptions import NAME_TOLERATIONS, tolerant_workloads
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import LifecycleHook, NoticeRecord
from plimsoll.domain.kubernetes import IGNORE, Node, Pod
from plimsoll.domain.observation import Observation
from tests.support.builders import NOON, a_deployment, a_group, a_node, a_pod, pods_of
from tests.support.observations import actions, died, ec2, interrupted, looked, noon, released

EVERYTHING = [{"operator": "Exists"}]
LATER = "2026-01-02T12:00:30Z"
HOOK = LifecycleHook(
    group="g",
    name="h",
    timeout=timedelta(minutes=5),
    longest=timedelta(hours=8),
    ours=True,
)


def tolerant(name: str = "web-1", **how) -> Pod:
    return a_pod(name, node="spot", tolerations=EVERYTHING, **how)


def came(name: str = "web-8", **how) -> Pod:
    """Return a pod that was made after the cordon of the node on which it stands."""
    return tolerant(name, created=LATER, **how)


def beside(node: Node, *pods: Pod, replicas: int = 1, **how) -> Observation:
    """Return a cluster with one interrupted node, and headroom on another."""
    return looked([node, a_node("od")], [*pods], [a_deployment(replicas=replicas)], **how)


def advised(**how) -> Node:
    return interrupted("spot", kind="rebalance-recommendation", ends=None, **how)


def renewing(node: Node):
    return replace(a_group("g"), instances=frozenset({node.instance or ""}), renew=True)


def hooked(*pods: Pod) -> Observation:
    """Return a cluster in which an Auto Scaling group ends the node, and waits for our hook."""
    node = interrupted("spot", kind="lifecycle-terminate", ends=300)
    assert node.interruption is not None
    (notice,) = node.interruption.notices
    told: NoticeRecord = replace(notice, about=HOOK.name, guessed=True)
    node = replace(node, interruption=replace(node.interruption, notices=(told,)))
    group = replace(a_group("g"), waiting=frozenset({node.instance or ""}), hooks=(HOOK,))
    return beside(node, *pods, groups=[group])


def test_a_hook_is_kept_up_and_not_completed_while_a_pod_that_came_back_is_on_the_node():
    plan = plan_drain(hooked(came()), noon(60))

    assert actions(plan, CompleteLifecycle) == []
    assert len(actions(plan, Heartbeat)) == 1
    assert actions(plan_drain(hooked(), noon(60)), CompleteLifecycle) != []


def test_an_instance_with_a_pod_that_came_back_is_not_terminated():
    node = advised()
    group = renewing(node)

    assert actions(plan_drain(beside(node, groups=[group]), noon(60)), TerminateInstance) != []
    plan = plan_drain(beside(node, came(), groups=[group]), noon(60))
    assert actions(plan, TerminateInstance) == []
    assert plan.reports[0].emptied is None
    (why,) = [words for words in plan.waiting["spot"] if "came after its cordon" in words]
    assert NAME_TOLERATIONS in why


@pytest.mark.parametrize(
    ("tolerations", "moves"),
    [
        (EVERYTHING, False),
        ([{"operator": "Exists", "effect": "NoSchedule"}], False),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], True),
        ([{"key": "dedicated", "operator": "Exists"}], True),
        ([], True),
    ],
)
def test_on_advice_a_pod_that_may_return_stays_and_so_does_its_node(tolerations, moves):
    node = advised()
    pod = a_pod("web-1", node="spot", tolerations=tolerations)
    plan = plan_drain(beside(node, pod, groups=[renewing(node)]), noon(60))

    assert bool(actions(plan, Release)) is moves
    assert actions(plan, Evict) == []
    assert actions(plan, TerminateInstance) == []
    assert any(NAME_TOLERATIONS in words for words in plan.notes.get("spot", ())) is not moves


def test_a_replacement_that_comes_to_the_node_does_not_let_the_released_pod_go_before_its_deadline():
    old, new = released(tolerant()), came()
    seen = beside(interrupted("spot"), old, new)

    assert actions(plan_drain(seen, noon(60)), Evict) == []
    at_deadline = {action.pod.name for action in actions(plan_drain(seen, noon(88)), Evict)}
    assert at_deadline == {"web-1", "web-8"}


def test_a_replacement_elsewhere_lets_the_released_pod_go():
    new = replace(came(), node="od", ready_since=NOON)
    plan = plan_drain(beside(interrupted("spot"), released(tolerant()), new), noon(60))

    assert [action.pod.name for action in actions(plan, Evict)] == ["web-1"]


def test_without_a_near_deadline_no_released_pod_stands_beside_its_replacement_for_hours():
    plan = plan_drain(hooked(released(tolerant()), came()), noon(60))

    assert [action.pod.name for action in actions(plan, Evict)] == ["web-1"]


def test_a_pod_that_came_back_is_evicted_once_at_its_eviction_deadline():
    seen = beside(interrupted("spot"), came())
    again = beside(interrupted("spot"), tolerant(created="2026-01-02T12:01:29Z"))

    assert actions(plan_drain(seen, noon(87)), Evict) == []
    assert len(actions(plan_drain(seen, noon(88)), Evict)) == 1
    for second in (90, 100, 119):
        assert actions(plan_drain(again, noon(second)), Evict) == []


def test_what_dies_with_an_instance_is_reported_as_killed_whoever_it_belongs_to():
    node = interrupted("spot")
    mine = a_pod("mine", node="spot", owner=None, labels={IGNORE: "true"})
    daemon = a_pod("log", node="spot", owner=("DaemonSet", "log"))
    plan = plan_drain(beside(node, came(), mine, daemon, instances=ec2(node)), noon(125))

    assert plan.reports[0].killed == ("default/web-8", "default/mine")


def test_a_pod_that_came_to_a_dead_node_was_not_killed_and_is_not_chased():
    node = died(interrupted("spot"))
    before = tolerant("web-1", created="2026-01-02T12:00:20Z")
    after = tolerant("web-8", created="2026-01-02T12:00:40Z")

    plan = plan_drain(beside(node, before, instances=ec2(node)), noon(45))
    assert [action.pod.name for action in actions(plan, ForceDelete)] == ["web-1"]
    plan = plan_drain(beside(node, after, instances=ec2(node)), noon(45))
    assert actions(plan, ForceDelete) == []
    assert plan.reports[0].killed == ()


def test_a_released_pod_has_its_replacement_counted_only_where_that_stays():
    seen = beside(interrupted("spot"), released(tolerant()), came())

    assert plan_drain(seen, noon(60)).reports[0].replaced is None


def test_workloads_whose_pods_may_return_are_counted_on_the_nodes_that_are_named():
    pods = [
        *pods_of("web", 2, node="spot", tolerations=EVERYTHING),
        *pods_of("api", 1, node="spot"),
        a_pod("once", node="spot", owner=None, tolerations=EVERYTHING),
        a_pod("log", node="spot", owner=("DaemonSet", "log"), tolerations=EVERYTHING),
        tolerant("out", labels={IGNORE: "true"}),
        *pods_of("far", 1, node="od", tolerations=EVERYTHING),
    ]
    workloads = [a_deployment(name) for name in ("web", "api", "far")]
    seen = looked([interrupted("spot"), a_node("od")], pods, workloads)

    (found,) = tolerant_workloads(seen, {"spot"})
    assert (str(found.workload), found.pods) == ("Deployment default/web", 2)
    assert found.cure == NAME_TOLERATIONS
