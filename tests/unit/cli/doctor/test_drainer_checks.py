"""Who else drains nodes, whether it is held back, and whether a cluster may act beside it."""

from __future__ import annotations

import pytest

from plimsoll.domain.registry import Mode
from plimsoll_cli.probes.drainers import AUTOSCALER, HANDLER, KARPENTER
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.doctor import a_program, changed, findings_by_check, healthy


def a_handler(environment: MemoryEnvironment) -> None:
    """Let aws-node-termination-handler run in the cluster."""
    a_program(environment, labels={"app.kubernetes.io/name": HANDLER})


def a_karpenter(environment: MemoryEnvironment, version: str = ":1.14.1") -> None:
    """Let Karpenter run in the cluster, with the queue `harbor-interruptions`."""
    image = f"public.ecr.aws/karpenter/controller{version}"
    queue = {"name": "INTERRUPTION_QUEUE", "value": "harbor-interruptions"}
    a_program(environment, image=image, env=[queue])


def a_guard(environment: MemoryEnvironment) -> None:
    metadata = {"name": "plimsoll-deployment-web", "labels": {"plimsoll.dev/guard": "true"}}
    environment.transports["harbor"].call(
        "POST",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        body={"metadata": metadata, "spec": {"maxUnavailable": 0}},
    )


@pytest.mark.parametrize(
    ("program", "queue", "mode", "state"),
    [
        ("aws-node-termination-handler", None, Mode.ACT, "fail"),
        ("aws-node-termination-handler", None, Mode.OBSERVE, "info"),
        ("karpenter", "", Mode.ACT, None),
        ("karpenter", None, Mode.ACT, None),
    ],
)
def test_who_else_evicts_the_pods_of_interrupted_nodes_is_named(
    program: str, queue: str | None, mode: Mode, state: str | None
):
    environment = healthy(mode)
    env = [] if queue is None else [{"name": "INTERRUPTION_QUEUE", "value": queue}]
    a_program(environment, labels={"app.kubernetes.io/name": program}, env=env)
    found = findings_by_check(environment)[1]
    said = found.get(f"other drainers: {program}")
    assert (said and said["state"]) == state
    assert ("other drainers" in found) == (state is None)
    if said:
        assert "namespace kube-system" in said["says"]
        assert said["cure"]


@pytest.mark.parametrize(
    ("image", "env", "program", "state"),
    [
        ("public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25", [], HANDLER, "fail"),
        ("mirror/karpenter/controller:1.14", [], KARPENTER, None),
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.34", [], AUTOSCALER, "info"),
        ("example/not-a-cluster-autoscaler-at-all", [], AUTOSCALER, None),
    ],
)
def test_a_deployment_that_drains_is_known_by_its_image_whatever_its_labels(
    image, env, program, state
):
    environment = healthy()
    a_program(environment, image=image, env=env)
    said = findings_by_check(environment)[1].get(f"other drainers: {program}")
    assert (said and said["state"]) == state


@pytest.mark.parametrize(
    ("delay", "mode", "state", "says"),
    [
        (0, Mode.ACT, "fail", "before Plimsoll has released them"),
        (5, Mode.ACT, "fail", "after 5 s"),
        (0, Mode.OBSERVE, "info", "before Plimsoll has released them"),
        (10, Mode.ACT, "ok", "for 10 s"),
        (30, Mode.ACT, "ok", "for 30 s"),
        (75, Mode.ACT, "info", "against the limits of its NodePool"),
        (None, Mode.ACT, "skipped", "AccessDenied"),
    ],
)
def test_karpenter_s_queue_is_judged_by_how_long_it_holds_messages_back(delay, mode, state, says):
    environment = healthy(mode)
    a_karpenter(environment)
    if delay is not None:
        environment.queue_delays["harbor-interruptions"] = delay
    found = findings_by_check(environment)[1]["Karpenter's queue"]
    assert found["state"] == state
    assert says in found["says"]
    assert state == "ok" or "DelaySeconds of the queue harbor-interruptions to 15" in found["cure"]


@pytest.mark.parametrize(
    ("version", "told"),
    [(":v1.11.2", True), (":1.12.0", False), (":1.14.1@sha256:0", False), ("@sha256:0", False)],
)
def test_a_karpenter_that_reads_no_durations_is_named(version, told):
    environment = healthy()
    environment.queue_delays["harbor-interruptions"] = 15
    a_karpenter(environment, version)
    found = findings_by_check(environment)[1].get("Karpenter's version")
    assert (found is not None) == told
    assert found is None or (found["state"] == "fail" and "1.12 or newer" in found["cure"])


def test_a_cordon_of_somebody_else_is_told_with_what_answers_it():
    environment = healthy()
    changed(environment, "/api/v1/nodes/base-1", {"spec": {"unschedulable": True}})
    said = findings_by_check(environment)[1]["drained now: a cordon by somebody who does not say"]
    assert said["state"] == "info"
    assert "foreign-cordon=move" in said["cure"]


def test_beside_the_guard_another_that_drains_is_only_told_of():
    environment = healthy()
    a_handler(environment)
    a_guard(environment)
    found = findings_by_check(environment)[1]["other drainers: aws-node-termination-handler"]
    assert found["state"] == "info"
    assert "Budgets of the guard: 1" in found["says"]
    assert "the mode act fits" in found["says"]


def test_a_cluster_acts_beside_another_that_drains_only_with_the_guard_or_where_that_is_said():
    environment = healthy(Mode.OBSERVE)
    a_handler(environment)
    act = ("clusters", "set", "harbor", "--mode", "act", "--yes")
    refused = run(environment, *act)
    assert refused.exit_code == 2
    assert "aws-node-termination-handler in namespace kube-system" in refused.output
    assert "plimsoll guard install" in refused.output
    assert run(environment, *act, "--beside-drainers").exit_code == 0
    assert run(environment, "clusters", "set", "harbor", "--mode", "observe").exit_code == 0
    a_guard(environment)
    assert run(environment, *act).exit_code == 0


@pytest.mark.parametrize(("delay", "agrees"), [(15, True), (75, True), (0, False), (None, False)])
def test_a_cluster_acts_beside_a_karpenter_whose_queue_holds_messages_back(delay, agrees):
    environment = healthy(Mode.OBSERVE)
    a_karpenter(environment)
    if delay is not None:
        environment.queue_delays["harbor-interruptions"] = delay
    result = run(environment, "clusters", "set", "harbor", "--mode", "act", "--yes")
    assert (result.exit_code == 0) == agrees
    assert agrees or "Delay Karpenter's queue" in result.output


def test_nodes_that_eks_drains_itself_are_noted():
    environment = healthy()
    labels = {"eks.amazonaws.com/nodegroup": "pool"}
    changed(environment, "/api/v1/nodes/spot-1", {"metadata": {"labels": labels}})
    status, found = findings_by_check(environment)
    assert (status, found["other drainers: EKS"]["state"]) == (0, "info")
    assert "managed node groups: 1." in found["other drainers: EKS"]["says"]
