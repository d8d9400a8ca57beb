"""What plimsoll-gpu may do on a real API server with `infra/agent/gpu-apply` applied, and what it may not.

Every refusal of a field is tried twice: with its own rights, and with all rights beside them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Transport
from plimsoll.adapters.kubernetes.client import PLAYED, ClientTransport
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.installed import BINDINGS, message_of, until
from tests.cluster.test_agent import Site
from tests.rights.attempts import Playground, attempts, patch
from tests.support.fake_clusters import a_deployment

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

OPERATOR = "gpu-operator"
ACCOUNT = "plimsoll-gpu"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CONFIG, PLUGIN, STATE = (
    "nvidia.com/mig.config",
    "nvidia.com/device-plugin.config",
    "nvidia.com/mig.config.state",
)
DEPLOYED = "nvidia.com/gpu.deploy.device-plugin"
PAUSED = "paused-for-mig-change"
JOURNAL = "plimsoll.dev/gpu-change"
GRANTED = ("all-1g", "all-3g", "slow")


def saves(name: str, label: str = CONFIG) -> str:
    return json.dumps({"uid": "u", "label": label, "saved": name}, separators=(",", ":"))


def node(
    state: str | None, *, cordoned: bool = True, before: str = "all-3g", **more: str | None
) -> Json:
    """A Node whose layout was all-1g when a change began."""
    labels = {CONFIG: before, STATE: state, DEPLOYED: PAUSED, "theirs": "1", **more}
    metadata = {"labels": labels, "annotations": {JOURNAL: saves("all-1g"), "theirs": "1"}}
    return {"metadata": metadata, "spec": {"unschedulable": cordoned}}


NODES = {
    "open": node("success", cordoned=False),
    "idle": node("success"),
    "unsaid": node(None),
    "failed": node("failed"),
    "pending": node("pending"),
    "rebooting": node("rebooting"),
    "fresh": node("success", before="all-1g") | {"spec": {"unschedulable": True}},
}


@dataclass
class Shop:
    """One Node in each state, and names that are granted."""

    site: Site
    ground: Ground
    gpu: ClientTransport

    def path(self, node: str) -> str:
        return f"/api/v1/nodes/{self.ground.name}-{node}"

    def grant(self, *names: str) -> None:
        rules = [
            {
                "apiGroups": ["gpu.plimsoll.dev"],
                "resources": ["configurations"],
                "resourceNames": [*names],
                "verbs": ["use"],
            }
        ]
        role = {"metadata": {"name": "gpu-names"}, "rules": rules if names else []}
        apply(self.site.plane, f"{ROLES}/gpu-names", role | {"kind": "ClusterRole"})
        bind(self.site.plane, "gpu-names")


def apply(plane: ControlPlane, path: str, body: Json) -> None:
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", **body}
    answer = plane.transport().call(
        "PATCH",
        path,
        query={"fieldManager": "test", "force": "true"},
        body=body,
        content_type="application/apply-patch+yaml",
    )
    assert answer.status in {200, 201}, answer.body


def bind(plane: ControlPlane, role: str) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"gpu-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    apply(plane, f"{BINDINGS}/gpu-{role}", binding)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with ControlPlane(settings=SETTINGS) as plane:
        site = Site(plane)
        namespace = {"metadata": {"name": OPERATOR}}
        plane.transport().call(
            "POST", "/api/v1/namespaces", body=namespace, content_type="application/json"
        )
        site.apply("act")
        with Ground(plane) as ground:
            ground.nodes(*NODES)
            for name, body in NODES.items():  # before the journals are nobody else's to write
                path = f"/api/v1/nodes/{ground.name}-{name}"
                assert patch(ground.api, path, body).status == 200
            site.apply("gpu-apply")
            shop = Shop(site, ground, site.agent(ACCOUNT))
            shop.grant(*GRANTED)
            foreign = {"metadata": {"labels": {"team": "red"}}}
            until(
                lambda: (
                    "'plimsoll-gpu'"
                    in message_of(patch(shop.gpu, shop.path("idle"), foreign, dryRun="All"))
                )
            )
            yield shop


@pytest.fixture(params=["own rights", "all rights beside"])
def gpu(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Transport]:
    """The account; every refusal is tried in both ways, so that the policy holds by itself."""

    def may(status: int) -> bool:
        return shop.gpu.call("GET", "/api/v1/secrets").status == status

    if "own" in request.param:
        yield shop.gpu
        return
    bind(shop.site.plane, "cluster-admin")
    until(lambda: may(200))
    yield shop.gpu
    shop.ground.api.call("DELETE", f"{BINDINGS}/gpu-cluster-admin")
    until(lambda: may(403))


def labels(**pairs: str | None) -> Json:
    return {"metadata": {"labels": pairs}}


def marks(**pairs: str | None) -> Json:
    return {"metadata": {"annotations": pairs}}


CORDON, UNCORDON = ({"spec": {"unschedulable": value}} for value in (True, None))
TO_GRANTED, BACK = labels(**{CONFIG: "slow"}), labels(**{CONFIG: "all-1g"})
MENDED = labels(**{DEPLOYED: "true"})
DONE = marks(**{JOURNAL: None})


def test_a_node_is_changed_as_the_table_says_and_not_otherwise(shop: Shop, gpu: Transport):
    paths = {name: partial(shop.path, name) for name in NODES}
    play = Playground(shop.ground.api, paths)
    for row in attempts(ACCOUNT):
        play.judge(gpu, row)


def test_without_a_grant_no_layout_is_set_not_even_the_one_that_stood_before(shop: Shop):
    def tried(node: str, body: Json) -> int:
        return patch(shop.gpu, shop.path(node), body, dryRun="All").status

    for label, name in ((CONFIG, "all-7g"), (PLUGIN, "all-8g")):
        refused = patch(shop.gpu, shop.path("failed"), labels(**{label: name}), dryRun="All")
        assert refused.status == 403
        assert f"the verb use on configurations.gpu.plimsoll.dev/{name}" in message_of(refused)
    try:
        shop.grant()
        until(lambda: tried("idle", TO_GRANTED) == 403)
        back = patch(shop.gpu, shop.path("failed"), BACK, dryRun="All")
        assert "the verb use on configurations.gpu.plimsoll.dev/all-1g" in message_of(back)
        assert tried("failed", MENDED) == 200
        assert tried("idle", UNCORDON | DONE) == 200
    finally:
        shop.grant(*GRANTED)
    until(lambda: tried("idle", TO_GRANTED) == 200)


def test_what_others_wrote_of_a_node_stays_said(shop: Shop):
    path = shop.path("idle")
    entries = shop.ground.get(path)["metadata"]["managedFields"]
    forged = [entry | {"manager": "somebody"} for entry in entries]
    body = {"metadata": {**DONE["metadata"], "managedFields": forged}}
    answer = patch(shop.gpu, path, body, dryRun="All", fieldManager="plimsoll-gpu")
    assert (answer.status, "'plimsoll-gpu-history'" in message_of(answer)) == (403, True)


def may_read_secrets(api: Transport) -> bool:
    return api.call("GET", "/api/v1/secrets").status == 200


@pytest.fixture
def others(shop: Shop) -> Iterator[Mapping[str, Transport]]:
    """A kubelet, the interruption group, the agent and an administrator, with all rights."""
    access = shop.site.plane.access("admin")
    found = {
        "kubelet": access.transport(as_group="system:nodes"),
        "plimsoll": access.transport(as_group="plimsoll"),
        "agent": shop.site.agent(),
        "admin": shop.ground.api,
    }
    group = "rbac.authorization.k8s.io"
    apply(
        shop.site.plane,
        f"{BINDINGS}/gpu-others",
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "gpu-others"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [
                {"kind": "User", "name": PLAYED, "apiGroup": group},
                {"kind": "ServiceAccount", "name": "plimsoll-agent", "namespace": NAMESPACE},
            ],
        },
    )
    for api in found.values():
        until(partial(may_read_secrets, api))
    yield found
    shop.ground.api.call("DELETE", f"{BINDINGS}/gpu-others")


def test_nobody_else_writes_the_journal_of_a_change(shop: Shop, others: Mapping[str, Transport]):
    """Whoever could would have a Node whose change fails set to a layout of his choice."""
    path = shop.path("idle")
    forged = marks(**{JOURNAL: saves("all-7g")})
    for who, api in others.items():
        for part in (path, f"{path}/status"):
            for body in (forged, marks(**{"plimsoll.dev/gpu-alert": "x"})):
                answer = patch(api, part, body, dryRun="All")
                assert answer.status == 403, (who, part, answer.body)
        node = {"metadata": {"name": "new"} | forged["metadata"]}
        answer = api.call("POST", "/api/v1/nodes", query={"dryRun": "All"}, body=node)
        assert "only plimsoll-gpu writes" in message_of(answer), who
    off = {who: patch(api, f"{path}/status", DONE, dryRun="All") for who, api in others.items()}
    assert "does not take plimsoll.dev/gpu-* off" in message_of(off["kubelet"])
    assert off["admin"].status == 200
    touched = patch(others["kubelet"], path, marks(**{"kubelets.example/x": "1"}), dryRun="All")
    assert touched.status == 200, touched.body


def test_nobody_else_is_affected(shop: Shop):
    """An administrator, and the agent under its own policies."""
    body = labels(**{CONFIG: "all-7g", "theirs": "2"})
    assert patch(shop.ground.api, shop.path("open"), body, dryRun="All").status == 200
    agent = shop.site.agent()
    until(lambda: patch(agent, shop.path("open"), CORDON, dryRun="All").status == 200)
    answer = patch(agent, shop.path("idle"), TO_GRANTED, dryRun="All")
    assert "'plimsoll-nodes'" in message_of(answer)


def test_it_reads_two_config_maps_by_name_and_neither_secrets_nor_others(shop: Shop):
    plan = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    layouts = f"/api/v1/namespaces/{OPERATOR}/configmaps"
    assert shop.gpu.call("GET", f"{plan}/plimsoll-gpu-plan").status == 404  # it might read it
    assert shop.gpu.call("GET", f"{layouts}/plimsoll-mig-config").status == 404
    for path in (
        f"{plan}/plimsoll-agent-policy",
        f"{layouts}/other",
        plan,
        layouts,
        f"/api/v1/namespaces/{NAMESPACE}/secrets/plimsoll-agent-key",
        "/apis/apps/v1/daemonsets",
    ):
        assert shop.gpu.call("GET", path).status == 403, path
    written = patch(shop.gpu, f"{plan}/plimsoll-gpu-plan", {"data": {"plan.json": "{}"}})
    assert written.status == 403
    status = patch(shop.gpu, f"{shop.path('idle')}/status", {"status": {"allocatable": {}}})
    assert status.status == 403


def test_it_moves_no_pod_but_as_the_agent_and_comes_as_nobody_else(shop: Shop):
    shop.ground.nodes("pods")
    shop.ground.apply(a_deployment("web", 1))
    (pod,) = shop.ground.until(shop.ground.serving)
    meta = pod["metadata"]
    path = f"{shop.ground.pods_path}/{meta['name']}"
    eviction = {
        "metadata": {"name": meta["name"]},
        "deleteOptions": {"dryRun": ["All"], "preconditions": {"uid": meta["uid"]}},
    }
    token = shop.site.token(ACCOUNT)

    def evicted(*user: str) -> bool:
        kubectl, admin = binaries.find(DEFAULT)["kubectl"], shop.site.plane.kubeconfig()
        create = ("create", "--raw", f"{path}/eviction", "-f", "-")
        done = subprocess.run(
            [kubectl, "--kubeconfig", admin, "--token", token, *user, *create],
            input=json.dumps(eviction),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is ("forbidden" not in done.stderr), done.stderr
        return done.returncode == 0

    assert not evicted()
    until(lambda: evicted("--as", f"system:serviceaccount:{NAMESPACE}:plimsoll-agent"))
    for other in (
        f"{NAMESPACE}:default",
        f"{NAMESPACE}:plimsoll-gpu",
        f"{OPERATOR}:plimsoll-agent",
    ):
        assert not evicted("--as", f"system:serviceaccount:{other}"), other
    assert not evicted("--as", "admin")
    assert not evicted(
        "--as", f"system:serviceaccount:{NAMESPACE}:plimsoll-agent", "--as-group", "system:masters"
    )
