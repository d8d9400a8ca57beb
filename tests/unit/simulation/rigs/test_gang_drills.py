"""A gang outside our queues at a spot notice: when its pods are told, and that none is evicted early."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from plimsoll.domain.kubernetes import DEADLINE
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: gang}
spec:
  horizon: 10m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: base, kind: asg, capacity: on-demand, instanceType: m6i.2xlarge, zones: [us-east-1a], size: 1, max: 4,
           startup: 60s, allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}}
        - {name: spot, kind: asg, capacity: spot, instanceType: g5.2xlarge, zones: [us-east-1a], size: 1, max: 4,
           startup: 60s, allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}}
      manifests: [workloads.yaml]
      bindings: {Job/lab/llm-node-0: [spot-1], Job/lab/llm-node-1: [base-1], Job/lab/other: [base-1]}
  timeline:
    - {at: 1m, notice: spot-interruption, nodes: {group: spot}}
  expect: {}
"""
NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: lab}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: lab}
spec:
  backoffLimit: 9
  template:
    metadata:
      labels: {jobset.sigs.k8s.io/jobset-name: SET, app: NAME}
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/train:1
          resources: {requests: {cpu: 1, memory: 1Gi}}
"""
NOTICE = timedelta(minutes=1)


def test_every_pod_of_a_job_set_is_told_within_five_seconds_of_the_notice(tmp_path: Path):
    jobs = (("llm-node-0", "llm"), ("llm-node-1", "llm"), ("other", "none"))
    text = NAMESPACE + "".join(JOB.replace("NAME", n).replace("SET", s) for n, s in jobs)
    (tmp_path / "workloads.yaml").write_text(text)
    (tmp_path / "drill.yaml").write_text(DRILL)
    told: dict[str, datetime] = {}
    with Simulation(read_drill(tmp_path / "drill.yaml"), responder="plimsoll", seed=1) as drill:
        clock, cluster = drill.clock, drill.rig_clusters["harbor"].cluster
        drill.prepare()
        drill.begin()
        began = clock.now()

        def note(change):
            if change.resource == "pods" and DEADLINE in change.object["metadata"].get(
                "annotations", {}
            ):
                told.setdefault(change.object["metadata"]["labels"]["app"], clock.now())

        cluster.on_change(note)
        clock.run_until(began + NOTICE + timedelta(seconds=30))
        left = [p for p in cluster.store.all("pods") if "deletionTimestamp" in p["metadata"]]
    assert set(told) == {"llm-node-0", "llm-node-1"}
    assert max(told.values()) <= began + NOTICE + timedelta(seconds=5)
    assert left == []
