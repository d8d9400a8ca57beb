"""A client behind a target group, while the instances below it go: how many of its requests are lost."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from plimsoll_simulation.fake_aws.target_groups import GATE, TargetGroup
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: behind-a-load-balancer}
spec:
  horizon: 10m
  clusters:
    - name: harbor
      nodeGroups:
        - {name: base, kind: asg, capacity: BASE, instanceType: m6i.2xlarge, zones: [us-east-1a], size: 2, max: 12,
           startup: 60s, allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}, price: 0.384}
        - {name: spot, kind: asg, capacity: spot, instanceType: m5.2xlarge, zones: [us-east-1a], size: 2, max: 12,
           startup: 60s, allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}, price: 0.384}
      manifests: [workloads.yaml]
      bindings: {Deployment/shop/web: [spot-1, spot-2, base-1]}
  timeline:
    - {at: 3m, notice: spot-interruption, nodes: {capacity: spot}}
  expect: {}
"""
WORKLOADS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: TYPE, selector: {app: web}, ports: [{port: 80}]TRAFFIC}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {drill.plimsoll.dev/stop: STOP}
    spec:
      GATES
      containers:
        - name: main
          image: registry.example.com/web:1
          resources: {requests: {cpu: 1, memory: 1Gi}}
"""
PRE_STOP = "20s"
"""What a pod with a preStop hook takes to stop: longer than the load balancer sends requests to it."""
GATED = f"readinessGates: [{{conditionType: {GATE}web}}]"
LOCAL = ", externalTrafficPolicy: Local"
END = timedelta(minutes=8)


@pytest.fixture
def lost(tmp_path: Path):
    """Play three minutes of calm and a loss of all spot; return how many requests nobody answered."""

    def play(  # noqa: PLR0913 - what differs between two drills
        mode="instance",
        *,
        responder="plimsoll",
        service="NodePort",
        traffic="",
        stop=PRE_STOP,
        gates="",
        base="on-demand",
    ) -> int:
        (tmp_path / "drill.yaml").write_text(DRILL.replace("BASE", base))
        values = {"TYPE": service, "TRAFFIC": traffic, "STOP": stop, "GATES": gates}
        text = WORKLOADS
        for name, value in values.items():
            text = text.replace(name, value)
        (tmp_path / "workloads.yaml").write_text(text)
        with Simulation(
            read_drill(tmp_path / "drill.yaml"), responder=responder, seed=1
        ) as simulation:
            clock, cluster = simulation.clock, simulation.rig_clusters["harbor"].cluster
            group = TargetGroup(
                cluster=cluster,
                mode=mode,
                namespace="shop",
                service="web",
                wrote=partial(clock.touch, cluster),
            )
            clock.follow(group)
            simulation.prepare()
            simulation.begin()
            group.begin(clock.now())
            clock.run_until(clock.now() + END)
            assert len(group.sent) >= END / timedelta(seconds=1)
            return len(group.lost())

    return play


def test_nodes_that_are_targets_lose_no_request_when_their_instances_go(lost):
    assert lost() == 0


@pytest.mark.parametrize("responder", ["plimsoll", "drain", "none"])
def test_without_the_label_requests_go_to_instances_that_are_gone(lost, responder):
    """Nothing tells Plimsoll of a target group whose Service has no ports on nodes."""
    assert lost(responder=responder, service="ClusterIP") > 10


def test_where_no_target_would_stay_as_much_is_lost_as_without_the_label(lost):
    """All nodes go at once: the label would take away what still serves."""
    assert lost(base="spot") == lost(base="spot", service="ClusterIP")


def test_pods_that_only_their_own_node_sends_requests_to_lose_no_more_than_without_the_label(lost):
    assert lost(traffic=LOCAL) <= lost(traffic=LOCAL, service="ClusterIP")


def test_pods_that_are_targets_lose_no_request_with_a_readiness_gate_and_a_pre_stop_hook(lost):
    assert lost("ip", gates=GATED) == 0


def test_a_replacement_counts_only_when_the_load_balancer_calls_it_healthy(lost):
    """All three pods go. Without the gate they are Ready, and asked to stop, before any gets a request."""
    everywhere = {"base": "spot", "mode": "ip"}
    assert lost(gates=GATED, **everywhere) < lost(**everywhere)


def test_a_pod_that_stops_at_once_loses_requests_whoever_drains_its_node(lost):
    """It is deregistered when it is told to stop, and the load balancer takes seconds to follow."""
    for responder in ("plimsoll", "drain"):
        assert lost("ip", gates=GATED, stop="1s", responder=responder) > 0
