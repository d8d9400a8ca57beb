"""A real API server takes every file that `plimsoll gpu` writes for you, as you apply it with kubectl."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from plimsoll_cli import main
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.gpu import ClassDay
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from tests.cluster.ground import Ground
from tests.support.fake_clusters import a_deployment, a_node
from tests.support.gpu_days import MONDAY, a_class_day, a_pod_day, never

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

OPERATOR = "gpu-operator"
LABEL = "nvidia.com/mig.config"


def plimsoll(*args: str) -> str:
    done = CliRunner().invoke(main, ["gpu", *args])
    assert done.exit_code == 0, done.output
    return done.stdout


def kubectl(plane: ControlPlane, *args: str | Path) -> str:
    program = binaries.find(plane.version)["kubectl"]
    done = subprocess.run(
        [program, f"--kubeconfig={plane.kubeconfig()}", *args],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def fleet(ground: Ground) -> Iterator[list[str]]:
    """Three nodes of eight GPUs each, and the namespace of the GPU Operator."""
    ground.call("POST", "/api/v1/namespaces", {"metadata": {"name": OPERATOR}})
    names = [f"{ground.name}-{name}" for name in "abc"]
    ground.plane.join(*map(a_gpu_node, names))
    yield names
    for name in names:
        ground.call("DELETE", f"/api/v1/nodes/{name}")
    ground.call("DELETE", f"/api/v1/namespaces/{OPERATOR}")


def a_gpu_node(name: str) -> Json:
    product = {
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        LABEL: "all-disabled",
    }
    node = a_node(name, cpu="192", **product)
    node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    return node


@pytest.fixture
def plan(ground: Ground, fleet: list[str], tmp_path: Path) -> Path:
    """The files of a plan for that fleet, as kubectl prints it."""
    demand, standing, folder = (tmp_path / name for name in ("demand.json", "fleet.json", "plan"))
    demand.write_text(json.dumps({"H100-80GB-HBM3": {"1g.10gb": 20, "2g.20gb": 3, "3g.40gb": 4}}))
    seen = ("get", "nodes,pods", "--all-namespaces", "--output", "json")
    standing.write_text(kubectl(ground.plane, *seen, f"--selector={LABEL}"))
    files = ("--files", str(folder), "--all-pairs")
    plimsoll("geometry", "--demand", str(demand), "--fleet", str(standing), *files)
    return folder


def test_the_labels_of_a_plan_the_layouts_and_the_grants(ground: Ground, plan: Path):
    """By the command that stands in the file of the labels."""
    text = (plan / "labels.yaml").read_text()
    (command,) = (line for line in text.splitlines() if line.startswith("#   kubectl "))
    *words, file = command.removeprefix("#   kubectl ").split()
    kubectl(ground.plane, *words, plan / file)
    kubectl(ground.plane, "apply", "-f", plan / "mig-config.yaml", "-f", plan / "grants.yaml")
    wanted = {
        item["metadata"]["name"]: item["metadata"]["labels"][LABEL]
        for item in yaml.safe_load(text)["items"]
    }
    assert wanted
    for name, layout in wanted.items():
        assert ground.get(f"/api/v1/nodes/{name}")["metadata"]["labels"][LABEL] == layout


def a_class(owner: str, namespace: str, model: str) -> list[ClassDay]:
    on = [MONDAY + timedelta(days=n) for n in range(14)]
    days = (a_class_day(owner, [a_pod_day(day, busy=never)], day, model=model) for day in on)
    return [
        msgspec.structs.replace(day, of=msgspec.structs.replace(day.of, namespace=namespace))
        for day in days
    ]


def fitted(ground: Ground, folder: Path, mechanism: str, model: str) -> Json:
    """Apply what fit advises for the Deployment `web`, and return the spec of its pods."""
    web = a_deployment("web", 0)
    web["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": 1}
    ground.apply(web)
    days = folder / "days.jsonl"
    days.write_bytes(b"\n".join(map(encode, a_class("web", ground.name, model))))
    asked = ("--mechanism", mechanism, "--container", "main", "--files", str(folder / "fit"))
    plimsoll("fit", "--from", str(days), *asked)
    of = ("--namespace", ground.name)
    for file in sorted((folder / "fit").glob("*-claim.yaml")):
        kubectl(ground.plane, "apply", "--server-side", "-f", file)
    (patch,) = (folder / "fit").glob("*-gpu.yaml")
    kubectl(ground.plane, "patch", "deployment", "web", *of, "--patch-file", patch)
    path = f"/apis/apps/v1/namespaces/{ground.name}/deployments/web"
    pods: Json = ground.get(path)["spec"]["template"]
    return pods


@pytest.mark.parametrize(
    ("model", "resource"),
    [("H100-80GB-HBM3", "nvidia.com/mig-1g.10gb"), ("L4", "nvidia.com/gpu.shared")],
)
def test_the_patch_of_a_slice_and_of_time_slices(ground, tmp_path, model, resource):
    pods = fitted(ground, tmp_path, "device-plugin", model)
    (container,) = pods["spec"]["containers"]
    assert container["resources"]["limits"] == {resource: "1"}
    assert container["resources"]["requests"] == {"cpu": "500m", resource: "1"}


def test_the_claim_of_a_slice_by_dra_and_the_patch_that_uses_it(ground, tmp_path):
    pods = fitted(ground, tmp_path, "dra", "H100-80GB-HBM3")
    (container,) = pods["spec"]["containers"]
    assert "limits" not in container["resources"]
    (claim,) = pods["spec"]["resourceClaims"]
    assert container["resources"]["claims"] == [{"name": claim["name"]}]
    templates = f"/apis/resource.k8s.io/v1/namespaces/{ground.name}/resourceclaimtemplates"
    ground.get(f"{templates}/{claim['resourceClaimTemplateName']}")


def test_the_patch_of_a_fraction_by_kai(ground, tmp_path):
    pods = fitted(ground, tmp_path, "kai", "H100-80GB-HBM3")
    (container,) = pods["spec"]["containers"]
    assert "limits" not in container["resources"]
    assert pods["spec"]["schedulerName"] == "kai-scheduler"
    assert pods["metadata"]["annotations"]["gpu-memory"].isdecimal()
