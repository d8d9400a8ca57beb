"""A cluster that acts in some namespaces: in the others nothing is written, and their nodes are kept until they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.domain.actions import Evict, Release, TerminateInstance, UndoRelease
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import GUARD, Ref
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import a_deployment, a_group, a_node, a_pod, pods_of
from tests.support.floors import a_cluster, standing, web
from tests.support.observations import actions, interrupted, looked, noon, released
from tests.support.queue_scenes import Scene, a_job
from tests.support.workload_sets import WiredServices, deployment

IN_DEFAULT = Policy(act_in=("default",))
IN_NONE_OF_THESE = Policy(act_in=("elsewhere",))


def two_namespaces(kind: str = "spot-interruption", **how: Any):
    """Return an observation of `web` in two namespaces, each with both pods on the interrupted node."""
    node = interrupted("spot", kind=kind, ends=None if kind.startswith("rebalance") else 120)
    pods = [*pods_of("web", 2, node="spot"), *pods_of("web", 2, node="spot", namespace="shop")]
    workloads = [a_deployment(replicas=2), a_deployment(replicas=2, namespace="shop")]
    return looked([node, a_node("od")], pods, workloads, **how)


def test_a_drain_moves_pods_of_the_named_namespaces_and_says_why_it_leaves_the_others():
    seen = two_namespaces()
    moved = {a.pod.namespace for a in actions(plan_drain(seen, noon(1)), Release)}
    assert moved == {"default", "shop"}

    plan = plan_drain(replace(seen, policy=IN_DEFAULT), noon(1))
    assert {a.pod.namespace for a in actions(plan, Release)} == {"default"}
    reason = "the namespace shop is observed only"
    assert f"shop/web-0 ({reason}), shop/web-1 ({reason})" in "; ".join(plan.waiting["spot"])


def test_at_the_deadline_too_only_pods_of_the_named_namespaces_are_evicted():
    seen = two_namespaces()
    late = noon(115)
    assert {a.pod.namespace for a in actions(plan_drain(seen, late), Evict)} == {"default", "shop"}
    plan = plan_drain(replace(seen, policy=IN_DEFAULT), late)
    assert {a.pod.namespace for a in actions(plan, Evict)} == {"default"}


def test_a_node_with_a_pod_of_an_observed_namespace_is_not_terminated():
    advised = interrupted("spot", kind="rebalance-recommendation", ends=None)
    instances = frozenset({advised.instance or ""})
    groups = [replace(a_group("spot", desired=1), instances=instances, renew=True)]
    pod = a_pod(node="spot", namespace="shop", owner=None)
    seen = looked([advised], [pod], groups=groups, policy=IN_DEFAULT)
    assert actions(plan_drain(seen, noon(60)), TerminateInstance) == []
    assert actions(plan_drain(replace(seen, pods=[]), noon(60)), TerminateInstance)


def test_a_release_that_was_begun_before_is_taken_back():
    one, two = pods_of("web", 2, node="spot", namespace="shop")
    let_go = released(one, owner=Ref("Deployment", "shop", "web"))
    workload = a_deployment(replicas=2, namespace="shop")
    known = looked([interrupted("spot"), a_node("od")], [one, two], [workload], policy=IN_DEFAULT)
    plan = plan_drain(replace(known, pods=[let_go, two]), noon(5))
    assert [undo.pod.name for undo in actions(plan, UndoRelease)] == ["web-0"]
    assert actions(plan, Evict) == []


# --- The services over a simulated cluster -------------------------------------------------------


def writes_in(namespace: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each write of Plimsoll to objects of a namespace."""
    found: list[str] = []
    send = FakeTransport.call

    def call(self: FakeTransport, method: str, path: str, **more: Any):
        if method != "GET" and f"/namespaces/{namespace}/" in path:
            found.append(f"{method} {path}")
        return send(self, method, path, **more)

    monkeypatch.setattr(FakeTransport, "call", call)
    return found


def acting_in(wired: WiredServices, policy: Policy) -> None:
    wired.registry.update(replace(wired.cluster, policy=policy))


@pytest.mark.parametrize(("policy", "writes"), [(Policy(), True), (IN_NONE_OF_THESE, False)])
def test_an_interrupted_node_is_cordoned_in_any_case_and_its_pods_run_on(
    policy, writes, monkeypatch
):
    wired = WiredServices()
    instance = wired.join("spot", capacity="spot")
    wired.apply(deployment(replicas=2))
    wired.join("od")
    acting_in(wired, policy)
    found = writes_in("default", monkeypatch)
    wired.notices.receive([wired.spot_event(instance)])
    while wired.time < noon(90):
        wired.drains.reconcile("harbor", "me")
        wired.sleep(5)
    assert wired.node("spot").unschedulable
    assert bool([w for w in found if "/events" not in w]) == writes
    assert bool(wired.pods_on("spot")) != writes


def test_no_pod_of_an_observed_namespace_is_moved_or_marked_for_its_floor(monkeypatch):
    wired = a_cluster()
    wired.apply(web())
    wired.placement.run()
    wired.sleep(60)
    assert standing(wired) == {"od": 3, "m5": 3, "c5": 3}  # the nodes carry the labels it asks for
    wired.fake_cluster.handle("DELETE", "/api/v1/nodes/m5-0", now=wired.time)
    wired.sleep(300)
    acting_in(wired, IN_NONE_OF_THESE)
    found = writes_in("default", monkeypatch)
    for _ in range(4):
        wired.placement.run()
        wired.drains.reconcile("harbor", "me")
        wired.sleep(300)
    assert found == []
    assert standing(wired).total() == 9


def test_a_workload_of_an_observed_namespace_loses_its_guard_which_nobody_would_open():
    wired = WiredServices()
    wired.join("od")
    manifest = deployment()
    manifest["metadata"]["labels"] = {GUARD: "true"}
    wired.apply(manifest)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    wired.placement.run()
    assert wired.get(budgets)["items"]
    acting_in(wired, IN_NONE_OF_THESE)
    wired.placement.run()
    assert not wired.get(budgets)["items"]


@pytest.mark.parametrize(("policy", "started"), [(Policy(act_in=("lab",)), 1), (IN_DEFAULT, 0)])
def test_a_job_of_an_observed_namespace_is_neither_started_nor_preempted(policy, started):
    scene = Scene(nodes=1)
    scene.policy = policy
    scene.submit(a_job("one"))
    scene.run()
    assert scene.running("one") == started


def test_a_running_job_of_an_observed_namespace_is_not_preempted_and_keeps_its_node():
    scene = Scene(nodes=1)
    scene.submit(a_job("low"))
    scene.run()
    scene.policy = IN_DEFAULT
    scene.patch("low", {"metadata": {"annotations": {"plimsoll.dev/hold": "true"}}})
    scene.run(10)
    assert scene.running("low") == 1
