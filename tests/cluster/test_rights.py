"""The group plimsoll on a real API server with `infra/cluster` applied: what `tests/rights/attempts.yaml` says, and more.

Every refusal is tried twice: with our own rights, and with all rights beside the group, so that
the policies are seen to hold by themselves.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Transport
from plimsoll.adapters.kubernetes.api import OUT_OF_SERVICE
from plimsoll.adapters.kubernetes.dry_runs import TrialResult, policies_missing
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, FLOORS, IGNORE, MOVED, RELEASED
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.probes.kubernetes import GROUP, KubernetesProbe, Queue
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import (
    BINDINGS,
    a_lease,
    as_member,
    install,
    message_of,
    needs_mutating_policies,
    until,
)
from tests.contract.rights import documents
from tests.rights.attempts import Attempt, Computed, Playground, attempts, patch
from tests.rights.table import ACTIONS
from tests.support.cli_environment import an_environment, run
from tests.support.fake_clusters import a_deployment, a_stateful_set

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DRY = {"dryRun": "All"}
TYPES = {"PATCH": MERGE_PATCH, "POST": "application/json"}


@pytest.fixture(scope="module")
def shop(guarded: ControlPlane) -> Iterator[Ground]:
    """One of each kind that we write to. What is refused changes nothing, so rows share it."""
    with Ground(guarded) as ground:
        ground.nodes("a")
        ground.apply(
            a_deployment("web", 1),
            a_stateful_set("db", 1),
        )
        ground.until(lambda: len(ground.serving()) == 2)
        taints = {"spec": {"taints": [Computed.theirs()]}}
        both = {"metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}}}
        assert patch(ground.api, node_of(ground), taints).status == 200
        for path in (node_of(ground), pod_of(ground)):
            assert patch(ground.api, path, both).status == 200
        yield ground


def node_of(ground: Ground) -> str:
    return f"/api/v1/nodes/{ground.name}-a"


def pod_of(ground: Ground) -> str:
    """Return a pod of web that its ReplicaSet owns and that is not terminating."""
    for pod in ground.pods("web"):
        meta = pod["metadata"]
        if "deletionTimestamp" not in meta and "pod-template-hash" in meta["labels"]:
            return f"{ground.pods_path}/{meta['name']}"
    raise AssertionError("web has no pod")


def marks(kind: str, **pairs: str | None) -> Json:
    return {"metadata": {kind: pairs}}


@pytest.fixture(scope="module")
def floors(shop: Ground) -> str:
    """Return the path of the ConfigMap in the shop that says how new pods are constrained."""
    path = f"/api/v1/namespaces/{shop.name}/configmaps"
    shop.create(path, {"metadata": {"name": FLOORS}, "data": {"odd": "an owner's own"}})
    shop.create(path, {"metadata": {"name": "settings"}})
    return f"{path}/{FLOORS}"


@pytest.fixture(scope="module")
def play(shop: Ground, floors: str) -> Playground:
    namespace = f"/api/v1/namespaces/{shop.name}"
    budgets = f"/apis/policy/v1/namespaces/{shop.name}/poddisruptionbudgets"
    paths = {
        "namespace": namespace,
        "node": node_of(shop),
        "member": f"{shop.pods_path}/db-0",
        "deployment": f"/apis/apps/v1/namespaces/{shop.name}/deployments/web",
        "pods of ours": "/api/v1/namespaces/plimsoll/pods",
        "events": f"{namespace}/events",
        "events of default": "/api/v1/namespaces/default/events",
        "floors": floors,
        "settings": floors.replace(FLOORS, "settings"),
        "budgets": budgets,
        "our budget": f"{budgets}/plimsoll-deployment-web",
        "another's budget": f"{budgets}/theirs",
        "leases": "/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases",
    }
    found: dict[str, Any] = {name: lambda path=path: path for name, path in paths.items()}
    playground = Playground(
        shop.api,
        {**found, "pod": lambda: pod_of(shop)},
        settled=lambda: len(shop.pods("web")) == 1,  # the others find no pod that goes away
    )
    make = Computed(playground, budgets).budget
    shop.create(budgets, make(name="plimsoll-deployment-web", maxUnavailable=0))
    shop.create(budgets, make(name="theirs", labels={}, minAvailable=1))
    return playground


@contextmanager
def without(plane: ControlPlane, binding: str) -> Iterator[None]:
    """Take a binding of ours away, and apply everything again."""
    assert plane.transport().call("DELETE", binding).status == 200
    try:
        yield
    finally:
        install(plane)


# The table


@pytest.mark.parametrize("row", attempts("plimsoll"), ids=str)
def test_an_attempt_is_answered_as_its_row_says(play: Playground, ours: Transport, row: Attempt):
    play.judge(ours, row)


BESIDE = sorted(
    {
        (call.resource, field)
        for row in ACTIONS.values()
        for call, fields in row.writes.items()
        for field in fields
        if call.resource in {"nodes", "pods"} and " " in field
    }
)


@pytest.mark.parametrize(("kind", "field"), BESIDE)
def test_a_key_beside_one_that_an_action_writes_is_refused(
    play: Playground, ours: Transport, kind: str, field: str
):
    part, _, key = field.partition(" ")
    body: Json = marks(f"{part}s", **{f"{key}x": "1"})
    if part == "taint":
        added = {"key": f"{key}x", "effect": "NoSchedule"}
        body = {"spec": {"taints": ["$theirs", added]}}
    row = Attempt(name=field, verb="patch", body=body, of=kind[:-1], by=kind, says=f"{field}x")
    play.judge(ours, row)


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest.mark.parametrize(("group", "resource"), sorted({(c.group, c.resource) for c in CALLS}))
def test_of_each_resource_the_verbs_of_the_table_are_allowed_and_no_other(
    guarded: ControlPlane, group: str, resource: str
):
    api = guarded.transport("plimsoll")
    kind, _, part = resource.partition("/")
    calls = [c for c in CALLS if (c.group, c.resource) == (group, resource)]

    def may(verb: str, namespace: str | None, name: str | None) -> bool:
        attributes = {
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": part,
            "namespace": namespace or "",
            "name": name or "",
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = api.call("POST", path, body={"spec": {"resourceAttributes": attributes}})
        return bool(answer.body["status"]["allowed"])

    for call in calls:
        assert may(call.verb, call.only_in, call.only), call
    free = {c.verb for c in calls if c.only_in is None and c.only is None}
    for verb in VERBS:
        assert may(verb, "somebody-elses", "somebody-elses") is (verb in free), verb


REFUSED = """
    GET /api/v1/secrets
    GET /api/v1/namespaces/{ns}/secrets/x
    PATCH /apis/apps/v1/namespaces/{ns}/deployments/web/scale
    PATCH /apis/apps/v1/namespaces/{ns}/daemonsets/x
    PATCH /api/v1/nodes/{ns}-a/status
    GET /api/v1/nodes/{ns}-a/proxy/pods
    POST /api/v1/namespaces/{ns}/pods/x/binding
    POST /api/v1/namespaces/{ns}/pods/x/exec?command=sh
    GET /api/v1/namespaces/{ns}/pods/x/log
    PATCH /api/v1/namespaces/{ns}/pods/x/ephemeralcontainers
    POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings
    PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/plimsoll
    DELETE /apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/plimsoll-floors
    DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/plimsoll-pods
    POST /api/v1/namespaces/kube-system/serviceaccounts/default/token
""".strip()


@pytest.mark.parametrize("request_line", REFUSED.splitlines(), ids=str.strip)
def test_what_no_rule_grants_is_refused(shop: Ground, guarded: ControlPlane, request_line: str):
    method, path = request_line.format(ns=shop.name).split()
    sent: Json = {} if method in {"GET", "DELETE"} else {"body": {}, "content_type": TYPES[method]}
    answer = guarded.transport("plimsoll").call(method, path, **sent)
    assert answer.status == 403, answer.body
    assert 'User "plimsoll" cannot ' in message_of(answer)


# What a row cannot say


def test_a_node_that_is_not_ready_may_be_taken_out_of_service(shop: Ground, ours: Transport):
    (dead,) = shop.nodes("dead")
    path = f"/api/v1/nodes/{dead}"
    shop.lose(dead)
    for effect, status in (("NoExecute", 200), ("NoSchedule", 403)):
        there = shop.get(path)["spec"].get("taints", [])
        taint = {"key": OUT_OF_SERVICE.key, "value": OUT_OF_SERVICE.value, "effect": effect}
        answer = patch(ours, path, {"spec": {"taints": [*there, taint]}}, **DRY)
        assert answer.status == status, message_of(answer)
    shop.api.call("DELETE", path)


@pytest.mark.parametrize(("name", "status"), [("rolled-h1", 200), ("rolled", 403)])
def test_the_label_of_a_rollout_goes_alone_only_from_a_pod_that_its_replica_set_made(
    shop: Ground, ours: Transport, name: str, status: int
):
    made = {**a_deployment(name, 1), "kind": "ReplicaSet"}
    labels = {"app": name, "rollouts-pod-template-hash": "h1"}
    made["spec"]["selector"] = {"matchLabels": labels}
    made["spec"]["template"]["metadata"]["labels"] = labels
    shop.apply(made)
    (pod,) = shop.until(lambda: shop.serving(name))
    path = f"{shop.pods_path}/{pod['metadata']['name']}"
    label = marks("labels", **{"rollouts-pod-template-hash": None})
    both = {"metadata": label["metadata"] | marks("annotations", **{RELEASED: "i-1"})["metadata"]}
    try:
        answer = patch(ours, path, both, **DRY)
        assert answer.status == status, answer.body
        assert "a part of a release alone" in message_of(patch(ours, path, label, **DRY))
    finally:
        shop.api.call("DELETE", f"/apis/apps/v1/namespaces/{shop.name}/replicasets/{name}")
    shop.until(lambda: not shop.pods(name))


def departures(ours: Transport, path: str, uid: str) -> list[int]:
    """Try to evict and to delete a pod, each by its UID and in a dry run, and return both answers."""
    options = {"preconditions": {"uid": uid}, "dryRun": ["All"]}
    eviction = {"metadata": {"name": path.rpartition("/")[2]}, "deleteOptions": options}
    evicted = ours.call("POST", f"{path}/eviction", body=eviction)
    return [evicted.status, ours.call("DELETE", path, body=options).status]


IGNORED = marks("labels", **{IGNORE: "true"})


def test_the_label_of_one_pod_keeps_no_other(shop: Ground, play: Playground, ours: Transport):
    path, other = pod_of(shop), shop.pods("db")[0]["metadata"]
    uid = shop.get(path)["metadata"]["uid"]
    with play.given("pod", IGNORED):
        until(lambda: departures(ours, path, uid) == [403, 403])
        assert departures(ours, f"{shop.pods_path}/{other['name']}", other["uid"]) == [201, 200]


def test_a_labelled_pod_counts_in_its_own_namespace_alone(shop: Ground, ours: Transport):
    """So the tenants of a namespace slow down evictions there, by many labelled pods, and nowhere else."""
    pod = shop.pods("db")[0]["metadata"]
    name, elsewhere = pod["name"], f"{shop.name}-elsewhere"
    namespace, path = f"/api/v1/namespaces/{elsewhere}", f"/api/v1/namespaces/{elsewhere}/pods"
    twin = {
        "metadata": {"name": name, "labels": {IGNORE: "true"}},
        "spec": {
            "schedulingGates": [{"name": "example.com/waits"}],
            "containers": [{"name": "main", "image": "main"}],
        },
    }
    made = {"metadata": {"name": elsewhere}}
    until(lambda: shop.api.call("POST", "/api/v1/namespaces", body=made).status == 201)
    try:
        until(lambda: shop.api.call("POST", path, body=twin).status == 201)  # its account is made
        uid = shop.get(f"{path}/{name}")["metadata"]["uid"]
        until(lambda: departures(ours, f"{path}/{name}", uid)[0] == 403)
        assert departures(ours, f"{shop.pods_path}/{name}", pod["uid"]) == [201, 200]
    finally:
        shop.api.call("DELETE", namespace)


def test_the_labels_of_owners_hold_again_after_their_binding_was_away(
    shop: Ground, play: Playground, guarded: ControlPlane
):
    """https://github.com/kubernetes/kubernetes/issues/130887: parameters may freeze when no binding needs them."""
    api, path = guarded.transport("plimsoll"), pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    with without(guarded, f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-ignored"):
        time.sleep(3)  # the API server stops looking after about one
    with play.given("pod", IGNORED):
        until(lambda: departures(api, path, uid)[0] == 403)
    until(lambda: departures(api, path, uid)[0] == 201)


@pytest.mark.parametrize("name", ["nodes", "pods", "history", "departures", "events", "lease"])
@pytest.mark.usefixtures("shop")
def test_a_binding_that_was_deleted_is_named_by_the_hourly_pre_flight(
    guarded: ControlPlane, name: str
):
    api = guarded.transport("plimsoll")
    until(lambda: not policies_missing(api, "harbor"))
    with without(guarded, f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-{name}"):
        until(lambda: policies_missing(api, "harbor") == [f"plimsoll-{name}"])
    until(lambda: not policies_missing(api, "harbor"))


def test_without_the_overlay_pods_are_evicted_and_not_deleted(
    shop: Ground, play: Playground, guarded: ControlPlane
):
    api, path = guarded.transport("plimsoll"), pod_of(shop)
    uid = shop.get(path)["metadata"]["uid"]
    with without(guarded, f"{BINDINGS}/plimsoll-deletions"):
        until(lambda: departures(api, path, uid) == [201, 403])
        assert "cannot delete resource" in message_of(api.call("DELETE", path))
        assert patch(api, path, Computed(play, path).release(), **DRY).status == 200
    until(lambda: departures(api, path, uid) == [201, 200])


def test_without_the_overlay_no_floor_is_read_or_told(floors: str, guarded: ControlPlane):
    api = guarded.transport("plimsoll")
    field = {"fieldSelector": f"metadata.name={FLOORS}"}
    assert api.call("GET", "/api/v1/configmaps", query=field).status == 200
    assert api.call("GET", "/api/v1/configmaps").status == 403
    with without(guarded, f"{BINDINGS}/plimsoll-injection"):
        until(lambda: api.call("GET", "/api/v1/configmaps", query=field).status == 403)
        assert patch(api, floors, {"data": {"deployment.web": "1"}}, **DRY).status == 403
    until(lambda: api.call("GET", "/api/v1/configmaps", query=field).status == 200)


@pytest.mark.parametrize("manager", ["plimsoll", "plimsoll-1", "kubectl", "ancient-changes"])
def test_no_time_that_comes_with_a_request_tells_karpenter_more(
    shop: Ground, play: Playground, ours: Transport, manager: str
):
    member = play.paths["member"]()
    entries = shop.get(member)["metadata"]["managedFields"]
    fields: Json = {"f:metadata": {"f:annotations": {f"f:{DO_NOT_DISRUPT}": {}}}}
    and_another = {"f:metadata": {**fields["f:metadata"], "f:labels": {"f:app": {}}}}
    for owned, version, operation, subresource, query in itertools.product(
        (fields, and_another),
        ("v1", "v2"),
        ("Update", "Apply"),
        ({}, {"subresource": "status"}),
        ({}, {"fieldManager": manager}),
    ):
        forged = {
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "time": "2100-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": owned,
            **subresource,
        }
        body = Computed(play, member).protect("999999999s")
        body["metadata"]["managedFields"] = [*entries, forged]
        answer = patch(ours, member, body, **DRY, **query)
        assert answer.status == 403, (forged, query)
        if owned == fields and (manager == "plimsoll" or not query):
            # The API server wrote the time of our entry, and dropped theirs.
            assert f"this changes the annotation {DO_NOT_DISRUPT}" in message_of(answer)


def test_of_our_namespace_only_our_lease_may_be_made(guarded: ControlPlane):
    assert "only the Lease drains" in message_of(a_lease(guarded, "somebody-elses"))
    assert a_lease(guarded, "drains").status in {201, 409}


def test_nobody_else_is_held_to_our_fields(shop: Ground, play: Playground):
    for path, body in (
        (play.paths["deployment"](), {"spec": {"paused": True}}),
        (node_of(shop), marks("labels", theirs="2")),
        (pod_of(shop), marks("labels", theirs="2")),
    ):
        assert patch(shop.api, path, body, **DRY).status == 200
    assert shop.api.call("DELETE", pod_of(shop), body={"dryRun": ["All"]}).status == 200


def test_the_api_server_finds_nothing_to_warn_of_in_the_policies(guarded: ControlPlane):
    api = guarded.transport()

    def checked() -> list[Json]:
        found = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies").body["items"]
        return [p for p in found if "typeChecking" in p.get("status", {})]

    there = [d for d in documents("**/*.yaml") if d["kind"] == "ValidatingAdmissionPolicy"]
    until(lambda: len(checked()) == len(there))
    assert {p["metadata"]["name"]: p["status"]["typeChecking"] for p in checked()} == {
        p["metadata"]["name"]: {} for p in checked()
    }


def test_a_webhook_that_changes_more_as_we_write_is_named_in_the_refusal(shop: Ground):
    """A policy that mutates stands for the webhook: to ours both look alike."""
    needs_mutating_policies(shop.plane)
    api, name = shop.api, shop.name
    mutates: Json = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": 'Object{metadata: Object.metadata{labels: {"seen": "1"}}}'
                    },
                }
            ],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    policies, bindings = (
        f"{ADMISSION}/mutatingadmissionpolic{end}" for end in ("ies", "ybindings")
    )
    try:
        shop.create(policies, mutates)
        shop.create(bindings, binding)
        path, body = pod_of(shop), marks("annotations", **{MOVED: "1"})
        plimsoll = shop.plane.transport("plimsoll")
        until(lambda: patch(plimsoll, path, body, **DRY).status == 403)
        answer = patch(plimsoll, path, body, **DRY)
        assert "this changes the label seen" in message_of(answer)
        assert "exempt the group from that webhook" in message_of(answer)
    finally:
        api.call("DELETE", f"{bindings}/{name}")
        api.call("DELETE", f"{policies}/{name}")
    until(lambda: patch(plimsoll, path, body, **DRY).status == 200)


# The doctor


@pytest.fixture(params=["our token", "an administrator as one of our group"])
def probe(request: pytest.FixtureRequest, guarded: ControlPlane) -> KubernetesProbe:
    if request.param == "our token":
        return KubernetesProbe(guarded.transport("plimsoll"), "it", SerialWorkers())
    admin, acting = guarded.transport(), as_member(guarded)
    return KubernetesProbe(admin, "it", SerialWorkers(), group=GROUP, acting=acting)


@pytest.mark.usefixtures("floors")
def test_the_doctor_sees_that_all_is_applied(shop: Ground, probe: KubernetesProbe):
    assert all(right.held for right in probe.rights())
    assert patch(shop.api, pod_of(shop), marks("labels", **{IGNORE: "true"})).status == 200
    try:
        trials = probe.trials()
    finally:
        assert patch(shop.api, pod_of(shop), marks("labels", **{IGNORE: None})).status == 200
    assert {t.policy for t in trials if not t.ours} == {
        f"plimsoll-{name}"
        for name in (
            "departures",
            "events",
            "floors",
            "guard",
            "history",
            "ignored",
            "lease",
            "nodes",
            "pods",
        )
    }
    for trial in trials:
        if not trial.ours:
            assert f"ValidatingAdmissionPolicy '{trial.policy}'" in trial.said
    assert {t.verdict for t in trials if not t.ours} == {TrialResult.BY_OUR_POLICY}
    assert {t.verdict for t in trials if t.ours} == {TrialResult.PASSED}
    queue = probe.queue()
    assert queue == Queue(uid=queue.used, used=queue.used, dangling=False)
    assert queue.uid is not None


def test_the_command_says_so(shop: Ground, guarded: ControlPlane):
    environment, _ = an_environment(registered=False)
    environment.transports["harbor"] = guarded.transport("plimsoll")
    environment.registry.add(
        Cluster(
            name="harbor",
            kind=ClusterKind.ENDPOINT,
            mode=Mode.ACT,
            region="us-east-1",
            endpoint=guarded.url,
            secret="plimsoll/harbor",
            added=environment.clock.now(),
        )
    )
    told = json.loads(run(environment, "doctor", "--cluster", "harbor", "--output", "json").stdout)[
        "findings"
    ]
    found = {finding["check"]: finding for finding in told}
    assert f"v{shop.plane.version}." in found["cluster"]["says"]
    for check in ("cluster", "rights", "fields", "queue"):
        assert found[check]["state"] == "ok", found[check]


@pytest.mark.parametrize("name", ["nodes", "departures", "history", "lease"])
def test_the_doctor_sees_a_policy_that_is_not_bound(
    shop: Ground, probe: KubernetesProbe, name: str
):
    path = f"{ADMISSION}/validatingadmissionpolicybindings/plimsoll-{name}"
    assert shop.api.call("DELETE", path).status == 200

    def free() -> set[str]:
        tried = probe.trials()
        return {t.policy for t in tried if not t.ours and t.verdict is TrialResult.PASSED}

    try:
        until(lambda: bool(free()))
        assert free() == {f"plimsoll-{name}"}
    finally:
        install(shop.plane)
    until(lambda: not free())


def test_somebody_else_is_not_let_try_for_us(guarded: ControlPlane):
    with pytest.raises(Refused, match="nodes"):
        KubernetesProbe(guarded.transport("stranger"), "it", SerialWorkers()).trials()
    with pytest.raises(Refused, match="flowschemas"):
        KubernetesProbe(guarded.transport("stranger"), "it", SerialWorkers()).queue()
    acting = as_member(guarded, "stranger")
    with pytest.raises(Refused, match="only an administrator of the cluster"):
        KubernetesProbe(acting, "it", SerialWorkers(), group=GROUP, acting=acting).trials()
