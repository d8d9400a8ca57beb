"""How the browser of the browser tests is found and installed, with commands that are written here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "local" / "browser.sh"
RUNS = 'echo "Chromium 1.2.3"'
STUB = "exit 1"  # what Ubuntu installs where there is no snap
INSTALLS = """
echo "apt-get $*"
[ "$1" = update ] || { printf '#!/bin/sh\\necho Chromium 4.5.6\\n' >"$PATH/chromium"; /bin/chmod +x "$PATH/chromium"; }
"""


APT = {"apt-get": INSTALLS}
ROOT, ANYBODY = {"id": "echo 0"}, {"id": "echo 1000"}
CHROMIUM = {"chromium": RUNS}
INSTALLED = """\
==> browser: none on PATH, installing Debian's chromium (once; about 100 MB)
apt-get update
apt-get install --yes --no-install-recommends chromium
==> browser: BIN/chromium (Chromium 4.5.6)
"""
FOUND = "==> browser: BIN/chromium (Chromium 1.2.3)\n"


@pytest.mark.parametrize(
    ("programs", "call", "status", "said", "warned"),
    [
        (CHROMIUM, "", 0, FOUND, ""),
        (CHROMIUM, "--path", 0, "BIN/chromium\n", ""),
        ({"chromium-browser": RUNS}, "--path", 0, "BIN/chromium-browser\n", ""),
        ({"google-chrome": RUNS}, "--path", 0, "BIN/google-chrome\n", ""),
        ({**CHROMIUM, "own": RUNS}, "CHROMIUM=BIN/own --path", 0, "BIN/own\n", ""),
        (CHROMIUM, "CHROMIUM=/nowhere", 1, "", "CHROMIUM=/nowhere does not run: set it"),
        (CHROMIUM, "CHROMIUM=/nowhere --path", 1, "", "CHROMIUM=/nowhere does not run: set it"),
        ({"chromium": STUB, "google-chrome": RUNS}, "--path", 0, "BIN/google-chrome\n", ""),
        (APT | ROOT, "--path", 1, "", "run make browser, or set CHROMIUM="),
        (APT | ROOT, "", 0, INSTALLED, ""),
        (APT | ANYBODY, "", 1, "", "  sudo apt-get update && sudo apt-get install --yes"),
        ({"apt-get": "exit 0", "chromium": STUB} | ROOT, "", 1, ..., "still none runs"),
        ({"apt-get": "exit 100"} | ROOT, "", 100, ..., ""),
        ({}, "", 1, "", "Install Chromium or Chrome in the way of this system"),
    ],
)
def test_a_browser_is_found_installed_or_its_cure_told(  # noqa: PLR0913, PLR0917 - one row
    tmp_path: Path, programs: dict[str, str], call: str, status: int, said: Any, warned: str
):
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    words = call.replace("BIN", str(tmp_path)).split()
    done = subprocess.run(
        [SCRIPT, *(word for word in words if "=" not in word)],
        env={"PATH": str(tmp_path), **dict(word.split("=") for word in words if "=" in word)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert said is ... or done.stdout == said.replace("BIN", str(tmp_path))
    assert warned in done.stderr
    assert "--path" not in words or done.stderr.count("\n") == (status != 0)
