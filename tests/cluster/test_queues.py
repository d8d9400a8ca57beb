"""Queues on a real API server: who may start a Job, what the planner may change, and gangs that run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.client import USER_AGENT, ClientTransport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.services.queues import QueueService
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.gangs.cases import Case
from plimsoll_testbed.rigs.gangs.play import play
from tests.cluster.installed import message_of, needs_mutating_policies, until
from tests.contract.rights import CLUSTER
from tests.rights.attempts import Playground, attempts
from tests.support.fake_clusters import Json, a_node
from tests.support.queue_scenes import GATE, Heard, a_bare_pod, a_job, a_training, stop_of

pytestmark = pytest.mark.cluster

JOBS = "/apis/batch/v1/namespaces/lab/jobs"
PODS = "/api/v1/namespaces/lab/pods"
QUEUES = """
flavors: [{name: spot, nodeLabels: {capacity: spot}}, {name: base, nodeLabels: {capacity: base}}]
queues:
  - name: lab
    preemption: {withinQueue: LowerPriority}
    resourceGroups:
      - flavors:
          - {name: spot, resources: {cpu: {nominal: 100}}}
          - {name: base, resources: {cpu: {nominal: 100}}}
"""
NODE = "/api/v1/nodes/spot-0"
LEASED: Json = {"key": "plimsoll.dev/leased-to", "value": "x", "effect": "NoSchedule"}
PLANNER, ADMIN, OWNER, OPERATOR = "planner", "admin", "owner", "operator"
OWNER_RIGHTS: Json = {
    "metadata": {"name": "owner"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OWNER}],
}
OPERATOR_RIGHTS: Json = {
    "metadata": {"name": "controls"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "plimsoll-queues-controller",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}],
}
CLAIMED: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "controller": True}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@dataclass
class Lab:
    """A namespace that opted in, and six places on spot nodes."""

    plane: ControlPlane
    workers: ThreadWorkers = field(default_factory=ThreadWorkers)

    def post(self, path: str, body: Json, user: str = ADMIN) -> Response:
        return self.plane.transport(user).call(
            "POST", path, body=body, content_type="application/json"
        )

    def patch(self, path: str, body: Json, user: str = ADMIN) -> Response:
        return self.as_user(user).call("PATCH", path, body=body, content_type=MERGE_PATCH)

    def as_user(self, user: str) -> ClientTransport:
        """Return a user's way to the API server; the planner writes under the name that its stack does."""
        return self.plane.access(user).transport(user_agent=USER_AGENT if user == PLANNER else user)

    def submit(self, *jobs: Json) -> None:
        for job in jobs:
            assert self.post(JOBS, job, OWNER).status == 201

    def configure(self) -> None:
        data = {"queues.json": json.dumps(yaml.safe_load(QUEUES))}
        body = {"metadata": {"name": "plimsoll-queues"}, "data": data}
        path = "/api/v1/namespaces/plimsoll/configmaps"
        if self.post(path, body).status == 409:
            assert self.patch(f"{path}/plimsoll-queues", body).status == 200

    def job(self, name: str) -> Json:
        found: Json = self.plane.transport().call("GET", f"{JOBS}/{name}").body
        return found

    def ready(self, *names: str) -> int:
        return sum(self.job(name)["status"].get("ready", 0) for name in names)

    def cluster(self) -> KubernetesQueues:
        """Return the cluster as the planner reads and writes it."""
        return KubernetesQueues.of(self.as_user(PLANNER), "lab", SystemClock(), self.workers)

    def plan_until(self, holds: Any) -> None:
        service = QueueService(
            name="lab",
            cluster=self.cluster(),
            clock=SystemClock(),
            workers=self.workers,
            telemetry=Heard(),
        )

        def planned() -> bool:
            service.run(holder="test", seconds=2, cycle_seconds=0.5)
            return bool(holds())

        until(planned)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    times = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=0.5))
    users = {PLANNER: ("plimsoll-batch",), OWNER: (), OPERATOR: ()}
    with ControlPlane(settings=times, users=users) as plane:
        needs_mutating_policies(plane)
        lab = Lab(plane)
        api = plane.transport()
        installation.install(api, CLUSTER)
        installation.install(api, CLUSTER / "batch")
        marks = {"name": "lab", "labels": {"plimsoll.dev/queues": "true"}}
        assert lab.post("/api/v1/namespaces", {"metadata": marks}).status == 201
        for user in (OWNER, OPERATOR):
            subjects = [{**OWNER_RIGHTS["subjects"][0], "name": user}]
            rights = {**OWNER_RIGHTS, "metadata": {"name": user}, "subjects": subjects}
            assert lab.post(BINDINGS, rights).status == 201
        plane.join(*(a_node(f"spot-{n}", cpu="1", capacity="spot") for n in range(6)))
        dry = f"{JOBS}?dryRun=All"

        def in_force() -> bool:
            made = lab.post(dry, a_job("probe", suspend=False), OWNER)
            forged = a_job("probe", annotations={"plimsoll.dev/stop": "{}"})
            suspended = isinstance(made.body, dict) and made.body.get("spec", {}).get("suspend")
            return bool(suspended) and lab.post(dry, forged, OWNER).status == 403

        until(in_force)
        lab.configure()
        yield lab
        lab.workers.close()


@pytest.fixture
def base_nodes(lab: Lab) -> Iterator[list[Json]]:
    """Six nodes of the other flavor, which join when a test says so; no Job or pod of another test takes a place.

    They leave with all Jobs after the test, so that a second attempt begins as the first one did.
    """
    nodes = [a_node(f"base-{n}", cpu="1", capacity="base") for n in range(6)]
    clear(lab.plane.transport())
    yield nodes
    api = lab.plane.transport()
    clear(api)
    for node in nodes:
        api.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def clear(api: ClientTransport) -> None:
    """Delete all Jobs, and wait until they and all pods are gone; else say what is left."""
    api.call("DELETE", JOBS, query={"propagationPolicy": "Background"})

    def left() -> list[Json]:
        return [item for path in (JOBS, PODS) for item in api.call("GET", path).body["items"]]

    with suppress(AssertionError):
        until(lambda: not left())
    assert left() == []


def test_a_bare_pod_waits_behind_its_gate_until_the_planner_takes_it_off(lab: Lab):
    ungated = a_bare_pod("eager", schedulingGates=None)
    assert "scheduling gate" in message_of(lab.post(PODS, ungated, OWNER))
    assert lab.post(PODS, a_bare_pod("alone"), OWNER).status == 201
    path = f"{PODS}/alone"
    refused = lab.patch(path, {"spec": {"schedulingGates": None}}, OWNER)
    assert refused.status == 403
    assert "until the planner" in message_of(refused)
    forged = {"metadata": {"annotations": {"plimsoll.dev/admission": "{}"}}}
    assert lab.patch(path, forged, OWNER).status == 403
    api = lab.plane.transport()
    lab.plan_until(lambda: api.call("GET", path).body.get("status", {}).get("phase") == "Running")
    spec = api.call("GET", path).body["spec"]
    assert spec["nodeSelector"] == {"capacity": "spot"}
    assert "schedulingGates" not in spec
    assert api.call("DELETE", path).status == 200
    until(lambda: api.call("GET", path).status == 404)


def claimed(lab: Lab) -> Json:
    """Return a reference to a ConfigMap of the owner as a controller."""
    path = "/api/v1/namespaces/lab/configmaps"
    lab.post(path, {"metadata": {"name": "mine"}}, OWNER)
    found = lab.plane.transport().call("GET", f"{path}/mine").body
    return {**CLAIMED, "uid": found["metadata"]["uid"]}


def test_a_pod_that_claims_a_controller_of_its_owners_making_waits_behind_the_gate_too(lab: Lab):
    eager = a_bare_pod("claims", schedulingGates=None)
    eager["metadata"]["ownerReferences"] = [claimed(lab)]
    assert "scheduling gate" in message_of(lab.post(PODS, eager, OWNER))
    waits = a_bare_pod("claims")
    waits["metadata"]["ownerReferences"] = [claimed(lab)]
    assert lab.post(PODS, waits, OWNER).status == 201
    for owners in (None, [{**claimed(lab), "controller": False}]):
        answer = lab.patch(f"{PODS}/claims", {"metadata": {"ownerReferences": owners}}, OWNER)
        assert "only controllers change the owners" in message_of(answer)
    assert lab.plane.transport().call("DELETE", f"{PODS}/claims").status == 200


def test_no_controller_is_claimed_to_take_a_gate_off(lab: Lab):
    assert lab.post(PODS, a_bare_pod("turns"), OWNER).status == 201
    owners = {"metadata": {"ownerReferences": [claimed(lab)]}}
    answer = lab.patch(f"{PODS}/turns", {**owners, "spec": {"schedulingGates": None}}, OWNER)
    assert "scheduling gate" in message_of(answer)
    assert "only controllers change the owners" in message_of(
        lab.patch(f"{PODS}/turns", owners, OWNER)
    )
    assert lab.plane.transport().call("DELETE", f"{PODS}/turns").status == 200


def test_a_pod_that_was_made_without_the_label_gets_into_no_queue_later(lab: Lab):
    late = a_bare_pod("late", schedulingGates=None)
    labels = late["metadata"].pop("labels")
    assert lab.post(PODS, late, OWNER).status == 201
    answer = lab.patch(f"{PODS}/late", {"metadata": {"labels": labels}}, OWNER)
    assert "gets into no queue after its creation" in message_of(answer)
    assert lab.plane.transport().call("DELETE", f"{PODS}/late").status == 200


def test_an_operator_that_may_control_makes_pods_as_a_controller_does(lab: Lab):
    made = a_bare_pod("made", schedulingGates=None)
    made["metadata"]["ownerReferences"] = [claimed(lab)]
    dry = f"{PODS}?dryRun=All"
    assert lab.post(dry, made, OPERATOR).status == 403
    assert lab.post(BINDINGS, OPERATOR_RIGHTS).status == 201
    until(lambda: lab.post(dry, made, OPERATOR).status == 201)
    assert lab.plane.transport().call("DELETE", f"{BINDINGS}/controls").status == 200
    until(lambda: lab.post(dry, made, OPERATOR).status == 403)


@pytest.fixture
def tried(lab: Lab) -> Iterator[Playground]:
    """Pods and Jobs with and without a queue, none of which runs."""
    free, unnamed = a_bare_pod("free", schedulingGates=[GATE]), a_job("theirs")
    del free["metadata"]["labels"], unnamed["metadata"]["labels"]
    gated = a_bare_pod("kept", schedulingGates=[GATE, {"name": "theirs"}])
    for path, body in (
        (PODS, gated),
        (PODS, free),
        (JOBS, unnamed),
        (JOBS, a_job("waits", annotations={"plimsoll.dev/hold": "true"})),
    ):
        assert lab.post(path, body, OWNER).status == 201
    paths = {
        "node": NODE,
        "bare pod": f"{PODS}/kept",
        "free pod": f"{PODS}/free",
        "Job": f"{JOBS}/waits",
        "free Job": f"{JOBS}/theirs",
    }
    found: dict[str, Any] = {name: lambda path=path: path for name, path in paths.items()}
    admin = lab.plane.transport()
    yield Playground(admin, found)
    for path in [*paths.values()][1:]:
        admin.call("DELETE", path, query={"propagationPolicy": "Background"})


@pytest.mark.parametrize(("who", "user"), [("plimsoll-batch", PLANNER), ("owner of a Job", OWNER)])
def test_an_attempt_is_answered_as_its_row_says(lab: Lab, tried: Playground, who: str, user: str):
    for row in attempts(who):
        tried.judge(lab.as_user(user), row)


def test_the_planner_writes_nothing_on_pods_of_gangs_but_their_deadline(lab: Lab):
    job = a_job("teller")
    job["spec"]["template"]["metadata"]["labels"] = {"plimsoll.dev/gang": "teller"}
    lab.submit(job)
    lab.plan_until(lambda: lab.ready("teller") == 1)
    api = lab.plane.transport()
    query = {"labelSelector": "plimsoll.dev/gang=teller"}
    [pod] = api.call("GET", PODS, query=query).body["items"]
    path = f"{PODS}/{pod['metadata']['name']}"
    told = {"metadata": {"annotations": {"plimsoll.dev/deadline": "2026-11-17T14:00:00Z"}}}
    assert lab.patch(path, told, PLANNER).status == 200
    for body in (
        {"metadata": {"annotations": {"plimsoll.dev/admission": "{}"}}},
        {"metadata": {"labels": {"theirs": "1"}}},
        {"spec": {"activeDeadlineSeconds": 60}},
    ):
        assert lab.patch(path, body, PLANNER).status == 403
    api.call("DELETE", f"{JOBS}/teller", query={"propagationPolicy": "Background"})
    until(lambda: not api.call("GET", PODS, query=query).body["items"])


def test_a_job_that_names_a_queue_is_created_suspended_and_another_is_not(lab: Lab):
    lab.submit(a_job("eager", suspend=False, annotations={"plimsoll.dev/hold": "true"}))
    free = a_job("free", suspend=False)
    del free["metadata"]["labels"]
    lab.submit(free)
    assert lab.job("eager")["spec"]["suspend"] is True
    assert lab.job("free")["spec"]["suspend"] is False
    lab.plane.transport().call("DELETE", f"{JOBS}/free", query={"propagationPolicy": "Background"})


def test_of_what_others_wrote_the_planner_changes_and_hides_nothing(lab: Lab):
    assert lab.post(PODS, a_bare_pod("told"), OWNER).status == 201
    lab.post(JOBS, a_job("told", annotations={"plimsoll.dev/hold": "true"}), OWNER)
    api, dry = lab.as_user(PLANNER), {"dryRun": "All"}

    def tried(path: str, metadata: Json, **query: str) -> Response:
        body = {"metadata": metadata}
        return api.call("PATCH", path, query=dry | query, body=body, content_type=MERGE_PATCH)

    for path, ours in (
        (NODE, {"labels": {LEASED["key"]: "x"}}),
        (f"{PODS}/told", {"annotations": {"plimsoll.dev/deadline": "x"}}),
        (f"{JOBS}/told", {"annotations": {"plimsoll.dev/nodes": "x"}}),
    ):
        assert tried(path, ours).status == 200
        entries = lab.plane.transport().call("GET", path).body["metadata"]["managedFields"]
        renamed = [entry | {"manager": f"plimsoll-{n}"} for n, entry in enumerate(entries)]
        more = [*entries, *(entry | {"manager": "plimsoll"} for entry in entries)]
        answers = (
            tried(path, {"managedFields": [{}]}),
            tried(path, ours | {"managedFields": renamed}),
            tried(path, ours | {"managedFields": more}),
            tried(path, ours, fieldManager="plimsoll-1"),
            tried(path, ours, fieldManager="kubectl"),
        )
        for answer in answers:
            assert answer.status == 403, answer.body
            assert "'plimsoll-history'" in message_of(answer)
    assert lab.plane.transport().call("DELETE", f"{PODS}/told").status == 200
    lab.plane.transport().call("DELETE", f"{JOBS}/told", query={"propagationPolicy": "Background"})


def test_a_gang_starts_whole_makes_way_and_comes_back_in_another_flavor(
    lab: Lab, base_nodes: list[Json]
):
    low, high = ("low-ps", "low-workers"), ("high-ps", "high-workers")
    lab.submit(*a_training("low"))
    lab.plan_until(lambda: lab.ready(*low) == 6)
    lab.submit(*a_training("high", annotations={"plimsoll.dev/priority": "10"}))
    lab.plan_until(lambda: lab.ready(*high) == 6)
    assert all(lab.job(name)["spec"]["suspend"] for name in low)
    assert stop_of(lab.job("low-ps"))["madeWay"] == "lab/high"
    lab.plane.join(*base_nodes)
    lab.plan_until(lambda: lab.ready(*low) == 6)
    selector = lab.job("low-ps")["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {"capacity": "base"}


@pytest.mark.parametrize("leases", [False, True], ids=["shared", "leased"])
def test_two_gangs_on_places_for_one_and_a_half_end_one_after_the_other(lab: Lab, leases):
    case = Case(name="leased" if leases else "pair", slots=10, jobs=2, leases=leases)
    [done] = play(lab.plane, [case], window=40, runs=1)
    assert done.makespan is not None
