"""The agent's chart, rendered by Helm itself: built once from its pinned Go module, as the control plane is."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll_cli.service.agent import manifests

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CHART = ROOT / "infra" / "agent" / "chart"
MODULE = ROOT / "infra" / "local" / "helm"
SERVICE, IMAGE, TOKEN = "https://api.example.com/prod", "registry.example.com/agent:1", "secret"
VALUES = ["--set", f"service={SERVICE}", "--set", f"image={IMAGE}"]


@pytest.fixture(scope="module")
def helm() -> Path:
    digest = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:8]
    built = Path.home() / ".cache" / "plimsoll" / "helm" / digest / "helm"
    if not built.is_file():
        go = shutil.which("go") or str(ROOT / ".tools" / "go" / "bin" / "go")
        half = built.with_suffix(".half")
        half.parent.mkdir(parents=True, exist_ok=True)
        words = [
            go,
            "build",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            str(half),
            "helm.sh/helm/v3/cmd/helm",
        ]
        environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        subprocess.run(words, cwd=MODULE, env=environment, check=True)
        half.rename(built)
    return built


def run(helm: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm, *words], capture_output=True, text=True, check=False)


def rendered(helm: Path, *more: str) -> Iterator[dict[str, Any]]:
    done = run(helm, "template", "agent", str(CHART), "--namespace", "plimsoll", *VALUES, *more)
    assert done.returncode == 0, done.stderr
    yield from yaml.safe_load_all(done.stdout)


def test_the_chart_renders_what_the_command_prints(helm: Path):
    def by_name(found: Any) -> dict[tuple[str, str], Any]:
        return {(m["kind"], m["metadata"]["name"]): m for m in found}

    printed = by_name(manifests(SERVICE, IMAGE, TOKEN))
    del printed["Namespace", "plimsoll"]  # Helm makes it: --create-namespace
    assert by_name(rendered(helm, "--set", f"joinToken={TOKEN}")) == printed


def test_helm_finds_nothing_to_say_against_it(helm: Path):
    done = run(helm, "lint", "--strict", str(CHART), "--namespace", "plimsoll", *VALUES)
    assert done.returncode == 0, done.stdout


def test_the_owners_policy_is_a_value(helm: Path):
    (policy,) = [
        m
        for m in rendered(helm, "--set", "policy.nodes-per-hour=9")
        if m["metadata"]["name"] == "plimsoll-agent-policy"
    ]
    assert policy["data"]["nodes-per-hour"] == "9"  # no number: data of a ConfigMap is text
    assert policy["data"]["mode"] == "read-only"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--namespace", "default", *VALUES], "namespace plimsoll"),
        (["--namespace", "plimsoll", "--set", f"service={SERVICE}"], "image: build it"),
        (["--namespace", "plimsoll", "--set", f"image={IMAGE}"], "service: its address"),
    ],
)
def test_what_it_cannot_do_without_it_asks_for(helm: Path, words: list[str], why: str):
    done = run(helm, "template", "agent", str(CHART), *words)
    assert done.returncode != 0
    assert why in done.stderr
