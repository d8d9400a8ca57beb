"""Jobs, bare Pods and autoscalers in a drill: who counts where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll_simulation.scenario.problems import BadScenario
from tests.support import drills
from tests.support.drills import AGENT, WEB

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: kinds}
spec:
  horizon: 6m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: base, kind: static, capacity: on-demand, instanceType: m6i.large, zones: [us-east-1a],
           size: 1, allocatable: {cpu: "4", memory: 8Gi, pods: 10}}
        - {name: spot, kind: static, capacity: spot, instanceType: m5.xlarge, zones: [us-east-1a],
           size: 1, allocatable: {cpu: "4", memory: 8Gi, pods: 20}}
      manifests: [all.yaml]
  timeline:
"""

NOTHING = "{at: 1s, notice: state-change, state: running, nodes: {group: base}}"
NOTICE = "{at: 10s, notice: spot-interruption, nodes: {capacity: spot}}"

UNCOUNTED = WEB.replace("  replicas: 1\n", "")
"""Its count is left to others."""

SCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 5
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  parallelism: 2
  template:
    metadata: {annotations: {drill.plimsoll.dev/stop: 40s}}
    spec:
      restartPolicy: Never
      nodeSelector: {node.kubernetes.io/capacity: spot}
      containers:
        - {name: report, image: example/report, resources: {requests: {cpu: 100m}}}
"""

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: debug
  labels: {app: debug}
spec:
  nodeSelector: {node.kubernetes.io/capacity: spot}
  containers:
    - {name: debug, image: example/debug}
"""

MIRROR = """
apiVersion: v1
kind: Pod
metadata:
  name: proxy
  annotations: {kubernetes.io/config.mirror: abc}
spec:
  nodeName: spot-1
  containers:
    - {name: proxy, image: example/proxy}
"""

type Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Play a drill of these objects, with these entries, and return its report."""

    def played(
        *objects: str,
        timeline: tuple[str, ...] = (NOTICE,),
        responder: str = "none",
        more: str = "",
    ) -> dict[str, Any]:
        drill = DRILL + "".join(f"    - {entry}\n" for entry in timeline or (NOTHING,))
        manifests = "---".join(objects)
        return drills.play(tmp_path, drill, responder=responder, seed=1, all=manifests, more=more)

    return played


def row(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in report["workloads"] if r["name"] == name)
    return found


FELT = ("min_ready", "ready_floor", "seconds_below_floor", "seconds_below_quorum", "seconds_below_replicas",
        "ready_replica_seconds_lost", "seconds_at_zero", "replaced_first")  # fmt: skip


@pytest.mark.parametrize("responder", ["none", "drain", "plimsoll"])
def test_jobs_and_bare_pods_count_in_the_figures_of_pods_only(play: Play, responder: str):
    report = play(UNCOUNTED, JOB, POD, responder=responder)
    for name, kind, replicas in (("report", "Job", 2), ("debug", "Pod", 1)):
        found = row(report, name)
        assert (found["kind"], found["replicas"]) == (kind, replicas)
        assert [found[field] for field in FELT] == [0] * len(FELT)
    assert report["totals"]["workloads_at_zero"] == 0


def test_pods_of_a_job_and_bare_pods_that_die_with_their_node_are_counted(play: Play):
    report = play(JOB, POD)
    assert row(report, "report")["pods_killed"] == 2
    assert row(report, "debug")["pods_killed"] == 1
    assert report["totals"]["pods_killed"] == 3
    assert report["nodes"][0]["pods_killed"] == 3


def test_a_drain_evicts_the_pods_of_a_job_and_bare_pods(play: Play):
    report = play(JOB, POD, responder="drain")
    assert row(report, "report")["pods_evicted"] == 2
    assert row(report, "debug")["pods_evicted"] == 1
    assert report["totals"]["pods_killed"] == 0
    # The Job's pods need 40 s, and get the 30 s of their grace period.
    assert report["totals"]["pods_cut_short"] == 0
    assert report["nodes"][0]["empty"] == pytest.approx(40.57, abs=0.1)


def test_pods_of_daemon_sets_and_mirror_pods_count_nowhere(play: Play):
    report = play(UNCOUNTED, AGENT, MIRROR)
    assert [r["name"] for r in report["workloads"]] == ["web"]
    (node,) = report["nodes"]
    assert node["pods_killed"] == report["totals"]["pods_killed"] <= 1


def test_a_node_with_nothing_but_its_own_pods_is_empty(play: Play):
    report = play(AGENT, MIRROR, responder="drain")
    (node,) = report["nodes"]
    assert node["empty"] == node["noticed"]
    assert node["pods_killed"] == 0
    assert report["api"]["kubernetes"].get("POST", 0) == 0


def test_a_manifest_without_replicas_leaves_the_count_to_others(play: Play):
    rollout = UNCOUNTED.replace("example/web", "example/web:2")
    report = play(UNCOUNTED, SCALER, timeline=("{at: 5s, apply: more.yaml}",), more=rollout)
    found = row(report, "web")
    assert (found["replicas"], found["min_ready"], found["seconds_below_replicas"]) == (3, 3, 0)
    again = play(
        UNCOUNTED,
        timeline=(
            "{at: 5s, scale: {kind: Deployment, name: web, replicas: 4}}",
            "{at: 60s, apply: more.yaml}",
        ),
        more=rollout,
    )
    assert row(again, "web")["replicas"] == 4


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ((UNCOUNTED, SCALER.replace("name: web}\n  min", "name: wob}\n  min")), "Write web"),
        ((UNCOUNTED, SCALER.replace("minReplicas: 3", "minReplicas: 6")), "6 over maxReplicas 5"),
        ((UNCOUNTED, SCALER.replace("kind: Deployment", "kind: DaemonSet")), "Deployment, StatefulSet"),
        ((JOB.replace("Never", "Always"),), "OnFailure, Never in a Job"),
        ((JOB.replace("      restartPolicy: Never\n", ""),), "Write restartPolicy: Never"),
        ((JOB.replace("stop: 40s", "stop: soon"),), "template.metadata.annotations"),
        ((POD.replace("labels: {app: debug}", "annotations: {drill.plimsoll.dev/stop: x}"),),
         'metadata.annotations["drill.plimsoll.dev/stop"]: found "x"'),
        ((POD.replace("image: example/debug", "image: x, resources: {requests: {cpu: 64}}"),), "a pod that asks for"),
        ((POD.replace("  containers", "  priorityClassName: top\n  containers"),), "Add a Priority"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(play: Play, objects: tuple[str, ...], words: str):
    with pytest.raises(BadScenario) as refused:
        play(*objects)
    assert words in str(refused.value)
