"""Pods of an Argo Rollout on a real control plane: released by the label alone, and none is lost.

A stand-in makes the ReplicaSet, as Argo's controller does while no rollout is under way; ReplicaSets
and pods are the real controllers' work. With the path of Argo's own program in the environment
variable ROLLOUTS_CONTROLLER that one is started instead.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll.adapters.kubernetes import Transport
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from tests.cluster.ground import Ground
from tests.cluster.harbor import Harbor, drainer
from tests.support.fake_clusters import a_budget, a_deployment

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

HASH: Final = "rollouts-pod-template-hash"
GROUP: Final = "argoproj.io"
KINDS: Final = (
    "Rollout",
    "AnalysisRun",
    "AnalysisTemplate",
    "ClusterAnalysisTemplate",
    "Experiment",
)
"""What Argo's own controller watches."""
PAUSE: Final = 0.2


def a_definition(kind: str) -> Json:
    """Return a custom resource definition that takes whatever is written."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Cluster" if kind.startswith("Cluster") else "Namespaced",
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def a_rollout(name: str, replicas: int, template: Json) -> Json:
    strategy = {"canary": {"maxSurge": 1, "maxUnavailable": 0}}
    rollout = a_deployment(name, replicas, template, strategy=strategy)
    return {**rollout, "apiVersion": f"{GROUP}/v1alpha1", "kind": "Rollout"}


class StandIn(Threads):
    """Makes the ReplicaSet of each Rollout, and keeps its count."""

    def __init__(self, api: Transport) -> None:
        super().__init__()
        self._api = api
        self.spawn(self._run, "rollouts")

    def _run(self) -> None:
        while not self.ended.wait(PAUSE):
            found = self._api.call("GET", f"/apis/{GROUP}/v1alpha1/rollouts")
            for rollout in found.body["items"]:
                self._keep(rollout)

    def _keep(self, rollout: Json) -> None:
        meta, spec = rollout["metadata"], rollout["spec"]
        path = f"/apis/apps/v1/namespaces/{meta['namespace']}/replicasets"
        name = f"{meta['name']}-abc"
        made = self._api.call("GET", f"{path}/{name}").body
        if made["kind"] != "ReplicaSet":
            self._api.call("POST", path, body=_replica_set(rollout, name))
        elif made["spec"]["replicas"] != spec["replicas"]:
            body = {"spec": {"replicas": spec["replicas"]}}
            kind = "application/merge-patch+json"
            self._api.call("PATCH", f"{path}/{name}/scale", body=body, content_type=kind)


def _replica_set(rollout: Json, name: str) -> Json:
    meta, spec = rollout["metadata"], rollout["spec"]
    labels = spec["selector"]["matchLabels"] | {HASH: "abc"}
    owner = {
        "apiVersion": rollout["apiVersion"],
        "kind": "Rollout",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    template = spec["template"]
    template = {**template, "metadata": {**template["metadata"], "labels": labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "ownerReferences": [owner],
            "annotations": {"rollout.argoproj.io/revision": "1"},
        },
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


@contextmanager
def argos_own(program: str, plane: ControlPlane, log: Path) -> Iterator[None]:
    """Let Argo's controller run."""
    flags = [f"--kubeconfig={plane.kubeconfig()}", "--leader-elect=false", "--loglevel=info"]
    with log.open("w") as out:
        process = subprocess.Popen([program, *flags], stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", autouse=True)
def _rollouts(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the control plane know Rollouts, and somebody control them."""
    api = plane.transport()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for kind in KINDS:
        answer = api.call("POST", path, body=a_definition(kind), content_type="application/json")
        assert answer.status == 201, answer.body
    with Ground(plane) as ground:
        ground.until(lambda: api.call("GET", f"/apis/{GROUP}/v1alpha1/rollouts").status == 200)
    program = os.environ.get("ROLLOUTS_CONTROLLER")
    log = tmp_path_factory.mktemp("argo") / "log"
    try:
        with argos_own(program, plane, log) if program else StandIn(api), drainer(plane):
            yield
    finally:
        for kind in KINDS:
            api.call("DELETE", f"{path}/{kind.lower()}s.{GROUP}")


@pytest.fixture(scope="module")
def endpoints(plane: ControlPlane) -> Iterator[ReadyEndpoints]:
    with ReadyEndpoints(plane.kubeconfig()) as endpoints:
        yield endpoints


@pytest.mark.parametrize("replicas", [1, 3])
def test_pods_of_a_rollout_move_and_every_endpoint_stays(
    ground: Ground, endpoints: ReadyEndpoints, replicas: int
):
    strict = a_budget("web", "web", minAvailable=replicas)
    harbor = Harbor(ground, endpoints, strict, made=a_rollout, web=replicas)
    status, said = harbor.drain()

    assert (status, harbor.on(harbor.old)) == (0, []), said
    assert len(harbor.on(harbor.new)) == replicas
    assert harbor.seconds_below("web", replicas) == 0
    assert said.count("release Pod") == said.count("evict Pod") == replicas


def test_a_released_pod_of_a_rollout_is_given_back(ground: Ground, endpoints: ReadyEndpoints):
    harbor = Harbor(ground, endpoints, made=a_rollout, web=1)
    with harbor.until_released() as process:
        process.kill()
    [pod] = harbor.released()
    assert HASH not in pod["metadata"]["labels"]
    ground.until(lambda: [controller_of(p) for p in harbor.released()] == [None])
    status, said = harbor.drain(harbor.old, "--undo")

    assert (status, harbor.released()) == (0, []), said
    ground.until(lambda: [bool(controller_of(p)) for p in ground.pods()] == [True])
    assert HASH in ground.pods()[0]["metadata"]["labels"]
    assert harbor.seconds_below("web", 1) == 0
