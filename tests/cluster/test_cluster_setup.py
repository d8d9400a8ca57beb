"""A cluster is added by one command, observed, and removed again, on a real control plane and AWS's protocols."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.registry import Cluster
from plimsoll.services.wiring import Ports, wire
from plimsoll_cli.environment import Administered
from plimsoll_cli.live_environment import LiveEnvironment
from plimsoll_cli.setup.access import AwsClusterAccess
from plimsoll_cli.setup.manifests import named, objects_of
from plimsoll_cli.setup.objects import AppliedObjects, ClusterObjects
from plimsoll_cli.stack import CLUSTER_ROLES
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_aws.stores import (
    AmpleLimits,
    MemoryAnnouncer,
    MemoryLayouts,
    MemoryResyncs,
    MemoryWakeUps,
)
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from plimsoll_testbed.rigs.emulated.awsfleet import SERVICES, AwsFleet
from plimsoll_testbed.rigs.emulated.awswire import AwsServer
from tests.cluster.conftest import SETTINGS
from tests.cluster.installed import BINDINGS, everything, until
from tests.support import workload_sets
from tests.support.cli_environment import MemoryEnvironment, a_cluster, run
from tests.support.cluster_setups import MemoryObjects
from tests.support.fake_clusters import a_node

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

OPERATOR = "operator"
"""May do everything but delete, so it may not grant the right to delete pods either."""
ACCOUNT = "111122223333"
SPOT = "i-0123456789abcdef0"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def roles_of_the_stack(_: Mapping[str, Any]) -> Json:
    stack = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/plimsoll/1"
    return {
        "StackResources": [
            {
                "StackId": stack,
                "LogicalResourceId": role,
                "PhysicalResourceId": f"plimsoll-{role}-1",
                "ResourceType": "AWS::IAM::Role",
                "ResourceStatus": "CREATE_COMPLETE",
                "Timestamp": datetime(2026, 1, 1, tzinfo=UTC),
            }
            for role in CLUSTER_ROLES
        ]
    }


@dataclass
class PlaneEnvironment(MemoryEnvironment):
    """A stack in memory, and a cluster that a kubeconfig leads to."""

    def administered(self, file: Path | None, context: str) -> Administered:
        return LiveEnvironment().administered(file, context)


@dataclass(frozen=True)
class Scene:
    plane: ControlPlane
    environment: PlaneEnvironment

    def add(self, *words: str, user: str = "admin") -> Any:
        return self._typed("add", user, *words)

    def remove(self, *words: str) -> Any:
        return self._typed("remove", "admin", *words)

    def _typed(self, verb: str, user: str, *words: str) -> Any:
        kubeconfig = (
            "--kubeconfig",
            str(self.plane.kubeconfig(user)),
            "--context",
            "control-plane",
        )
        return run(self.environment, "clusters", verb, "harbor", *kubeconfig, *words)

    def kubectl(self, *words: str) -> str:
        program = binaries.find(DEFAULT)["kubectl"]
        done = subprocess.run(
            [program, "--kubeconfig", self.plane.kubeconfig(), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self) -> dict[str, Json]:
        """Return what the cluster holds, but for what its own components renew."""
        return {
            f"{resource} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": content(
                obj
            )
            for resource, obj in everything(self.plane.transport())
            if resource not in {"events", "leases"}
        }

    def until_only(self, before: Mapping[str, Json]) -> None:
        """Wait until the cluster holds what it held before, and nothing else: namespaces go in the background."""
        with suppress(AssertionError):  # what is compared below says more
            until(lambda: self.objects() == before)
        there = self.objects()
        assert there.keys() - before.keys() == set()
        changed = {name: (before[name], there.get(name)) for name in before}
        assert {n: pair for n, pair in changed.items() if pair[0] != pair[1]} == {}

    def observes(self, body: str) -> None:
        """Let the functions hear of a notice, with the rights of the group that the manifests give."""
        clock, workers, aws = SystemClock(), SerialWorkers(), workload_sets.Aws()
        api = KubernetesCluster(self.plane.transport("plimsoll"), "harbor", clock, workers=workers)

        class One:
            def open(self, cluster: Cluster) -> KubernetesCluster:
                return api

        known, resyncs = self.environment, MemoryResyncs()
        services = wire(
            Ports(
                registry=known.registry,
                index=known.index,
                instances=aws,
                instances_of=lambda _: aws,
                shifts_of=lambda _: aws,
                clusters=One(),
                groups=lambda _: aws,
                limits=lambda _: AmpleLimits(),
                reports=known.reports,
                pools=known.pools,
                times=known.times,
                layouts=cache(MemoryLayouts),
                announcer=MemoryAnnouncer(),
                wake_ups=MemoryWakeUps(),
                resyncs=resyncs,
                clock=clock,
                workers=workers,
                cluster_workers=workers,
                telemetry=workload_sets.Telemetry(),
            )
        )
        workload_sets.Minute(services, resyncs).run()
        assert services.notices.receive([body]) == [None]


def content(obj: Json) -> Json:
    noted = {"managedFields", "resourceVersion", "generation"}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in noted}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    group = NodeGroupSpec(
        name="base",
        kind="asg",
        capacity="on-demand",
        instance_type="m6i.xlarge",
        zones=("us-east-1a",),
        size=1,
        max=4,
        allocatable={"cpu": "4", "memory": "16Gi"},
    )
    now = SystemClock().now()
    fleet = Fleet("harbor", [group], seed=7, now=now)
    with (
        pytest.MonkeyPatch.context() as patch,
        ControlPlane(settings=SETTINGS, users={OPERATOR: ()}) as plane,
        AwsServer({"cloudformation:DescribeStackResources": roles_of_the_stack}) as stacks,
        AwsFleet(
            [fleet],
            clock=lambda: now,
            lock=nullcontext(),
            api_servers={"harbor": plane.access("admin")},
        ) as aws,
    ):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        for service in SERVICES:
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", aws.url)
        patch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", stacks.url)
        access = AwsClusterAccess(Aws("us-east-1"), "plimsoll", SystemClock())
        [base] = access.node_groups(a_cluster())
        access.let_grow(a_cluster(), base, allowed=False)
        environment = PlaneEnvironment(access=access)
        environment.transports["harbor"] = plane.transport()
        rights = {
            "metadata": {"name": OPERATOR},
            "rules": [
                {
                    "apiGroups": ["*"],
                    "resources": ["*"],
                    "verbs": ["get", "list", "watch", "create", "update", "patch"],
                }
            ],
        }
        binding = {
            "metadata": {"name": OPERATOR},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": OPERATOR,
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}
            ],
        }
        for path, body in ((ROLES, rights), (BINDINGS, binding)):
            assert plane.transport().call("POST", path, body=body).status == 201
        node = a_node("spot-1", **{"karpenter.sh/capacity-type": "spot"})
        plane.join({**node, "spec": {"providerID": f"aws:///us-east-1a/{SPOT}"}})
        metrics = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
        until(
            lambda: plane.transport().call("GET", metrics).status == 200
        )  # the rig's own last object
        yield Scene(plane, environment)


def test_what_git_ops_applies_is_what_add_finds_done(scene: Scene, tmp_path: Path):
    before = scene.objects()
    words = ("--gitops", str(tmp_path), "--path", "harbor", "--repository", "https://x")
    assert run(scene.environment, "clusters", "add", "harbor", *words).exit_code == 0
    built = {
        named(obj): obj for obj in yaml.safe_load_all(scene.kubectl("kustomize", str(tmp_path)))
    }
    assert built == {named(o): o for f in (None, "deletions") for o in objects_of(f)}
    scene.kubectl("apply", "--server-side", "-k", str(tmp_path))
    said = scene.add("--dry-run").stdout
    assert "\n1. already: " in said
    assert "\n2. already: " in said
    assert "\n3. put plimsoll-NoticesRole-1 into the group plimsoll" in said
    scene.kubectl("delete", "-k", str(tmp_path))
    scene.until_only(before)


def test_a_cluster_is_added_by_two_runs_observed_and_removed_object_by_object(scene: Scene):
    before, access = scene.objects(), scene.environment.access
    refused = scene.add("--yes", "--grow", "base", user=OPERATOR)
    assert refused.exit_code == 1, refused.output
    assert (
        "step 2 failed: cluster control-plane: patch ClusterRole plimsoll-deletions: 403"
        in refused.stderr
    )
    assert scene.environment.registry.list() == []

    added = scene.add("--yes", "--grow", "base")
    assert added.exit_code == 0, added.output
    assert "\n1. already: " in added.stdout
    assert "\n2. done: " in added.stdout
    assert "\nrehearsal: harbor: an interruption of" in added.stdout
    wanted = [named(o) for f in (None, "deletions") for o in objects_of(f)]
    new = scene.objects().keys() - before.keys()
    # Beside them come what Kubernetes puts into every namespace.
    assert len(
        {name for name in new if "kube-root-ca" not in name and "default" not in name}
    ) == len(wanted)
    harbor = a_cluster()
    for role in access.roles(harbor):
        assert access.groups_of(harbor, role) == ("plimsoll",)
    assert [group.may_grow for group in access.node_groups(harbor)] == [True]

    again = scene.add()
    assert again.exit_code == 0, again.output
    assert "done:" not in again.stdout

    scene.observes(workload_sets.WiredServices(mode=harbor.mode).spot_event(SPOT))
    [report] = scene.environment.reports.list("harbor")
    assert (report.cluster, report.node, report.kind) == ("harbor", "spot-1", "spot-interruption")

    theirs = {"metadata": {"name": "theirs"}, "data": {}}
    path = "/api/v1/namespaces/plimsoll/configmaps"
    assert scene.plane.transport().call("POST", path, body=theirs).status == 201
    kept = scene.remove("--dry-run").stdout
    assert "the namespace plimsoll stays, because it also holds configmaps theirs" in kept
    scene.plane.transport().call("DELETE", f"{path}/theirs")

    removed = scene.remove("--yes")
    assert removed.exit_code == 0, removed.output
    scene.until_only(before)
    assert [access.groups_of(harbor, role) for role in access.roles(harbor)] == [None] * 4
    assert [group.may_grow for group in access.node_groups(harbor)] == [False]
    assert scene.environment.registry.list() == []
    assert scene.remove("--yes").exit_code == 0, "a second removal finds all of it done"


@pytest.mark.parametrize("kind", ["cluster", "memory"])
def test_an_object_is_there_once_it_is_applied_and_until_it_is_deleted(scene: Scene, kind: str):
    objects: ClusterObjects = (
        AppliedObjects(scene.plane.transport(), "harbor") if kind == "cluster" else MemoryObjects()
    )
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "tried", "namespace": "default"},
        "data": {"a": "1"},
    }
    assert (objects.exists(manifest), objects.holds(manifest)) == (False, False)
    for data in ({"a": "1"}, {"b": "2"}):
        changed = {**manifest, "data": data}
        assert not objects.holds(changed)
        for _ in range(2):
            objects.apply(changed)
            assert (objects.exists(changed), objects.holds(changed)) == (True, True)
    for _ in range(2):
        objects.delete(manifest)
        assert not objects.exists(manifest)


def test_a_context_of_another_cluster_is_refused_by_address_and_certificate(scene: Scene):
    result = run(
        scene.environment,
        *("clusters", "add", "quay", "--context", "control-plane"),
        *("--kubeconfig", str(scene.plane.kubeconfig())),
    )
    assert result.exit_code == 2
    assert "there is no EKS cluster quay" in result.stderr
