"""A cluster that is followed shows what a list would show, in process and over HTTP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Final

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.kubernetes.calls import WATCHES
from plimsoll.adapters.kubernetes.collection import OVERDUE, WATCH_SECONDS
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import Pod, PodGroup, Ref
from plimsoll.domain.observation import Observation
from plimsoll_simulation.fake_cluster.pod_annotations import RUN

from .conftest import ContractRig, Ended, Silence, machine
from .test_kubernetes_api import INTERRUPTION, WEB, budget, shop, workload

__all__ = ["shop"]

PATIENCE: Final = 5.0
"""Seconds that an event over HTTP may take on a busy machine."""
ROLLOUTS: Final = "/apis/argoproj.io/v1alpha1/rollouts"


@pytest.fixture
def followed(shop: ContractRig) -> Iterator[KubernetesCluster]:
    """The shop, once it was listed; only what comes after that is noted as asked."""
    with shop.api.following() as api:
        api.observe()
        shop.wire.asked.clear()
        yield api


def asked(rig: ContractRig) -> Counter[str]:
    """How many lists and watches were begun."""
    return Counter(
        "watches" if "watch" in query else "lists"
        for method, path, query, _ in rig.wire.asked
        if method == "GET" and "leases" not in path
    )


def seen_when(api: KubernetesCluster, holds: Callable[[Observation], Any]) -> Observation:
    """Observe until something holds: over HTTP an event takes its time."""
    end = time.monotonic() + PATIENCE
    while not holds(seen := api.observe()) and time.monotonic() < end:
        time.sleep(0.01)
    assert holds(seen)
    return seen


def web_pods(seen: Observation) -> list[Pod]:
    return sorted(seen.of_workload.get(WEB, ()), key=lambda pod: pod.name)


def content(seen: Observation) -> dict[str, Any]:
    """What an observation says, whatever order it says it in."""
    found = {field.name: getattr(seen, field.name) for field in fields(seen)}
    return {k: sorted(v, key=repr) if isinstance(v, list | tuple) else v for k, v in found.items()}


def test_changes_come_by_watches_and_nothing_is_listed_again(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    shop.apply(workload("Deployment", "web", 5), budget("web", "web", minAvailable=1))
    shop.join(machine("c"))
    shop.wait(60)
    seen_when(followed, lambda seen: sum(p.ready for p in web_pods(seen)) == 5)
    shop.apply(workload("Deployment", "web", 1))
    shop.wait(60)
    seen_when(followed, lambda seen: len(web_pods(seen)) == 1)
    assert asked(shop)["lists"] == 0
    listed, lists = content(shop.api.observe()), asked(shop)["lists"]
    # Each kind has a watch of its own: over HTTP a Deployment's status may come later than its pods.
    seen_when(followed, lambda seen: content(seen) == listed)
    assert asked(shop)["lists"] == lists


def test_a_pod_that_ends_by_itself_is_told_from_one_that_is_deleted(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    for name in ("ends", "leaves"):
        job = workload("Job", name) | {"apiVersion": "batch/v1"}
        template = job["spec"]["template"]
        template["metadata"]["annotations"] = {RUN: "90s"} if name == "ends" else {}
        template["spec"]["restartPolicy"] = "Never"
        job["spec"] = {"template": template}
        shop.apply(job)
    shop.wait(60)

    def pods(seen: Observation) -> dict[str, Pod]:
        return {pod.labels["app"]: pod for pod in seen.pods if pod.ready}

    before = pods(seen_when(followed, lambda seen: {"ends", "leaves"} <= pods(seen).keys()))
    followed.delete(before["leaves"], 1)
    shop.wait(120)
    ended: set[str] = set()
    uids = {before[name].uid for name in ("ends", "leaves")}

    def gone(seen: Observation) -> bool:
        ended.update(seen.ended)
        return uids.isdisjoint(pod.uid for pod in seen.pods)

    seen_when(followed, gone)
    assert ended & uids == {before["ends"].uid}


def test_one_observation_begins_no_watch(shop: ContractRig) -> None:
    shop.wire.asked.clear()
    with shop.api.following() as api:
        api.observe()
    namespaces = 1  # they are read once, and not watched
    unused = 2  # Rollouts and PodGroups
    assert asked(shop) == {"lists": len(WATCHES) - unused + namespaces}


def test_what_was_written_shows_before_its_event_comes(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    shop.wire.silent = True
    seen = followed.observe()
    first, second = web_pods(seen)
    followed.release(first, seen.current[WEB], "i-1@noon")
    followed.evict(second)
    followed.cordon(seen.node["a"], INTERRUPTION)
    seen = followed.observe()
    first, second = web_pods(seen)
    assert first.released is not None
    assert second.deleting is not None
    assert seen.node["a"].interruption == INTERRUPTION
    followed.annotate_pod(first, "plimsoll.dev/moved", "now")  # under its newest version


def test_an_event_from_before_a_write_does_not_undo_it(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    followed.observe()
    (old, _) = web_pods(shop.api.observe())
    shop.fake_cluster.handle(
        "PATCH",
        f"/api/v1/namespaces/shop/pods/{old.name}",
        body={"metadata": {"annotations": {"plimsoll.dev/stop-seconds": "7"}}},
        content_type="application/merge-patch+json",
        now=shop.clock.now(),
    )
    newer = next(p for p in shop.api.observe().pods if p.uid == old.uid)
    followed.annotate_pod(newer, "plimsoll.dev/moved", "now")  # its answer overtakes that event
    for _ in range(3):
        (seen, _) = web_pods(followed.observe())
        assert "plimsoll.dev/moved" in seen.annotations
        time.sleep(0.05)


def test_a_silent_watch_is_given_up_and_resumed(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    shop.wire.silent = True
    followed.observe()
    shop.wire.silent = False
    shop.apply(workload("Deployment", "web", 3))
    shop.wait(1)
    assert followed.observe().workload[WEB].replicas == 2
    shop.wait(WATCH_SECONDS + OVERDUE.total_seconds())
    seen_when(followed, lambda seen: seen.workload[WEB].replicas == 3)
    assert asked(shop)["lists"] == 0


def test_a_watch_is_resumed_after_an_outage_where_it_stood(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    followed.observe()
    shop.fake_cluster.take_api_away(now=shop.clock.now())

    def fails() -> bool:
        try:
            followed.observe()
        except Temporary:
            return True
        return False

    end = time.monotonic() + PATIENCE
    while not fails() and time.monotonic() < end:
        time.sleep(0.01)
    assert fails()
    shop.fake_cluster.bring_api_back(now=shop.clock.now())
    shop.apply(workload("Deployment", "web", 3))
    seen_when(followed, lambda seen: seen.workload[WEB].replicas == 3)
    assert asked(shop)["lists"] == 0


def test_a_watch_that_ends_while_others_settle_is_resumed_and_not_listed(
    shop: ContractRig, followed: KubernetesCluster
) -> None:
    shop.wire.at["/api/v1/pods"] = Response(status=200, events=Ended())
    followed.observe()
    assert asked(shop)["lists"] == 0
    del shop.wire.at["/api/v1/pods"]
    shop.apply(workload("Deployment", "web", 3))
    shop.wait(60)
    seen_when(followed, lambda seen: len(web_pods(seen)) == 3)
    assert asked(shop)["lists"] == 0


@pytest.mark.parametrize(
    "gone",
    [
        Response(status=410, body={"kind": "Status", "code": 410}),
        {"type": "ERROR", "object": {"kind": "Status", "code": 410}},
        {"kind": "PodList", "items": []},
    ],
    ids=["answer", "event", "no event at all"],
)
def test_what_no_watch_can_tell_any_more_is_listed(
    shop: ContractRig, followed: KubernetesCluster, gone: Any
) -> None:
    class Told:
        over = False

        def take(self) -> list[Any]:
            return [gone]

        def close(self) -> None:
            pass

    expired = gone if isinstance(gone, Response) else Response(status=200, events=Told())
    shop.wire.at["/api/v1/pods"] = expired

    def answer_watches_alone(method: str, path: str, **request: Any) -> Response:
        """The list is the cluster's own."""
        if "watch" not in (request.get("query") or {}):
            shop.wire.at.pop("/api/v1/pods", None)
        return call(method, path, **request)

    call = shop.wire.call
    shop.wire.call = answer_watches_alone  # type: ignore[method-assign]
    shop.apply(workload("Deployment", "web", 4))
    shop.wait(60)
    assert len(web_pods(followed.observe())) == 4


def test_without_the_right_to_watch_it_is_listed_each_time_and_said_once(
    shop: ContractRig,
) -> None:
    shop.rights.granted = [g for g in shop.rights.granted if g.verb != "watch"]
    with shop.api.following() as api:
        api.observe()
        api.observe()
        shop.apply(workload("Deployment", "web", 4))
        shop.wait(60)
        assert len(web_pods(api.observe())) == 4
    (warned,) = shop.warnings
    assert "lacks the right to watch" in warned
    assert "listed at each observation" in warned


def test_rollouts_are_watched_where_they_are_used(
    shop: ContractRig,
) -> None:
    owned = workload("ReplicaSet", "canary-1", 0)
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "canary", "uid": "1"}
    owned["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    shop.apply(owned)
    listed = {"items": [], "metadata": {"resourceVersion": "1"}}
    shop.wire.at[ROLLOUTS] = Response(status=200, body=listed, events=Silence())
    with shop.api.following() as api:
        for _ in range(3):
            api.observe()
    rollouts = [query for _, path, query, _ in shop.wire.asked if path == ROLLOUTS]
    assert ["watch" in query for query in rollouts] == [False, True]


def test_pod_groups_are_watched_where_a_pod_names_one(shop: ContractRig) -> None:
    group = {
        "metadata": {"name": "train", "namespace": "default", "uid": "1", "resourceVersion": "1"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "disruptionMode": {"all": {}},
            "priority": 7,
        },
    }
    path = "/apis/scheduling.k8s.io/v1beta1/podgroups"
    listed = {"items": [group], "metadata": {"resourceVersion": "1"}}
    shop.wire.at[path] = Response(status=200, body=listed, events=Silence())
    for name in ("train", "lost"):
        shop.apply(
            {
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {
                    "containers": [{"name": "main", "image": "train"}],
                    "schedulingGroup": {"podGroupName": name},
                },
            }
        )
    with shop.api.following() as api:
        seen = [api.observe() for _ in range(3)]
    groups = {p.name: (p.group, p.priority) for p in seen[-1].pods if p.group}
    ref = Ref("PodGroup", "default", "train")
    assert groups == {
        "train": (PodGroup(ref=ref, min_count=3, together=True, priority=7), 7),
        "lost": (PodGroup(ref=ref._replace(name="lost")), 0),
    }
    asked = [query for _, at, query, _ in shop.wire.asked if at == path]
    assert ["watch" in query for query in asked] == [False, True]


def test_a_rollout_by_workload_ref_is_read_with_the_selector_and_template_of_its_deployment(
    shop: ContractRig,
) -> None:
    shop.apply(workload("Deployment", "web", 0))
    owned = workload("ReplicaSet", "canary-1", 0)
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "canary", "uid": "1"}
    owned["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    shop.apply(owned)
    spec = {"replicas": 1, "workloadRef": {"kind": "Deployment", "name": "web"}}
    rollout = {"metadata": {"name": "canary", "namespace": "shop", "uid": "1"}, "spec": spec}
    listed = {"items": [rollout], "metadata": {"resourceVersion": "1"}}
    shop.wire.at[ROLLOUTS] = Response(status=200, body=listed, events=Silence())
    with shop.api.following() as api:
        found = {each.ref.kind: each for each in api.observe().workloads}
    assert found["Rollout"].selector == found["Deployment"].selector
    assert found["Rollout"].scheduling == found["Deployment"].scheduling
