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
from collections.abc import Mapping
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement

from tests.package.rendered import REGION, of_every_function
from tests.package.template import BUILT, ROOT, functions, template

SERVICE = ROOT / ".aws-sam" / "service" / "build"
BATCH = ROOT / ".aws-sam" / "batch" / "build"


class Layer(NamedTuple):
    """A layer as it was built."""

    built: Path
    source: str
    """Its folder in `layers`."""
    package: str

    def stale(self) -> list[str]:
        """Modules that are not as in the sources."""
        source = ROOT / "layers" / self.source / self.package
        there = self.built / "python" / self.package
        return [
            str(path.relative_to(source))
            for path in source.rglob("*.py")
            if not (copy := there / path.relative_to(source)).exists()
            or copy.read_bytes() != path.read_bytes()
        ]


LAYERS = [
    Layer(BUILT / "CoreLayer", "core", "plimsoll"),
    Layer(SERVICE / "CoreLayer", "core", "plimsoll"),
    Layer(SERVICE / "ServiceLayer", "service", "plimsoll_service"),
    Layer(SERVICE / "ConsoleLayer", "console", "plimsoll_console"),
    Layer(BATCH / "CoreLayer", "core", "plimsoll"),
    Layer(BATCH / "BatchLayer", "batch", "plimsoll_batch"),
]


def functions_of(stack: str) -> dict[str, Any]:
    return {
        name: resource["Properties"]
        for name, resource in template(stack)["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


OF_THE_SERVICE, OF_THE_QUEUES = functions_of("service.yaml"), functions_of("batch.yaml")
NEVER_IN_LAMBDA = ("plimsoll_simulation", "plimsoll_testbed", "plimsoll_cli", "tests")
CLIENTS = {"dynamodb", "sqs", "sts"}
"""What every event needs: a function has them before its first event, and nobody else waits for them."""
SERVICES = {
    "DrainsFunction": "drains",
    "NoticesFunction": "notices",
    "PlacementFunction": "placement",
    "ScheduleFunction": "resync",
    "SweepFunction": "resync",
}
PLANS = tuple(
    f"plimsoll.domain.{package}"
    for package in ("actions", "capacity", "disruptions", "drain", "placement", "scheduling")
)
IN_LAMBDA = {
    **of_every_function()["Environment"]["Variables"],
    "AWS_REGION": REGION,
    "AWS_LAMBDA_FUNCTION_NAME": "function",
}

IMPORTS = """
import importlib, json, pkgutil, sys
importlib.import_module({module!r})
at_once = sorted(sys.modules)
import plimsoll.adapters, plimsoll.bootstrap, plimsoll.services
made = plimsoll.bootstrap.aws()._clients if plimsoll.bootstrap.aws.cache_info().currsize else ()
for package in (plimsoll.adapters, plimsoll.services):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name != "plimsoll.adapters.opentelemetry":  # for a layer that brings it: nothing built has it
            importlib.import_module(found.name)
import msgspec
print(json.dumps([at_once, sorted(sys.modules), msgspec.__file__, sorted(made)]))
"""


@pytest.fixture(scope="module")
def built():
    return current(LAYERS[0]).built.parent


def current(layer: Layer) -> Layer:
    """Return a layer that was built from the sources as they are."""
    if not layer.built.is_dir():
        pytest.fail("nothing is built: run `make build`")
    if stale := layer.stale():
        pytest.fail(f"what is built is older than the sources: run `make build` ({stale[0]}, …)")
    return layer


@pytest.fixture(scope="module", params=LAYERS, ids=lambda it: "/".join(it.built.parts[-3:]))
def layer(request) -> Layer:
    return current(request.param)


@pytest.fixture(scope="module", params=sorted(functions()))
def imported(request, built) -> Any:
    """Modules after the import of a handler, and after that of everything it may need; clients of the former."""
    return import_handler(request.param, built)


def import_handler(name: str, built: Path, **environment: str) -> Any:
    function = functions()[name]["Properties"]
    layers = template()["Globals"]["Function"]["Layers"]
    ours = [layer["Ref"] for layer in layers if "Ref" in layer]  # not one that a parameter names
    return imported_by(function, built / name, [built / one for one in ours], environment)


def imported_by(
    function: Any, folder: Path, layers: list[Path], environment: Mapping[str, str]
) -> Any:
    path = [str(layer / "python") for layer in layers]
    module = function["Handler"].rpartition(".")[0]
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS.format(module=module)],
        cwd=folder,
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
    _, _, decoder, _ = imported
    assert "CoreLayer" in decoder


def test_who_imports_a_handler_elsewhere_waits_for_no_client(imported):
    at_once, _, _, clients = imported
    assert clients == []
    assert "yaml" not in at_once


@pytest.mark.parametrize("name", sorted(OF_THE_SERVICE))
def test_every_handler_of_the_service_imports_from_its_built_artefact(name):
    layers = [current(each).built for each in LAYERS if each.built.parent == SERVICE]
    _, everything, _, _ = imported_by(OF_THE_SERVICE[name], SERVICE / name, layers, {})
    assert "plimsoll_service" in everything
    assert not [m for m in everything if m.startswith((*NEVER_IN_LAMBDA, "plimsoll_agent"))]


@pytest.mark.parametrize("name", sorted(OF_THE_QUEUES))
def test_every_handler_of_the_queues_imports_from_its_built_artefact(name):
    layers = [current(each).built for each in LAYERS if each.built.parent == BATCH]
    _, everything, _, _ = imported_by(OF_THE_QUEUES[name], BATCH / name, layers, {})
    assert "plimsoll_batch" in everything
    others = (*NEVER_IN_LAMBDA, "plimsoll_agent", "plimsoll_service")
    assert not [m for m in everything if m.startswith(others)]


@pytest.mark.parametrize("name", sorted(functions()))
def test_a_function_that_lambda_starts_is_ready_before_its_first_event(built, name):
    _, _, _, clients = import_handler(name, built, **IN_LAMBDA)
    assert set(clients) >= CLIENTS


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_function_that_lambda_starts_has_its_service_before_its_first_event(built, name):
    at_once, _, _, _ = import_handler(name, built, **IN_LAMBDA)
    assert f"plimsoll.services.{SERVICES[name]}" in at_once


def test_the_function_that_cordons_does_not_wait_for_the_import_of_a_plan(built):
    at_once, _, _, _ = import_handler("NoticesFunction", built, **IN_LAMBDA)
    assert not [m for m in at_once if m.startswith(PLANS)]


def test_modules_are_compiled_because_lambda_compiles_anew_in_every_cold_start(layer):
    sources = [p for p in layer.built.rglob("*.py") if p.parent.name != "__pycache__"]
    missing = [p for p in sources if not list((p.parent / "__pycache__").glob(f"{p.stem}.*.pyc"))]
    assert missing == []


def test_nothing_that_runs_in_lambda_imports_the_drill_the_fake_cluster_or_the_command_line(
    imported,
):
    _, everything, _, _ = imported
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


def test_a_layer_holds_the_versions_of_its_lock(layer):
    installed = {
        re.sub(r"[-_.]+", "-", one.name).lower(): one.version for one in distributions(layer.built)
    }
    lock = locked(ROOT / "layers" / layer.source / "requirements.txt")
    assert installed == {name: version for name, (version, _) in lock.items()}


def test_a_layer_holds_only_the_product_and_its_libraries(layer):
    recorded = {
        file.parts[0]
        for one in distributions(layer.built)
        for file in one.files or ()
        if file.parts
    }
    of_this_machine = {path.name for path in (layer.built / "python").glob("_cffi_backend.*.so")}
    found = {path.name for path in (layer.built / "python").iterdir()}
    assert found <= {*recorded, *of_this_machine, layer.package, "__pycache__"}
    assert found >= {file for file in recorded if file.isidentifier()}


@pytest.mark.parametrize("built", [BUILT, SERVICE, BATCH], ids=lambda it: it.parent.name)
def test_boto3_describes_the_services_that_functions_call_and_no_others(built):
    sources = [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    called = {name for text in texts for name in re.findall(r'client\("([a-z0-9-]+)"\)', text)}
    data = built / "CoreLayer" / "python" / "botocore" / "data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == called


@pytest.mark.parametrize("folder", ["core", "service", "batch", "console"])
def test_a_lock_has_hashes_and_agrees_with_that_of_the_tests(folder):
    lock = locked(ROOT / "layers" / folder / "requirements.txt")
    tested = locked(ROOT / "requirements.lock")
    assert lock
    assert all(hashes for _, hashes in lock.values())
    assert {name: tested[name] for name in lock} == lock


@pytest.mark.parametrize("folder", ["core", "service", "batch", "console"])
def test_a_lock_holds_what_its_loose_requirements_ask_for(folder):
    lines = (ROOT / "layers" / folder / "requirements.in").read_text(encoding="utf-8").splitlines()
    lock = locked(ROOT / "layers" / folder / "requirements.txt")
    for wanted in (Requirement(line.partition("#")[0]) for line in lines):
        assert wanted.specifier.contains(lock[wanted.name.lower()][0])
