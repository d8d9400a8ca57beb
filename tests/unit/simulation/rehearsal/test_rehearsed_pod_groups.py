"""A rehearsal plays PodGroups: pods of a gang fit in it only with as many as are placed together."""

from __future__ import annotations

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll_simulation.rehearsal.live import read_cluster
from plimsoll_simulation.rehearsal.objects import ModelledObjects
from tests.support.builders import pod_spec_json
from tests.support.rehearsed import OBJECTS, a_mixed_cluster, an_object


def test_the_pods_of_a_group_are_played_with_their_group():
    grouped = pod_spec_json(
        cpu="100m", restartPolicy="Never", schedulingGroup={"podGroupName": "train"}
    )
    template = {"metadata": {"labels": {"app": "train"}}, "spec": grouped}
    job = an_object("Job", "train", {"parallelism": 2, "template": template})
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"single": {}}}
    group = an_object("PodGroup", "train", spec | {"schedulingConstraints": {}})
    unused = an_object("PodGroup", "unused", spec)
    groups = [each | {"apiVersion": "scheduling.k8s.io/v1beta1"} for each in (group, unused)]
    environment = a_mixed_cluster(objects=[*OBJECTS, *groups, job | {"apiVersion": "batch/v1"}])
    transport = environment.transports["harbor"]
    live = read_cluster(Requests(transport=transport, cluster="harbor"), environment.clock)
    played = ModelledObjects(live, {node.name: node.name for node in live.seen.nodes})
    [made] = [each for each in played.manifests if each["kind"] == "PodGroup"]
    assert (made["metadata"]["name"], made["spec"]) == ("train", spec)
    [one] = [each for each in played.manifests if each["kind"] == "Job"]
    pods = one["spec"]["template"]["spec"]
    assert pods["schedulingGroup"] == {"podGroupName": "train"}
