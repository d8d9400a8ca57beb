"""The table of `tests/rights/table.py` against the text of the manifests: none less is granted, and none more.

The whole contract suite of the Kubernetes adapter runs under these rights too (see `conftest.ContractRig`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import yaml

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes import calls as core
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.adapters.workers import SerialWorkers, ThreadWorkers
from plimsoll.domain.actions import Action
from plimsoll.domain.errors import NotFound, Refused
from plimsoll.domain.kubernetes import LONGEST_MESSAGE_CHARACTERS, Resources, about_node, names
from plimsoll_agent import calls as agent
from plimsoll_batch.adapters.kubernetes import calls as batch
from plimsoll_cli.probes.kubernetes import KubernetesProbe
from tests.rights.attempts import attempts
from tests.rights.table import ACTIONS, Scene, right_of
from tests.support.queue_scenes import (
    ONE_QUEUE,
    a_bare_pod,
    a_job,
    a_pod_group,
    a_training,
    in_group,
)
from tests.support.queue_scenes import Scene as QueueScene

from .conftest import REGION, ContractRig, Silence, machine
from .rights import (
    CLUSTER,
    OF_QUEUES,
    Asked,
    Grant,
    documents,
    everything,
    granted_by,
    grants,
    resources,
)
from .test_kubernetes_api import WEB, node, pods, workload

type Json = dict[str, Any]

INFRA = CLUSTER.parent
MANIFESTS = INFRA.parent / "agent" / "plimsoll_agent" / "manifests"


def listed(grants: Sequence[Grant]) -> set[tuple[str | None, ...]]:
    return {
        (g.verb, g.group, g.resource, g.namespace, n) for g in grants for n in g.names or (None,)
    }


def called(calls: Sequence[core.Call]) -> set[tuple[str | None, ...]]:
    return {(c.verb, c.group, c.resource, c.only_in, c.only) for c in calls}


OF_GPUS = called([call for call in agent.GPU_CALLS if call is not agent.GET_CONFIG]) | {
    ("get", "", "configmaps", "gpu-operator", "plimsoll-mig-config"),
    ("impersonate", "", "serviceaccounts", names.NAMESPACE, "plimsoll-agent"),
}
IDENTITIES = {
    "plimsoll": (grants(), called(CALLS)),
    "plimsoll-batch": (granted_by(CLUSTER / "batch" / "rbac.yaml"), called(batch.CALLS)),
    "plimsoll-agent": (granted_by(MANIFESTS / "rbac.yaml"), called(agent.CALLS)),
    "plimsoll-gpu": (granted_by(INFRA / "agent" / "gpu-apply" / "rbac.yaml"), OF_GPUS),
    **{
        folder: (granted_by(CLUSTER / folder / "rbac.yaml"), called(calls))
        for folder, calls in core.OVERLAYS.items()
    },
}


@pytest.mark.parametrize("identity", IDENTITIES)
def test_what_is_granted_is_what_the_table_of_calls_lists(identity: str) -> None:
    granted, asked = IDENTITIES[identity]
    assert listed(granted) == asked
    assert len(listed(granted)) == sum(len(grant.names) or 1 for grant in granted), "twice"
    assert "*" not in {part for grant in granted for part in grant_parts(grant)}


def grant_parts(grant: Grant) -> set[str]:
    return {grant.verb, grant.group, grant.resource, *grant.names}


# Actions, and what they write


@dataclass
class FakeStage:
    """A cluster under the rights of the manifests."""

    rig: ContractRig
    name: str = "shop"

    def __post_init__(self) -> None:
        for name in ("shop", names.NAMESPACE):
            self.rig.apply({"kind": "Namespace", "metadata": {"name": name}})
        joins = machine("a")
        joins["metadata"]["name"] = f"{self.name}-a"
        self.rig.join(joins)
        self.rig.wait(1)

    def apply(self, *manifests: Json) -> None:
        for each in manifests:
            self.rig.apply({**each, "metadata": {**each["metadata"], "namespace": self.name}})

    def create(self, path: str, body: Json) -> Json:
        answer = self.rig.fake_cluster.handle("POST", path, body=body, now=self.rig.clock.now())
        assert answer.status == 201, answer.body
        return dict(answer.body)

    def get(self, path: str) -> Json:
        return self.rig.get(path)

    def lose(self, node: str) -> None:
        self.rig.fake_cluster.vanish(node, now=self.rig.clock.now())

    def until[T](self, look: Callable[[], T]) -> T:
        for _ in range(24):
            if found := look():
                return found
            self.rig.wait(5)
        raise AssertionError("not so after two minutes")


@pytest.fixture
def scene(rig: ContractRig, workers: ThreadWorkers) -> Scene:
    return Scene(FakeStage(rig), rig.wire, workers, rig.clock)


def test_every_action_has_its_row() -> None:
    assert set(ACTIONS) == set(get_args(Action.__value__))


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_an_action_needs_no_right_but_those_granted_and_writes_the_fields_of_its_row(
    scene: Scene, kind: type[Action]
) -> None:
    ACTIONS[kind].play(scene, kind)


def test_every_right_that_is_granted_is_used(rig: ContractRig) -> None:
    """By the row of an action, or here, by what is no action."""
    FakeStage(rig)
    kinds = ("Deployment", "ReplicaSet", "StatefulSet")
    for kind in kinds:
        rig.apply(workload(kind, "web" if kind == "Deployment" else kind.lower(), 3))
    rig.wait(60)
    api = rig.api
    assert api.acquire("one", 20)
    assert api.acquire("one", 20)
    api.release_lease("one")
    assert api.node("shop-a") is not None
    said = [(each.floor, each.promise, each.guard) for each in api.namespaces()]
    assert {*said} == {(None, None, None)}
    rollout = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "name": "canary",
        "uid": "1",
    }
    owned = workload("ReplicaSet", "canary-1", 0)
    owned["metadata"]["ownerReferences"] = [{**rollout, "controller": True}]
    rig.apply(owned)
    rig.apply({"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}})
    rig.wire.at[core.LIST_ROLLOUTS.path()] = Response(
        status=200, body={"items": [], "metadata": {"resourceVersion": "1"}}, events=Silence()
    )
    grouped = {"name": "train-0", "labels": {"app": "train"}}
    spec = {
        "containers": [{"name": "main", "image": "train"}],
        "schedulingGroup": {"podGroupName": "train"},
    }
    rig.apply({"kind": "Pod", "metadata": grouped, "spec": spec})
    rig.wire.at[core.LIST_POD_GROUPS.path()] = Response(
        status=200, body={"items": [], "metadata": {"resourceVersion": "1"}}, events=Silence()
    )
    with api.following() as followed:
        followed.observe()  # the first one lists
        followed.observe()
    api.create_event(about_node("a", "i-1@noon", "Uncordoned", "a test"))
    assert api.injected_floors() == {}  # the namespace did not opt in
    assert api.try_pod(None).requests == Resources(pods=1)
    with pytest.raises(NotFound):
        api.remove_injection()
    KubernetesProbe(rig.wire, "shop", SerialWorkers()).queue()
    rig.apply(
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "flexible"}}
    )
    access = Access(
        account=Account(Aws(REGION), rig.clock),
        api=lambda: Requests(transport=rig.wire, cluster="shop"),
        cluster="shop",
        warn=rig.warnings.append,
    )
    (pool,) = NodePools(access).list([node(rig, "shop-a")])
    assert pool.name == "flexible"
    by_actions = {right_of(call) for row in ACTIONS.values() for call in row.writes}
    assert not by_actions & rig.rights.used
    assert by_actions | rig.rights.used == {right_of(call) for call in CALLS}


def test_a_missing_right_is_named_with_its_cure(rig: ContractRig) -> None:
    FakeStage(rig).apply(workload("Deployment", "web"))
    rig.wait(5)
    (pod, *_) = pods(rig)
    made = rig.api.observe().current[WEB]
    rig.rights.granted = [g for g in rig.rights.granted if g.verb != "patch"]
    with pytest.raises(Refused, match=r"patch pods in cluster shop.*infra/cluster"):
        rig.api.release(pod, made, "i-1@noon")


def test_every_right_of_the_planner_of_the_queues_is_used_and_no_other() -> None:
    labelled = ONE_QUEUE.replace("- name: lab", "- name: lab\n    access: labelled")
    scene = QueueScene(nodes=8, queues=labelled, pod_stop=2)
    granted = {"metadata": {"labels": {"queues.plimsoll.dev/lab": "true"}}}
    scene.play.patch("/api/v1/namespaces/lab", granted)
    asked: set[tuple[str, str, str]] = set()
    call = scene.wire.call

    def noted(method: str, path: str, **more: Any) -> Response:
        asked.add(Asked.of(method, path, more.get("query")).right)
        return call(method, path, **more)

    scene.wire.call = noted  # type: ignore[method-assign] # it listens
    scene.submit(*a_training("low", annotations={"plimsoll.dev/lease-nodes": "true"}))
    scene.submit(a_bare_pod("alone"))
    grown = {"gang": {"minCount": 7}}
    scene.play.apply(a_pod_group("grouped", {"schedulingPolicy": grown}, gang="grouped"))
    scene.submit(in_group("grouped", a_job("grouped", 1)))
    touched: set[str] = set()
    scene.wire.before = lambda method, path, _: _touch(scene, touched, method, path)
    scene.run(20)
    scene.submit(*a_training("high", annotations={"plimsoll.dev/priority": "10"}))
    scene.run(20)
    assert scene.running("high-ps", "high-workers") == 6
    assert asked == {right_of(call) for call in batch.CALLS}


def _touch(scene: QueueScene, touched: set[str], method: str, path: str) -> None:
    """Let a Job, or a bare pod, change once beside the planner, as others change it: it is read again."""
    if method == "PATCH" and path not in touched and path.endswith(("low-ps", "alone")):
        touched.add(path)
        scene.play.patch(path, {"metadata": {"annotations": {"theirs": "1"}}})


# Field by field


GUARDS = [*documents("fields/*.yaml"), *documents("*/fields.yaml")]
POLICIES = {d["metadata"]["name"]: d for d in GUARDS if d["kind"] == "ValidatingAdmissionPolicy"}
OPERATIONS = {"patch": "UPDATE", "update": "UPDATE", "create": "CREATE", "delete": "DELETE"}
FIELDS = {
    (call, field)
    for row in ACTIONS.values()
    for call, changed in row.writes.items()
    for field in changed
}


def narrowed_by(policy: Json) -> set[tuple[str, str, str]]:
    return {
        (operation, group, resource)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for operation in rule["operations"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def decides(policy: Json) -> str:
    """Return what a policy decides by: its expressions, without its messages."""
    spec = policy["spec"]
    return "\n".join(
        each["expression"] for each in [*spec.get("variables", ()), *spec["validations"]]
    )


def test_every_right_to_write_has_a_policy_that_narrows_it_to_fields() -> None:
    written = {(OPERATIONS[c.verb], c.group, c.resource) for c in CALLS if c.verb in OPERATIONS}
    narrowed = {each for policy in POLICIES.values() for each in narrowed_by(policy)}
    # RBAC holds us to the names of these, and one is only deleted.
    assert written - narrowed == {
        ("UPDATE", "coordination.k8s.io", "leases"),
        ("DELETE", "admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    }
    assert narrowed - written == {
        # A budget is never changed, whatever other rights somebody gave us.
        ("UPDATE", "policy", "poddisruptionbudgets"),
        # Who wrote a field of these is held for the planner of the queues, whose rights are a folder of their own.
        ("UPDATE", "batch", "jobs"),
        ("UPDATE", "scheduling.k8s.io", "podgroups"),
    }


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_about_our_group_fails_closed_and_is_bound(name: str) -> None:
    policy = POLICIES[name]
    (condition,) = policy["spec"]["matchConditions"]
    groups = "request.userInfo.?groups.orValue([])"
    assert condition["expression"] == (
        f"['plimsoll', 'plimsoll-batch'].exists(g, g in {groups})"
        if name == "plimsoll-history"
        else f"'plimsoll' in {groups}"
    )
    assert policy["spec"]["failurePolicy"] == "Fail"
    (binding,) = (
        d
        for d in GUARDS
        if d["kind"] == "ValidatingAdmissionPolicyBinding" and d["metadata"]["name"] == name
    )
    ignored = {
        "selector": {"matchLabels": {names.IGNORE: "true"}},
        "parameterNotFoundAction": "Allow",
    }
    params = {"paramRef": ignored} if name == "plimsoll-ignored" else {}
    assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"], **params}
    assert ("paramKind" in policy["spec"]) is bool(params)


def lets_through(text: str, field: str) -> bool:
    """Whether a policy names a field, or the form of its key."""
    kind, _, key = field.replace("spec.", "part ").replace("metadata.", "part ").partition(" ")
    forms = re.findall(r"matches\('(.+?)'\)", text)
    return f"'{key}'" in text or (kind == "label" and any(re.search(f, key) for f in forms))


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_a_policy_lets_through_each_field_of_the_rows_and_names_no_other_key(kind: str) -> None:
    text = decides(POLICIES[f"plimsoll-{kind}"])
    written = {field for call, field in FIELDS if (call.verb, call.resource) == ("patch", kind)}
    assert [field for field in written if not lets_through(text, field)] == []
    keys = set(re.findall(r"'([a-z.-]+\.[a-z]+/[a-z-]+)'", text))
    ours = {field.partition(" ")[2] for field in written} & keys
    assert keys - ours == {f"{names.PREFIX}doctor"} | ({names.IGNORE} if kind == "pods" else set())


def test_the_policies_name_what_the_code_creates() -> None:
    said = {name: decides(policy) for name, policy in POLICIES.items()}
    assert f"'{names.LEASE}'" in said["plimsoll-lease"]
    assert POLICIES["plimsoll-lease"]["spec"]["matchConstraints"]["namespaceSelector"] == {
        "matchLabels": {"kubernetes.io/metadata.name": names.NAMESPACE}
    }
    assert f"size() <= {LONGEST_MESSAGE_CHARACTERS} " in said["plimsoll-events"]
    (event_name,) = re.findall(r"matches\('(.+?)'\)", said["plimsoll-events"])
    assert re.fullmatch(event_name, about_node("a", "i-1@noon", "Cordoned", "a test").name)
    assert f"'{names.FLOORS}'" in said["plimsoll-floors"]
    assert f"'{names.GUARD}'" in said["plimsoll-guard"]


def test_every_policy_refuses_an_attempt_of_the_table() -> None:
    tried = [row for who in ("plimsoll", "plimsoll-gpu", "plimsoll-batch") for row in attempts(who)]
    refused = {f"plimsoll-{row.by}" for row in tried if row.says is not None}
    of_planner = {f"plimsoll-batch-{kind}" for kind in ("jobs", "nodes", "pods")}
    # Of the Lease, tests/cluster/test_rights.py tries both names.
    assert {*POLICIES, *of_planner, "plimsoll-gpu"} - refused == {"plimsoll-lease"}


# How it is applied


def test_pods_are_created_nowhere_but_beside_our_lease() -> None:
    created = [g for g in grants() if (g.verb, g.resource) == ("create", "pods")]
    assert [g.namespace for g in created] == [names.NAMESPACE]


def test_no_role_writes_a_workload_or_an_autoscaler_and_budgets_only_by_an_overlay() -> None:
    read = {"apps", "batch", "autoscaling", "policy", "argoproj.io"}
    written = {
        (g.verb, g.resource)
        for g in grants()
        if g.group in read and g.verb not in {"list", "watch"}
    }
    assert written == {(call.verb, call.resource) for call in core.OVERLAYS["guard"]}


def test_roles_are_bound_to_the_group_and_to_nobody_else() -> None:
    bindings = [d for d in documents("**/rbac.yaml") if d["kind"].endswith("Binding")]
    assert len(bindings) == 6
    for binding in bindings:
        assert [(s["kind"], s["name"]) for s in binding["subjects"]] == [("Group", "plimsoll")]


def test_one_command_applies_every_file_beside_it() -> None:
    there = {str(f.relative_to(CLUSTER)) for f in CLUSTER.rglob("*.yaml")}
    overlays = {file for file in there if file.partition("/")[0] in {*core.OVERLAYS, *OF_QUEUES}}
    assert set(resources()) == there - {"kustomization.yaml"} - overlays
    (namespace,) = yaml.safe_load_all((CLUSTER / "namespace.yaml").read_text())
    assert namespace["metadata"]["name"] == names.NAMESPACE


def test_our_queue_is_for_our_group() -> None:
    (schema,) = (d for d in documents("flow.yaml") if d["kind"] == "FlowSchema")
    (rule,) = schema["spec"]["rules"]
    assert rule["subjects"] == [{"kind": "Group", "group": {"name": "plimsoll"}}]
    assert schema["metadata"]["name"] == core.GET_FLOW_SCHEMA.only


def test_an_old_cluster_gets_the_roles_alone() -> None:
    folder = CLUSTER.parent / "cluster-rbac-only"
    said = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert [(folder / r).resolve() for r in said["resources"]] == [CLUSTER.resolve()]
    dropped = {p["target"]["group"] for p in said["patches"]}
    left = [d for d in everything() if d["apiVersion"].partition("/")[0] not in dropped]
    assert left == [*documents("namespace.yaml"), *documents("rbac.yaml")]


def test_the_overlay_for_another_name_changes_what_is_there() -> None:
    page = (CLUSTER.parents[1] / "docs" / "operate" / "security.md").read_text()
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    (overlay,) = [block for block in blocks if "patches" in block]
    for patch in overlay["patches"]:
        kind = re.compile(patch["target"]["kind"])
        changed = [d for d in everything() if kind.fullmatch(d["kind"])]
        assert changed
        for document in changed:
            for operation in yaml.safe_load(patch["patch"]):
                found: Any = document
                for part in operation["path"].removesuffix("/-").split("/")[1:]:
                    found = found[int(part) if isinstance(found, list) else part]
                assert "plimsoll" in str(found)
