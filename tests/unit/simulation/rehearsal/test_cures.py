"""What an owner is told to change is right: the obstacle is gone once it is changed, and no new one is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll_simulation.rehearsal.live import read_cluster
from plimsoll_simulation.rehearsal.obstacles import Obstacle, obstacles
from plimsoll_simulation.rehearsal.scope import Scope
from tests.support.builders import pod_spec_json
from tests.support.rehearsed import a_mixed_cluster, a_workload, an_object

type Json = dict[str, Any]

NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
SURGES: Json = {
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
}
NEVER_SURGES: Json = {
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
}
RECREATE: Json = {"strategy": {"type": "Recreate"}}
OPTED_OUT: Json = {"plimsoll.dev/ignore": "true"}
SHARED = "use a volume that several nodes mount (ReadWriteMany), or a StatefulSet with a volume for each pod"


def deployment(replicas: int, *, pod: Json | None = None, **spec: Any) -> Json:
    return a_workload("Deployment", "app", replicas, pod=pod or {}, **spec)


def stateful_set(replicas: int, **pod: Any) -> Json:
    return a_workload("StatefulSet", "app", replicas, pod=pod, serviceName="app")


def mounted(
    mode: str,
    *,
    replicas: int = 1,
    kind: str = "Deployment",
    volumeName: str | None = None,  # noqa: N803 - as Kubernetes names it
    **spec: Any,
) -> list[Json]:
    """A workload whose pods mount one claim, and that claim."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claim: Json = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    if volumeName is not None:
        claim["volumeName"] = volumeName
    claimed = an_object("PersistentVolumeClaim", "data", claim)
    more: Json = {"serviceName": "app"} if kind == "StatefulSet" else {}
    return [claimed, a_workload(kind, "app", replicas, pod={"volumes": volumes}, **more, **spec)]


def budget(**spec: Any) -> Json:
    return an_object(
        "PodDisruptionBudget", "app", {"selector": {"matchLabels": {"app": "app"}}, **spec}
    )


def other_budget() -> Json:
    selector = {"matchLabels": {"app": "app"}}
    return an_object("PodDisruptionBudget", "other", {"selector": selector, "maxUnavailable": 1})


def quota(pods: str) -> Json:
    return {**an_object("ResourceQuota", "all", {"hard": {"pods": pods}}), "apiVersion": "v1"}


def local_volume() -> list[Json]:
    """A volume that only the node spot-0 can mount."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["spot-0"]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "shop", "name": "data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": spec,
        }
    ]


def bare_pod() -> Json:
    return an_object("Pod", "app", pod_spec_json(cpu="500m"), labels={"app": "app"})


def marked(obj: Json) -> Json:
    return obj | {"metadata": obj["metadata"] | {"annotations": OPTED_OUT}}


def found(objects: Sequence[Json]) -> Sequence[Obstacle]:
    """Return what is in the way where all spot nodes go, on which everything stands."""
    environment = a_mixed_cluster(objects=[NAMESPACE, *objects])
    requests = Requests(transport=environment.transports["harbor"], cluster="harbor")
    live = read_cluster(requests, environment.clock)
    return obstacles(live.seen, Scope().nodes(live.seen), live.at)


@pytest.mark.parametrize(
    ("kind", "before", "change", "after"),
    [
        (
            "single replica",
            [deployment(1, **RECREATE)],
            "use the strategy RollingUpdate, if old and new pods may run at once",
            [deployment(1, **SURGES)],
        ),
        (
            "single replica",
            [deployment(1, **NEVER_SURGES)],
            "set maxSurge to 1 or more",
            [deployment(1, **SURGES)],
        ),
        ("single replica", mounted("ReadWriteOnce"), SHARED, mounted("ReadWriteMany")),
        (
            "single replica",
            mounted("ReadWriteOnce", **RECREATE),
            f"{SHARED}, and use the strategy RollingUpdate, if old and new pods may run at once",
            mounted("ReadWriteMany", **SURGES),
        ),
        ("single replica", [stateful_set(1)], "run two replicas or more", [stateful_set(2)]),
        (
            "single replica",
            [a_workload("ReplicaSet", "app", 1, pod={})],
            "let a Deployment own its pods",
            [deployment(1)],
        ),
        ("single replica", [bare_pod()], "let a Deployment own it", [deployment(1)]),
        (
            "not surged",
            [deployment(3, **NEVER_SURGES)],
            "set maxSurge to 1 or more",
            [deployment(3, **SURGES)],
        ),
        ("not surged", mounted("ReadWriteOnce", replicas=2), SHARED, mounted("ReadWriteMany")),
        (
            "budget",
            [stateful_set(3), budget(maxUnavailable=0)],
            "allow one unavailable pod",
            [stateful_set(3), budget(maxUnavailable=1)],
        ),
        (
            "budget",
            [deployment(2, **NEVER_SURGES), budget(maxUnavailable=0)],
            "allow one unavailable pod, or let rollouts surge",
            [deployment(2, **SURGES), budget(maxUnavailable=0)],
        ),
        (
            "budget",
            [*mounted("ReadWriteOnce", replicas=2), budget(maxUnavailable=0)],
            "allow one unavailable pod",
            [*mounted("ReadWriteOnce", replicas=2), budget(maxUnavailable=1)],
        ),
        (
            "budget",
            [deployment(2), budget(maxUnavailable=1), other_budget()],
            "keep one of them",
            [deployment(2), budget(maxUnavailable=1)],
        ),
        (
            "not surged",
            [quota("4"), deployment(4)],
            "raise the ResourceQuota by one pod of it",
            [quota("9"), deployment(4)],
        ),
        (
            "volume",
            [*local_volume(), *mounted("ReadWriteOnce", kind="StatefulSet", volumeName="disk")],
            "keep its data on a network volume, or its node on on-demand capacity",
            mounted("ReadWriteMany", kind="StatefulSet"),
        ),
        (
            "stop time",
            [deployment(2, pod={"terminationGracePeriodSeconds": 600}, **SURGES)],
            "annotate the pods with plimsoll.dev/stop-seconds",
            [
                deployment(2, pod={"terminationGracePeriodSeconds": 600}, **SURGES)
                | {"annotations": {"plimsoll.dev/stop-seconds": "20"}}
            ],
        ),
        (
            "opted out",
            [marked(deployment(2))],
            "remove plimsoll.dev/ignore",
            [deployment(2)],
        ),
    ],
)
def test_the_change_that_is_advised_takes_the_obstacle_away(
    kind: str, before: Sequence[Json], change: str, after: Sequence[Json]
):
    told = [obstacle for obstacle in found(before) if obstacle.kind == kind]
    assert {obstacle.change for obstacle in told} == {change}

    kinds = {obstacle.kind for obstacle in found(before)}
    left = {obstacle.kind for obstacle in found([_annotated(obj) for obj in after])}
    assert kind not in left
    assert left <= kinds


def _annotated(obj: Json) -> Json:
    """Return a workload whose top-level `annotations` are those of its pods."""
    if "annotations" not in obj:
        return obj
    marks = obj["annotations"]
    meta = obj["spec"]["template"]["metadata"] | {"annotations": marks}
    spec = obj["spec"] | {"template": obj["spec"]["template"] | {"metadata": meta}}
    return {key: value for key, value in obj.items() if key != "annotations"} | {"spec": spec}
