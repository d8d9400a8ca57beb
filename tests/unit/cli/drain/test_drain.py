"""`plimsoll drain` against a fake cluster: what it moves, what it never touches, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Evict, UndoRelease
from plimsoll.domain.drain import DrainRequest, plan_drain, plan_nodes, plan_undo
from plimsoll.domain.drain.node_drain import drain_interruption
from plimsoll.domain.kubernetes import INTERRUPTION, NAMESPACE, RELEASED
from plimsoll.services.executor import Executor, Writers
from plimsoll_cli.environment import Said
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support import fake_clusters
from tests.support.builders import NOON, a_deployment, a_node, a_pod
from tests.support.cli_environment import (
    Counting,
    FixedGroups,
    MemoryEnvironment,
    StillClock,
    interrupt,
    run,
)
from tests.support.observations import WEB as WEB_REF
from tests.support.observations import actions, looked, noon, released, sole_action

type Json = dict[str, Any]

BOUND = timedelta(hours=1)
"""Longer than any drain here takes: one that waits for ever is an error, not a test without end."""


class Watched(StillClock):
    """A clock that the cluster lives by, and the lowest count of Ready pods by app."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: FakeCluster | None = None
        self.lowest: dict[str, int] = {}
        self.deployed: Callable[[], None] | None = None
        self.interrupt_after: int | None = None
        self.then: Callable[[], object] | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        assert self.now() - NOON < BOUND, "the drain does not end"
        assert self.cluster is not None
        self.cluster.step(self.time)
        if self.deployed is not None:
            self.deployed()
        if self.interrupt_after is not None:
            self.interrupt_after -= 1
            if self.interrupt_after == 0:
                self.interrupt_after = None
                assert self.then is not None
                self.then()

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.sleep(1)

    def count(self) -> None:
        assert self.cluster is not None
        ready: dict[str, int] = {}
        for pod in self.cluster.store.all("pods"):
            app = pod["metadata"].get("labels", {}).get("app", "")
            ready[app] = ready.get(app, 0) + (is_ready(pod) and not is_deleting(pod))
        for app, number in ready.items():
            self.lowest[app] = min(self.lowest.get(app, number), number)


class Harbor:
    """A cluster in which everything first starts on the node `old`; `new` joins when it is settled."""

    def __init__(self, *manifests: Json, spare: Sequence[str] = ("new",)) -> None:
        self.clock = Watched()
        early = self.clock.now() - timedelta(minutes=10)
        self.cluster = FakeCluster(now=early)
        self.clock.cluster = self.cluster
        self.cluster.join(fake_clusters.a_node("old"), now=early)
        ours = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.cluster.apply([ours, *manifests], now=early)
        self.cluster.step(self.clock.now())
        for name in spare:
            self.cluster.join(fake_clusters.a_node(name), now=self.clock.now())
        self.clock.count()
        self.cluster.on_change(lambda _: self.clock.count())
        self.counting = Counting(FakeTransport(self.cluster, self.clock))
        self.environment = MemoryEnvironment(clock=self.clock)
        self.environment.transports["harbor"] = self.counting

    def drain(self, *args: str) -> tuple[int, str]:
        answer = run(self.environment, "drain", *args)
        if isinstance(answer.exception, AssertionError):
            raise answer.exception
        return answer.exit_code, answer.output

    def drain_for_json(self, *args: str) -> Json:
        found: Json = json.loads(run(self.environment, "drain", *args, "--output", "json").stdout)
        return found

    def on(self, node: str) -> list[str]:
        pods = self.cluster.store.all("pods")
        return sorted(p["metadata"]["name"] for p in pods if p["spec"].get("nodeName") == node)

    def node(self, name: str) -> Json:
        found: Json = next(
            n for n in self.cluster.store.all("nodes") if n["metadata"]["name"] == name
        )
        return found

    def released(self) -> list[str]:
        """The interruptions that released pods name."""
        pods = self.cluster.store.all("pods")
        found = [p["metadata"].get("annotations", {}).get(RELEASED) for p in pods]
        return [identity for identity in found if identity]

    def reconcile(self) -> None:
        """Do what a deployed Plimsoll does in one round."""
        _, api = self.environment.by_kubeconfig(None, None)
        executor = Executor(
            writers=Writers(cluster=api, capacity=FixedGroups(())),
            workers=SerialWorkers(),
            telemetry=Said(),
        )
        executor.carry_out(plan_drain(api.observe(), self.clock.now()))

    def interrupt_after(self, seconds: int, then: Callable[[], object]) -> None:
        self.clock.interrupt_after, self.clock.then = seconds, then


class NoRightToPatchPods:
    """Answers 403 to a release, as an API server without that grant does."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(self, method: str, path: str, **more: Any) -> Response:
        if method == "PATCH" and "/pods/" in path:
            body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
            return Response(status=403, body=body, headers={})
        return self._transport.call(method, path, **more)


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


WEB = fake_clusters.a_deployment("web", 1)
STRICT = fake_clusters.a_budget("web", "web", minAvailable=1)


def test_a_single_replica_whose_budget_allows_nothing_moves_without_a_second_at_zero():
    harbor = Harbor(WEB, STRICT)
    status, said = harbor.drain("old")

    assert (status, harbor.on("old")) == (0, []), said
    assert len(harbor.on("new")) == 1
    assert harbor.clock.lowest["web"] == 1
    assert "release Pod default/web-" in said
    assert "old: drained" in said


def test_the_node_bears_a_cordon_and_nothing_else_of_ours():
    harbor = Harbor(WEB)
    harbor.drain("old")

    node = harbor.node("old")
    assert node["spec"]["unschedulable"] is True
    assert all(taint["key"] != INTERRUPTION for taint in node["spec"].get("taints", ()))
    assert INTERRUPTION not in node["metadata"].get("annotations", {})
    assert not [write for write in harbor.counting.writes if "deployments" in write]


def test_three_replicas_that_may_not_be_unavailable_stay_three():
    harbor = Harbor(
        fake_clusters.a_deployment("web", 3), fake_clusters.a_budget("web", "web", maxUnavailable=0)
    )
    status, said = harbor.drain("old")

    assert (status, harbor.on("old"), len(harbor.on("new"))) == (0, [], 3), said
    assert harbor.clock.lowest["web"] == 3


def test_a_stateful_set_moves_one_pod_at_a_time():
    harbor = Harbor(fake_clusters.a_stateful_set("db", 3))
    status, said = harbor.drain("old")

    assert (status, harbor.on("old"), harbor.on("new")) == (0, [], ["db-0", "db-1", "db-2"]), said
    assert harbor.clock.lowest["db"] == 2


def test_an_autoscaler_of_one_replica_sees_no_reason_to_add_any():
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 10,
        },
    }
    harbor = Harbor(WEB, STRICT, scaler)
    status, said = harbor.drain("old")
    harbor.clock.sleep(120)

    assert (status, harbor.on("old"), len(harbor.on("new"))) == (0, [], 1), said
    assert harbor.clock.lowest["web"] == 1


def test_the_pod_of_a_job_is_evicted_and_made_elsewhere():
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sums", "namespace": "default"},
        "spec": {"template": fake_clusters.a_template("sums", restartPolicy="Never")},
    }
    harbor = Harbor(job)
    before = harbor.on("old")
    status, said = harbor.drain("old")
    harbor.clock.sleep(10)

    assert (len(before), status, harbor.on("old"), len(harbor.on("new"))) == (1, 0, [], 1), said
    assert "its Job makes another pod elsewhere" in said


def test_a_pod_of_a_gang_of_an_unknown_controller_is_evicted_as_kubectl_drain_does():
    """Nobody would ever move it: it waits for a deadline, and a drain by hand has none."""
    nodes = [a_node("old"), a_node("new")]
    labels = {"training.kubeflow.org/job-name": "llm"}
    gang = a_pod("llm-0", node="old", owner=("PyTorchJob", "llm"), labels=labels)
    kept = a_pod("llm-1", node="new", owner=("PyTorchJob", "llm"), labels=labels)
    request = DrainRequest(nodes=frozenset({"old"}), started=NOON)
    plan = plan_nodes(looked(nodes, [gang, kept]), request, noon(1)).plan
    assert [evict.pod.name for evict in actions(plan, Evict)] == ["llm-0"]


def test_the_pod_of_a_job_is_never_deleted_past_its_budget():
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sums", "namespace": "default"},
        "spec": {"template": fake_clusters.a_template("sums", restartPolicy="Never")},
    }
    harbor = Harbor(job, fake_clusters.a_budget("sums", "sums", minAvailable=1))
    before = harbor.on("old")
    status, said = harbor.drain("old", "--timeout", "90s", "--overrule-budgets")

    assert (len(before), status, harbor.on("old")) == (1, 1, before), said


def test_pods_of_a_daemon_set_stay():
    harbor = Harbor(fake_clusters.a_daemon_set("agent"))
    status, _ = harbor.drain("old", "--ignore-daemonsets")

    assert status == 0
    assert len(harbor.on("old")) == 1


def test_a_dry_run_prints_the_plan_and_writes_nothing():
    harbor = Harbor(WEB, STRICT)
    status, said = harbor.drain("old", "--dry-run")

    assert status == 0
    assert "would cordon Node old" in said
    assert "would release Pod default/web-" in said
    assert "replacements come first" in said
    assert harbor.counting.writes == []


def test_a_dry_run_ends_as_a_run_that_would_wait_for_ever():
    harbor = Harbor(fake_clusters.a_stateful_set("db", 1), WEB, spare=())
    status, said = harbor.drain("old", "--dry-run")

    assert status == 1, said
    assert "Pod default/db-0 would stay" in said
    assert harbor.counting.writes == []
    run_status, _ = harbor.drain("old", "--timeout", "60s")
    assert run_status == 1


def test_a_dry_run_ends_as_a_run_whose_job_a_budget_keeps():
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sums", "namespace": "default"},
        "spec": {"template": fake_clusters.a_template("sums", restartPolicy="Never")},
    }
    harbor = Harbor(job, fake_clusters.a_budget("sums", "sums", minAvailable=1))
    assert harbor.drain("old", "--dry-run")[0] == 1
    assert harbor.drain("old", "--dry-run", "--timeout", "90s", "--overrule-budgets")[0] == 1
    assert harbor.drain("old", "--timeout", "90s", "--overrule-budgets")[0] == 1


def test_a_bare_pod_blocks_until_it_is_forced_and_everything_else_moves():
    harbor = Harbor(WEB, fake_clusters.a_pod("alone"))
    status, said = harbor.drain("old")

    assert (status, harbor.on("old")) == (1, ["alone"]), said
    assert "Pod default/alone stays: no controller replaces a bare pod" in said
    assert harbor.drain("old", "--dry-run")[0] == 1
    assert harbor.drain("old", "--force")[0] == 0
    assert harbor.on("old") == []


def test_a_pod_whose_owner_opted_out_blocks_and_is_not_touched():
    template = fake_clusters.a_template("web")
    template["metadata"]["labels"]["plimsoll.dev/ignore"] = "true"
    harbor = Harbor(fake_clusters.a_deployment("web", 1, template))
    status, said = harbor.drain("old", "--force")

    assert (status, len(harbor.on("old"))) == (1, 1)
    assert "opted out" in said


def test_a_pod_that_comes_back_to_the_cordoned_node_blocks_serves_and_its_cure_is_named():
    template = fake_clusters.a_template("web", cpu="100m", tolerations=[{"operator": "Exists"}])
    full = fake_clusters.a_deployment("full", 1, fake_clusters.a_template("full", cpu="6"))
    full["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "new"}
    harbor = Harbor(fake_clusters.a_deployment("web", 1, template), full)
    status, said = harbor.drain("old")

    assert (status, len(harbor.on("old"))) == (1, 1), said
    assert harbor.clock.lowest["web"] == 1
    assert "it came although the node is cordoned: tolerate named taints" in said


def test_a_drain_that_waits_ends_at_its_timeout_and_names_what_blocks():
    harbor = Harbor(WEB, spare=())
    status, said = harbor.drain("old", "--timeout", "30s")

    assert status == 1
    assert harbor.clock.now() - NOON == timedelta(seconds=30)
    assert "blocks: Deployment default/web" in said
    assert "waits for headroom" in said
    assert "--allow-pending" in said
    assert harbor.clock.lowest["web"] == 1


def test_a_replacement_may_be_pending_where_an_autoscaler_adds_nodes_for_it():
    harbor = Harbor(WEB, STRICT, spare=())

    def add_a_node_for_pending_pods() -> None:
        assert len(harbor.released()) == 1
        harbor.cluster.join(fake_clusters.a_node("late"), now=harbor.clock.now())

    harbor.interrupt_after(40, add_a_node_for_pending_pods)
    status, said = harbor.drain("old", "--allow-pending", "--timeout", "5m")

    assert (status, len(harbor.on("late"))) == (0, 1), said
    assert harbor.clock.lowest["web"] == 1


def test_a_budget_is_overruled_only_where_that_is_asked_for():
    apart = fake_clusters.a_deployment("web", 1, strategy={"type": "Recreate"})
    harbor = Harbor(apart, STRICT)
    assert harbor.drain("old", "--timeout", "90s")[0] == 1
    assert len(harbor.on("old")) == 1
    assert harbor.drain("old", "--timeout", "90s", "--overrule-budgets")[0] == 0
    assert harbor.on("old") == []


def test_ctrl_c_leaves_released_pods_that_serve_and_the_next_run_finishes():
    harbor = Harbor(WEB, STRICT)
    harbor.interrupt_after(2, press_ctrl_c)
    status, said = harbor.drain("old")

    assert status == 130
    assert "--undo" in said
    [identity] = harbor.released()
    assert identity.startswith("drain@")
    assert harbor.clock.lowest["web"] == 1

    harbor.clock.sleep(60)
    assert harbor.drain("old")[0] == 0
    assert (harbor.on("old"), len(harbor.on("new"))) == ([], 1)
    assert harbor.clock.lowest["web"] == 1


def test_two_drains_of_one_node_at_once_do_no_harm():
    harbor = Harbor(
        fake_clusters.a_deployment("web", 3), fake_clusters.a_budget("web", "web", maxUnavailable=0)
    )
    harbor.interrupt_after(2, lambda: harbor.drain("old"))
    status, said = harbor.drain("old")

    assert (status, harbor.on("old"), len(harbor.on("new"))) == (0, [], 3), said
    assert harbor.clock.lowest["web"] == 3


def test_a_deployed_plimsoll_that_moves_the_replacements_again_does_no_harm():
    harbor = Harbor(
        fake_clusters.a_deployment("web", 3),
        fake_clusters.a_budget("web", "web", maxUnavailable=0),
        spare=("new", "third"),
    )
    harbor.clock.deployed = harbor.reconcile
    harbor.interrupt_after(8, lambda: interrupt(harbor.environment, "new"))
    status, said = harbor.drain("old")
    harbor.clock.wait(60)

    assert (status, harbor.on("old"), harbor.on("new")) == (0, [], []), said
    assert len(harbor.on("third")) == 3
    assert harbor.clock.lowest["web"] == 3


def test_a_deployed_plimsoll_undoes_a_drain_only_after_its_node_is_uncordoned():
    harbor = Harbor(WEB, STRICT)
    harbor.interrupt_after(2, press_ctrl_c)
    harbor.drain("old")
    harbor.clock.deployed = harbor.reconcile
    harbor.clock.wait(30)
    assert len(harbor.released()) == 1

    api = harbor.environment.by_kubeconfig(None, None)[1]
    api.mark_unschedulable(api.observe().node["old"], unschedulable=False)
    harbor.clock.wait(30)
    assert harbor.released() == []
    assert harbor.clock.lowest["web"] == 1


@pytest.mark.parametrize(("away", "status"), [(20, 0), (600, 1)])
def test_an_api_server_that_is_away_is_waited_for_until_the_timeout(away, status):
    harbor = Harbor(WEB, STRICT)

    def bring_it_back() -> None:
        harbor.cluster.bring_api_back(now=harbor.clock.now())

    def take_it_away() -> None:
        harbor.cluster.take_api_away(now=harbor.clock.now())
        harbor.interrupt_after(away, bring_it_back)

    harbor.interrupt_after(2, take_it_away)
    answer, said = harbor.drain("old", "--timeout", "2m")

    assert answer == status, said
    assert said.count("the cluster does not answer") == 1
    assert harbor.clock.lowest["web"] == 1


def test_a_missing_right_ends_the_drain_with_its_name():
    harbor = Harbor(WEB)
    harbor.environment.transports["harbor"] = NoRightToPatchPods(harbor.counting)
    status, said = harbor.drain("old")

    assert status == 2
    assert "patch pods" in said
    assert harbor.clock.lowest["web"] == 1


def test_undo_gives_released_pods_back_and_uncordons():
    harbor = Harbor(WEB, STRICT)
    harbor.interrupt_after(2, press_ctrl_c)
    harbor.drain("old")
    status, said = harbor.drain("old", "--undo")
    harbor.clock.sleep(60)

    assert status == 0, said
    assert harbor.released() == []
    assert not harbor.node("old")["spec"].get("unschedulable")
    assert len(harbor.on("old") + harbor.on("new")) == 1
    assert harbor.clock.lowest["web"] == 1


def test_undo_leaves_a_node_cordoned_that_a_deployed_plimsoll_drains():
    harbor = Harbor(WEB)
    interrupt(harbor.environment, "old")
    status, said = harbor.drain("old", "--undo")

    assert status == 0
    assert "stays cordoned" in said
    assert harbor.node("old")["spec"]["unschedulable"] is True


def test_a_drain_ends_when_somebody_uncordons_its_node():
    harbor = Harbor(WEB, spare=())
    harbor.interrupt_after(3, lambda: harbor.drain("old", "--undo"))
    status, said = harbor.drain("old")

    assert status == 1
    assert "old: called off" in said


def test_a_node_that_does_not_exist_is_named_and_nothing_is_written():
    harbor = Harbor(WEB)
    status, said = harbor.drain("old", "odl")

    assert status == 2
    assert "no node odl" in said
    assert harbor.counting.writes == []


def test_nodes_are_chosen_by_their_labels():
    harbor = Harbor(WEB)
    answer = harbor.drain_for_json("-l", "kubernetes.io/hostname in (old, older)")

    assert answer["nodes"] == ["old"]
    assert answer["end"] == "drained"
    assert [a["action"] for a in answer["actions"]] == ["cordon", "release", "evict"]
    assert harbor.drain("-l", "app=none")[0] == 2


@pytest.mark.parametrize(
    "args", [(), ("old", "-l", "a=b"), ("old", "--overrule-budgets"), ("old", "--grace-period=0")]
)
def test_options_that_contradict_each_other_are_refused(args):
    assert Harbor(WEB).drain(*args)[0] == 2


@pytest.mark.parametrize("text", ["", " ", "a=b,", "a in", "!a=b", "a b"])
def test_labels_that_are_none_are_refused(text):
    code, said = Harbor(WEB).drain("-l", text)
    assert (code, "--selector" in said) == (2, True)


@pytest.mark.parametrize(("cordoned", "undone"), [(True, 0), (False, 1)])
def test_a_deployed_plimsoll_leaves_released_pods_to_their_drain_while_the_cordon_stands(
    cordoned, undone
):
    identity = drain_interruption("old", started=NOON).identity
    standing = released(a_pod("web-0", node="old"), interruption=identity)
    template = a_pod("web-8", node="new")
    seen = looked(
        [a_node("old", unschedulable=cordoned), a_node("new")],
        [standing, template],
        [a_deployment(replicas=1)],
    )
    plan = plan_drain(seen, noon(20))

    assert len(actions(plan, UndoRelease)) == undone
    assert plan.busy is bool(undone)


@pytest.mark.parametrize("replaced", [True, False])
def test_undo_gives_a_pod_of_an_earlier_template_to_its_own_replica_set_while_nothing_serves_instead(
    replaced,
):
    identity = drain_interruption("old", started=NOON).identity
    pod = a_pod("web-0", node="old", owner=("ReplicaSet", "web-old"))
    pod = replace(released(pod, interruption=identity), generate_name="web-old-")
    new = a_pod("web-8", node="new", ready=replaced)
    earlier = a_pod("template", owner=("ReplicaSet", "web-old"))
    seen = looked([a_node("old"), a_node("new")], [pod, new, earlier], [a_deployment(replicas=1)])
    sets = {
        ref: replace(each, controller=WEB_REF, revision=ref.name == "web-abc")
        for ref, each in seen.replica_sets.items()
    }
    plan = plan_undo(
        replace(seen, pods=[pod, new], replica_sets=sets), frozenset({"old"}), noon(20)
    )

    if replaced:
        assert sole_action(plan, Evict).pod == pod
    else:
        assert sole_action(plan, UndoRelease).replica_set.ref.name == "web-old"
