"""Objects of frameworks as the planner reads them: their pods by role, their ends, and what is refused of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.adapters.kubernetes.job_reader import job_reader
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain.frameworks import FRAMEWORKS, at
from plimsoll_batch.domain.jobs import Job
from tests.support.framework_samples import ROWS, jobs_of, owned_by, parsed, sample
from tests.support.queue_scenes import a_job

ROLES = {
    "JobSet": {"driver": 1, "workers": 6},
    "RayJob": {"headgroup": 1, "gpus": 6, "submitter": 1},
    "RayCluster": {"headgroup": 1, "gpus": 6},
    "PyTorchJob": {"master": 1, "worker": 3},
    "TFJob": {"chief": 1, "ps": 2, "worker": 3},
    "XGBoostJob": {"master": 1},
    "PaddleJob": {"worker": 2},
    "JAXJob": {"worker": 2},
    "MPIJob": {"launcher": 1, "worker": 4},
    "SparkApplication": {"driver": 1, "executor": 5},
}
ENDS = {
    "JobSet": ("conditions", "Completed", "Failed"),
    "RayJob": ("jobDeploymentStatus", "Complete", "Failed"),
    "TrainJob": ("conditions", "Complete", "Failed"),
    "PyTorchJob": ("conditions", "Succeeded", "Failed"),
    "MPIJob": ("conditions", "Succeeded", "Failed"),
}


SUCCEEDED: dict[str, tuple[dict[str, Any], int]] = {
    "JobSet": ({"replicatedJobsStatus": [{"name": "workers", "succeeded": 1}]}, 1 + 3),
    "PyTorchJob": ({"replicaStatuses": {"Worker": {"succeeded": 2}}}, 1 + 1),
}


def read(kind, **spec):
    obj = sample(kind)
    obj["spec"] |= spec
    return parsed(obj).job


def test_every_kind_has_a_sample():
    assert ROLES.keys() | {"TrainJob"} == {row.kind for row in FRAMEWORKS}


@pytest.mark.parametrize("kind", ROLES)
def test_an_object_is_read_as_its_pods_by_role(kind):
    job = parsed(sample(kind)).job
    assert {each.name: each.pods for each in job.sets} == ROLES[kind]
    assert job.parallelism == sum(ROLES[kind].values())
    assert (job.suspended, job.finished, job.wrong) == (True, False, ())


@pytest.mark.parametrize("kind", SUCCEEDED)
def test_pods_that_have_succeeded_count_no_more_until_it_is_suspended(kind):
    obj, (status, left) = sample(kind), SUCCEEDED[kind]
    obj["status"], whole = status, sum(ROLES[kind].values())
    assert parsed(obj).job.pods == whole
    at(obj, ROWS[kind].suspend[:-1])["suspend"] = False
    job = parsed(obj).job
    assert (job.pods, job.parallelism) == (left, whole)


@pytest.mark.parametrize("kind", SUCCEEDED)
def test_what_succeeded_before_a_suspension_counts_again_until_its_operator_has_seen_the_start(
    kind,
):
    obj, (status, _) = sample(kind), SUCCEEDED[kind]
    at(obj, ROWS[kind].suspend[:-1])["suspend"] = False
    obj["status"] = {**status, "conditions": [{"type": "Suspended", "status": "True"}]}
    assert parsed(obj).job.pods == sum(ROLES[kind].values())


def test_a_job_set_that_may_restart_holds_all_of_its_pods_until_it_ends():
    obj = sample("JobSet")
    obj["spec"] |= {"suspend": False, "failurePolicy": {"maxRestarts": 1}}
    obj["status"] = SUCCEEDED["JobSet"][0]
    assert parsed(obj).job.pods == 7


@pytest.mark.parametrize("count", [10**30, -1, True, "1", None])
def test_a_forged_count_of_pods_that_succeeded_adds_none(count):
    obj = sample("JobSet")
    obj["spec"]["suspend"] = False
    obj["status"] = {"replicatedJobsStatus": [{"name": "workers", "succeeded": count}, 7]}
    assert 1 <= parsed(obj).job.pods <= 7


@pytest.mark.parametrize("kind", sorted(ROLES.keys() - {"SparkApplication"}))
def test_where_its_pods_are_steered_stands_a_template_of_pods(kind):
    obj = sample(kind)
    for each in parsed(obj).job.sets:
        if each.at is not None:
            there: Any = obj
            for part in each.at:
                there = there[part]
            assert there["containers"]


@pytest.mark.parametrize("kind", ENDS)
def test_it_has_ended_where_it_says_so(kind):
    where, complete, failed = ENDS[kind]
    for word, failure in ((complete, False), (failed, True)):
        obj = sample(kind)
        listed = [{"type": word, "status": "True"}, {"type": "Suspended", "status": "False"}]
        obj["status"] = {where: listed if where == "conditions" else word}
        job = parsed(obj).job
        assert (job.finished, job.failure) == (True, failure)


def test_a_condition_that_is_false_ends_nothing():
    obj = sample("JobSet")
    obj["status"] = {"conditions": [{"type": "Failed", "status": "False"}]}
    assert not parsed(obj).job.finished


def test_a_ray_cluster_never_ends():
    obj = sample("RayCluster")
    obj["status"] = {
        "state": "ready",
        "conditions": [{"type": t, "status": "True"} for t in ("Complete", "Failed")],
    }
    assert not parsed(obj).job.finished


@pytest.mark.parametrize(
    ("status", "made"),
    [
        ({"rayClusterName": "train-x2x4z", "failed": 0}, False),
        ({"rayClusterName": "train-x2x4z", "dashboardURL": "train-head-svc:8265"}, True),
        ({"jobDeploymentStatus": "", "failed": 1}, True),
    ],
)
def test_a_ray_job_has_made_pods_once_its_head_was_there_and_not_when_its_cluster_has_a_name(
    status, made
):
    assert parsed(sample("RayJob") | {"status": status}).job.made_pods is made


def test_the_deadline_of_a_run_is_read_where_the_kind_has_one():
    policy = {"suspend": True, "activeDeadlineSeconds": 90}
    assert read("PyTorchJob", runPolicy=policy).limit == timedelta(seconds=90)
    assert read("RayJob", activeDeadlineSeconds=60).limit == timedelta(seconds=60)
    assert read("RayJob", activeDeadlineSeconds="soon").limit is None


REFUSED = [
    ("JobSet", {"managedBy": "kueue.x-k8s.io/multikueue"}, "managedBy"),
    ("RayJob", {"shutdownAfterJobFinishes": False}, "shutdownAfterJobFinishes"),
    ("RayJob", {"shutdownAfterJobFinishes": None}, "shutdownAfterJobFinishes"),
    ("RayJob", {"shutdownAfterJobFinishes": 1}, "shutdownAfterJobFinishes"),
    ("RayJob", {"clusterSelector": {"ray.io/cluster": "other"}}, "clusterSelector"),
    ("RayJob", {"submissionMode": "SidecarMode"}, "submissionMode"),
    ("RayCluster", {"enableInTreeAutoscaling": True}, "enableInTreeAutoscaling"),
    *(
        (kind, {"managedBy": "kueue.x-k8s.io/multikueue"}, "spec.managedBy")
        for kind in ("RayJob", "RayCluster")
    ),
    *(
        (
            kind,
            {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}},
            "spec.runPolicy.managedBy",
        )
        for kind in ("PyTorchJob", "JAXJob", "MPIJob")
    ),
    ("PyTorchJob", {"elasticPolicy": {"maxReplicas": 9, "metrics": []}}, "elasticPolicy.metrics"),
    ("TrainJob", {"podTemplateOverrides": []}, "trainer 2.1"),
    ("TrainJob", {"runtimePatches": []}, "trainer 2.2"),
    ("SparkApplication", {"dynamicAllocation": {"enabled": True}}, "dynamicAllocation"),
    (
        "SparkApplication",
        {"sparkConf": {"spark.dynamicAllocation.enabled": "true"}},
        "dynamicAllocation",
    ),
    ("SparkApplication", {"sparkConf": {"spark.executor.memory": "64g"}}, "spark.executor.memory"),
    ("SparkApplication", {"mode": "client"}, "mode"),
    ("SparkApplication", {"nodeSelector": {"pool": "a"}}, "nodeSelector"),
]


@pytest.mark.parametrize(("kind", "spec", "named"), REFUSED)
def test_what_cannot_be_queued_is_refused_by_its_name(kind, spec, named):
    (why,) = read(kind, **spec).wrong
    assert named in why


def test_exclusive_placement_of_a_job_set_is_refused_by_its_name():
    obj = sample("JobSet")
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    obj["metadata"]["annotations"] = {key: "rack"}
    (why,) = parsed(obj).job.wrong
    assert key in why


def test_annotations_of_jobs_alone_are_refused():
    obj = sample("PyTorchJob")
    obj["metadata"]["annotations"] = {
        "plimsoll.dev/lifecycle": '{"v":1}',
        "plimsoll.dev/on-interruption": "tell",
    }
    lifecycle, tell = parsed(obj).job.wrong
    assert "lifecycle" in lifecycle
    assert "must be suspend" in tell


def test_the_submitter_of_a_ray_job_counts_though_no_template_of_it_stands_in_the_object():
    submitter = next(each for each in read("RayJob").sets if each.name == "submitter")
    assert submitter.scheduling.requests.cpu == 500
    assert submitter.at is None
    without = {each.name for each in read("RayJob", submissionMode="HTTPMode").sets}
    assert without == {"headgroup", "gpus"}


def test_a_ray_job_without_any_worker_is_its_head_and_its_submitter():
    spec = {"headGroupSpec": sample("RayJob")["spec"]["rayClusterSpec"]["headGroupSpec"]}
    job = read("RayJob", rayClusterSpec=spec)
    assert ({each.name for each in job.sets}, job.wrong) == ({"headgroup", "submitter"}, ())


def test_spark_requests_cores_and_memory_with_its_overhead():
    driver, executor = (each.scheduling.requests for each in read("SparkApplication").sets)
    assert (driver.cpu, driver.memory) == (1000, (1024 + 384) * 2**20)
    assert (executor.cpu, executor.memory) == (1500, 8 * 2**30 + int(8 * 2**30 * 0.1))


def test_spark_in_python_keeps_more_beside_the_heap_and_what_is_stated_counts_instead():
    *_, executor = read("SparkApplication", type="Python").sets
    assert executor.scheduling.requests.memory == 8 * 2**30 + int(8 * 2**30 * 0.4)
    stated = {
        "memory": "8g",
        "memoryOverhead": "1g",
        "gpu": {"name": "nvidia.com/gpu", "quantity": 2},
    }
    *_, executor = read("SparkApplication", executor=stated).sets
    assert executor.scheduling.requests.memory == 9 * 2**30
    assert ("nvidia.com/gpu", 2) in executor.scheduling.requests.extended


@pytest.mark.parametrize("factor", ["NaN", "-1", "Infinity", "a lot"])
def test_an_overhead_of_spark_that_is_no_share_leaves_the_object_out(factor):
    with pytest.raises(BadInput, match="memoryOverheadFactor"):
        read("SparkApplication", memoryOverheadFactor=factor)


def test_a_train_job_has_the_pods_of_the_job_set_that_was_made_for_it():
    train, child = sample("TrainJob"), sample("JobSet", queue=None)
    job = jobs_of(train, owned_by(train, child))["TrainJob"]
    assert {each.name: each.pods for each in job.sets} == ROLES["JobSet"]
    assert (job.wrong, job.gates) == ((), ())


def test_a_train_job_waits_for_its_job_set_and_takes_no_other_for_it():
    train = sample("TrainJob")
    for others in (
        (),
        (sample("JobSet", queue=None),),
        (owned_by(train, sample("JobSet", "else")),),
    ):
        job = jobs_of(train, *others)["TrainJob"]
        assert job.gates == ("its JobSet is not there yet",)


def test_only_the_outermost_owner_is_queued():
    train, ray = sample("TrainJob"), sample("RayJob", "rays")
    children = [
        owned_by(train, sample("JobSet")),
        owned_by(ray, sample("RayCluster", "rays-x2x4z")),
    ]
    assert jobs_of(train, ray, *children).keys() == {"TrainJob", "RayJob"}


def test_the_ray_cluster_of_a_ray_service_is_left_to_it():
    service = {"kind": "RayService", "metadata": {"name": "s", "namespace": "lab", "uid": "s"}}
    assert jobs_of(owned_by(service, sample("RayCluster"))) == {}


def test_a_job_of_a_job_set_is_no_gang_of_its_own_and_one_of_a_cron_job_is():
    job = {**a_job("nightly")}
    job["metadata"] |= {"uid": "j", "creationTimestamp": "2026-11-17T12:00:00Z"}
    reader = job_reader(PodAdmission())
    assert reader(owned_by(sample("JobSet"), job)) is None
    cron = {"kind": "CronJob", "metadata": {"name": "c", "uid": "c"}}
    queued = reader(owned_by(cron, job))
    assert queued is not None
    assert queued.ref == Ref("Job", "lab", "nightly")


@pytest.mark.parametrize("kind", ROLES)
@pytest.mark.parametrize("wrong", [-1, 10**9, "many", True, [], 1.5])
def test_a_count_that_is_none_leaves_the_object_out_by_its_name(kind, wrong):
    obj = sample(kind)
    row = ROWS[kind]
    source = next((s for s in reversed(row.roles) if s.counts), None)
    assert source is not None
    entries = at(obj, source.entries)
    if isinstance(entries, list):
        entry = entries[-1]
    else:
        entry = entries if source.amounts else next(iter(entries.values()))
    entry[source.counts[0].path[-1]] = wrong
    with pytest.raises(BadInput, match=f"{kind} lab/train"):
        parsed(obj)


def test_roles_that_share_a_name_are_told_and_too_many_leave_the_object_out():
    obj = sample("RayCluster")
    groups = obj["spec"]["workerGroupSpecs"]
    groups.append(groups[0])
    assert parsed(obj).job.wrong == ("two of its roles are called gpus",)
    obj["spec"]["workerGroupSpecs"] = groups[:1] * 200
    with pytest.raises(BadInput, match="more than 100 roles"):
        parsed(obj)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def _places(obj, path=()):
    """Yield every way into an object."""
    if path:
        yield path
    items = (
        obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
    )
    for key, value in items:
        yield from _places(value, (*path, key))


@given(st.sampled_from([*ROWS]), st.data())
def test_whatever_a_tenant_writes_somewhere_costs_that_object_only(kind, data):
    obj = sample(kind)
    obj["status"] = {"conditions": [{"type": "Failed", "status": "False"}], "rayClusterName": "x"}
    *above, last = data.draw(st.sampled_from([*_places(obj)]))
    there = obj
    for part in above:
        there = there[part]
    there[last] = data.draw(ANYTHING)
    obj["kind"] = kind
    said = said_of(obj)
    assert isinstance(said, Job) or said.startswith(kind)


def said_of(obj) -> Job | str:
    try:
        return parsed(obj).job
    except BadInput as error:
        return str(error)
