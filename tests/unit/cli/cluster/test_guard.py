"""The standing guard: budgets of ours come and go, and let nobody evict what is not replaced yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import Result

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.objects import parse_rollout
from plimsoll.domain.disruptions import plan_guard
from plimsoll.domain.errors import Refused
from plimsoll.domain.interruptions import FOREIGN_CORDON, Policy, Response
from plimsoll.domain.kubernetes import GUARD
from plimsoll.domain.registry import Mode
from plimsoll_cli.cluster.uninstall_plan import plan_uninstall
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.fake_clusters import a_budget, a_stateful_set
from tests.support.observations import looked
from tests.support.workload_sets import WiredServices, deployment, method

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
WEB = f"{BUDGETS}/plimsoll-deployment-web"
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


def guarded(manifest: dict[str, Any], said: str = "true") -> dict[str, Any]:
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), GUARD: said}
    return manifest


def recreated() -> dict[str, Any]:
    manifest = deployment("once", replicas=1)
    manifest["spec"]["strategy"] = {"type": "Recreate"}
    return manifest


class Lowest:
    """The fewest pods of an app that were Ready at any moment from now on."""

    def __init__(self, wired: WiredServices, app: str) -> None:
        self.count = wired.ready(app)

        def look(_: object) -> None:
            self.count = min(self.count, wired.ready(app))

        wired.fake_cluster.store.subscribe(look)


def a_namespace(**labels: str) -> dict[str, Any]:
    metadata = {"name": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def a_cluster(
    *manifests: dict[str, Any], labels: dict[str, str] | None = None, **how: Any
) -> WiredServices:
    """A cluster of two nodes, after one run of placement."""
    wired = WiredServices(**how)
    wired.join("a", labels=labels or {})
    wired.join("b", labels=labels or {})
    wired.apply(*manifests)
    wired.placement.run()
    wired.sleep(1)
    return wired


def budgets(wired: WiredServices) -> list[str]:
    return sorted(item["metadata"]["name"] for item in wired.get(BUDGETS)["items"])


def send(wired: WiredServices, method: str, path: str, body: dict[str, Any]) -> int:
    kind = "application/json" if method == "POST" else "application/merge-patch+json"
    return wired.fake_cluster.handle(method, path, None, body, kind, now=wired.now()).status


def evict(wired: WiredServices, pod: str) -> int:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    return send(wired, "POST", f"/api/v1/namespaces/default/pods/{pod}/eviction", body)


def minutes(wired: WiredServices, count: int) -> None:
    """Let the resync run each minute, and the drain where that wakes it."""
    for _ in range(count):
        wired.resync.run()
        if wired.wake_ups.sent:
            wired.wake_ups.sent.clear()
            wired.drains.reconcile("harbor", "me")
        wired.sleep(10)


def test_a_guarded_workload_has_a_budget_that_lets_nobody_evict_its_pods():
    wired = a_cluster(guarded(deployment(replicas=2)))
    made = wired.get(WEB)
    assert made["spec"]["maxUnavailable"] == 0
    assert made["metadata"]["ownerReferences"][0]["name"] == "web"
    pods = [pod.name for pod in wired.api.observe().pods]
    assert [evict(wired, pod) for pod in pods] == [429, 429]


def test_what_did_not_opt_in_has_none_and_a_second_run_writes_nothing():
    wired = a_cluster(deployment(replicas=2))
    assert budgets(wired) == []
    wired = a_cluster(guarded(deployment(replicas=2)))
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version


@pytest.mark.parametrize(("said", "made"), [(None, 1), ("false", 0), ("true", 1)])
def test_a_namespace_opts_in_for_all_that_say_nothing_themselves(said, made):
    web = deployment(replicas=2) if said is None else guarded(deployment(replicas=2), said)
    assert len(budgets(a_cluster(a_namespace(**{GUARD: "true"}), web))) == made


@pytest.mark.parametrize("how", [{"mode": Mode.OBSERVE}, {"kill_switch": True}])
def test_where_nothing_may_be_written_no_budget_is_made(how):
    assert budgets(a_cluster(guarded(deployment(replicas=2)), **how)) == []


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (a_stateful_set("db", 1), "StatefulSet is no Deployment"),
        (recreated(), "two generations"),
    ],
)
def test_what_cannot_be_replaced_first_is_left_out_and_the_plan_says_why(manifest, why):
    wired = a_cluster(guarded(manifest))
    found = plan_guard(wired.api.observe(), {})
    assert budgets(wired) == []
    assert why in " ".join(found.left_out.values())


def test_a_rollout_whose_template_is_not_read_is_left_out_and_named():
    spec = {"replicas": 1, "workloadRef": {"kind": "Deployment", "name": "web"}}
    metadata = {"name": "web", "namespace": "default", "labels": {GUARD: "true"}}
    rollout = parse_rollout({"metadata": metadata, "spec": spec})
    found = plan_guard(looked([], [], [rollout]), {})
    assert (found.guarded, found.steps) == ((), ())
    assert found.left_out[rollout.ref] == "its workloadRef Deployment default/web is not read"


def test_a_workload_with_a_budget_of_its_own_is_left_alone():
    wired = a_cluster(guarded(deployment(replicas=2)), a_budget("own", "web", minAvailable=1))
    assert budgets(wired) == ["own"]


def test_a_budget_that_somebody_adds_takes_the_place_of_ours():
    wired = a_cluster(guarded(deployment(replicas=2)))
    wired.apply(a_budget("own", "web", minAvailable=1))
    wired.placement.run()
    assert budgets(wired) == ["own"]


def test_a_budget_added_beside_ours_is_found_by_the_drain_itself():
    wired = a_cluster(guarded(deployment(replicas=2)))
    wired.apply(a_budget("own", "web", minAvailable=1))
    node = wired.node(next(pod.node for pod in wired.api.observe().pods) or "")
    wired.notices.receive([wired.spot_event(node.instance or "")])
    wired.drains.reconcile("harbor", "me")
    assert budgets(wired) == ["own"]


def test_who_opts_out_again_loses_the_budget_and_one_that_was_changed_is_made_anew():
    wired = a_cluster(guarded(deployment(replicas=2)))
    send(wired, "PATCH", WEB, {"spec": {"maxUnavailable": 1}})
    wired.placement.run()
    wired.placement.run()
    assert wired.get(WEB)["spec"]["maxUnavailable"] == 0
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    send(wired, "PATCH", path, {"metadata": {"labels": {GUARD: None}}})
    wired.placement.run()
    assert budgets(wired) == []


def test_through_an_interruption_the_guard_opens_pod_by_pod_and_counts_as_nobodys_budget():
    wired = a_cluster(guarded(deployment(replicas=3)))
    node = wired.node(next(pod.node for pod in wired.api.observe().pods) or "")
    wired.notices.receive([wired.spot_event(node.instance or "")])
    lowest = Lowest(wired, "web")
    for _ in range(4):
        wired.drains.reconcile("harbor", "me")
        wired.sleep(2)
    assert (wired.pods_on(node.name), lowest.count) == ([], 3)
    assert not any(report.overruled for report in wired.reports.list("harbor"))


@pytest.mark.parametrize("taint", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
def test_what_is_guarded_is_released_from_a_node_that_somebody_else_takes_away(taint):
    wired = a_cluster(guarded(deployment(replicas=2)), deployment("free", replicas=2))
    node = next(pod.node for pod in wired.api.observe().pods if pod.name.startswith("web")) or ""
    mark = {"key": taint, "effect": "NoSchedule"}
    send(wired, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [mark]}})
    others = [pod for pod in wired.pods_on(node) if pod.startswith("free")]
    lowest = Lowest(wired, "web")
    minutes(wired, 3)
    assert (wired.pods_on(node), lowest.count) == (others, 2)
    assert wired.node(node).interruption is None, "no notice of AWS says so"
    assert not wired.node(node).unschedulable


@pytest.mark.parametrize("response", [None, Response.MOVE])
def test_a_cordon_alone_is_answered_only_where_the_policy_says_so(response):
    wired = a_cluster(guarded(deployment(replicas=2)))
    on = () if response is None else ((FOREIGN_CORDON, response),)
    wired.registry.update(replace(wired.cluster, policy=Policy(on=on)))
    node = next(pod.node for pod in wired.api.observe().pods) or ""
    before = wired.pods_on(node)
    send(wired, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    minutes(wired, 3)
    assert wired.pods_on(node) == (before if response is None else [])
    assert wired.ready("web") == 2


def warned(wired: WiredServices, notice: str = "rebalance_event") -> str:
    """Announce to the node of the first pod of `web`, and let one drain look; return the node's name."""
    name = next(pod.node for pod in wired.api.observe().pods if pod.name.startswith("web")) or ""
    body = getattr(wired, notice)(wired.node(name).instance)
    assert wired.notices.receive([body]) == [None]
    wired.drains.reconcile("harbor", "me", seconds=1)
    return name


@pytest.mark.parametrize("notice", ["rebalance_event", "spot_event"])
@pytest.mark.parametrize("labelled", ["workload", "namespace"])
def test_at_a_warning_the_drain_makes_the_budget_that_nobody_needs_in_calm_times(notice, labelled):
    web = deployment(replicas=2)
    if labelled == "workload":
        wired = a_cluster(guarded(web, "warned"), guarded(deployment("calm", replicas=2), "warned"))
    else:
        wired = a_cluster(a_namespace(**{GUARD: "warned"}), web)
    assert budgets(wired) == []
    warned(wired, notice)
    assert "plimsoll-deployment-web" in budgets(wired)
    wired.placement.run()
    assert "plimsoll-deployment-web" in budgets(wired)


@pytest.mark.parametrize("said", ["true", "warned"])
def test_what_is_guarded_is_released_from_an_advised_node_that_somebody_else_cordoned(said):
    """As EKS does, which would end the instance after 15 minutes with all that the guard holds on it."""
    wired = a_cluster(guarded(deployment(replicas=2), said))
    wired.registry.update(replace(wired.cluster, policy=Policy(nodes_per_hour=0)))
    node = warned(wired)
    minutes(wired, 1)
    before = wired.pods_on(node)
    assert before, "its turn never comes"
    send(wired, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    lowest = Lowest(wired, "web")
    minutes(wired, 3)
    assert (wired.pods_on(node), lowest.count) == ([], 2)


def test_where_pods_stay_on_advice_no_budget_keeps_somebody_else_from_evicting_them():
    wired = a_cluster(guarded(deployment(replicas=2), "warned"))
    policy = Policy(on=(("rebalance-recommendation", Response.CORDON),))
    wired.registry.update(replace(wired.cluster, policy=policy))
    warned(wired)
    assert budgets(wired) == []
    warned(wired, "spot_event")
    assert budgets(wired) == ["plimsoll-deployment-web"]


def test_what_has_no_pod_on_the_node_of_a_warning_gets_no_budget():
    wired = WiredServices()
    wired.join("a")
    wired.apply(guarded(deployment(replicas=1), "warned"))
    wired.join("b")
    send(wired, "PATCH", "/api/v1/nodes/a", {"spec": {"unschedulable": True}})
    wired.apply(guarded(deployment("calm", replicas=2), "warned"))
    assert warned(wired) == "a"
    assert budgets(wired) == ["plimsoll-deployment-web"]


def test_when_no_node_of_it_is_warned_any_more_placement_deletes_the_budget():
    wired = a_cluster(guarded(deployment(replicas=2), "warned"))
    node = warned(wired, "spot_event")
    for _ in range(4):
        wired.drains.reconcile("harbor", "me")
        wired.sleep(2)
    assert wired.pods_on(node) == []
    wired.placement.run()
    assert budgets(wired) == []
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version


def test_a_guard_that_the_api_server_refuses_is_not_tried_again_and_keeps_no_release_back(
    monkeypatch,
):
    wired = a_cluster(guarded(deployment(replicas=1), "warned"))
    refused = []

    def refuse(*asked):
        refused.append(asked)
        raise Refused("poddisruptionbudgets is forbidden")

    monkeypatch.setattr(KubernetesCluster, "guard", method(refuse))  # as without the overlay
    node = warned(wired, "spot_event")
    wired.drains.reconcile("harbor", "me")
    assert wired.pods_on(node) == []
    assert len(refused) <= 2, "once in each reconcile"


def command(wired: WiredServices, *words: str) -> Result:
    environment = MemoryEnvironment()
    environment.transports["harbor"] = FakeTransport(wired.fake_cluster, wired)
    return run(environment, "guard", *words, "--context", "harbor")


def test_the_command_opts_in_makes_the_budget_at_once_and_takes_both_back():
    wired = a_cluster(a_namespace(), deployment(replicas=2), a_stateful_set("db", 1))
    assert command(wired, "install", "default", "--dry-run").exit_code == 0
    assert budgets(wired) == []
    said = command(wired, "install", "default")
    assert (said.exit_code, budgets(wired)) == (0, ["plimsoll-deployment-web"])
    assert "not guarded: StatefulSet default/db" in said.output
    shown = command(wired, "status", "--output", "json").output
    assert '"guarded"' in shown
    assert "StatefulSet is no Deployment" in shown
    assert command(wired, "remove", "--all").exit_code == 0
    assert budgets(wired) == []
    wired.placement.run()
    assert budgets(wired) == []


def test_the_command_guards_at_a_warning_only_and_shows_that_the_budget_waits_for_it():
    wired = a_cluster(a_namespace(), deployment(replicas=2))
    said = command(wired, "install", "default", "--warned")
    assert (said.exit_code, budgets(wired)) == (0, [])
    assert "wait for Plimsoll" not in said.output
    assert '"at a warning"' in command(wired, "status", "--output", "json").output
    warned(wired)
    assert '"guarded"' in command(wired, "status", "--output", "json").output
    assert command(wired, "remove", "--all").exit_code == 0
    assert budgets(wired) == []


def test_one_deployment_is_guarded_alone_and_what_is_not_there_is_refused():
    wired = a_cluster(a_namespace(), deployment(replicas=2), deployment("free", replicas=2))
    assert command(wired, "install", "default/web").exit_code == 0
    assert budgets(wired) == ["plimsoll-deployment-web"]
    refused = command(wired, "install", "default/nobody", "default")
    assert refused.exit_code == 2
    assert "there is no Deployment nobody in default" in refused.output
    assert command(wired, "remove", "default/web").exit_code == 0
    assert budgets(wired) == []


def test_whoever_takes_plimsoll_out_of_a_cluster_takes_its_budgets_out_too():
    wired = a_cluster(guarded(deployment(replicas=2)))
    steps = plan_uninstall(wired.api.observe(), wired.now()).plan.steps
    assert [step.action.target for step in steps] == [
        "PodDisruptionBudget default/plimsoll-deployment-web"
    ]


def test_a_drain_that_is_called_off_hands_released_pods_back():
    full = guarded(deployment(replicas=2, cpu="5"))
    wired = a_cluster(full, labels={"karpenter.sh/nodepool": "spot"})
    node = next(pod.node for pod in wired.api.observe().pods) or ""
    send(wired, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [DISRUPTED]}})
    minutes(wired, 1)
    assert [pod.node for pod in wired.api.observe().pods if pod.released] == [node]
    send(wired, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": []}})
    minutes(wired, 1)
    pods = wired.api.observe().pods
    assert not any(pod.released for pod in pods)
    assert wired.ready("web") == 2
