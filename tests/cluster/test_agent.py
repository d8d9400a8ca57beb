"""The agent by its own ServiceAccount on a real control plane: what its manifests let it read and do."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH, Requests
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_agent.calls import JOURNAL, KEY, POLICY
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.config import Config
from plimsoll_agent.identity import SecretIdentity
from plimsoll_agent.instruction_executor import InstructionExecutor
from plimsoll_agent.journal import ConfigMapJournal
from plimsoll_agent.loops import Loops
from plimsoll_agent.output import Output
from plimsoll_agent.owner_policy import read_policy
from plimsoll_agent.service import Service
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.wiring import put_together
from plimsoll_service.domain.access.principals import Role
from plimsoll_service.services.instructions import post, result_of
from plimsoll_service.wire import instructions as wire
from plimsoll_service.wire.snapshot import Snapshot, decode, encode
from plimsoll_service.wire.views import Workloads
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.installed import message_of, until
from tests.contract.rights import CLUSTER
from tests.rights.attempts import Playground, attempts
from tests.support.fake_clusters import a_budget, a_deployment
from tests.support.instructions import HandingOut

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

AGENT = CLUSTER.parent / "agent"
MAY_ACT = "/apis/rbac.authorization.k8s.io/v1/clusterroles/plimsoll-agent-act"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


@dataclass
class Token:
    """The token of the ServiceAccount."""

    text: str = field(repr=False)

    def get(self) -> str:
        return self.text

    def forget(self) -> None: ...


@dataclass
class Site:
    """A control plane with one form of the agent's manifests, but for its Deployment."""

    plane: ControlPlane

    def apply(self, form: str) -> None:
        kubectl, kubeconfig = binaries.find(DEFAULT)["kubectl"], self.plane.kubeconfig()
        rendered = subprocess.run(
            [kubectl, "kustomize", AGENT / form], capture_output=True, text=True, check=True
        )
        parts = [d for d in yaml.safe_load_all(rendered.stdout) if d["kind"] != "Deployment"]
        applied = subprocess.run(
            [kubectl, "--kubeconfig", kubeconfig, "apply", "-f", "-"],
            input=yaml.safe_dump_all(parts),
            capture_output=True,
            text=True,
            check=False,
        )
        assert applied.returncode == 0, applied.stderr

    def token(self, account: str) -> str:
        asked = self.plane.transport().call(
            "POST",
            f"{ACCOUNTS}/{account}/token",
            body={"spec": {"expirationSeconds": 3600}},
            content_type="application/json",
        )
        return str(asked.body["status"]["token"])

    def agent(self, account: str = "plimsoll-agent") -> ClientTransport:
        token = Token(self.token(account))
        return ClientTransport(self.plane.url, ca=self.plane.ca, token=token)

    def patch(self, path: str, body: Json) -> Response:
        return self.agent().call("PATCH", path, body=body, content_type=MERGE_PATCH)

    def enrolled(self, rig: ServiceRig, tenant: str, folder: Path) -> Loops:
        """Put the agent together under its own rights; it enrols by a fresh join token."""
        token = rig.invite(tenant, "harbor", Role.AGENT)
        of_plimsoll = f"/api/v1/namespaces/{NAMESPACE}"
        for path, body in (
            (f"{of_plimsoll}/secrets/{KEY}", {"stringData": {"join-token": token}}),
            (f"{of_plimsoll}/configmaps/{POLICY}", {"data": {"instruction-keys": None}}),
            (f"{of_plimsoll}/configmaps/{JOURNAL}", {"data": None}),  # others acted before
        ):
            answer = self.plane.transport().call("PATCH", path, body=body, content_type=MERGE_PATCH)
            assert answer.status == 200, answer.body
        config = Config(service=rig.url, spool=folder / tenant, spool_bytes=2**20, metrics_port=0)
        return put_together(self.agent(), config, rig.clock, Output(rig.clock))

    def snapshot(self) -> tuple[Snapshot, list[str]]:
        warnings: list[str] = []
        requests = Requests(transport=self.agent(), cluster="harbor")
        seen = ClusterReader(requests, ThreadWorkers(4), SystemClock(), warnings.append).read()
        found = full_snapshot(seen, cluster_id="c", epoch="e", sequence=1, now=datetime.now(UTC))
        return decode(encode(found)), warnings


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ControlPlane(settings=SETTINGS) as plane:
        found = Site(plane)
        found.apply("read-only")
        yield found


@pytest.fixture
def ground(site: Site) -> Iterator[Ground]:
    with Ground(site.plane) as ground:
        yield ground


def test_it_reads_all_that_a_snapshot_tells_and_only_kinds_that_are_not_installed_are_left_out(
    site: Site, ground: Ground
):
    ground.nodes("a")
    ground.apply(a_budget("web", "web", minAvailable=1), a_deployment("web", 2))
    ground.until(lambda: len(ground.serving()) == 2)
    found, warnings = site.snapshot()
    (web,) = [w for w in found.workloads if w.namespace == ground.name]
    assert (web.name, web.replicas, web.ready) == ("web", 2, 2)
    assert {p.owner.uid for p in found.pods if p.namespace == ground.name and p.owner} == {web.uid}
    (budget,) = [b for b in found.budgets if b.namespace == ground.name]
    assert budget.workloads == (web.uid,)
    assert found.kubernetes.startswith("v1.")
    assert sorted(w.split("list ")[1].split(":")[0] for w in warnings) == [
        "argoproj.io/rollouts",
        "autoscaling.k8s.io/verticalpodautoscalers",
        "metrics.k8s.io/nodes",  # the rig serves what pods use, for autoscalers, and no more
    ]


def test_it_keeps_its_key_in_its_own_secret_and_can_read_no_other(site: Site):
    requests = Requests(transport=site.agent(), cluster="harbor")
    made = SecretIdentity(requests).load()
    assert SecretIdentity(requests).load().public_key == made.public_key
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    site.plane.transport().call(
        "POST", secrets, body={"metadata": {"name": "other"}}, content_type="application/json"
    )
    assert site.agent().call("GET", f"{secrets}/{KEY}").status == 200
    assert site.agent().call("GET", f"{secrets}/other").status == 403
    assert site.agent().call("GET", secrets).status == 403
    assert site.agent().call("GET", "/api/v1/secrets").status == 403


def test_it_cannot_change_the_policy_of_its_owner_nor_anything_else(site: Site, ground: Ground):
    (node,) = ground.nodes("a")
    ground.apply(a_deployment("web", 1))
    (pod,) = ground.until(ground.serving)
    pod_path = f"{ground.pods_path}/{pod['metadata']['name']}"
    mark = {"metadata": {"annotations": {"plimsoll.dev/x": "1"}}}
    for path, body in (
        (f"/api/v1/namespaces/{NAMESPACE}/configmaps/{POLICY}", {"data": {"mode": "act"}}),
        (f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}}),
        (f"/apis/apps/v1/namespaces/{ground.name}/deployments/web", mark),
        (pod_path, mark),
    ):
        assert site.patch(path, body).status == 403, path
    evicted = site.agent().call(
        "POST",
        f"{pod_path}/eviction",
        body={"metadata": {"name": pod["metadata"]["name"], "namespace": ground.name}},
        content_type="application/json",
    )
    assert evicted.status == 403


# With the overlay: from here on the plane has it


@pytest.fixture(scope="module")
def acting(site: Site) -> Site:
    site.apply("act")
    node = "/api/v1/nodes/"
    until(lambda: site.patch(f"{node}none", {}).status == 404)  # the right is there
    return site


def test_with_the_overlay_the_admission_policies_hold_it_to_their_fields(
    acting: Site, ground: Ground
):
    (name,) = ground.nodes("a")
    node = f"/api/v1/nodes/{name}"
    tries = itertools.count()  # until the policy is in force each try changes the label

    def foreign() -> Response:
        return acting.patch(node, {"metadata": {"labels": {"team": f"red-{next(tries)}"}}})

    until(lambda: "'plimsoll-nodes'" in message_of(foreign()))
    ground.apply(a_deployment("web", 1))
    (pod,) = ground.until(ground.serving)
    path = f"{ground.pods_path}/{pod['metadata']['name']}"
    play = Playground(ground.api, {"node": lambda: node, "pod": lambda: path})
    for row in attempts("plimsoll-agent"):
        play.judge(acting.agent(), row)


@pytest.fixture
def granted(acting: Site) -> Iterator[Callable[..., None]]:
    """Lets the owner grant some actions, and no others; in the end all of them again."""

    def grant(*actions: str) -> None:
        rules = [
            {
                "apiGroups": ["agent.plimsoll.dev"],
                "resources": ["actions"],
                "resourceNames": list(actions) or ["none"],
                "verbs": ["act"],
            }
        ]
        api = acting.plane.transport()
        assert (
            api.call("PATCH", MAY_ACT, body={"rules": rules}, content_type=MERGE_PATCH).status
            == 200
        )

    yield grant
    grant("consolidate-node", "label-node")


def test_the_owner_grants_each_action_and_without_a_grant_only_what_undoes_passes(
    acting: Site, ground: Ground, granted: Callable[..., None]
):
    (name,) = ground.nodes("a")
    node = f"/api/v1/nodes/{name}"
    ground.apply(a_deployment("web", 1))
    (pod,) = ground.until(ground.serving)
    path = f"{ground.pods_path}/{pod['metadata']['name']}"
    labels = {"metadata": {"labels": {"agent.plimsoll.dev/x": "1"}}}
    cordon = {"spec": {"unschedulable": True}}
    mark = {"metadata": {"annotations": {"plimsoll.dev/moved": "1"}}}

    def tried(where: str, body: Json) -> int:
        return (
            acting.agent()
            .call("PATCH", where, query={"dryRun": "All"}, body=body, content_type=MERGE_PATCH)
            .status
        )

    def evicted() -> int:
        meta = pod["metadata"]
        options = {"dryRun": ["All"], "preconditions": {"uid": meta["uid"]}}
        body = {"metadata": {"name": meta["name"]}, "deleteOptions": options}
        answer = acting.agent().call(
            "POST", f"{path}/eviction", body=body, content_type="application/json"
        )
        return answer.status

    def all_of_it() -> list[int]:
        drained = (tried(node, cordon), tried(path, mark), evicted())
        return [tried(node, labels), *drained]

    granted("label-node")
    until(lambda: all_of_it() == [200, 403, 403, 403])
    granted("consolidate-node")
    until(lambda: all_of_it() == [403, 200, 200, 201])
    assert tried(node, {**labels, **cordon}) == 403

    namespace = f"/api/v1/namespaces/{ground.name}"
    keep = {"metadata": {"labels": {"plimsoll.dev/agent": "keep"}}}
    assert ground.call("PATCH", namespace, keep, MERGE_PATCH).status == 200
    until(lambda: all_of_it() == [403, 200, 403, 403])

    assert acting.patch(node, cordon).status == 200
    before = ground.get(path)["metadata"]
    released = {
        "labels": {"pod-template-hash": None},
        "annotations": {"plimsoll.dev/released": "a"},
    }
    assert ground.call("PATCH", path, {"metadata": released}, MERGE_PATCH).status == 200
    granted()
    hashed = {"labels": {"pod-template-hash": before["labels"]["pod-template-hash"]}}
    back = hashed | {"annotations": {"plimsoll.dev/released": None}}
    more = hashed | {"annotations": {"plimsoll.dev/released": None, "plimsoll.dev/moved": "1"}}
    free = {"spec": {"unschedulable": None}}
    until(lambda: all_of_it() == [403, 200, 403, 403])  # it is cordoned already
    assert tried(node, free) == 200
    assert tried(node, {**free, **labels}) == 403
    assert tried(node, {**free, **mark}) == 403
    assert tried(path, {"metadata": back}) == 200
    assert tried(path, {"metadata": more}) == 403
    assert tried(path, {"metadata": {"annotations": back["annotations"]}}) == 403
    ground.call("DELETE", f"/apis/apps/v1/namespaces/{ground.name}/deployments/web")
    ground.call("DELETE", path)  # nobody controls it any more
    ground.until(lambda: not ground.pods())  # one that waits would keep the next test from acting


def test_without_a_grant_the_agent_uncordons_what_it_cordoned_itself_and_not_what_a_person_did(
    acting: Site, ground: Ground, granted: Callable[..., None]
):
    (name,) = ground.nodes("a")
    node = f"/api/v1/nodes/{name}"
    cordon, free = ({"spec": {"unschedulable": value}} for value in (True, None))

    def by_hand(body: Json) -> int:
        call, manager = acting.plane.transport().call, {"fieldManager": "kubectl-cordon"}
        return call("PATCH", node, query=manager, body=body, content_type=MERGE_PATCH).status

    def uncordoned() -> int:
        dry = {"dryRun": "All"}
        call = acting.agent().call
        return call("PATCH", node, query=dry, body=free, content_type=MERGE_PATCH).status

    assert by_hand(cordon) == 200
    until(lambda: uncordoned() == 200)
    granted()
    until(lambda: uncordoned() == 403)
    acting.agent().call(
        "PATCH",
        node,
        query={"fieldManager": "plimsoll", "force": "true"},
        body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **cordon},
        content_type="application/apply-patch+yaml",
    )
    assert uncordoned() == 403, "to own a person's cordon too does not make it one's own"
    assert by_hand(free) == 200
    granted("consolidate-node")
    until(lambda: acting.patch(node, cordon).status == 200)
    granted()
    until(
        lambda: (
            acting.patch(node, {"metadata": {"annotations": {"plimsoll.dev/x": "1"}}}).status == 403
        )
    )
    assert uncordoned() == 200


def test_a_signed_instruction_empties_a_node_while_every_pod_serves(acting: Site, ground: Ground):
    (old,) = ground.nodes("old")
    ground.apply(a_budget("web", "web", maxUnavailable=0), a_deployment("web", 2))
    ground.until(lambda: len(ground.serving()) == 2)
    (new,) = ground.nodes("new")
    service = HandingOut()
    policy = {"data": {"instruction-keys": service.signer.pinned}}
    of_plimsoll = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    path = f"{of_plimsoll}/{POLICY}"
    begun = {"data": {"journal": "{}"}}  # as an agent does that enrols
    assert acting.patch(f"{of_plimsoll}/{JOURNAL}", begun).status == 200
    written = acting.plane.transport().call("PATCH", path, body=policy, content_type=MERGE_PATCH)
    assert written.body["data"]["mode"] == "act"
    service.ask(an_instruction(acting, ground, old, new, "c"))
    transport, clock = acting.agent(), SystemClock()
    api = KubernetesCluster(transport, "harbor", clock, workers=ThreadWorkers(4))
    executor = InstructionExecutor(
        cluster_id="c",
        api=api,
        service=service,
        policy=lambda: read_policy(api.requests),
        journal=ConfigMapJournal(api.requests, clock),
        clock=clock,
        progress=Output(clock),
    )
    executor.round()
    executor.round()
    assert [(r.number, r.outcome) for r in service.results] == [(1, "done"), (1, "done")]
    assert {p["spec"]["nodeName"] for p in ground.serving()} == {new}
    assert ground.get(f"/api/v1/nodes/{old}")["spec"]["unschedulable"]
    journal = ground.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{JOURNAL}")
    assert '"outcome":"done"' in journal["data"]["journal"]


def test_of_two_tenants_each_agent_tells_the_service_of_its_own_cluster_and_acts_there_alone(
    acting: Site, ground: Ground, tmp_path: Path
):
    """The deployed service, two real control planes, and the agent as `plimsoll agent run` wires it."""
    (old,) = ground.nodes("old")
    ground.apply(a_deployment("web", 2))
    ground.until(lambda: len(ground.serving()) == 2)
    (new,) = ground.nodes("new")
    with ServiceRig() as rig, ControlPlane(settings=SETTINGS) as plane:
        other = Site(plane)
        other.apply("read-only")
        mine = acting.enrolled(rig, "acme", tmp_path)
        theirs = other.enrolled(rig, "globex", tmp_path)
        for agent in (mine, theirs):
            agent.sender.take()
            agent.sender.send()
            assert not agent.sender.spool.entries
        _, ann = rig.enrolled("acme", "ann", Role.PERSON)
        _, eve = rig.enrolled("globex", "eve", Role.PERSON)
        ground.until(lambda: workloads_of(ann, mine) and workloads_of(eve, theirs) is not None)
        assert (ground.name, "web") in (workloads_of(ann, mine) or set())
        assert workloads_of(eve, theirs) == set()
        with pytest.raises(Refused, match="404"):
            eve.call("GET", f"/v1/clusters/{mine.sender.cluster_id}/workloads", Workloads)

        asked = an_instruction(acting, ground, old, new, mine.sender.cluster_id)
        signed = wire.sign(asked, rig.signer())
        for tenant, agent in (("acme", mine), ("globex", theirs)):  # theirs is sent the same
            data = rig.data(tenant)
            post(data, agent.sender.cluster_id, asked.number, signed, asked.expires_at)
            agent.executor.round()
        done, refused = (
            result_of(rig.data(tenant), agent.sender.cluster_id, asked.number)
            for tenant, agent in (("acme", mine), ("globex", theirs))
        )
    assert done is not None
    assert (done.outcome, {p["spec"]["nodeName"] for p in ground.serving()}) == ("done", {new})
    assert refused is not None
    assert (refused.outcome, "cluster" in refused.reason) == ("refused", True)


def workloads_of(person: Service, agent: Loops) -> set[tuple[str, str]] | None:
    """What a person reads of the cluster of an agent; None: nothing was worked in yet."""
    try:
        path = f"/v1/clusters/{agent.sender.cluster_id}/workloads"
        found = person.call("GET", path, Workloads)
    except Refused:
        return None
    return {(w.namespace, w.name) for w in found.workloads}


def an_instruction(
    site: Site, ground: Ground, old: str, new: str, cluster_id: str
) -> wire.Instruction:
    """As the service makes it, out of what the agent told."""
    found, _ = site.snapshot()
    now = datetime.now(UTC)
    nodes = {node.name: node for node in found.nodes}
    (web,) = [w for w in found.workloads if w.namespace == ground.name]
    standing = wire.StandingWorkload(
        kind=web.kind, namespace=web.namespace, name=web.name, uid=web.uid, replicas=web.replicas
    )
    return wire.Instruction(
        id="r-1",
        cluster_id=cluster_id,
        number=1,
        issued_at=now,
        expires_at=now + timedelta(minutes=30),
        kind="consolidate-node",
        target=wire.Target(name=old, uid=nodes[old].uid, provider_id=nodes[old].provider_id),
        preconditions=wire.Preconditions(
            workloads=(standing,), most_pods=2, destinations=(nodes[new].uid,)
        ),
        plan=wire.Plan(reason="its pods fit on the other node"),
    )
