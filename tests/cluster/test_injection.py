"""The admission policy on a real API server: what it changes, what it leaves, and how it is unbound."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.domain.kubernetes import CAPACITY_LABELS, FLOORS, MIN_ON_DEMAND, SPREAD_PREFIX
from plimsoll.services.injection import Proof, prove
from plimsoll_cli import main
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.installed import needs_mutating_policies
from tests.cluster.placing import Cast
from tests.support.fake_clusters import MERGE, a_deployment, a_stateful_set, a_template

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICY = f"{ADMISSION}/mutatingadmissionpolicies/{FLOORS}"
BINDING = f"{ADMISSION}/mutatingadmissionpolicybindings/{FLOORS}"


@pytest.fixture(autouse=True)
def can_be_installed(plane: ControlPlane) -> None:
    needs_mutating_policies(plane)


@pytest.fixture
def cast(cast: Cast) -> Cast:
    cast.opt_in()
    return cast


def tell(cast: Cast, **entries: str) -> None:
    path = f"/api/v1/namespaces/{cast.ground.name}/configmaps/{FLOORS}"
    body = {"data": {key.replace("_", "."): value for key, value in entries.items()}}
    assert cast.ground.call("PATCH", path, body, MERGE).status == 200


OWN = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def pods_of(cast: Cast, manifest: Json) -> list[Json]:
    """Create a workload, and return its pods as they were created."""
    cast.ground.apply(manifest)
    name, count = manifest["metadata"]["name"], manifest["spec"]["replicas"]
    cast.ground.until(lambda: len(cast.ground.pods(name)) == count)
    return cast.ground.pods(name)


@pytest.mark.parametrize(
    ("entry", "spec", "keys"),
    [
        ("2", {}, [f"{SPREAD_PREFIX}2"]),
        ("0", {}, [f"{SPREAD_PREFIX}0"]),
        ("2", {"topologySpreadConstraints": [OWN]}, [OWN["topologyKey"], f"{SPREAD_PREFIX}2"]),
        (
            "2",
            {"topologySpreadConstraints": [OWN | {"topologyKey": f"{SPREAD_PREFIX}3"}]},
            [f"{SPREAD_PREFIX}3"],
        ),
        ("four", {}, []),
    ],
    ids=["no constraint", "single replica", "one of its own", "ours already", "no word of ours"],
)
def test_a_new_pod_is_spread_as_its_namespace_says(
    cast: Cast, entry: str, spec: Json, keys: list[str]
) -> None:
    tell(cast, deployment_web=entry)
    (pod,) = pods_of(cast, a_deployment("web", 1, a_template("web", **spec)))
    found = pod["spec"].get("topologySpreadConstraints", [])
    assert [constraint["topologyKey"] for constraint in found] == keys
    if keys == [f"{SPREAD_PREFIX}2"]:
        labels = pod["metadata"]["labels"]
        assert found[0]["labelSelector"]["matchLabels"] == {
            "pod-template-hash": labels["pod-template-hash"]
        }


def test_a_single_replica_goes_to_spot_while_the_reserve_can_take_it(cast: Cast) -> None:
    cast.join("od", 3)
    cast.join("f0")
    manifest = a_deployment("web", 1)
    manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: "1"}
    cast.ground.apply(manifest)
    for _ in range(2):
        cast.place()
    for pod in cast.ground.pods("web"):
        cast.ground.delete(pod["metadata"]["name"])
    cast.settle({"f0": 1})


@pytest.mark.parametrize(
    ("selector", "said"),
    [({}, "on-demand"), ({CAPACITY_LABELS[0]: "spot"}, "spot")],
    ids=["no selector", "a selector of its own"],
)
def test_a_new_pod_is_held_to_on_demand_nodes(
    cast: Cast, selector: dict[str, str], said: str
) -> None:
    tell(cast, statefulset_db="on-demand")
    (pod,) = pods_of(cast, a_stateful_set("db", 1, a_template("db", nodeSelector=selector)))
    assert pod["spec"]["nodeSelector"][CAPACITY_LABELS[0]] == said
    assert pod["spec"]["nodeSelector"]["ground"] == cast.ground.name


def test_a_stateful_set_keeps_its_floor_once_its_pods_were_recreated(cast: Cast) -> None:
    cast.join("od", 3)
    cast.join("f0")
    manifest = a_stateful_set("web", 4, podManagementPolicy="Parallel")
    manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: "2"}
    cast.ground.apply(manifest)
    for _ in range(2):
        cast.services.placement.run()
    for pod in cast.ground.pods("web"):
        cast.ground.delete(pod["metadata"]["name"])
    cast.until(2, od=2)


def proof_of(cast: Cast) -> Proof:
    return prove(cast.api, cast.api.injected_floors()).proof


def test_a_policy_that_crashes_requests_is_unbound_by_the_next_run(lone_cast: Cast) -> None:
    """A list of objects as the value of a JSONPatch crashes each request, whatever `failurePolicy` says."""
    lone_cast.opt_in()
    path = "/spec/topologySpreadConstraints"
    made = "Object.spec.topologySpreadConstraints{maxSkew: 1, topologyKey: 'a'}"
    expression = f"[JSONPatch{{op: 'add', path: '{path}', value: [{made}]}}]"
    spec = {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]}
    assert lone_cast.ground.call("PATCH", POLICY, {"spec": spec}, MERGE).status == 200
    lone_cast.ground.until(lambda: proof_of(lone_cast) is Proof.BROKEN)
    lone_cast.services.placement.run()
    assert lone_cast.ground.call("GET", BINDING).status == 404
    lone_cast.ground.until(lambda: proof_of(lone_cast) is Proof.ABSENT)
    assert len(pods_of(lone_cast, a_deployment("web", 2))) == 2
    lone_cast.opt_in()
    assert proof_of(lone_cast) is Proof.IN_FORCE
    tell(lone_cast, deployment_late="2")
    [pod] = pods_of(lone_cast, a_deployment("late", 1))
    assert "topologySpreadConstraints" in pod["spec"], "it still sees what ConfigMaps say"


def test_an_api_server_that_forgot_the_parameters_is_found_out(lone_cast: Cast) -> None:
    """kube-apiserver 1.36.3 and 1.37.2 stop to watch them with the last binding, and do not begin again."""
    lone_cast.opt_in()
    for binding in (BINDING, f"{BINDING}-parameters"):
        assert lone_cast.ground.call("DELETE", binding).status == 200
    lone_cast.ground.until(lambda: proof_of(lone_cast) is Proof.ABSENT)
    words = ["install-policy", "--kubeconfig", str(lone_cast.ground.plane.kubeconfig())]
    failed = CliRunner().invoke(main, words)
    assert failed.exit_code == 1, failed.output
    assert "Restart all API servers" in failed.output
    assert lone_cast.ground.call("GET", BINDING).status == 404
