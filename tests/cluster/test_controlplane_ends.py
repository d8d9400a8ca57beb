"""A control plane ends with who started it, however that ends, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import Pod
from plimsoll_cli import main
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from tests.cluster.ground import Ground
from tests.support.fake_clusters import a_deployment, a_template

pytestmark = pytest.mark.cluster

HOLD = """
import sys, time
from plimsoll_testbed.rigs.controlplane import ControlPlane
with ControlPlane() as plane:
    print(plane.log.parent, flush=True)
    time.sleep(600)
"""
GONE_SECONDS = 20.0
PROGRAMS = 6
"""The five, and the fake kubelets."""


def processes_of(folder: Path) -> list[str]:
    """The command lines that name a control plane's folder."""
    said = subprocess.run(
        ["ps", "-A", "-ww", "-o", "command="], capture_output=True, text=True, check=True
    ).stdout
    return [line for line in said.splitlines() if str(folder) in line]


def nothing_is_left_of(folder: Path) -> None:
    end = time.monotonic() + GONE_SECONDS
    while (left := processes_of(folder)) or folder.exists():
        assert time.monotonic() < end, left or folder
        time.sleep(0.1)


def test_two_run_side_by_side_and_share_nothing(plane: ControlPlane):
    with ControlPlane(settings=plane.settings) as other, Ground(other) as ground:
        assert other.url != plane.url
        assert other.transport().call("GET", "/api/v1/nodes").body["items"] == []
        ground.nodes("a")
        ground.apply(a_deployment("web", 2))
        ground.until(lambda: len(ground.serving("web")) == 2)
        assert plane.transport().call("GET", f"/api/v1/nodes/{ground.name}-a").status == 404


def test_nothing_is_left_when_it_ends():
    with ControlPlane() as plane:
        folder = plane.log.parent
        assert len(processes_of(folder)) >= PROGRAMS
    nothing_is_left_of(folder)


def test_nothing_is_left_when_its_starter_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        before = processes_of(folder)
        holder.kill()
    assert len(before) >= PROGRAMS
    nothing_is_left_of(folder)


class TestBehindATerminal:
    """`plimsoll controlplane up` and what ends it."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A cache of its own, so that nobody's running control plane is met."""
        programs = binaries.find(DEFAULT)["kwok"].parent
        monkeypatch.setenv("PLIMSOLL_CONTROL_PLANE", str(programs))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        yield tmp_path
        run("down")

    def test_up_prints_one_line_for_the_shell_and_down_stops_it(self):
        first = run("up")
        assert first.exit_code == 0
        [line] = first.stdout.splitlines()
        kubeconfig = Path(line.removeprefix("export KUBECONFIG="))
        transport, _ = load(kubeconfig)
        assert transport.call("GET", "/api/v1/namespaces/default").status == 200
        assert run("up").stdout == first.stdout
        assert run("status").exit_code == 0
        assert run("down").exit_code == 0
        nothing_is_left_of(kubeconfig.parent.parent)
        assert run("status").exit_code == 1
        assert "no control plane runs" in run("down").stderr

    def test_what_a_crash_left_behind_is_known_for_what_it_is(self, cache: Path):
        kubeconfig = Path(run("up").stdout.strip().removeprefix("export KUBECONFIG="))
        pid = json.loads(run("status", "--output", "json").stdout)["running"]["pid"]
        os.kill(pid, signal.SIGKILL)
        nothing_is_left_of(kubeconfig.parent.parent)
        [state] = cache.rglob("running.json")
        assert run("status").exit_code == 1
        assert not state.exists()

    def test_another_version_is_refused_while_one_runs(self):
        run("up")
        answer = run("up", "--kubernetes", "1.34")
        assert answer.exit_code == 2
        assert "plimsoll controlplane down" in answer.stderr


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["controlplane", *words])


def seen_with_a_pod_group(ground: Ground) -> Sequence[Pod]:
    """Return what is observed where a pod names a PodGroup, which such a minor does not serve."""
    grouped = a_template("train", schedulingGroup={"podGroupName": "train"})
    ground.apply(a_deployment("train", 1, grouped))
    ground.until(lambda: ground.serving("train"))
    return (
        KubernetesCluster(ground.api, "old", SystemClock(), workers=SerialWorkers()).observe().pods
    )


@pytest.mark.long
@pytest.mark.parametrize(("version", "mutating"), [("1.36", 200), ("1.34", 404)])
def test_older_minors_run_too_and_1_34_has_no_mutating_policies(version: str, mutating: int):
    with ControlPlane(version=version) as older, Ground(older) as ground:
        assert ground.get("/version")["gitVersion"].startswith(f"v{version}.")
        ground.nodes("a")
        ground.apply(a_deployment("web", 2))
        ground.until(lambda: len(ground.serving("web")) == 2)
        assert all(pod.group is None for pod in seen_with_a_pod_group(ground))
        path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
        assert ground.call("GET", path).status == mutating
