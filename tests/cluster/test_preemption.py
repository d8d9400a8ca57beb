"""Balloons on a real control plane: kube-scheduler preempts one for a pod that left an interrupted node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll_simulation.fake_cluster.conditions import is_ready
from tests.cluster.placing import Cast
from tests.support.fake_clusters import a_deployment, a_stateful_set, a_template

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]


def fill(cast: Cast) -> str:
    """Let two balloons fill a node that joins, and return its name."""
    ground = cast.ground
    line = f"balloon-{ground.name}"
    ground.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": line}, "value": -10}
    )
    [full] = ground.nodes("full", cpu="8")
    spec: Json = {"priorityClassName": line, "terminationGracePeriodSeconds": 0}
    ground.apply(a_deployment("balloon", 2, a_template("balloon", cpu="4", **spec)))
    ground.until(lambda: len(ground.serving("balloon")) == 2)
    return full


def interrupt(cast: Cast, name: str) -> None:
    """Record that spot reclaims a node in two minutes, as it is done when a notice arrives."""
    now = datetime.now(UTC)
    notice = NoticeRecord(
        kind="spot-interruption", time=now, id="event", ends=now + timedelta(minutes=2)
    )
    [node] = [node for node in cast.api.nodes() if node.name == name]
    found = Interruption(
        instance=node.instance or "", launched=None, node=name, notices=(notice,), cordoned=now
    )
    cast.api.cordon(node, found)


def test_a_balloon_is_preempted_for_a_pod_that_left_an_interrupted_node_at_once(cast: Cast):
    ground = cast.ground
    [old] = ground.nodes("old", cpu="2")
    ground.apply(a_stateful_set("store", 1, a_template("store", cpu="2")))
    ground.until(lambda: len(ground.serving("store")) == 1)
    full = fill(cast)
    began = datetime.now(UTC)
    interrupt(cast, old)

    def moved() -> bool:
        cast.services.drains.reconcile("ground", "test", seconds=5)
        pod = ground.pod("store-0")
        return pod is not None and pod["spec"].get("nodeName") == full and is_ready(pod)

    ground.until(moved)
    assert datetime.now(UTC) - began < timedelta(minutes=1), "it waited for its deadline"
    [waiting] = [p for p in ground.pods("balloon") if "nodeName" not in p["spec"]]
    assert waiting["spec"]["priority"] == -10
    assert len(ground.serving("balloon")) == 1
