"""`plimsoll controlplane` where nothing runs, and what it hands to a shell and to kubectl."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll_cli import main
from plimsoll_testbed.rigs.controlplane.background import Running

RUNNING = Running(
    pid=4_194_304,  # beyond the highest that Linux gives
    version="1.37",
    url="https://127.0.0.1:1",
    kubeconfig="/nowhere/admin.json",
    log="/nowhere/logs",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PLIMSOLL_CONTROL_PLANE", raising=False)
    folder = tmp_path / "plimsoll" / "controlplane"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def held(folder: Path) -> Iterator[None]:
    """Somebody holds a control plane."""
    folder.joinpath("running.json").write_text(json.dumps(asdict(RUNNING)))
    with folder.joinpath("running.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["controlplane", *words])


def test_nothing_runs_and_nothing_is_built():
    answer = run("status", "--output", "json")
    assert answer.exit_code == 1
    said = json.loads(answer.stdout)
    assert said["running"] is None
    assert said["built"] == {"1.37": False, "1.36": False, "1.34": False}


@pytest.mark.usefixtures("held")
def test_what_runs_is_told():
    answer = run("status")
    assert answer.exit_code == 0
    assert "Kubernetes 1.37 runs at https://127.0.0.1:1" in answer.stdout


def test_a_file_without_its_holder_is_of_a_crash_and_removed(folder: Path):
    state = folder / "running.json"
    state.write_text(json.dumps(asdict(RUNNING)))
    assert run("status").exit_code == 1
    assert not state.exists()
