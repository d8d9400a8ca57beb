"""Objects of frameworks on a real API server, without their operators: what the rendered rights and policies let happen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.requests import JSON_PATCH, MERGE_PATCH
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Conflict
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.frameworks import at
from plimsoll_batch.domain.jobs import Admission, Job, PodSetAdmission, Steering, Stop
from plimsoll_cli.batch.framework_manifests import rendered
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.installed import message_of, needs_mutating_policies, until
from tests.contract.rights import CLUSTER
from tests.support.fake_clusters import Json
from tests.support.framework_samples import ROWS, owned_by, sample

pytestmark = pytest.mark.cluster

NAMES = ("jobset", "ray", "trainer", "kubeflow", "spark")
KINDS = ("JobSet", "RayJob", "RayCluster", "TrainJob", "PyTorchJob", "SparkApplication")
PLANNER, ADMIN, OWNER, OPERATOR = "planner", "admin", "owner", "operator"
RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def path_of(kind: str) -> str:
    row = ROWS[kind]
    return f"/apis/{row.api_version}/namespaces/lab/{row.resource}"


def collection_of(manifest: Mapping[str, Any]) -> str:
    kind = manifest["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("policy") else f"{kind}s"
    return f"/apis/{manifest['apiVersion']}/{plural}"


def a_crd(kind: str) -> Json:
    row = ROWS[kind]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {
            "name": f"{row.resource}.{row.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": row.group,
            "scope": "Namespaced",
            "names": {"plural": row.resource, "kind": kind},
            "versions": [
                {
                    "name": row.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


class Yard:
    """A cluster with a namespace whose objects are queued."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.number = 0

    def post(self, path: str, body: Mapping[str, Any], user: str = ADMIN, **query: str) -> Response:
        api = self.plane.transport(user)
        kind = "application/json"
        return api.call("POST", path, query=query or None, body=body, content_type=kind)

    def patch(self, kind: str, name: str, body: Any, user: str) -> Response:
        how = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        path = f"{path_of(kind)}/{name}"
        dry = {"dryRun": "All"}
        return self.plane.transport(user).call(
            "PATCH", path, query=dry, body=body, content_type=how
        )

    def apply(self, path: str, body: Mapping[str, Any]) -> None:
        answer = self.post(path, body)
        assert answer.status == 201, answer.body

    def submit(self, obj: Json, user: str = OWNER) -> Response:
        meta = {k: v for k, v in obj["metadata"].items() if k in {"labels", "ownerReferences"}}
        self.number += 1
        meta |= {"name": f"train-{self.number}", "namespace": "lab"}
        return self.post(path_of(obj["kind"]), {**obj, "metadata": meta}, user)

    def object(self, job: Job) -> Json:
        path = f"{path_of(job.ref.kind)}/{job.ref.name}"
        found: Json = self.plane.transport().call("GET", path).body
        return found

    def planner(self) -> KubernetesQueues:
        """The cluster as the planner reads and writes it."""
        api = self.plane.access(PLANNER).transport()
        found = KubernetesQueues.of(api, "yard", SystemClock(), SerialWorkers())
        assert found.configuration() is not None
        return found


def unsuspended(kind: str) -> Json:
    obj = sample(kind)
    if len(ROWS[kind].suspend) > 2:
        del obj["spec"]["runPolicy"]
    else:
        del obj["spec"]["suspend"]
    return obj


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    users: dict[str, tuple[str, ...]] = {PLANNER: ("plimsoll-batch",), OWNER: (), OPERATOR: ()}
    with ControlPlane(users=users) as plane:
        needs_mutating_policies(plane)
        yard = Yard(plane)
        for folder in (CLUSTER, CLUSTER / "batch"):
            installation.install(plane.transport(), folder)
        for kind in KINDS:
            yard.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", a_crd(kind))
        for manifest in rendered(NAMES):
            yard.apply(collection_of(manifest), manifest)
        marks = {"name": "lab", "labels": {"plimsoll.dev/queues": "true"}}
        yard.apply("/api/v1/namespaces", {"metadata": marks})
        rights: Json = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        for name, role, who in (
            ("operators", "plimsoll-queues-controller", (OPERATOR,)),
            ("edits", "edits", (OWNER, OPERATOR)),
        ):
            subjects = [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
                for user in who
            ]
            body = {
                "metadata": {"name": name},
                "roleRef": rights | {"name": role},
                "subjects": subjects,
            }
            yard.apply(RBAC, body)
        groups = [ROWS[kind].group for kind in KINDS]
        rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]
        yard.apply(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"metadata": {"name": "edits"}, "rules": rules},
        )
        queues = {"frameworks": [*NAMES], "flavors": [{"name": "any"}], "queues": [{"name": "lab"}]}
        yard.apply(
            "/api/v1/namespaces/plimsoll/configmaps",
            {
                "metadata": {"name": "plimsoll-queues"},
                "data": {"queues.json": json.dumps(queues)},
            },
        )
        until(lambda: all(in_force(yard, kind) for kind in KINDS))
        yield yard


def in_force(yard: Yard, kind: str) -> bool:
    """Whether all policies of a kind hold: an object is suspended, and its owner does not start it."""
    answer = yard.submit(unsuspended(kind))
    if answer.status != 201 or not at(answer.body, ROWS[kind].suspend):
        return False
    name = answer.body["metadata"]["name"]
    start = yard.patch(kind, name, written(ROWS[kind].suspend, value=False), OWNER)
    extra = yard.patch(kind, name, {"spec": {"theirs": 1}}, PLANNER)
    return (start.status, extra.status) == (403, 403) and "this changes" in message_of(extra)


def written(path: tuple[str, ...], *, value: Any) -> Json:
    for name in reversed(path):
        value = {name: value}
    found: Json = value
    return found


def queued(yard: Yard, kind: str) -> Job:
    """Submit an object, and return it as the planner reads it."""
    answer = yard.submit(sample(kind))
    assert answer.status == 201, answer.body
    if kind == "TrainJob":
        child = owned_by(answer.body, sample("JobSet", queue=None))
        meta = {**child["metadata"], "name": answer.body["metadata"]["name"]}
        made = {k: v for k, v in meta.items() if k in {"name", "labels", "ownerReferences"}}
        made["ownerReferences"][0]["apiVersion"] = answer.body["apiVersion"]
        yard.apply(path_of("JobSet"), {**child, "metadata": made})
    name = answer.body["metadata"]["name"]
    return next(job for job in yard.planner().read().jobs if job.ref.name == name)


def admission(job: Job) -> Admission:
    steering = Steering(labels={"pool": "a"})
    sets = {
        each.name: PodSetAdmission(steering=Steering() if each.at is None else steering)
        for each in job.sets
    }
    return Admission(plan="p", at=NOON, sets=sets)


@pytest.mark.parametrize("kind", KINDS)
def test_the_planner_starts_steers_and_suspends_it_within_its_policies(yard: Yard, kind: str):
    job, planner = queued(yard, kind), yard.planner()
    assert (job.wrong, job.gates) == ((), ())
    written = planner.write_plan(job, admission(job))
    planner.start(written, admission(job))
    after = yard.object(job)
    assert at(after, ROWS[kind].suspend) is False
    assert '"pool": "a"' in json.dumps(after["spec"])
    planner.suspend(planner.job(job), Stop(plan="p", at=NOON, why="makes way"))
    assert at(yard.object(job), ROWS[kind].suspend) is True


def test_a_plan_for_what_was_changed_meanwhile_is_a_conflict(yard: Yard):
    job, planner = queued(yard, "JobSet"), yard.planner()
    planner.write_plan(job, admission(job))
    with pytest.raises(Conflict):
        planner.start(job, admission(job))


FOREIGN: list[tuple[str, list[Json], str]] = [
    ("JobSet", [{"op": "add", "path": "/spec/replicatedJobs/1/replicas", "value": 9}], "spec.repl"),
    ("JobSet", [{"op": "remove", "path": "/spec/replicatedJobs/0"}], "spec.replicatedJobs"),
    (
        "JobSet",
        [
            {
                "op": "add",
                "path": "/spec/replicatedJobs/0/template/spec/template/spec/serviceAccountName",
                "value": "root",
            }
        ],
        "spec.replicatedJobs",
    ),
    ("JobSet", [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], "metadata.labels"),
    (
        "PyTorchJob",
        [{"op": "add", "path": "/spec/pytorchReplicaSpecs/Worker/replicas", "value": 9}],
        "spec.pytorchReplicaSpecs",
    ),
    (
        "PyTorchJob",
        [{"op": "add", "path": "/spec/runPolicy/cleanPodPolicy", "value": "All"}],
        "spec.runPolicy.cleanPodPolicy",
    ),
    (
        "RayJob",
        [
            {
                "op": "add",
                "path": "/spec/rayClusterSpec/workerGroupSpecs/0/template/spec/hostNetwork",
                "value": True,
            }
        ],
        "spec.rayClusterSpec.workerGroupSpecs",
    ),
    ("RayJob", [{"op": "add", "path": "/spec/entrypoint", "value": "x"}], "spec.entrypoint"),
    (
        "TrainJob",
        [
            {
                "op": "add",
                "path": "/spec/podSpecOverrides",
                "value": [{"targetJobs": [{"name": "node"}], "serviceAccountName": "root"}],
            }
        ],
        "spec.podSpecOverrides",
    ),
    (
        "SparkApplication",
        [{"op": "add", "path": "/spec/executor/instances", "value": 9}],
        "spec.executor.instances",
    ),
]


@pytest.mark.parametrize(("kind", "patch", "named"), FOREIGN)
def test_the_planner_may_change_nothing_else(yard: Yard, kind: str, patch: list[Json], named: str):
    job = queued(yard, kind)
    answer = yard.patch(kind, job.ref.name, patch, PLANNER)
    assert answer.status == 403
    assert "this changes" in message_of(answer)
    assert named in message_of(answer)


@pytest.mark.parametrize("kind", KINDS)
def test_its_owner_neither_starts_it_nor_takes_it_out_of_its_queue_nor_forges_a_plan(
    yard: Yard, kind: str
):
    job = queued(yard, kind)
    for body, says in (
        (written(ROWS[kind].suspend, value=False), "the planner of the queues starts it"),
        ({"metadata": {"labels": {"plimsoll.dev/queue": None}}}, "keeps the label"),
        ({"metadata": {"annotations": {"plimsoll.dev/admission": "{}"}}}, "only the planner"),
    ):
        answer = yard.patch(kind, job.ref.name, body, OWNER)
        assert answer.status == 403
        assert says in message_of(answer)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_suspended_when_it_is_created(yard: Yard, kind: str):
    answer = yard.submit(unsuspended(kind))
    assert at(answer.body, ROWS[kind].suspend) is True


def test_a_ray_job_that_would_not_outlive_a_suspension_is_refused_when_it_is_created(yard: Yard):
    obj = sample("RayJob")
    del obj["spec"]["shutdownAfterJobFinishes"]
    answer = yard.submit(obj)
    assert answer.status == 403
    assert "shutdownAfterJobFinishes: must be true" in message_of(answer)


def test_what_an_operator_makes_for_its_object_is_let_through_and_a_forged_owner_gains_nothing(
    yard: Yard,
):
    owner = yard.submit(sample("RayJob")).body
    child = owned_by(owner, unsuspended("RayCluster"))
    child["metadata"]["ownerReferences"][0]["apiVersion"] = owner["apiVersion"]
    assert not at(yard.submit(child, OPERATOR).body, ROWS["RayCluster"].suspend)
    assert at(yard.submit(child, OWNER).body, ROWS["RayCluster"].suspend) is True
