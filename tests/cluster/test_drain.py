"""`plimsoll drain` as people run it: a process with a kubeconfig, on a real control plane."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.kubernetes import POD_TEMPLATE_HASH
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from tests.cluster.ground import Ground
from tests.cluster.harbor import Harbor, drainer, finish
from tests.support.fake_clusters import a_budget, a_pod

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _drainer(plane: ControlPlane) -> Iterator[None]:
    with drainer(plane):
        yield


@pytest.fixture(scope="module")
def endpoints(plane: ControlPlane) -> Iterator[ReadyEndpoints]:
    with ReadyEndpoints(plane.kubeconfig()) as endpoints:
        yield endpoints


def kubectl() -> Path:
    return binaries.find(DEFAULT)["kubectl"]


STRICT = a_budget("web", "web", maxUnavailable=0)


@pytest.mark.parametrize("replicas", [1, 3])
def test_pods_that_no_budget_lets_go_move_and_every_endpoint_stays(
    ground: Ground, endpoints: ReadyEndpoints, replicas: int
):
    harbor = Harbor(ground, endpoints, STRICT, web=replicas)
    status, said = harbor.drain()

    assert (status, harbor.on(harbor.old)) == (0, []), said
    assert len(harbor.on(harbor.new)) == replicas
    assert harbor.seconds_below("web", replicas) == 0
    assert said.count("release Pod") == said.count("evict Pod") == replicas
    node = ground.get(f"/api/v1/nodes/{harbor.old}")
    assert node["spec"]["unschedulable"] is True
    assert not [key for key in node["metadata"].get("annotations", {}) if "plimsoll" in key]


def test_a_dry_run_prints_the_plan_and_changes_nothing(ground: Ground, endpoints: ReadyEndpoints):
    harbor = Harbor(ground, endpoints, a_pod("alone"), web=1)
    ground.until(lambda: len(ground.serving()) == 2)
    before = harbor.versions()
    status, said = harbor.drain(harbor.old, "--dry-run")

    assert harbor.versions() == before
    assert "would release Pod" in said
    assert status == 1, "a bare pod would block"
    assert harbor.drain(harbor.old, "--dry-run", "--force")[0] == 0


def test_after_ctrl_c_the_released_pod_serves_and_the_next_run_finishes(
    ground: Ground, endpoints: ReadyEndpoints
):
    harbor = Harbor(ground, endpoints, STRICT, web=1)
    with harbor.until_released() as process:
        process.send_signal(signal.SIGINT)
        status, said = finish(process)
    assert status == 130, said
    assert "--undo" in said
    assert len(harbor.released()) == 1

    status, said = harbor.drain()
    assert (status, harbor.on(harbor.old), len(harbor.on(harbor.new))) == (0, [], 1), said
    assert harbor.seconds_below("web", 1) == 0


def test_undo_gives_the_pod_of_a_killed_drain_back_and_uncordons(
    ground: Ground, endpoints: ReadyEndpoints
):
    harbor = Harbor(ground, endpoints, STRICT, web=1)
    with harbor.until_released() as process:
        process.kill()
    [released] = harbor.released()
    assert POD_TEMPLATE_HASH not in released["metadata"]["labels"]
    status, said = harbor.drain(harbor.old, "--undo")

    assert status == 0, said
    assert harbor.released() == []
    ground.until(lambda: len(ground.pods()) == 1)
    [owner] = ground.pods()[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    assert not ground.get(f"/api/v1/nodes/{harbor.old}")["spec"].get("unschedulable")
    assert harbor.seconds_below("web", 1) == 0


def test_kubectl_drain_finishes_what_was_released_and_would_block_otherwise(
    ground: Ground, endpoints: ReadyEndpoints
):
    harbor = Harbor(ground, endpoints, STRICT, web=1)
    command = (kubectl(), f"--kubeconfig={ground.plane.kubeconfig()}")
    blocked, said = finish(harbor.start(harbor.old, "--timeout=3s", command=command))
    assert (blocked, len(harbor.on(harbor.old))) == (1, 1), said
    with harbor.until_released() as process:
        process.kill()
    status, said = finish(harbor.start(harbor.old, "--timeout=120s", command=command))

    assert (status, harbor.on(harbor.old)) == (0, []), said
    assert harbor.seconds_below("web", 1) == 0


def test_kubectl_drain_takes_a_single_replica_down_that_nothing_protects(
    ground: Ground, endpoints: ReadyEndpoints
):
    """What the seconds at zero of the other tests are measured against."""
    harbor = Harbor(ground, endpoints, web=1)
    command = (kubectl(), f"--kubeconfig={ground.plane.kubeconfig()}")
    status, said = finish(harbor.start(harbor.old, command=command))
    ground.until(lambda: endpoints.ready((ground.name, "web")))

    assert status == 0, said
    assert harbor.seconds_below("web", 1) > 1


def test_kubectl_finds_it_as_a_plugin(
    ground: Ground, endpoints: ReadyEndpoints, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    harbor = Harbor(ground, endpoints, web=1)
    process = harbor.start(harbor.old, "--output", "json", command=(kubectl(), "plimsoll"))
    status, said = finish(process)

    assert status == 0, said
    answer = json.loads(said)
    assert (answer["end"], answer["left"]) == ("drained", [])
    assert [action["action"] for action in answer["actions"]] == ["cordon", "release", "evict"]


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["--timeout", "5s"], 1, "no controller replaces a bare pod"),
        (["no-such-node"], 2, "the cluster has no node no-such-node"),
        (["--overrule-budgets"], 2, "--overrule-budgets needs --timeout"),
    ],
)
def test_the_exit_status_says_how_it_ended(
    ground: Ground, endpoints: ReadyEndpoints, args: list[str], status: int, words: str
):
    harbor = Harbor(ground, endpoints, a_pod("alone"))
    found, said = harbor.drain(harbor.old, *args)

    assert (found, len(harbor.on(harbor.old))) == (status, 1), said
    assert words in said
