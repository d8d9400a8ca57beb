"""What `sam build` made: it is what the locks name, and runs as Lambda would run it.

A function sees its own folder, its layers, and the standard library. The emulator cannot show this:
its functions see the emulator's packages behind their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.package.rendered import REGION, of_every_function
from tests.package.template import BUILT, ROOT, functions, template

LAYERS = {"CoreLayer": "core"}
NEVER_IN_LAMBDA = ("plimsoll_testbed", "plimsoll_cli", "tests")
HEAVY = ("boto3", "botocore.client")
"""What every event needs: a function has it before its first event, and nobody else waits for it."""
IN_LAMBDA = {
    **of_every_function()["Environment"]["Variables"],
    "AWS_REGION": REGION,
    "AWS_LAMBDA_FUNCTION_NAME": "function",
}

IMPORTS = """
import importlib, json, pkgutil, sys
importlib.import_module({module!r})
at_once = sorted(sys.modules)
import plimsoll.adapters
for found in pkgutil.walk_packages(plimsoll.adapters.__path__, "plimsoll.adapters."):
    importlib.import_module(found.name)
import boto3, msgspec
print(json.dumps([at_once, sorted(sys.modules), msgspec.__file__]))
"""


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
        if not (core / name).exists() or (core / name).read_bytes() != (source / name).read_bytes()
    ]
    if stale:
        pytest.fail(f"what is built is older than the sources: run `make build` ({stale[0]}, …)")
    return BUILT


@pytest.fixture(scope="module", params=sorted(functions()))
def imported(request, built) -> Any:
    """Modules after the import of a handler, and after that of everything it may need."""
    return import_handler(request.param, built)


def import_handler(name: str, built: Path, **environment: str) -> Any:
    function = functions()[name]["Properties"]
    layers = template()["Globals"]["Function"]["Layers"]
    ours = [layer["Ref"] for layer in layers if "Ref" in layer]  # not one that a parameter names
    path = [str(built / name / "python") for name in ours]
    module = function["Handler"].rpartition(".")[0]
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS.format(module=module)],
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
    _, _, decoder = imported
    assert "CoreLayer" in decoder


def test_who_imports_a_handler_elsewhere_waits_for_no_client(imported):
    at_once, _, _ = imported
    assert not [m for m in at_once if m in (*HEAVY, "yaml")]


@pytest.mark.parametrize("name", sorted(functions()))
def test_a_function_that_lambda_starts_is_ready_before_its_first_event(built, name):
    at_once, _, _ = import_handler(name, built, **IN_LAMBDA)
    assert set(HEAVY) <= set(at_once)


@pytest.mark.parametrize("layer", LAYERS)
def test_modules_are_compiled_because_lambda_compiles_anew_in_every_cold_start(built, layer):
    sources = [p for p in (built / layer).rglob("*.py") if p.parent.name != "__pycache__"]
    missing = [p for p in sources if not list((p.parent / "__pycache__").glob(f"{p.stem}.*.pyc"))]
    assert missing == []


def test_nothing_that_runs_in_lambda_imports_the_drill_the_hollow_cluster_or_the_command_line(
    imported,
):
    _, everything, _ = imported
    assert not [m for m in everything if m.startswith(NEVER_IN_LAMBDA)]


# --- Layers and their locks -----------------------------------------------------------------------


def locked(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Return what a lock names: package -> its version and the hashes of its files."""
    pinned = re.split(r"^(?=[a-z0-9])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = (re.match(r"([a-z0-9.-]+)==([^ ;]+)", one) for one in pinned)
    return {
        match[1]: (match[2], frozenset(re.findall(r"--hash=(sha256:[0-9a-f]{64})", match.string)))
        for match in found
        if match
    }


def distributions(layer: Path) -> list[PathDistribution]:
    return [PathDistribution(path) for path in layer.glob("python/*.dist-info")]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_holds_the_versions_of_its_lock(built, layer):
    installed = {
        re.sub(r"[-_.]+", "-", one.name).lower(): one.version
        for one in distributions(built / layer)
    }
    lock = locked(ROOT / "layers" / LAYERS[layer] / "requirements.txt")
    assert installed == {name: version for name, (version, _) in lock.items()}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_holds_only_the_product_and_its_libraries(built, layer):
    recorded = {
        file.parts[0]
        for one in distributions(built / layer)
        for file in one.files or ()
        if file.parts
    }
    ours = {"plimsoll"} if layer == "CoreLayer" else set()
    assert {path.name for path in (built / layer / "python").iterdir()} <= {
        *recorded,
        *ours,
        "__pycache__",
    }


@pytest.mark.parametrize("folder", ["core", "service"])
def test_a_lock_has_hashes_and_agrees_with_that_of_the_tests(folder):
    lock = locked(ROOT / "layers" / folder / "requirements.txt")
    tested = locked(ROOT / "requirements.lock")
    assert lock
    assert all(hashes for _, hashes in lock.values())
    assert {name: tested[name] for name in lock} == lock


@pytest.mark.parametrize("folder", ["core", "service"])
def test_a_lock_holds_what_its_loose_requirements_ask_for(folder):
    lines = (ROOT / "layers" / folder / "requirements.in").read_text(encoding="utf-8").splitlines()
    lock = locked(ROOT / "layers" / folder / "requirements.txt")
    for wanted in (Requirement(line.partition("#")[0]) for line in lines):
        assert wanted.specifier.contains(lock[wanted.name.lower()][0])
