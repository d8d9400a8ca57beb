"""What `sam build` made, run as Lambda would: its own folder, its layers, the runtime's boto3.

The emulator cannot show this: its functions see the emulator's packages behind their own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from plimsoll.config import Config
from tests.package.template import BUILT, ROOT, functions, template

IN_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")
NEVER_IN_LAMBDA = ("plimsoll_testbed.model.hollow", "plimsoll.drill", "plimsoll_cli")
HEAVY = ("boto3", "botocore.client", "kubernetes.client.rest")
"""What every event needs: a function has it before its first event, and nobody else waits for it."""
SETTINGS = {field.name.upper(): "true" if field.type == "bool" else "x" for field in fields(Config)}
IN_LAMBDA = {**SETTINGS, "AWS_REGION": "us-east-1", "AWS_LAMBDA_FUNCTION_NAME": "function"}

LOOK = """
import importlib, json, pkgutil, sys
importlib.import_module({module!r})
at_once = sorted(sys.modules)
import plimsoll.adapters
for found in pkgutil.walk_packages(plimsoll.adapters.__path__, "plimsoll.adapters."):
    importlib.import_module(found.name)
import boto3, kubernetes.client
print(json.dumps([at_once, sorted(sys.modules), kubernetes.client.__file__]))
"""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A folder with what Lambda's runtime holds besides the standard library."""
    folder = tmp_path_factory.mktemp("runtime")
    for name in IN_THE_RUNTIME:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
    return folder


@pytest.fixture(scope="module")
def built():
    core = BUILT / "CoreLayer" / "python" / "plimsoll"
    source = ROOT / "layers" / "core" / "plimsoll"
    if not core.is_dir():
        pytest.fail("nothing is built: run `make build`")
    names = [path.relative_to(source) for path in source.rglob("*.py")]
    stale = [
        str(name)
        for name in names
        if f"plimsoll.{name.parts[0]}" not in NEVER_IN_LAMBDA
        and (
            not (core / name).exists() or (core / name).read_bytes() != (source / name).read_bytes()
        )
    ]
    if stale:
        pytest.fail(f"what is built is older than the sources: run `make build` ({stale[0]}, …)")
    return BUILT


@pytest.fixture(scope="module", params=sorted(functions()))
def imported(request, built, runtime) -> Any:
    """Modules after the import of a handler, and after that of everything it may need."""
    return look(request.param, built, runtime)


def look(name: str, built: Path, runtime: Path, **environment: str) -> Any:
    function = functions()[name]["Properties"]
    layers = template()["Globals"]["Function"]["Layers"]
    path = [str(built / layer["Ref"] / "python") for layer in layers] + [str(runtime)]
    module = function["Handler"].rpartition(".")[0]
    done = subprocess.run(
        [sys.executable, "-S", "-c", LOOK.format(module=module)],
        cwd=built / name,
        env={
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_handler_and_all_it_may_need_import_from_the_built_artefact(imported):
    _, _, client = imported
    assert "KubernetesLayer" in client


def test_who_imports_a_handler_elsewhere_waits_for_no_client(imported):
    at_once, _, _ = imported
    assert not [m for m in at_once if m in (*HEAVY, "yaml")]


@pytest.mark.parametrize("name", sorted(functions()))
def test_a_function_that_lambda_starts_is_ready_before_its_first_event(built, runtime, name):
    at_once, _, _ = look(name, built, runtime, **IN_LAMBDA)
    assert set(HEAVY) <= set(at_once)


@pytest.mark.parametrize("layer", ["CoreLayer", "KubernetesLayer"])
def test_modules_are_compiled_because_lambda_compiles_anew_in_every_cold_start(built, layer):
    sources = [p for p in (built / layer).rglob("*.py") if p.parent.name != "__pycache__"]
    missing = [p for p in sources if not list((p.parent / "__pycache__").glob(f"{p.stem}.*.pyc"))]
    assert missing == []


def test_nothing_that_runs_in_lambda_imports_the_drill_the_hollow_cluster_or_the_command_line(
    imported,
):
    _, everything, _ = imported
    assert not [m for m in everything if m.startswith(NEVER_IN_LAMBDA)]
