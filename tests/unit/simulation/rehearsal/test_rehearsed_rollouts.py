"""A Rollout by `workloadRef` is rehearsed with the selector and template of its Deployment."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.adapters.kubernetes.objects import parse_rollout
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.kubernetes import Ref
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rehearsal.objects import ModelledObjects
from tests.support.rehearsed import a_mixed_cluster

ROLLOUT = Ref("Rollout", "shop", "web")


def with_a_rollout() -> LiveCluster:
    """Return the mixed cluster as if a Rollout by `workloadRef` controlled the pods of `web`."""
    environment = a_mixed_cluster()
    transport = environment.transports["harbor"]
    live = read_cluster(Requests(transport=transport, cluster="harbor"), environment.clock)
    obj = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "r"},
        "spec": {"replicas": 6, "workloadRef": {"kind": "Deployment", "name": "web"}},
    }
    sets = {
        ref: replace(each, controller=ROLLOUT) if each.controller.name == "web" else each
        for ref, each in live.seen.replica_sets.items()
    }
    kept = [w for w in live.seen.workloads if w.ref.name != "web"]
    workloads = [*kept, parse_rollout(obj).resolved(live.seen.workload)]
    seen = replace(live.seen, replica_sets=sets, workloads=workloads)
    return replace(live, seen=seen, objects={**live.objects, "rollouts": [obj]})


def test_a_rollout_by_workload_ref_is_played_with_the_selector_of_its_deployment():
    live = with_a_rollout()
    names = {node.name: node.name for node in live.seen.nodes}
    found = ModelledObjects(live, names)
    (played,) = (m for m in found.manifests if m["kind"] == "ReplicaSet")
    assert played["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert not [note for note in found.notes if "leaves out" in note and "web" in note]
