"""The command outside a checkout: what `pip install .` gives works there, and names what does not.

An installation is put together from the packages, the data files that pyproject.toml names, and the
libraries that it declares without extras; pip itself would need the network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plimsoll_cli import main
from tests.package.template import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]
PLIMSOLL = "from plimsoll_cli import main; main()"
EACH = """
import json, sys
from click.testing import CliRunner
from plimsoll_cli import main
found = {words: CliRunner().invoke(main, words.split()) for words in sys.argv[1:]}
print(json.dumps({words: (each.exit_code, each.output) for words, each in found.items()}))
"""


def declared() -> list[Requirement]:
    """Return what pyproject.toml declares for an installation without extras."""
    lines = [
        line.partition("#")[0].strip()
        for file in PYPROJECT["dynamic"]["dependencies"]["file"]
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
    ]
    return [Requirement(line) for line in lines if line]


def libraries() -> set[Path]:
    """Return the files and folders of all declared libraries, and of those that they declare."""
    waiting, seen, found = declared(), set[str](), set[Path]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        installed = distribution(name)
        folder = Path(str(installed.locate_file("")))
        found |= {
            folder / file.parts[0] for file in installed.files or () if ".." not in file.parts
        }
        for line in installed.requires or ():
            needed = Requirement(line)
            extras = {"", *requirement.extras}
            if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    return found


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installation")
    for tree in PYPROJECT["packages"]["find"]["where"]:
        for package in (path.parent for path in (ROOT / tree).glob("*/__init__.py")):
            for pattern in ("**/*.py", *PYPROJECT["package-data"][package.name]):
                for file in package.glob(pattern, recurse_symlinks=True):
                    target = folder / file.relative_to(package.parent)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, target)
    for library in libraries():
        target = folder / library.name
        if library.exists() and not target.exists():
            target.symlink_to(library)
    return folder


def python(
    installation: Path, text: str, *words: str | Path, cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-c", text, *words],
        env={"PYTHONPATH": str(installation), "HOME": str(cwd)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_simulated_drill_writes_its_page(installation, tmp_path):
    drill = ROOT / "examples/one-node.yaml"
    done = python(installation, PLIMSOLL, "drill", drill, "--html", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_random_storms_are_played(installation, tmp_path):
    done = python(installation, PLIMSOLL, "storms", "--seed", "1", "--count", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "every rule was kept" in done.stdout + done.stderr


def each(installation: Path, *commands: str) -> dict[str, tuple[int, str]]:
    """Run commands one after the other in one process; return how each ended, and what it printed."""
    done = python(installation, EACH, *commands, cwd=installation)
    assert done.returncode == 0, done.stderr
    return {words: (status, said) for words, (status, said) in json.loads(done.stdout).items()}


def test_templates_that_need_no_build_are_in_the_package(installation):
    for name, source in {
        "spoke": "infra",
        "reports": "infra",
        "spot-interruption": "infra/fis",
    }.items():
        kept = installation / "plimsoll_cli" / "templates" / f"{name}.yaml"
        assert kept.read_bytes() == (ROOT / source / f"{name}.yaml").read_bytes()
        result = CliRunner().invoke(main, ["clusters", "template", name])
        assert result.stdout_bytes == kept.read_bytes()


def test_every_command_explains_itself(installation):
    commands = ["rehearse", "clusters", "status", "reports", "doctor", "demo", "controlplane"]
    ended = each(installation, "--help", *(f"{command} --help" for command in commands))
    assert {command: said for command, (status, said) in ended.items() if status} == {}
    assert all("Usage: " in said for _, said in ended.values())


def test_the_manifests_of_a_cluster_are_written_for_argo_cd_and_flux(installation, tmp_path):
    words = ["clusters", "add", "harbor", "--gitops", "deploy", "--repository", "https://x"]
    done = python(installation, PLIMSOLL, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "deploy/cluster/rbac.yaml").read_text(encoding="utf-8")
    assert written == (ROOT / "infra/cluster/rbac.yaml").read_text(encoding="utf-8")


def test_what_needs_a_checkout_says_so_with_the_cure(installation):
    drill = f"drill {ROOT / 'examples/one-node.yaml'} --rig"
    ended = each(
        installation,
        *("demo", "demo service", "controlplane build"),
        *(f"{drill} {rig}" for rig in ("emulated", "cluster", "localstack")),
    )
    for status, said in ended.values():
        assert status == 2, said
        assert "needs a checkout" in said
        assert "make setup build" in said
