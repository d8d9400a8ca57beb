"""Objects of frameworks with their own operators, on a real control plane: created, started, preempted, started elsewhere, ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from plimsoll_batch.domain.frameworks import Framework, at
from plimsoll_batch.services.queue_observation import Seen, seen_in
from plimsoll_cli.batch.framework_manifests import rendered
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.gangs.play import succeed
from plimsoll_testbed.rigs.operators import JOBSET, Operator, RunningOperator
from tests.cluster.installed import BINDINGS, needs_mutating_policies, until
from tests.cluster.test_queues import OPERATOR, OWNER, PLANNER, PODS, Lab
from tests.contract.rights import CLUSTER
from tests.support.fake_clusters import Json, a_node
from tests.support.framework_operators import FLAVORS, a_job_set
from tests.support.framework_samples import ROWS
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
    ended: str
    """The condition that it has once all of its pods succeeded."""


def a_labelled_job_set() -> Json:
    """Return a JobSet whose Jobs name the queue too, as some write it."""
    obj = a_job_set("train")
    for role in obj["spec"]["replicatedJobs"]:
        role["template"]["metadata"] = {"labels": {"plimsoll.dev/queue": "lab"}}
    return obj


CASES = {"JobSet": Case(operator=JOBSET, obj=a_labelled_job_set(), ended="Completed")}


class Yard(Lab):
    """Two pools of nodes, and a namespace whose objects are queued."""

    row: Framework

    def there(self) -> Json:
        path = f"{collection_of(self.row)}/train"
        found: Json = self.plane.transport().call("GET", path).body
        return found

    def conditions(self) -> Collection[str]:
        found = self.there().get("status", {}).get("conditions", [])
        return {each["type"] for each in found if each["status"] == "True"}

    def pods(self) -> Sequence[Json]:
        """Those of the object, by the label of its row."""
        query = {"labelSelector": f"{self.row.pods[0].label}=train"}
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


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    times = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=0.5))
    users: dict[str, tuple[str, ...]] = {PLANNER: ("plimsoll-batch",), OWNER: (), OPERATOR: ()}
    with ControlPlane(settings=times, users=users) as plane:
        needs_mutating_policies(plane)
        yard = Yard(plane)
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
    with RunningOperator(yard.plane, case.operator, user=OPERATOR):
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

        for pod in yard.pods():
            succeed(yard.plane.transport(), pod)
        until(lambda: case.ended in yard.conditions())
        assert yard.used() == {"a": 4}
