"""Which pods belong to an object of a framework, though another object made them."""

from __future__ import annotations

import pytest

from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.domain.jobs import PodOwners
from tests.support.builders import a_pod
from tests.support.framework_samples import jobs_of, owned_by, sample

RAY = "ray.io/cluster"
JOBSET = "jobset.sigs.k8s.io/jobset-name"


def owner_of(*objects, owner, labels, namespace="lab"):
    pod = a_pod("p", owner=owner, labels=labels, namespace=namespace)
    return PodOwners(jobs_of(*objects).values()).of(pod)


def test_a_pod_of_a_job_set_is_made_by_a_job_that_has_its_name():
    job_set = sample("JobSet")
    mine = {JOBSET: "train"}
    assert owner_of(job_set, owner=("Job", "train-workers-0"), labels=mine) == Ref(
        "JobSet", "lab", "train"
    )


@pytest.mark.parametrize(
    ("owner", "namespace"),
    [(("ReplicaSet", "train-x"), "lab"), (("Job", "other"), "lab"), (("Job", "train-x"), "else")],
    ids=["another kind", "another name", "another namespace"],
)
def test_a_label_alone_makes_no_pod_of_an_object(owner, namespace):
    found = owner_of(sample("JobSet"), owner=owner, labels={JOBSET: "train"}, namespace=namespace)
    assert found is None


def test_a_ray_job_has_its_pods_by_the_name_in_its_status_and_still_when_that_is_emptied():
    ray = sample("RayJob")
    named = sample("RayJob")
    named["status"] = {"rayClusterName": "train-x2x4z"}
    for each in (ray, named):
        found = owner_of(each, owner=("RayCluster", "train-x2x4z"), labels={RAY: "train-x2x4z"})
        assert found == Ref("RayJob", "lab", "train")


def test_a_ray_job_has_the_pods_of_a_cluster_of_its_own_by_any_name():
    ray = sample("RayJob")
    child = owned_by(ray, sample("RayCluster", "elsewhere"))
    found = owner_of(ray, child, owner=("RayCluster", "elsewhere"), labels={RAY: "elsewhere"})
    assert found == Ref("RayJob", "lab", "train")


def test_the_submitter_belongs_to_its_ray_job():
    labels = {"batch.kubernetes.io/job-name": "train"}
    assert owner_of(sample("RayJob"), owner=("Job", "train"), labels=labels) == Ref(
        "RayJob", "lab", "train"
    )


def test_a_cluster_that_only_looks_like_that_of_a_ray_job_keeps_its_pods():
    ray, cluster = sample("RayJob"), sample("RayCluster", "train-x2x4z")
    found = owner_of(ray, cluster, owner=("RayCluster", "train-x2x4z"), labels={RAY: "train-x2x4z"})
    assert found == Ref("RayCluster", "lab", "train-x2x4z")


def test_an_executor_of_spark_is_made_by_its_driver():
    labels = {"sparkoperator.k8s.io/app-name": "train", "spark-role": "executor"}
    found = owner_of(sample("SparkApplication"), owner=("Pod", "train-driver"), labels=labels)
    assert found == Ref("SparkApplication", "lab", "train")
