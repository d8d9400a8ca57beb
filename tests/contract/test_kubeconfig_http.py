"""A cluster by kubeconfig, over HTTP: the command line without a stack and without AWS."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.adapters.clock import SystemClock
from plimsoll_cli import main
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.fake_cluster.settings import Settings
from tests.support.builders import node_json
from tests.support.cli_environment import EVENTS, SPOT


@pytest.fixture
def kubeconfig(tmp_path: Path):
    now = SystemClock().now()
    fast = Settings(pod_startup=timedelta(seconds=0.1), pod_stop=timedelta(seconds=0.1))
    cluster = FakeCluster(now=now, settings=fast)
    node = node_json("spot-1", instance=SPOT)
    del node["status"]["conditions"]  # the cluster's own to say
    cluster.join(node, now=now)
    with FakeApiServer(cluster) as server:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "harbor",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": server.token}}],
            "contexts": [{"name": "harbor", "context": {"cluster": "c", "user": "u"}}],
        }
        file = tmp_path / "config"
        file.write_text(yaml.safe_dump(content))
        yield file


def test_status_and_event_need_a_kubeconfig_and_nothing_else(kubeconfig: Path):
    status = CliRunner().invoke(
        main, ["status", "--kubeconfig", str(kubeconfig), "--output", "json"]
    )
    assert status.exit_code == 0, status.output
    assert json.loads(status.stdout)["clusters"][0]["cluster"] == "harbor"
    example = str(EVENTS / "spot-interruption.json")
    options = ["--kubeconfig", str(kubeconfig), "--now", "--instance", SPOT, "--output", "json"]
    event = CliRunner().invoke(main, ["rehearse", "--event", example, *options])
    assert event.exit_code == 0, event.output
    (plan,) = json.loads(event.stdout)["plans"]
    assert plan["steps"][0]["target"] == "Node spot-1"
