"""The agent's manifests in all their forms: Kustomize, the printed ones, the chart, and the image they run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from plimsoll_agent.config import Config
from plimsoll_agent.owner_policy import READ_ONLY, OwnerPolicy
from plimsoll_cli import main
from tests.support.agent_image import CONTAINERFILE, copied, installed

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "infra" / "agent"
SERVICE, IMAGE, TOKEN = "https://api.example.com/prod", "registry.example.com/agent:1", "secret"

type Manifest = dict[str, Any]


def printed(*more: str) -> list[Manifest]:
    words = ["agent", "install", "--print", "--service", SERVICE, "--image", IMAGE, *more]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.output))


@cache
def kustomized(form: str) -> list[Manifest]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here")
    done = subprocess.run(
        ["kubectl", "kustomize", AGENT / form], capture_output=True, text=True, check=True
    )
    return list(yaml.safe_load_all(done.stdout))


def one(manifests: list[Manifest], kind: str, name: str = "plimsoll-agent") -> Manifest:
    (found,) = [m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


def names(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {(m["kind"], m["metadata"]["name"]) for m in manifests}


def test_what_is_printed_is_what_kustomize_renders_with_service_image_and_token_in_their_places():
    found = printed("--join-token", TOKEN)
    assert names(found) == names(kustomized("read-only"))
    (container,) = one(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    assert {"name": "PLIMSOLL_SERVICE", "value": SERVICE} in container["env"]
    assert one(found, "Secret", "plimsoll-agent-key")["data"] == {"join-token": "c2VjcmV0"}
    for kind in ("ClusterRole", "Role", "ServiceAccount"):
        ours = one(kustomized("read-only"), kind)
        ours["metadata"].pop("labels")
        assert one(found, kind) == ours


def test_without_a_token_nothing_is_put_over_the_key_that_is_there():
    assert "data" not in one(printed(), "Secret", "plimsoll-agent-key")


def test_read_only_is_the_default_and_its_roles_write_nothing_but_the_agents_own():
    found = printed()
    policy = OwnerPolicy.parse(one(found, "ConfigMap", "plimsoll-agent-policy")["data"])
    assert policy.mode == READ_ONLY
    verbs = {verb for rule in one(found, "ClusterRole")["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
    resources = {r for rule in one(found, "ClusterRole")["rules"] for r in rule["resources"]}
    assert not resources & {"secrets", "configmaps", "*"}
    written = [r for r in one(found, "Role")["rules"] if "patch" in r["verbs"]]
    assert [r["resourceNames"] for r in written] == [
        ["plimsoll-agent-key"],
        ["plimsoll-agent-journal"],
    ]


def test_the_overlay_gives_the_pipelines_rights_and_holds_the_agent_by_its_policies():
    found = kustomized("act")
    account = {"kind": "ServiceAccount", "name": "plimsoll-agent", "namespace": "plimsoll"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        subjects = one(found, kind, "plimsoll")["subjects"]
        assert account in subjects
        assert len(subjects) == 2
        assert one(found, kind)["subjects"] == [account]
    policies = [m for m in found if m["kind"] == "ValidatingAdmissionPolicy"]
    assert len(policies) >= 4
    for policy in policies:
        (condition,) = policy["spec"]["matchConditions"]
        group, _, user = condition["expression"].partition(" || ")
        of_planner = policy["metadata"]["name"] == "plimsoll-history"
        assert group == (
            "['plimsoll', 'plimsoll-batch'].exists(g, g in request.userInfo.?groups.orValue([]))"
            if of_planner
            else "'plimsoll' in request.userInfo.?groups.orValue([])"
        )
        assert user == (
            "request.userInfo.username == 'system:serviceaccount:plimsoll:plimsoll-agent'"
        )
    assert one(found, "ConfigMap", "plimsoll-agent-policy")["data"]["mode"] == "act"


GPU = "plimsoll-gpu"


def test_the_overlay_for_gpus_is_an_identity_of_its_own_which_comes_as_the_agent_alone():
    found = kustomized("gpu-apply")
    assert {name for kind, name in names(found)} == {GPU, f"{GPU}-history", f"{GPU}-journal"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in (m for m in found if m["kind"] == kind):
            assert binding["subjects"] == [
                {"kind": "ServiceAccount", "name": GPU, "namespace": "plimsoll"}
            ]
    policies = [m for m in found if m["kind"] == "ValidatingAdmissionPolicy"]
    assert len(policies) == 3
    for policy in policies:
        condition, *_ = policy["spec"]["matchConditions"]
        says = "!=" if policy["metadata"]["name"] == f"{GPU}-journal" else "=="
        user = f"system:serviceaccount:plimsoll:{GPU}"
        assert condition["expression"] == f"request.userInfo.username {says} '{user}'"
        binding = one(found, "ValidatingAdmissionPolicyBinding", policy["metadata"]["name"])
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    history = one(found, "ValidatingAdmissionPolicy", f"{GPU}-history")["spec"]["validations"]
    of_all = one(kustomized("act"), "ValidatingAdmissionPolicy", "plimsoll-history")
    assert history == of_all["spec"]["validations"]


def test_its_pod_for_gpus_is_of_the_same_image_and_has_what_it_reads_and_opens_its_port_alone():
    found = kustomized("gpu-apply")
    (container,) = one(found, "Deployment", GPU)["spec"]["template"]["spec"]["containers"]
    ours = one(kustomized("read-only"), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    for same in ("image", "securityContext", "ports", "livenessProbe"):
        assert container[same] == ours[same]
    assert container["args"] == ["gpu"]
    assert container["env"] == [{"name": "PLIMSOLL_METRICS_PORT", "value": "9090"}]
    policy, agents = (
        one(found, "NetworkPolicy", GPU)["spec"],
        one(kustomized("read-only"), "NetworkPolicy")["spec"],
    )
    assert policy | {"podSelector": {}} == agents | {"podSelector": {}}


def test_its_pod_may_do_as_little_as_a_pod_can():
    spec = one(printed(), "Deployment")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["strategy"] == {"type": "Recreate"}
    assert "memory" in container["resources"]["limits"]


def test_its_environment_is_what_it_reads_and_its_spool_fits_the_volume():
    pod = one(printed(), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    config = Config.from_env({each["name"]: each["value"] for each in container["env"]})
    (mount,) = container["volumeMounts"]
    (volume,) = pod["volumes"]
    assert config.spool.is_relative_to(mount["mountPath"])
    assert config.spool_bytes < int(volume["emptyDir"]["sizeLimit"].removesuffix("Mi")) * 2**20
    assert [port["containerPort"] for port in container["ports"]] == [config.metrics_port]


def test_its_network_policy_is_of_its_pod_and_opens_its_port_alone():
    found = printed()
    policy = one(found, "NetworkPolicy")["spec"]
    template = one(found, "Deployment")["spec"]["template"]
    labels = policy["podSelector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (port,) = template["spec"]["containers"][0]["ports"]
    opened = [port for rule in policy["ingress"] for port in rule["ports"]]
    assert opened == [{"protocol": "TCP", "port": port["containerPort"]}]
    asked = {
        (port["protocol"], port["port"]) for rule in policy["egress"] for port in rule["ports"]
    }
    assert asked == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443)}


def test_whoever_tells_of_gpus_is_in_its_environment_and_its_port_is_opened_by_an_overlay():
    pod = one(printed("--gpu-metrics", "gpu-operator/dcgm"), "Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    config = Config.from_env({each["name"]: each["value"] for each in container["env"]})
    assert (config.gpu_metrics, config.service) == ("gpu-operator/dcgm", SERVICE)
    policy = yaml.safe_load((AGENT / "gpu" / "network-policy.yaml").read_text(encoding="utf-8"))
    selected = policy["spec"]["podSelector"]["matchLabels"]
    assert selected.items() <= pod["metadata"]["labels"].items()
    (rule,) = policy["spec"]["egress"]
    (to,) = rule["to"]
    assert to["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "gpu-operator"}
    assert rule["ports"] == [{"protocol": "TCP", "port": 9400}]


# The image. No container engine is needed to see what goes into it.


def test_the_image_runs_as_nobody_from_a_base_of_a_known_version():
    lines = CONTAINERFILE.splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"docker\.io/library/python:3\.13-slim-[a-z]+", bases[0])
    last = CONTAINERFILE.rpartition("\nFROM ")[2]
    pod = one(printed(), "Deployment")["spec"]["template"]["spec"]
    assert f"USER {pod['securityContext']['runAsUser']}:" in last
    assert not re.search(r"^(ADD|RUN) ", last, re.MULTILINE)
    assert "--require-hashes" in CONTAINERFILE


def test_what_is_copied_is_there():
    assert copied()
    for source, _ in copied():
        assert (ROOT / source).exists(), source


def test_all_that_is_installed_is_in_the_lock():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name in installed():
        assert re.search(rf"^{name}==\S+.* \\$", lock, re.MULTILINE), name


def test_the_agent_imports_nothing_that_its_image_does_not_have(tmp_path: Path):
    """Run in a process of its own, which finds only what the image has."""
    packages = {name.replace("-", "_") for name in installed()} | {"_cffi_backend"}
    ours = {"plimsoll", "plimsoll_agent", "plimsoll_service"}
    script = f"""
import sys
import plimsoll_agent.__main__
found = {{m.partition(".")[0] for m, it in sys.modules.items() if "site-packages" in (getattr(it, "__file__", None) or "")}}
found |= {{m.partition(".")[0] for m in sys.modules if m.startswith("plimsoll")}}
parts = {{m for m in sys.modules if m.startswith("plimsoll_service.") and not m.startswith("plimsoll_service.wire")}}
print(sorted(name for name in found - {packages | ours!r} if not name.startswith(("__editable__", "_distutils", "distutils", "typing_extensions"))), sorted(parts))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[] []", done.stderr + done.stdout
