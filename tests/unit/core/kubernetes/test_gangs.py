"""Which pods share a gang that no queue of ours runs: what the labels of well-known controllers say, if it holds."""

from __future__ import annotations

import pytest

from plimsoll.domain.kubernetes import Ref, class_of, gang_of, in_gang, queued_gang_of
from tests.support.builders import a_pod

JOB_SET = "jobset.sigs.k8s.io/jobset-name"
KUBEFLOW = "training.kubeflow.org/job-name"
VOLCANO = "volcano.sh/job-name"
RAY = "ray.io/cluster"
LWS = "leaderworkerset.sigs.k8s.io/name"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"
INDEX = "batch.kubernetes.io/job-completion-index"


def gang(owner: tuple[str, str] | None, labels: dict[str, str]) -> Ref | None:
    return gang_of(a_pod("p", namespace="lab", owner=owner, labels=labels))


@pytest.mark.parametrize(
    ("owner", "labels", "kind", "name"),
    [
        pytest.param(("Job", "llm-node-0"), {JOB_SET: "llm", INDEX: "3"}, "JobSet", "llm", id="JobSet or TrainJob"),
        pytest.param(("PyTorchJob", "llm"), {KUBEFLOW: "llm"}, "TrainingJob", "llm", id="PyTorchJob"),
        pytest.param(("Job", "llm-launcher"), {KUBEFLOW: "llm"}, "TrainingJob", "llm", id="launcher of an MPIJob"),
        pytest.param(("Job", "llm"), {VOLCANO: "llm"}, "VolcanoJob", "llm", id="Volcano Job"),
        pytest.param(("RayCluster", "llm-x7"), {RAY: "llm-x7"}, "RayCluster", "llm-x7", id="RayCluster or RayJob"),
        pytest.param(("StatefulSet", "llm"), {LWS: "llm", GROUP: "1"}, "LeaderWorkerSet", "llm-1", id="leader"),
        pytest.param(("StatefulSet", "llm-1"), {LWS: "llm", GROUP: "1"}, "LeaderWorkerSet", "llm-1", id="worker"),
        pytest.param(("Job", "llm"), {INDEX: "0"}, "IndexedJob", "llm", id="Indexed Job"),
    ],
)  # fmt: skip
def test_a_pod_is_of_the_gang_that_its_controller_makes(owner, labels, kind, name):
    assert gang(owner, labels) == Ref(kind, "lab", name)


@pytest.mark.parametrize(
    ("owner", "labels"),
    [
        pytest.param(None, {JOB_SET: "llm", KUBEFLOW: "llm", RAY: "llm", LWS: "llm"}, id="a bare pod that claims all"),
        pytest.param(("Job", "mine-node-0"), {JOB_SET: "llm"}, id="the name of another JobSet"),
        pytest.param(("Job", "llms"), {JOB_SET: "llm"}, id="a name that only begins alike"),
        pytest.param(("Job", "llm"), {RAY: "llm"}, id="a Job as a RayCluster"),
        pytest.param(("ReplicaSet", "llm-abc"), {LWS: "llm", INDEX: "0"}, id="a Deployment"),
        pytest.param(("RayCluster", "llm"), {RAY: "llm", "ray.io/serve": "true"}, id="a RayService"),
        pytest.param(("Job", "llm"), {}, id="a Job whose pods have no index"),
        pytest.param(("Job", "llm"), {JOB_SET: ""}, id="an empty name"),
        pytest.param(("Job", "llm"), {INDEX: "0", "plimsoll.dev/queue": "research"}, id="a Job of a queue"),
        pytest.param(("Job", "llm"), {INDEX: "0", "plimsoll.dev/gang": "llm"}, id="a role of a gang of a queue"),
    ],
)  # fmt: skip
def test_a_label_alone_makes_no_gang(owner, labels):
    assert gang(owner, labels) is None


@pytest.mark.parametrize(
    ("owner", "labels", "name"),
    [
        pytest.param(("Job", "llm-ps"), {"plimsoll.dev/gang": "llm", "plimsoll.dev/queue": "q"}, "llm", id="a role"),
        pytest.param(("Job", "llm"), {"plimsoll.dev/queue": "q"}, "llm", id="a Job that is a gang of its own"),
        pytest.param(None, {"plimsoll.dev/queue": "q"}, "p", id="a bare pod"),
    ],
)  # fmt: skip
def test_a_pod_of_a_queue_is_of_the_gang_that_its_labels_name(owner, labels, name):
    pod = a_pod("p", namespace="lab", owner=owner, labels=labels)
    assert queued_gang_of(pod) == Ref("QueuedGang", "lab", name)


def test_a_pod_that_names_no_queue_is_of_no_queued_gang():
    assert queued_gang_of(a_pod("p", owner=("Job", "llm"), labels={INDEX: "0"})) is None


def test_the_same_name_in_two_namespaces_is_two_gangs():
    one, other = (
        a_pod("p", namespace=namespace, owner=("PyTorchJob", "llm"), labels={KUBEFLOW: "llm"})
        for namespace in ("lab", "theirs")
    )
    assert gang_of(one) != gang_of(other)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("llm", "llm"),
        ("llm-x7bqz", "llm"),
        ("llm-raycluster-x7bqz", "llm"),
        ("llm-29400123-x7bqz", "llm"),
        ("llm-0", "llm"),
        ("llm-train", "llm-train"),
        ("-12345", "-12345"),
    ],
)
def test_runs_of_one_template_are_one_class(name, known):
    assert class_of(Ref("RayCluster", "lab", name)) == Ref("RayCluster", "lab", known)


def test_pods_that_serve_on_ray_leave_as_others_do():
    labels = {RAY: "llm", "ray.io/serve": "true"}
    assert not in_gang(a_pod("p", owner=("RayCluster", "llm"), labels=labels))
    assert in_gang(a_pod("p", owner=("RayCluster", "llm"), labels={RAY: "llm"}))
