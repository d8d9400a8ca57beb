"""Floors without a change of any manifest: the admission policy, from its installation to its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from click.testing import Result

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.domain.actions import InjectFloors
from plimsoll.domain.errors import NotFound, Temporary
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    FLOORS,
    INJECT_FLOORS,
    INSTANCE_TYPE,
    NAMESPACE,
)
from plimsoll.domain.placement import Injection
from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.injection import Proof, prove
from plimsoll_simulation.fake_cluster.edits import put
from plimsoll_simulation.fake_cluster.injection import injected
from plimsoll_simulation.fake_cluster.store import Store
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.floors import a_cluster, standing
from tests.support.workload_sets import WiredServices, deployment

BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
FLOORS_OF_DEFAULT = f"/api/v1/namespaces/default/configmaps/{FLOORS}"


def install(wired: WiredServices, *options: str) -> Result:
    environment = MemoryEnvironment()
    environment.transports["harbor"] = FakeTransport(wired.fake_cluster, wired)
    return run(environment, "install-policy", "--context", "harbor", *options)


@pytest.fixture
def wired() -> WiredServices:
    """Return a cluster whose namespace `default` opted in."""
    found = a_cluster()
    assert install(found, "--namespace", "default").exit_code == 0
    return found


def web(floor: str = "3", replicas: int = 9, **spec: Any) -> dict[str, Any]:
    """Return a Deployment that states its floor, and whose template says nothing of it."""
    manifest = deployment(replicas=replicas, **spec)
    manifest["metadata"]["annotations"] = {"plimsoll.dev/min-on-demand": floor}
    return manifest


def rounds(wired: WiredServices, count: int) -> None:
    for _ in range(count):
        wired.placement.run()
        for _ in range(3):
            wired.drains.reconcile("harbor", "me")
        wired.sleep(300)


def told(wired: WiredServices) -> dict[str, str]:
    found: dict[str, str] = wired.get(FLOORS_OF_DEFAULT).get("data") or {}
    return found


def is_bound(wired: WiredServices) -> bool:
    return FLOORS in [found["metadata"]["name"] for found in wired.get(BINDINGS)["items"]]


def test_the_policy_is_proven_as_it_is_installed_and_leaves_nothing_when_it_is_removed():
    wired = a_cluster()
    before = wired.version()
    assert "would write MutatingAdmissionPolicy" in install(wired, "--dry-run").output
    assert wired.version() == before
    installed = install(wired, "--namespace", "default")
    assert "tested: every canary was constrained as it is meant to be" in installed.output
    assert is_bound(wired)
    assert install(wired, "--namespace", "default").exit_code == 0  # twice is once
    assert install(wired, "--remove").exit_code == 0
    assert not wired.get(BINDINGS)["items"]
    assert not wired.api.injected_floors()
    labels = wired.get("/api/v1/namespaces/default")["metadata"].get("labels") or {}
    assert INJECT_FLOORS not in labels


def test_a_policy_that_is_not_in_force_gives_new_pods_nothing():
    told = {"default": {"deployment.web": "2"}}
    assert Injection(told=told).gives == told
    assert Injection(told=told, broken="a canary was not constrained").gives == {}


@pytest.mark.parametrize(
    ("count", "rest"),
    [
        (1, "deployment.web-0: nothing"),
        (5, "deployment.web-4: 4"),
        (6, "deployment.web-4: 4, 1 more"),
    ],
)
def test_an_injection_names_five_workloads_and_counts_the_others(count, rest):
    entries = {f"deployment.web-{n}": str(n) if n else None for n in range(count)}
    action = InjectFloors(namespace="shop", entries=entries, reason="a test")
    assert action.target.startswith("Namespace shop (deployment.web-0: nothing")
    assert action.target.endswith(f"{rest})")


def test_an_api_server_without_such_policies_is_named_with_the_other_way():
    wired = a_cluster()
    environment = MemoryEnvironment()
    environment.transports["harbor"] = Refusing(wired, lambda _: None, without="mutatingadmission")
    refused = run(environment, "install-policy", "--context", "harbor")
    assert refused.exit_code == 2
    assert "needs Kubernetes 1.36" in refused.output
    assert "commit the lines of `plimsoll plan snippet`" in refused.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--namespace", "kube-system"), "constrains no pod there"),
        (("--namespace", "nowhere"), "there is no namespace nowhere"),
        (("--namespace", "default", "--remove"), "give no --namespace"),
    ],
)
def test_what_cannot_be_installed_is_refused_before_anything_is_written(options, says):
    wired = a_cluster()
    before = wired.version()
    refused = install(wired, *options)
    assert refused.exit_code == 2
    assert says in refused.output
    assert wired.version() == before


def test_pods_that_ran_before_come_under_their_floor_one_by_one(wired):
    wired.apply(web())
    rounds(wired, 12)
    assert told(wired) == {"deployment.web": "2"}
    assert standing(wired) == {"od": 3, "m5": 3, "c5": 3}
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version


def test_moves_in_vain_become_rarer(monkeypatch):
    """An API server may apply a policy to the canaries' namespace, and to this one not yet."""
    wired = WiredServices()
    wired.join("od-0", cpu="8")
    assert install(wired, "--namespace", "default").exit_code == 0
    wired.apply(web())
    for family in ("m5", "c5"):
        labels = {INSTANCE_TYPE: f"{family}.large"}
        wired.join(f"{family}-0", capacity="spot", labels=labels, cpu="8")

    def back(pod: dict[str, Any], store: Store) -> dict[str, Any]:
        """Create a pod without its constraint, which the scheduler then puts back to on-demand."""
        if pod["metadata"]["namespace"] == NAMESPACE:
            return injected(pod, store)
        return put(pod, ("spec", "nodeSelector"), {"kubernetes.io/hostname": "od-0"})

    monkeypatch.setattr("plimsoll_simulation.fake_cluster.admission.injected", back)

    def moves() -> int:
        wired.placement.run()
        return sum(pod.released for pod in wired.api.observe().pods)

    assert [moves() for _ in range(3)] == [0, 0, 1]
    assert told(wired) == {"deployment.web": "2"}
    for pause in (timedelta(minutes=5), timedelta(hours=2), timedelta(days=1)):
        for _ in range(3):
            wired.drains.reconcile("harbor", "me")
        wired.sleep(pause.total_seconds() - 60)
        assert moves() == 0, "its replacement came without the constraint"
        wired.sleep(60)
        assert moves() == 1


def test_no_pod_is_constrained_before_the_nodes_carry_their_labels(wired):
    wired.apply(web())
    wired.placement.run()
    assert not told(wired)
    wired.placement.run()
    assert told(wired) == {"deployment.web": "2"}


def test_a_floor_above_three_quarters_brings_every_pod_to_on_demand(wired):
    wired.apply(web("4", replicas=5))
    rounds(wired, 9)
    assert told(wired) == {"deployment.web": "on-demand"}
    assert standing(wired) == {"od": 5}


def test_a_floor_above_half_leaves_the_rest_on_spot(wired):
    wired.apply(web("3", replicas=4))
    rounds(wired, 7)
    assert told(wired) == {"deployment.web": "3-1"}
    assert standing(wired)["od"] == 3
    assert sum(standing(wired).values()) == 4


def test_a_policy_of_an_older_version_keeps_such_a_floor_by_on_demand_alone(wired, monkeypatch):
    def older(pod: dict[str, Any], store: Store) -> dict[str, Any]:
        found = injected(pod, store)
        keys = [c["topologyKey"] for c in found["spec"].get("topologySpreadConstraints") or ()]
        return pod if any("-" in key for key in keys) else found

    with monkeypatch.context() as patched:
        patched.setattr("plimsoll_simulation.fake_cluster.admission.injected", older)
        wired.apply(web("3", replicas=4))
        rounds(wired, 7)
        assert told(wired) == {"deployment.web": "on-demand"}
        assert standing(wired) == {"od": 4}
    rounds(wired, 4)
    assert told(wired) == {"deployment.web": "3-1"}
    assert standing(wired)["od"] == 3


def test_nobody_is_sent_to_on_demand_nodes_that_cannot_hold_all(wired):
    wired.apply(web("20", replicas=20, cpu="2"))
    rounds(wired, 3)
    assert not told(wired)
    assert sum(standing(wired).values()) == 20


def test_those_that_on_demand_nodes_hold_only_one_by_one_are_not_all_sent_there(wired):
    for name in (
        "web",
        "api",
    ):  # each needs half of what three nodes of eight processors have, and more
        manifest = web("8", replicas=8, cpu="1500m")
        manifest["metadata"]["name"] = name
        manifest["spec"]["selector"]["matchLabels"] = {"app": name}
        manifest["spec"]["template"]["metadata"]["labels"] = {"app": name}
        wired.apply(manifest)
    rounds(wired, 3)
    assert len(told(wired)) == 1


def test_floors_hold_through_the_loss_of_all_spot(wired):
    wired.apply(web())
    rounds(wired, 12)
    lost = ("m5-0", "m5-1", "c5-0", "c5-1")
    instances = [wired.node(name).instance or "" for name in lost]
    assert not any(wired.notices.receive([wired.spot_event(i) for i in instances]))
    for _ in range(6):
        wired.drains.reconcile("harbor", "me")
        assert standing(wired)["od"] >= 3
        wired.sleep(15)
    assert standing(wired) == {"od": 9}


def test_the_entry_of_a_workload_goes_with_its_floor(wired):
    wired.apply(web())
    rounds(wired, 2)
    wired.fake_cluster.handle(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web",
        body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": None}}},
        content_type="application/merge-patch+json",
        now=wired.time,
    )
    wired.placement.run()
    assert not told(wired)


def test_an_annotation_that_makes_no_sense_any_more_keeps_the_last_good_entry(wired):
    wired.apply(web())
    rounds(wired, 2)
    wired.fake_cluster.handle(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web",
        body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": "many"}}},
        content_type="application/merge-patch+json",
        now=wired.time,
    )
    wired.placement.run()
    assert told(wired) == {"deployment.web": "2"}
    assert "floor cannot stand" in wired.telemetry.warned


class Refusing:
    """An API server that answers as told to the canaries, and rightly to everything else."""

    def __init__(
        self,
        wired: WiredServices,
        answer: Callable[[dict[str, Any]], Any],
        without: str = "nothing",
    ) -> None:
        self._without = without
        self._inner = FakeTransport(wired.fake_cluster, wired)
        self._answer = answer

    def call(self, method: str, path: str, **request: Any) -> Response:
        if self._without in path:
            return Response(status=404, body="404 page not found")
        if method == "POST" and path.endswith("/pods"):
            said = self._answer(request["body"]["metadata"])
            if said is not None:
                return Response(status=said, body={"message": "refused"})
        return self._inner.call(method, path, **request)


def crashes(metadata: dict[str, Any]) -> None:
    if "ownerReferences" in metadata:
        raise Temporary("connection dropped")


def through(wired: WiredServices, answer: Callable[[dict[str, Any]], Any]) -> KubernetesCluster:
    transport = Refusing(wired, answer)
    wired.api = KubernetesCluster(transport, "harbor", wired, workers=wired.workers)
    return wired.api


@pytest.mark.parametrize(
    "answer",
    [lambda metadata: 403 if "ownerReferences" in metadata else None, crashes],
    ids=["refused", "the request crashes"],
)
def test_a_policy_that_refuses_pods_is_unbound_by_the_next_run(wired, answer):
    through(wired, answer)
    wired.placement.run()
    assert not is_bound(wired)
    assert wired.telemetry.warned == ["injection broken", "injection removed"]
    assert wired.telemetry.metrics[Metric.INJECTIONS_REMOVED] == 1
    [event] = wired.get("/api/v1/namespaces/default/events")["items"]
    assert (event["involvedObject"]["name"], event["reason"]) == (NAMESPACE, "InjectionRemoved")


def frozen(wired: WiredServices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the API server go by the ConfigMaps of this moment, as one that stopped to watch them."""
    old = {
        namespace: wired.get(f"/api/v1/namespaces/{namespace}/configmaps/{FLOORS}")
        for namespace in wired.api.injected_floors()
    }

    class Frozen(Store):
        def __init__(self, now: Store) -> None:
            self.now = now

        def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
            if resource == "configmaps":
                return old.get(namespace)
            return self.now.get(resource, namespace, name)

    monkeypatch.setattr(
        "plimsoll_simulation.fake_cluster.admission.injected",
        lambda pod, store: injected(pod, Frozen(store)),
    )


def test_a_policy_that_goes_by_old_entries_is_unbound_after_the_next_change(wired, monkeypatch):
    frozen(wired, monkeypatch)
    wired.apply(web())
    rounds(wired, 2)  # the labels, then the entries
    assert is_bound(wired), "nothing had changed"
    assert told(wired) == {"deployment.web": "2"}
    wired.placement.run()
    assert not is_bound(wired)
    assert wired.telemetry.warned == ["injection stale", "floor cannot stand", "injection removed"]
    assert not any(pod.released for pod in wired.api.observe().pods)


def test_the_installation_proves_that_changes_of_entries_are_seen(wired, monkeypatch):
    assert install(wired, "--remove").exit_code == 0
    install(wired)
    frozen(wired, monkeypatch)
    failed = install(wired, "--namespace", "default")
    assert failed.exit_code == 1
    assert "Restart all API servers, then run `plimsoll install-policy`" in failed.output
    assert not is_bound(wired)


def test_a_policy_stays_bound_where_no_pod_at_all_is_let_through(wired):
    api = through(wired, lambda _: 403)
    assert prove(api, api.injected_floors()).proof is Proof.UNPROVEN
    wired.placement.run()
    assert is_bound(wired)


def test_one_lost_answer_takes_no_binding_away(wired):
    lost = [None]

    def once(metadata: dict[str, Any]) -> None:
        if "ownerReferences" in metadata and lost:
            lost.pop()
            raise Temporary("connection dropped")

    api = through(wired, once)
    assert prove(api, api.injected_floors()).proof is Proof.IN_FORCE


def test_nothing_is_unbound_in_the_mode_observe():
    wired = a_cluster(mode=Mode.OBSERVE)
    install(wired, "--namespace", "default")
    through(wired, crashes)
    wired.placement.run()
    assert is_bound(wired)
    assert wired.telemetry.warned == ["injection broken"]


def test_a_policy_that_somebody_unbound_is_named_and_its_constraint_is_lacking_again(wired):
    wired.apply(web())
    rounds(wired, 2)
    wired.api.remove_injection()
    with pytest.raises(NotFound):
        wired.api.remove_injection()
    plan = wired.placement.place(wired.cluster, wired.api, wired.api.observe())
    assert wired.telemetry.warned == ["injection not in force", "floor cannot stand"]
    [event] = plan.events
    assert (event.about.name, event.reason) == ("web", "FloorNotInjected")
    assert plan.workloads[0].lacks == "a spread constraint over spread.plimsoll.dev/2"


def test_the_binding_is_removed_again_when_the_canaries_of_the_installation_fail():
    wired = a_cluster()
    environment = MemoryEnvironment()
    environment.transports["harbor"] = Refusing(wired, crashes)
    failed = run(environment, "install-policy", "--context", "harbor", "--namespace", "default")
    assert failed.exit_code == 1
    assert "is refused" in failed.output
    assert not is_bound(wired)
    assert not wired.api.injected_floors().get("default")


def test_a_cluster_that_is_removed_keeps_no_policy_in_force(wired):
    environment = MemoryEnvironment()
    environment.registry.add(wired.cluster)
    environment.transports["harbor"] = FakeTransport(wired.fake_cluster, wired)
    tried = run(environment, "clusters", "remove", "harbor", "--dry-run")
    assert "would unbind the admission policy" in tried.output
    assert is_bound(wired)
    removed = run(environment, "clusters", "remove", "harbor")
    assert removed.exit_code == 0, removed.output
    assert not is_bound(wired)


def test_a_node_that_says_its_capacity_type_by_another_label_gets_the_well_known_one(wired):
    labels = {"node.kubernetes.io/instance-type": "m6.large", "karpenter.sh/capacity-type": "spot"}
    wired.join("m6-0", capacity=None, labels=labels)
    wired.apply(web())
    wired.placement.run()
    assert wired.node("m6-0").labels[CAPACITY_LABELS[0]] == "spot"


def test_what_somebody_else_writes_into_the_floors_of_a_namespace_is_taken_off_again(wired):
    junk = {f"deployment.junk-{n}": "1" for n in range(150)} | {"odd": "x" * 10_000}
    wired.fake_cluster.handle(
        "PATCH",
        FLOORS_OF_DEFAULT,
        body={"data": junk},
        content_type="application/merge-patch+json",
        now=wired.time,
    )
    wired.placement.run()
    assert len(told(wired)) == 51
    wired.apply(web())
    rounds(wired, 2)
    assert told(wired) == {"deployment.web": "2"}
