"""What `sam build` made, run as Lambda would: its own folder, its layers, the runtime's boto3.

The emulator cannot show this: its functions see the emulator's packages behind their own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.package.template import BUILT, ROOT, functions, template

IN_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")
NEVER_IN_LAMBDA = ("plimsoll.hollow", "plimsoll.drill", "plimsoll.cli")
LATE = ("boto3", "botocore.client", "kubernetes", "yaml")
"""Imported by the call that needs them, so that a cold start does not wait for them."""

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
    function = functions()[request.param]["Properties"]
    layers = template()["Globals"]["Function"]["Layers"]
    path = [str(built / layer["Ref"] / "python") for layer in layers] + [str(runtime)]
    module = function["Handler"].rpartition(".")[0]
    done = subprocess.run(
        [sys.executable, "-S", "-c", LOOK.format(module=module)],
        cwd=built / request.param,
        env={"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_handler_and_all_it_may_need_import_from_the_built_artefact(imported):
    _, _, client = imported
    assert "KubernetesLayer" in client


def test_a_cold_start_waits_for_nothing_that_is_needed_later(imported):
    at_once, _, _ = imported
    assert not [m for m in at_once if m in LATE]


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
