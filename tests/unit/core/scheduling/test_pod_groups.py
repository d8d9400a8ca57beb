"""A PodGroup is placed as kube-scheduler places it: as many of its pods as it needs at once, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, Grow, Plan, Release, TellDeadline
from plimsoll.domain.drain import DrainRequest, plan_drain, plan_nodes
from plimsoll.domain.kubernetes import DEADLINE, Pod, PodGroup, Ref, in_groups
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.scheduling import Headroom, headroom_for
from tests.support.builders import (
    a_budget,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    pods_of,
)
from tests.support.observations import actions, interrupted, looked, noon, sets_of

TRAIN = PodGroup(ref=Ref("PodGroup", "default", "train"), min_count=3)
JOB = ("Job", "train")


def a_gang(*nodes: str | None, group: PodGroup = TRAIN, **how) -> list[Pod]:
    """Return the pods of a group, one on each of the nodes; None: it waits."""
    how = {"owner": JOB, "schedulingGroup": {"podGroupName": group.ref.name}, **how}
    pods = [a_pod(f"{group.ref.name}-{n}", node=node, **how) for n, node in enumerate(nodes)]
    return [*in_groups(pods, [group])]


def headroom(seen: Observation) -> Headroom:
    return headroom_for(seen, InterruptedNodes.of(seen))


def short(pods: Sequence[Pod], *, cpu: str = "8") -> list[str]:
    """Return the pods that have no place on one node."""
    return [pod.name for pod in headroom(looked([a_node("od", cpu=cpu)], [*pods])).short]


def drained(pods: Sequence[Pod], *, groups: Sequence[NodeGroup] = (), **how) -> Plan:
    """Return a plan for the nodes `spot`, which is interrupted, and `od`."""
    nodes = [interrupted("spot"), a_node("od")]
    return plan_drain(looked(nodes, [*pods], groups=[*groups], **how), noon(1))


def test_of_a_group_all_fit_or_none():
    assert short(a_gang(None, None, None, cpu="2")) == []
    assert short(a_gang(None, None, None, cpu="3")) == ["train-0", "train-1", "train-2"]


def test_what_a_group_does_not_get_is_free_to_others():
    gang = a_gang(None, None, None, cpu="3", priority=5)
    assert short([*gang, *pods_of("web", 2, cpu="4")]) == ["train-0", "train-1", "train-2"]


@pytest.mark.parametrize(
    ("nodes", "without_place"),
    [
        ((None,), ["train-0"]),
        ((None, None), ["train-0", "train-1"]),
        (("od", "od", None), []),
        (("od", "spot", None), ["train-2"]),
        (("gone", None, None), ["train-1", "train-2"]),
    ],
    ids=[
        "one alone",
        "too few exist",
        "enough of it stand",
        "one of it stands on a node that goes",
        "one of it stands on a node that is not there",
    ],
)
def test_a_pod_of_a_group_fits_only_with_as_many_as_it_needs(nodes, without_place):
    seen = looked([a_node("od", cpu="64"), interrupted("spot")], a_gang(*nodes))
    assert [pod.name for pod in headroom(seen).short] == without_place


def test_pods_of_a_group_with_the_basic_policy_fit_one_by_one():
    basic = PodGroup(ref=TRAIN.ref, min_count=1)
    assert short(a_gang(None, None, None, group=basic, cpu="3")) == ["train-2"]


def test_pods_of_a_group_that_does_not_exist_fit_nowhere():
    unknown = PodGroup(ref=TRAIN.ref)
    assert short(a_gang(None, None, group=unknown)) == ["train-0", "train-1"]
    plan = drained(a_gang("spot", "od", group=unknown), groups=[a_group(max_size=5)])
    assert actions(plan, Grow) == []
    assert any("nothing is known of its PodGroup" in words for words in plan.waiting["spot"])


def test_nodes_are_asked_for_a_whole_group_or_not_at_all():
    gang = a_gang("spot", "spot", "spot", cpu="8")
    asked = actions(drained(gang, groups=[a_group(max_size=5)]), Grow)
    assert sum(grow.add for grow in asked) == 2  # the third pod has the node `od`
    plan = drained(gang, groups=[a_group(max_size=1)])
    assert actions(plan, Grow) == []
    [words] = [words for words in plan.waiting["spot"] if "no headroom" in words]
    assert "3 pods of its PodGroup default/train are placed together or none" in words
    assert "at its maximum" in words


@pytest.mark.parametrize("count", [4, 10**12])
def test_a_tenant_gets_no_node_for_a_group_of_more_pods_than_there_are(count):
    group = PodGroup(ref=TRAIN.ref, min_count=count)
    plan = drained(a_gang("spot", None, None, group=group), groups=[a_group(max_size=5)])
    assert actions(plan, Grow) == []


def test_a_group_that_gets_no_nodes_takes_none_from_others():
    pods = [*a_gang("spot", "spot", "spot", cpu="8", priority=5)]
    pods += sets_of("db", ["spot"], cpu="8")
    groups = [a_group(max_size=1)]
    plan = drained(pods, groups=groups, workloads=[a_stateful_set(replicas=1)])
    assert not actions(plan, Grow)  # `db-0` has the node `od`
    assert [action.pod.name for action in actions(plan, Evict)] == ["db-0"]


def test_a_pod_of_a_group_is_never_released():
    pods = a_gang("spot", "od", "od", owner=("ReplicaSet", "web-abc"), labels={"app": "web"})
    workloads = [a_deployment(replicas=3)]
    plan = drained(pods, workloads=workloads, groups=[a_group(max_size=5)])
    assert actions(plan, Release) == []
    assert actions(drained(pods_of("web", 3, node="spot"), workloads=workloads), Release)


def test_a_drain_by_hand_evicts_a_pod_of_a_group_as_kubectl_does():
    pods = a_gang("old", "od", "od", owner=("ReplicaSet", "web-abc"), labels={"app": "web"})
    seen = looked([a_node("old"), a_node("od")], pods, [a_deployment(replicas=3)])
    request = DrainRequest(nodes=frozenset({"old"}), started=noon(0))
    found = plan_nodes(seen, request, noon(1))
    assert [action.pod.name for action in actions(found.plan, Evict)] == ["train-0"]
    assert actions(found.plan, Release) == []


def test_all_pods_of_a_group_are_told_their_deadline():
    plan = drained(a_gang("spot", "od", None))
    told = {action.pod.name: action.deadline for action in actions(plan, TellDeadline)}
    assert told == dict.fromkeys(("train-0", "train-1", "train-2"), "2026-01-02T12:01:58Z")
    told = {DEADLINE: "2026-01-02T12:01:58Z"}
    assert actions(drained(a_gang("spot", "od", annotations=told)), TellDeadline) == []


def balloons(*nodes: str, together: bool = True, priority: int = -10, **how) -> list[Pod]:
    group = PodGroup(
        ref=Ref("PodGroup", "default", "balloon"), min_count=2, together=together, priority=priority
    )
    return a_gang(*nodes, group=group, **{"cpu": "4", "grace_seconds": 0, **how})


def full(**how) -> Observation:
    """Return two nodes full of balloons that are one group, and a pod that preempts."""
    pods = [*balloons("a", "a", "b", "b", **how), a_pod("web-0", cpu="4")]
    return looked([a_node("a"), a_node("b")], pods)


@pytest.mark.parametrize(("together", "leave"), [(True, 4), (False, 1)])
def test_a_group_that_is_preempted_as_a_whole_makes_way_with_all_of_its_pods(together, leave):
    found = headroom(full(together=together))
    assert found.short == []
    assert len(found.snapshot.take_displaced()) == leave


def test_a_plan_names_a_group_of_which_all_pods_make_way():
    pods = [*balloons("od", "b"), *sets_of("db", ["spot"], cpu="6")]
    nodes = [interrupted("spot"), a_node("od"), a_node("b", cpu="4")]
    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=1)]), noon(1))
    [words] = plan.notes["spot"]
    assert "PodGroup default/balloon" in words
    assert "all of its 2 pods together" in words


def test_where_one_of_a_whole_group_may_not_go_none_makes_way():
    seen = full()
    slow = [replace(seen.pods[0], grace_seconds=600), *seen.pods[1:]]
    kept = looked([*seen.nodes], slow)
    assert [pod.name for pod in headroom(kept).short] == ["web-0"]
    guarded = looked([*seen.nodes], [*seen.pods], budgets=[a_budget("web", allowed=3)])
    assert [pod.name for pod in headroom(guarded).short] == ["web-0"]


def test_the_priority_of_a_group_and_not_of_its_pods_decides_who_makes_way():
    assert headroom(full(priority=0, cpu="4")).short != []
    assert [pod.priority for pod in full(priority=-7).pods[:4]] == [-7] * 4


def test_where_one_pod_of_a_group_never_preempts_the_group_does_not():
    alone = pods_of("balloon", 2, node="od", cpu="4", priority=-10, grace_seconds=0)
    how = {"owner": JOB, "cpu": "2", "schedulingGroup": {"podGroupName": "train"}}
    gang = [a_pod("train-0", preemptionPolicy="Never", **how), a_pod("train-1", **how)]
    pair = PodGroup(ref=TRAIN.ref, min_count=2)
    seen = looked([a_node("od")], [*alone, *in_groups(gang, [pair])])
    assert len(headroom(seen).short) == 2


def test_a_group_preempts_as_one_and_what_it_would_have_preempted_stays_where_it_does_not_fit():
    alone = pods_of("balloon", 2, node="od", cpu="4", priority=-10, grace_seconds=0)
    seen = looked([a_node("od")], [*alone, *a_gang(None, None, None, cpu="2")])
    found = headroom(seen)
    assert found.short == []
    assert len(found.snapshot.take_displaced()) == 2
    seen = looked([a_node("od")], [*alone, *a_gang(None, None, None, cpu="3")])
    found = headroom(seen)
    assert len(found.short) == 3
    assert {pod.name for pod in found.snapshot.on("od")} == {"balloon-0", "balloon-1"}
    assert found.snapshot.take_displaced() == ()
