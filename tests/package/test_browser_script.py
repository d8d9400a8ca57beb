"""How the browser of the browser tests is found and installed, with commands that are written here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "local" / "browser.sh"
RUNS = 'echo "Chromium 1.2.3"'
STUB = "exit 1"  # what Ubuntu installs where there is no snap
INSTALLS = """
echo "apt-get $*"
[ "$1" = update ] || { printf '#!/bin/sh\\necho Chromium 4.5.6\\n' >"$PATH/chromium"; /bin/chmod +x "$PATH/chromium"; }
"""


@dataclass(frozen=True)
class Machine:
    bin: Path
    """All that is on PATH."""

    def has(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, *arguments],
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_the_browser_on_path_is_named_with_its_version(machine: Machine, name: str):
    path = machine.has(name, RUNS)
    done = machine.run()
    assert (done.returncode, done.stdout) == (0, f"==> browser: {path} (Chromium 1.2.3)\n")
    assert machine.run("--path").stdout == f"{path}\n"


def test_the_one_in_the_environment_goes_first(machine: Machine, tmp_path: Path):
    machine.has("chromium", RUNS)
    own = machine.has("own", RUNS)
    assert machine.run("--path", CHROMIUM=str(own)).stdout == f"{own}\n"


@pytest.mark.parametrize("arguments", [[], ["--path"]])
def test_one_in_the_environment_that_does_not_run_is_named_and_not_replaced(
    machine: Machine, arguments: list[str]
):
    machine.has("chromium", RUNS)
    done = machine.run(*arguments, CHROMIUM="/nowhere/chromium")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("CHROMIUM=/nowhere/chromium does not run: set it")


def test_a_stub_is_passed_over(machine: Machine):
    machine.has("chromium", STUB)
    path = machine.has("google-chrome", RUNS)
    assert machine.run("--path").stdout == f"{path}\n"


def test_to_look_installs_nothing_and_says_the_cure_in_one_line(machine: Machine):
    machine.has("apt-get", INSTALLS)
    machine.has("id", "echo 0")
    done = machine.run("--path")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "run make browser, or set CHROMIUM=" in done.stderr


def test_root_gets_debians(machine: Machine):
    machine.has("apt-get", INSTALLS)
    machine.has("id", "echo 0")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "apt-get update",
        "apt-get install --yes --no-install-recommends chromium",
        f"==> browser: {machine.bin / 'chromium'} (Chromium 4.5.6)",
    ]


def test_anybody_else_gets_the_command(machine: Machine):
    machine.has("apt-get", INSTALLS)
    machine.has("id", "echo 1000")
    done = machine.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "  sudo apt-get update && sudo apt-get install --yes --no-install-recommends chromium"
    )


def test_an_installed_package_that_is_a_stub_is_an_error(machine: Machine):
    machine.has("apt-get", "exit 0")
    machine.has("id", "echo 0")
    machine.has("chromium", STUB)
    done = machine.run()
    assert done.returncode == 1
    assert "still none runs" in done.stderr


def test_a_failed_installation_is_an_error(machine: Machine):
    machine.has("apt-get", "exit 100")
    machine.has("id", "echo 0")
    assert machine.run().returncode == 100


def test_where_there_is_no_apt_get_the_cure_is_told(machine: Machine):
    done = machine.run()
    assert done.returncode == 1
    assert "Install Chromium or Chrome in the way of this system" in done.stderr
