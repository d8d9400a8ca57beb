"""The rights that a cluster gives us are those of the calls that are made: none less, none more.

The whole contract suite of the Kubernetes adapter runs under them (see `conftest.ContractRig`).
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.api import OUT_OF_SERVICE
from plimsoll.adapters.kubernetes.calls import GET_FLOW_SCHEMA, LIST_ROLLOUTS, OVERLAYS
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import NotFound, Refused
from plimsoll.domain.kubernetes import LONGEST_MESSAGE_CHARACTERS, Resources, about_node, names
from plimsoll_cli.probes.kubernetes import KubernetesProbe

from .conftest import REGION, ContractRig, Silence, machine
from .rights import CLUSTER, documents, everything, grants, resources
from .test_kubernetes_api import INTERRUPTION, WEB, node, pods, workload

TABLE = {(c.verb, c.group, c.resource, c.only_in, c.only) for c in CALLS}


def test_what_is_granted_is_what_the_table_of_calls_lists() -> None:
    granted = [(g, name) for g in grants() for name in g.names or (None,)]
    assert {(g.verb, g.group, g.resource, g.namespace, name) for g, name in granted} == TABLE


def test_nothing_is_granted_twice_and_nothing_by_star() -> None:
    found = [(g.verb, g.group, g.resource) for g in grants()]
    assert len(found) == len(set(found))
    assert "*" not in {part for grant in found for part in grant}


def test_no_role_writes_a_workload_or_an_autoscaler_and_budgets_only_by_an_overlay() -> None:
    read = {"apps", "batch", "autoscaling", "policy", "argoproj.io"}
    written = {
        (g.verb, g.resource)
        for g in grants()
        if g.group in read and g.verb not in {"list", "watch"}
    }
    assert written == {(call.verb, call.resource) for call in OVERLAYS["guard"]}


def test_everything_the_table_lists_is_really_asked(rig: ContractRig) -> None:
    for name in ("shop", names.NAMESPACE):
        rig.apply({"kind": "Namespace", "metadata": {"name": name}})
    rig.join(machine("a"))
    kinds = ("Deployment", "ReplicaSet", "StatefulSet")
    for kind in kinds:
        rig.apply(workload(kind, "web" if kind == "Deployment" else kind.lower(), 3))
    rig.wait(60)
    api = rig.api
    assert api.acquire("one", 20)
    assert api.acquire("one", 20)
    api.release_lease("one")
    assert api.node("a") is not None
    assert api.namespace_floors() == {}
    api.cordon(node(rig), INTERRUPTION)
    rig.wait(1)
    api.record(node(rig), INTERRUPTION)
    api.out_of_service(node(rig))
    rig.wait(1)
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
    rig.wire.at[LIST_ROLLOUTS.path()] = Response(
        status=200, body={"items": [], "metadata": {"resourceVersion": "1"}}, events=Silence()
    )
    first, second, *_ = pods(rig)
    with api.following() as followed:
        followed.observe()
        api.release(first, followed.observe().current[WEB], "i-1@noon")
    api.evict(first)
    api.delete(second)
    api.create_event(about_node("a", "i-1@noon", "Uncordoned", "a test"))
    api.uncordon(node(rig))
    rig.apply({"kind": "ConfigMap", "metadata": {"name": names.FLOORS, "namespace": "shop"}})
    assert api.injected_floors() == {}  # the namespace did not opt in
    api.inject_floors("shop", {"deployment.web": "1"})
    assert api.try_pod(None).requests == Resources(pods=1)
    with pytest.raises(NotFound):
        api.remove_injection()
    assert api.guarded_namespaces() == {}
    web = api.observe().workload[WEB]
    api.guard(web, "plimsoll-deployment-web")
    rig.wait(1)
    (budget,) = api.observe().budgets
    assert (budget.guards, budget.max_unavailable, budget.selector) == (True, 0, web.selector)
    api.unguard(budget)
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
    (pool,) = NodePools(access).list([node(rig)])
    assert pool.name == "flexible"
    assert rig.rights.used == {(verb, group, resource) for verb, group, resource, *_ in TABLE}


def test_a_missing_right_is_named_with_its_cure(rig: ContractRig) -> None:
    rig.apply({"kind": "Namespace", "metadata": {"name": "shop"}})
    rig.apply(workload("Deployment", "web"))
    rig.wait(5)
    (pod, *_) = pods(rig)
    made = rig.api.observe().current[WEB]
    rig.rights.granted = [g for g in rig.rights.granted if g.verb != "patch"]
    with pytest.raises(Refused, match=r"patch pods in cluster shop.*infra/cluster"):
        rig.api.release(pod, made, "i-1@noon")


def test_an_overlay_grants_what_an_owner_may_withhold() -> None:
    for folder, calls in OVERLAYS.items():
        granted = {
            (verb, resource)
            for document in documents(f"{folder}/rbac.yaml")
            for rule in document.get("rules", ())
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        assert granted == {(call.verb, call.resource) for call in calls}


def test_pods_are_created_nowhere_but_beside_our_lease() -> None:
    created = [g for g in grants() if (g.verb, g.resource) == ("create", "pods")]
    assert [g.namespace for g in created] == [names.NAMESPACE]


def test_roles_are_bound_to_the_group_and_to_nobody_else() -> None:
    bindings = [d for d in documents("**/rbac.yaml") if d["kind"].endswith("Binding")]
    assert len(bindings) == 6
    for binding in bindings:
        assert [(s["kind"], s["name"]) for s in binding["subjects"]] == [("Group", "plimsoll")]


def test_one_command_applies_every_file_beside_it() -> None:
    there = {str(f.relative_to(CLUSTER)) for f in CLUSTER.rglob("*.yaml")}
    overlays = {file for file in there if file.partition("/")[0] in {*OVERLAYS, "batch"}}
    assert set(resources()) == there - {"kustomization.yaml"} - overlays
    (namespace,) = yaml.safe_load_all((CLUSTER / "namespace.yaml").read_text())
    assert namespace["metadata"]["name"] == names.NAMESPACE


# Field by field


GUARDS = [*documents("fields/*.yaml"), *documents("*/fields.yaml")]
POLICIES = [d for d in GUARDS if d["kind"] == "ValidatingAdmissionPolicy"]


def test_every_right_to_write_has_a_policy_that_narrows_it_to_fields() -> None:
    operations = {"patch": "UPDATE", "update": "UPDATE", "create": "CREATE", "delete": "DELETE"}
    written = {(operations[c.verb], c.group, c.resource) for c in CALLS if c.verb in operations}
    narrowed = {
        (operation, group, resource)
        for policy in POLICIES
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for operation in rule["operations"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    # RBAC holds us to the names of these, and one is only deleted.
    assert written - narrowed == {
        ("UPDATE", "coordination.k8s.io", "leases"),
        ("DELETE", "admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    }
    assert narrowed - written == {
        # A budget is never changed, whatever other rights somebody gave us.
        ("UPDATE", "policy", "poddisruptionbudgets"),
        # Who wrote a field of a Job is held for the planner of the queues, whose rights are a folder of their own.
        ("UPDATE", "batch", "jobs"),
    }


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p["metadata"]["name"])
def test_a_policy_is_about_our_group_fails_closed_and_is_bound(policy: dict[str, Any]) -> None:
    (condition,) = policy["spec"]["matchConditions"]
    name = policy["metadata"]["name"]
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


def test_the_policies_name_what_the_code_writes() -> None:
    said = {p["metadata"]["name"]: yaml.safe_dump(p, width=10_000) for p in POLICIES}
    assert OUT_OF_SERVICE.key in said["plimsoll-nodes"]
    assert f"'{names.POD_TEMPLATE_HASH}'" in said["plimsoll-pods"].replace("''", "'")
    assert names.DELETION_COST in said["plimsoll-pods"]
    assert f"'{names.LEASE}'" in said["plimsoll-lease"].replace("''", "'")
    assert f"kubernetes.io/metadata.name: {names.NAMESPACE}" in said["plimsoll-lease"]
    assert re.findall(r"size\(\) <= (\d+)", said["plimsoll-events"])[0] == str(
        LONGEST_MESSAGE_CHARACTERS
    )
    (event_name,) = re.findall(r"matches\('(.+?)'\)", said["plimsoll-events"].replace("''", "'"))
    assert re.fullmatch(event_name, about_node("a", "i-1@noon", "Cordoned", "a test").name)
    listed = {
        "nodes": {names.INTERRUPTION, names.ZONAL_SHIFT},
        "pods": {names.RELEASED, names.MOVED, names.PROTECTED, names.DEADLINE},
    }
    for policy, keys in listed.items():
        text = said[f"plimsoll-{policy}"].replace("''", "'")
        ours = set(re.findall(rf"'({names.PREFIX}[a-z-]+)'", text)) - {names.IGNORE}
        assert ours == keys | {f"{names.PREFIX}doctor"}
    (spread,) = re.findall(r"matches\('(\^spread.+?)'\)", said["plimsoll-nodes"].replace("''", "'"))
    assert re.match(spread, f"{names.SPREAD_PREFIX}2")


def test_our_queue_is_for_our_group() -> None:
    (schema,) = (d for d in documents("flow.yaml") if d["kind"] == "FlowSchema")
    (rule,) = schema["spec"]["rules"]
    assert rule["subjects"] == [{"kind": "Group", "group": {"name": "plimsoll"}}]
    assert schema["metadata"]["name"] == GET_FLOW_SCHEMA.only


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
