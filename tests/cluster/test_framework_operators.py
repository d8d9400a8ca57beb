"""Objects of frameworks with their own operators, on a real control plane: created, started, preempted, started elsewhere, ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from plimsoll.adapters.kubernetes import Response
from plimsoll_batch.domain.frameworks import Framework, at
from plimsoll_batch.services.queue_observation import Seen, seen_in
from plimsoll_cli.batch.framework_manifests import rendered
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.gangs.play import succeed
from plimsoll_testbed.rigs.operators import (
    JOBSET,
    KUBERAY,
    TRAINING,
    Operator,
    RunningOperator,
)
from tests.cluster.installed import BINDINGS, needs_mutating_policies, until
from tests.cluster.ray_dashboards import RayDashboards
from tests.cluster.test_queues import OPERATOR, OWNER, PLANNER, PODS, Lab
from tests.contract.rights import CLUSTER
from tests.support.fake_clusters import Json, a_node
from tests.support.framework_operators import (
    FLAVORS,
    a_job_set,
    a_pytorch_job,
    a_template,
    named,
)
from tests.support.framework_samples import ROWS, parsed
from tests.support.queue_scenes import a_job, record, stop_of

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NODES = 4
"""In each pool, with one core each: as much as the quota of each flavor."""
CONFIGURATION = "/api/v1/namespaces/plimsoll/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An object called `train` of three pods."""

    operator: Operator
    obj: Json
    end: Callable[[Yard], object]


class Yard(Lab):
    """Two pools of nodes, and a namespace whose objects are queued."""

    row: Framework
    ray: RayDashboards

    def train(self, verb: str = "GET") -> Response:
        return self.as_user(OWNER).call(verb, f"{collection_of(self.row)}/train")

    def there(self) -> Json:
        found: Json = self.train().body
        return found

    def has_ended(self) -> bool:
        answer = self.train()
        job = None if answer.status == 404 else parsed(answer.body).job
        return job is None or (job.finished and not job.failure)

    def pods(self) -> Sequence[Json]:
        """Those of the object."""
        query = {"labelSelector": "batch.kubernetes.io/job-name!=urgent"}
        found: list[Json] = self.plane.transport().call("GET", PODS, query=query).body["items"]
        return found

    def runs_in(self, pool: str) -> bool:
        pods = self.pods()
        whole = all(is_ready(pod) and not is_deleting(pod) for pod in pods)
        return whole and [pod["spec"]["nodeName"][0] for pod in pods] == [pool] * 3

    def seen(self) -> Seen:
        """What the planner sees."""
        cluster = self.cluster()
        configuration = cluster.configuration()
        assert configuration is not None
        return seen_in(cluster.read(), configuration, datetime.now(UTC))

    def used(self) -> dict[str, int]:
        """Cores by flavor."""
        used: Counter[str] = Counter()
        for gang in self.seen().state.running:
            for (flavor, resource), amount in gang.usage.items():
                if resource == "cpu":
                    used[flavor] += amount // 1000
        return +used


def collection_of(row: Framework) -> str:
    return f"/apis/{row.api_version}/namespaces/lab/{row.resource}"


@pytest.fixture
def yard() -> Iterator[Yard]:
    times = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=0.5))
    users: dict[str, tuple[str, ...]] = {PLANNER: ("plimsoll-batch",), OWNER: (), OPERATOR: ()}
    with RayDashboards() as ray, ControlPlane(settings=times, users=users) as plane:
        needs_mutating_policies(plane)
        yard = Yard(plane)
        yard.ray = ray
        for folder in (CLUSTER, CLUSTER / "batch"):
            installation.install(plane.transport(), folder)
        marks = {"name": "lab", "labels": {"plimsoll.dev/queues": "true"}}
        assert yard.post("/api/v1/namespaces", {"metadata": marks}).status == 201
        groups = sorted({"batch", *(ROWS[kind].group for kind in CASES)})
        edits = [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]
        assert yard.post(ROLES, {"metadata": {"name": "edits"}, "rules": edits}).status == 201
        bind(yard, OWNER, "edits")
        bind(yard, OPERATOR, "plimsoll-queues-controller")
        plane.join(*(a_node(f"{p}{n}", cpu="1", pool=p) for p in "ab" for n in range(NODES)))
        yield yard
        yard.workers.close()


def bind(yard: Yard, user: str, role: str) -> None:
    group = "rbac.authorization.k8s.io"
    body: Json = {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    assert yard.post(BINDINGS, body).status == 201


@contextmanager
def queued(yard: Yard, case: Case) -> Iterator[None]:
    """Run the operator of a case, with the rights and policies of its row in force."""
    yard.row = row = ROWS[case.obj["kind"]]
    environment = yard.ray.environment
    with RunningOperator(yard.plane, case.operator, user=OPERATOR, environment=environment):
        for manifest in rendered((row.name,)):
            installation.apply(yard.plane.transport(), manifest, source="the row")
        queues = {**yaml.safe_load(FLAVORS), "frameworks": [row.name]}
        data = {"queues.json": json.dumps(queues)}
        yard.post(CONFIGURATION, {"metadata": {"name": "plimsoll-queues"}, "data": data})
        dry = f"{collection_of(row)}?dryRun=All"
        until(lambda: at(yard.post(dry, eager(case), OWNER).body, row.suspend) is True)
        yield


def eager(case: Case) -> Json:
    """Return the object as its owner writes it who forgot to suspend it."""
    row, found = ROWS[case.obj["kind"]], deepcopy(case.obj)
    at(found, row.suspend[:-1])[row.suspend[-1]] = False
    return found


def pods_succeed(yard: Yard) -> None:
    """Let workers succeed, which hold no quota from then on, and last the driver, master or chief."""
    last, *workers = sorted(yard.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    for pod in workers:
        succeed(yard.plane.transport(), pod)
    until(lambda: yard.used() == {"a": 4, "b": 1})
    assert not yard.has_ended()
    succeed(yard.plane.transport(), last)


def ray_job_succeeds(yard: Yard) -> None:
    yard.ray.job_status = "SUCCEEDED"
    (submitter,) = (p for p in yard.pods() if "ray.io/cluster" not in p["metadata"]["labels"])
    succeed(yard.plane.transport(), submitter)


def a_labelled_job_set() -> Json:
    """Return a JobSet whose Jobs name the queue too, as some write it."""
    obj = a_job_set("train")
    for role in obj["spec"]["replicatedJobs"]:
        role["template"]["metadata"] = {"labels": {"plimsoll.dev/queue": "lab"}}
    return obj


def a_ray_spec(workers: int) -> Json:
    """Return what a RayCluster is, of a head and workers."""
    group = {"groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": workers}
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": a_template()},
        "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": a_template()}],
    }


def a_ray_object(kind: str, spec: Json) -> Json:
    version = ROWS[kind].api_version
    return {"apiVersion": version, "kind": kind, "metadata": named("train"), "spec": spec}


def a_ray_job() -> Json:
    return a_ray_object(
        "RayJob",
        {
            "entrypoint": "python train.py",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": a_ray_spec(workers=1),
            "submitterPodTemplate": a_template(restartPolicy="Never"),
        },
    )


def a_kubeflow_job(kind: str, specs: str, container: str, **roles: int) -> Json:
    """Return an object of the training operator, which asks for a container of this name."""
    template = a_template()
    template["spec"]["containers"][0]["name"] = container
    replicas = {role: {"replicas": n, "template": template} for role, n in roles.items()}
    obj = a_pytorch_job("train")
    return {**obj, "kind": kind, "spec": {"runPolicy": {}, specs: replicas}}


CASES = {
    "JobSet": Case(operator=JOBSET, obj=a_labelled_job_set(), end=pods_succeed),
    "RayCluster": Case(
        operator=KUBERAY,
        obj=a_ray_object("RayCluster", a_ray_spec(workers=2)),
        end=lambda yard: yard.train("DELETE"),
    ),
    "RayJob": Case(operator=KUBERAY, obj=a_ray_job(), end=ray_job_succeeds),
    "PyTorchJob": Case(
        operator=TRAINING,
        obj=a_kubeflow_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", Master=1, Worker=2),
        end=pods_succeed,
    ),
    "TFJob": Case(
        operator=TRAINING,
        obj=a_kubeflow_job("TFJob", "tfReplicaSpecs", "tensorflow", Chief=1, PS=1, Worker=1),
        end=pods_succeed,
    ),
    "XGBoostJob": Case(
        operator=TRAINING,
        obj=a_kubeflow_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", Master=1, Worker=2),
        end=pods_succeed,
    ),
    "PaddleJob": Case(
        operator=TRAINING,
        obj=a_kubeflow_job("PaddleJob", "paddleReplicaSpecs", "paddle", Worker=3),
        end=pods_succeed,
    ),
}


def urgent() -> Json:
    """Return a Job that takes all of pool `a`, and goes nowhere else."""
    job = a_job("urgent", NODES, annotations={"plimsoll.dev/priority": "10"})
    job["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    return job


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_waits_starts_makes_way_starts_elsewhere_and_ends(yard: Yard, case: Case):
    with queued(yard, case):
        assert yard.post(collection_of(yard.row), eager(case), OWNER).status == 201
        assert at(yard.there(), yard.row.suspend) is True
        assert yard.pods() == []

        yard.plan_until(lambda: yard.runs_in("a"))
        assert record(yard.there())["started"]
        assert yard.used() == {"a": 3}

        yard.submit(urgent())
        yard.plan_until(lambda: yard.ready("urgent") == NODES)
        assert "lab/urgent" in stop_of(yard.there())["why"]

        yard.plan_until(lambda: yard.runs_in("b"))
        assert yard.used() == {"a": 4, "b": 3}
        # What its operator makes for it is no gang of its own.
        assert {gang.gang.name for gang in yard.seen().gangs.values()} == {"train", "urgent"}

        case.end(yard)
        until(yard.has_ended)
        assert yard.used() == {"a": 4}
