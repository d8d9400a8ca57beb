from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, override

import pytest

from plimsoll_simulation.rigs.simulated.responders import RESPONDERS, Responder
from tests.support import drills
from tests.support.drills import AGENT, WEB

BOTH = f"{WEB}---{AGENT}"

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: one-node}
spec:
  horizon: 6m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: base, kind: static, capacity: on-demand, instanceType: m6i.large, zones: [us-east-1a],
           size: 1, allocatable: {cpu: "1", memory: 4Gi, pods: 10}}
        - {name: spot, kind: static, capacity: spot, instanceType: m5.xlarge, zones: [us-east-1a],
           size: 1, allocatable: {cpu: "8", memory: 32Gi, pods: 10}}
      manifests: [web.yaml]
  timeline:
    - {at: 10s, notice: spot-interruption, nodes: {capacity: spot}}
"""
"""web stands on the large spot node, and fits on the small one of base."""

type Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Play a drill and return its report."""

    def played(
        drill: str = DRILL, *, responder: str, web: str = BOTH, seed: int = 0
    ) -> dict[str, Any]:
        return drills.play(tmp_path, drill, responder=responder, seed=seed, web=web)

    return played


def with_timeline(*entries: str) -> str:
    head, _, _ = DRILL.partition("  timeline:")
    return head + "  timeline:\n" + "".join(f"    - {entry}\n" for entry in entries)


def test_a_common_drain_evicts_at_once_and_nobody_serves_until_the_new_pod_is_ready(play: Play):
    report = play(responder="drain")
    (row,) = report["workloads"]
    (node,) = report["nodes"]
    # 300 ms to the function, 200 ms to its first call, 20 ms for each call: the cordon, the list,
    # the eviction at 10.56. Controllers and kubelets react 50 ms after the cordon, at 10.57, and the
    # pod stops in 3 s.
    assert (node["noticed"], node["cordoned"]) == (10.0, 10.52)
    assert node["empty"] == 13.57
    assert node["gone"] == 130.0
    # From the eviction to Ready: 10 ms until controllers react, 15 s to start.
    assert row["ready_replica_seconds_lost"] == row["seconds_at_zero"] == 15.01
    assert (row["min_ready"], row["ready_floor"]) == (0, 1)
    assert (row["pods_evicted"], row["pods_killed"], row["replaced_first"]) == (1, 0, 0)
    assert report["api"]["kubernetes"] == {"GET": 1, "PATCH": 1, "POST": 1}
    assert (report["settled"], report["seconds"]) == (True, 130.0)


def test_nobody_reacts_and_the_pod_dies_with_its_node(play: Play):
    report = play(responder="none")
    (row,) = report["workloads"]
    (node,) = report["nodes"]
    assert (node["cordoned"], node["empty"], node["gone"]) == (None, None, 130.0)
    assert (row["pods_killed"], row["pods_evicted"]) == (1, 0)
    # Gone and dead at 130; the API server believes in the pod until 180. The Node goes at 185, and time 0
    # is 16 s after the start, so the collector, which looks every 20 s from the start on, sees the
    # orphan at 204 and takes it at 244. 50 ms and 15 s later a new one is Ready.
    assert row["seconds_at_zero"] == row["ready_replica_seconds_lost"] == 129.05
    assert report["seconds"] == 260.0
    assert report["api"] == {"kubernetes": {}, "aws": {}}


def test_plimsoll_replaces_before_it_takes_away(play: Play):
    report = play(responder="plimsoll")
    (row,) = report["workloads"]
    (node,) = report["nodes"]
    assert row["min_ready"] == row["replaced_first"] == 1
    assert row["seconds_below_replicas"] == row["ready_replica_seconds_lost"] == 0.0
    assert node["cordoned"] < 11
    assert node["empty"] < 60
    assert report["totals"]["pods_killed"] == 0
    assert report["settled"]
    assert report["reports"][0]["interruption"].startswith(node["instance"])
    assert report["reports"][0]["reasons"]


def test_a_drain_waits_for_an_api_server_that_is_down(play: Play):
    report = play(
        with_timeline(
            "{at: 10s, fault: api-server-down, for: 12s}",
            "{at: 10s, notice: spot-interruption, nodes: {capacity: spot}}",
        ),
        responder="drain",
    )
    (node,) = report["nodes"]
    assert node["cordoned"] == pytest.approx(25.58)  # tried at 10.5, 15.5, 20.5; back at 22
    assert report["totals"]["pods_killed"] == 0


def test_an_instance_can_go_without_a_word(play: Play):
    report = play(
        with_timeline("{at: 5s, notice: none, reclaim: 0s, nodes: {group: spot}}"),
        responder="drain",
    )
    (node,) = report["nodes"]
    assert (node["notice"], node["noticed"], node["gone"]) == ("none", None, 5.0)
    assert report["totals"]["pods_killed"] == 1


def test_a_fraction_is_drawn_by_the_seed_and_rounded_up(play: Play):
    drill = DRILL.replace('size: 1, allocatable: {cpu: "8"', 'size: 5, allocatable: {cpu: "8"')
    drill = drill.replace("{capacity: spot}", "{capacity: spot, fraction: 0.5}")
    drawn = [
        tuple(node["name"] for node in play(drill, responder="none", seed=seed)["nodes"])
        for seed in (1, 1, 2, 3, 4)
    ]
    assert all(len(names) == 3 for names in drawn)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


def test_a_drained_instance_leaves_its_hook_early(play: Play):
    drill = with_timeline("{at: 10s, notice: lifecycle-terminate, nodes: {group: spot}}")
    report = play(
        drill.replace("kind: static, capacity: spot", "kind: asg, capacity: spot"),
        responder="plimsoll",
    )
    [node, *_] = report["nodes"]
    assert node["empty"] < node["gone"] < 60  # the hook would wait until 310
    assert report["api"]["aws"]["autoscaling:CompleteLifecycleAction"] == 1
    assert report["totals"]["ready_replica_seconds_lost"] == 0.0


def test_clusters_are_kept_apart(play: Play):
    head, _, timeline = DRILL.partition("  timeline:")
    second = head[head.index("    - name: harbor") :].replace("harbor", "island")
    report = play(
        f"{head}{second}  timeline:{timeline}".replace("{capacity: spot}", "{cluster: island}"),
        responder="plimsoll",
    )
    assert {node["cluster"] for node in report["nodes"]} == {"island"}
    assert [row["cluster"] for row in report["workloads"]] == ["harbor", "island"]
    harbor = report["workloads"][0]
    assert harbor["pods_evicted"] == harbor["replaced_first"] == 0


@pytest.mark.parametrize(("replicas", "added"), [(1, 0), (3, 2)])
def test_the_autoscaler_adds_on_demand_nodes_for_pods_that_fit_nowhere(
    replicas: int, added: int, play: Play
):
    drill = (
        DRILL.replace("name: base, kind: static", "name: base, kind: asg, max: 4, startup: 40s")
        .replace('cpu: "1"', "cpu: 600m")  # room for one pod of web beside the agent
        .replace("      manifests", "      autoscaler: {scan: 10s}\n      manifests")
    )
    web = BOTH.replace("replicas: 1", f"replicas: {replicas}")
    report = play(drill, responder="drain", web=web)
    base = next(row for row in report["capacity"] if row["group"] == "base")
    assert base["nodes_added"] == added
    assert (base["first_asked"] is not None) == bool(added)
    assert report["settled"]
    assert report["totals"]["pods_killed"] == 0
    # Nobody who reads the report takes the autoscaler's calls for the responder's.
    assert report["api"]["aws"] == {}


def test_a_bug_in_a_responder_ends_the_drill_instead_of_hiding_in_a_retry(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    class Broken(Responder):
        @override
        def notices(self, bodies: Sequence[str]) -> Sequence[object]:
            raise ValueError("a bug")

    monkeypatch.setitem(RESPONDERS, "none", Broken)
    with pytest.raises(ValueError, match="a bug"):
        play(responder="none")


def test_the_same_file_and_seed_give_the_same_report_byte_for_byte(tmp_path: Path):
    (tmp_path / "web.yaml").write_text(BOTH.replace("replicas: 1", "replicas: 4"))
    (tmp_path / "drill.yaml").write_text(DRILL.replace('cpu: "1"', 'cpu: "4"'))
    code = "from plimsoll_cli import main; main()"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code, "drill", "drill.yaml", "--json", "-"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": salt},
            check=True,
            capture_output=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(texts) == 1


ADDED = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: added}
spec:
  horizon: 50m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: spot, kind: asg, capacity: spot, instanceType: m5.xlarge, zones: [us-east-1a], size: 2, max: 4,
           renew: RENEW, allocatable: {cpu: "1", memory: 29Gi, pods: 9}}
        - {name: base, kind: asg, capacity: on-demand, instanceType: m5.xlarge, zones: [us-east-1a], size: 0, max: 4,
           renew: RENEW, allocatable: {cpu: "1", memory: 29Gi, pods: 9}}
      manifests: [web.yaml]
  timeline:
    - {at: 10s, notice: rebalance-recommendation, nodes: {names: [spot-1]}}
    - {at: 20m, scale: {cluster: harbor, kind: Deployment, name: web, replicas: 1}}
    - {at: 45m, notice: state-change, state: running, nodes: {names: [spot-2]}}
"""
"""One pod fits on each node. For the one that is moved a node is added, which its owner empties again."""


@pytest.mark.parametrize(("renew", "minutes"), [("true", 32), ("false", 45)])
def test_a_node_that_was_added_is_taken_back_when_it_has_been_empty_for_ten_minutes(
    play: Play, renew: str, minutes: float
):
    two = BOTH.replace("replicas: 1", "replicas: 2").replace("cpu: 500m", "cpu: 700m")
    report = play(ADDED.replace("RENEW", renew), responder="plimsoll", web=two)

    added = next(group for group in report["capacity"] if group["group"] == "base")
    assert (added["nodes_added"], added["peak"]) == (1, 1)
    assert added["node_hours"] == pytest.approx(minutes / 60, abs=0.05)
    assert report["workloads"][0]["ready_replica_seconds_lost"] == 0
    assert report["totals"]["pods_killed"] == 0
