"""Release: which pods are handed to their Deployment, when they leave, and when they go back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes.objects import parse_rollout
from plimsoll.domain.actions import Evict, Release, UndoRelease
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import (
    POD_TEMPLATE_HASH,
    RELEASE,
    LabelSelection,
    Pod,
    PodTerm,
    Quota,
    Ref,
    Resources,
    Selector,
    SpreadConstraint,
    Workload,
)
from plimsoll.domain.observation import Observation
from tests.support.builders import (
    NOON,
    a_budget,
    a_claim,
    a_deployment,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
    pods_of,
)
from tests.support.observations import (
    WEB,
    actions,
    interrupted,
    looked,
    noon,
    released,
    sets_of,
    sole_action,
)


def seen_with(*pods: Pod, workload: Workload | None = None, **how: object) -> Observation:
    """Return an observation of the Deployment `web`, whose nodes are `spot` (interrupted) and `od`."""
    nodes = [interrupted("spot"), a_node("od")]
    template = a_pod("template", owner=("ReplicaSet", "web-abc"))
    known = looked(nodes, [*pods, template], [workload or a_deployment(replicas=2)], **how)
    return replace(known, pods=list(pods))


def test_every_ready_pod_on_an_interrupted_node_is_released_at_once():
    pods = pods_of("web", 2, node="spot")
    plan = plan_drain(seen_with(*pods), noon(1))

    releases = actions(plan, Release)
    assert [a.pod.name for a in releases] == ["web-0", "web-1"]
    assert releases[0].replica_set.controller == WEB
    assert releases[0].replica_set.controller_uid == "deployment-default-web"
    assert plan.busy


AVAILABLE = replace(a_pod("web-8", node="od"), ready_since=noon(15))


@pytest.mark.parametrize(
    ("new", "min_ready_seconds", "now", "leaves"),
    [
        (a_pod("web-8", node="od", ready=False), 0, 20, False),
        (a_pod("web-8", node="od"), 0, 20, True),
        (AVAILABLE, 10, 20, False),
        (AVAILABLE, 10, 25, True),
    ],
)
def test_a_released_pod_leaves_at_the_first_observation_of_its_available_replacement(
    new, min_ready_seconds, now, leaves
):
    old = released(a_pod("web-0", node="spot"))
    workload = a_deployment(replicas=1, minReadySeconds=min_ready_seconds)
    plan = plan_drain(seen_with(old, new, workload=workload), noon(now))

    if leaves:
        assert sole_action(plan, Evict).pod == old
    else:
        assert plan.actions == ()
        assert f"{new.ready:d} of 1" in plan.waiting["spot"][0]


def test_as_many_released_pods_stay_as_replacements_are_missing():
    old = [released(pod) for pod in pods_of("web", 3, node="spot")]
    new = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    plan = plan_drain(seen_with(*old, *new, workload=a_deployment(replicas=3)), noon(20))

    assert [a.pod.name for a in actions(plan, Evict)] == ["web-0"]


def test_a_budget_that_allows_one_disruption_lets_one_released_pod_leave():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    new = [a_pod(f"web-{n}", node="od") for n in (7, 8)]
    budgets = [a_budget("web", allowed=1, maxUnavailable=0)]
    plan = plan_drain(seen_with(*old, *new, budgets=budgets), noon(20))

    assert len(actions(plan, Evict)) == 1


@pytest.mark.parametrize(("cpu", "kinds"), [("1", []), ("500m", [Release])])
def test_a_replacement_may_be_pending_unless_it_could_take_a_reserved_place(cpu, kinds):
    """A pod that cannot run twice holds the place that it needs; where there is none, nobody does."""
    web = a_pod("web-0", node="spot", cpu="1")
    [db] = sets_of("db", ["spot"], cpu="1")
    workloads = [a_deployment(replicas=1), a_stateful_set("db", replicas=1)]
    seen = looked([interrupted("spot"), a_node("od", cpu=cpu)], [web, db], workloads)

    assert [type(a) for a in plan_drain(seen, noon(1)).actions if isinstance(a, Release)] == kinds


def test_a_replacement_on_a_node_that_is_interrupted_next_is_released_in_its_turn():
    old = released(a_pod("web-0", node="spot"))
    new = a_pod("web-8", node="spot")
    plan = plan_drain(seen_with(old, new, workload=a_deployment(replicas=1)), noon(20))

    assert [a.pod for a in actions(plan, Evict)] == [old]
    assert [a.pod for a in actions(plan, Release)] == [new]


@pytest.mark.parametrize(("replicas", "more"), [(1, 0), (2, 1)])
def test_beside_a_controller_no_more_pods_stand_released_than_it_has_replicas(replicas, more):
    """A budget holds the released pod, and its replacements come to the next interrupted node."""
    old = released(a_pod("web-0", node="spot"))
    new = [a_pod(f"web-{n}", node="spot") for n in (7, 8)[:replicas]]
    budgets = [a_budget("web", allowed=0, maxUnavailable=0)]
    workload = a_deployment(replicas=replicas)
    plan = plan_drain(seen_with(old, *new, workload=workload, budgets=budgets), noon(5))

    assert len(actions(plan, Release)) == more
    assert any("stand released already" in words for words in plan.waiting["spot"])


SERVICE = LabelSelection(
    ref=Ref("Service", "default", "blue"), selector=Selector(labels={POD_TEMPLATE_HASH: "abc"})
)
POLICY = replace(SERVICE, ref=Ref("NetworkPolicy", "default", "open"))
BY_HASH = a_budget("blue", selector={"matchLabels": {POD_TEMPLATE_HASH: "abc"}})
NO_QUOTA = Quota(ref=Ref("ResourceQuota", "default", "q"), left=Resources(cpu=9**9, memory=9**15))
OWN_ZONE = PodTerm(
    topology_key="topology.kubernetes.io/zone", selector=Selector(labels={"app": "web"})
)


@pytest.mark.parametrize(
    ("workload", "how", "why"),
    [
        ({"strategy": {"type": "Recreate"}}, {}, "Recreate"),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0}}}, {}, "maxSurge 0"),
        ({"selector": {"matchLabels": {POD_TEMPLATE_HASH: "abc"}}}, {}, "names the pod-template"),
        ({}, {"label_selections": [SERVICE]}, "Service default/blue selects it"),
        ({}, {"label_selections": [POLICY]}, "NetworkPolicy default/open selects it"),
        ({}, {"budgets": [BY_HASH]}, "PodDisruptionBudget default/blue selects it"),
        ({}, {"budgets": [a_budget("web"), a_budget("also", selector={})]}, "several budgets"),
        ({}, {"quotas": [NO_QUOTA]}, "ResourceQuota"),
    ],
)
def test_a_pod_that_a_release_would_harm_moves_within_the_ready_floor(workload, how, why):
    pods = pods_of("web", 2, node="spot")
    plan = plan_drain(
        seen_with(*pods, workload=a_deployment(replicas=2, **workload), **how), noon(1)
    )

    assert actions(plan, Release) == []
    told = [*plan.waiting.get("spot", ()), *(a.reason for a in actions(plan, Evict))]
    assert any(why in words for words in told)


@pytest.mark.parametrize(
    ("pod", "workload", "how"),
    [
        ({"ready": False}, {"replicas": 2}, {}),
        ({}, {"uid": "made-anew"}, {}),
        ({"labels": {"app": "web", POD_TEMPLATE_HASH: "other"}}, {}, {}),
        ({"volumes": mounting("data")}, {}, {"claims": {("default", "data"): a_claim(zone=None)}}),
        ({}, {"replica_failure": "denied by a webhook"}, {}),
    ],
    ids=["not ready", "an earlier Deployment's", "another hash", "its volume", "none can be made"],
)
def test_a_pod_that_no_replacement_would_stand_for_is_not_released(pod, workload, how):
    owner = replace(a_deployment(replicas=1), **workload)
    plan = plan_drain(seen_with(a_pod("web-0", node="spot", **pod), workload=owner, **how), noon(1))
    assert actions(plan, Release) == []


def test_anti_affinity_by_zone_forbids_a_release_and_by_hostname_does_not():
    pod = a_pod("web-0", node="spot")
    apart = replace(pod, scheduling=replace(pod.scheduling, anti_affinity=(OWN_ZONE,)))
    by_host = replace(OWN_ZONE, topology_key="kubernetes.io/hostname")
    beside = replace(pod, scheduling=replace(pod.scheduling, anti_affinity=(by_host,)))
    one = a_deployment(replicas=1)

    assert actions(plan_drain(seen_with(apart, workload=one), noon(1)), Release) == []
    assert len(actions(plan_drain(seen_with(beside, workload=one), noon(1)), Release)) == 1


def test_where_no_replacement_can_be_made_one_released_pod_leaves_at_once():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    workload = replace(a_deployment(replicas=2), replica_failure="exceeded quota: pods")
    plan = plan_drain(seen_with(*old, workload=workload), noon(5))

    assert "exceeded quota" in sole_action(plan, Evict).reason


def test_no_released_pod_leaves_for_a_replacement_that_has_no_place():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    workload = replace(a_deployment(replicas=2), replica_failure="exceeded quota: pods")
    seen = seen_with(*old, workload=workload)
    plan = plan_drain(replace(seen, nodes=[interrupted("spot"), a_node("od", pods=0)]), noon(5))
    assert actions(plan, Evict) == []


def test_where_no_replacement_can_be_made_the_next_pod_waits_until_the_first_was_replaced():
    first = replace(released(a_pod("web-0", node="spot")), deleting=noon(35))
    second = released(a_pod("web-1", node="spot"))
    starting = a_pod("web-8", node="od", ready=False)
    workload = replace(a_deployment(replicas=2), replica_failure="exceeded quota: pods")

    assert plan_drain(seen_with(first, second, workload=workload), noon(6)).actions == ()
    assert plan_drain(seen_with(second, starting, workload=workload), noon(8)).actions == ()


WEBHOOK = 'Internal error occurred: failed calling webhook "pods.example.com"'


def test_a_released_pod_does_not_make_way_for_a_pod_that_a_webhook_holds_up():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    workload = replace(a_deployment(replicas=2), replica_failure=WEBHOOK)
    assert plan_drain(seen_with(*old, workload=workload), noon(5)).actions == ()


def test_a_pod_that_must_not_be_released_stays_as_long_as_a_webhook_holds_up_its_successor():
    pods = pods_of("web", 4, node="spot")
    one_less = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    sound = a_deployment(replicas=4, strategy=one_less)
    held = plan_drain(seen_with(*pods, workload=replace(sound, replica_failure=WEBHOOK)), noon(5))
    moved = plan_drain(seen_with(*pods, workload=sound), noon(5))
    assert (len(actions(held, Evict)), len(actions(moved, Evict))) == (0, 1)


@pytest.mark.parametrize(("minutes", "undone"), [(4, 0), (6, 1)])
def test_without_a_deadline_a_webhook_is_waited_for_before_a_release_is_undone(
    minutes: int, undone: int
):
    pod = released(a_pod("web-0", node="spot"))
    workload = replace(
        a_deployment(replicas=1), replica_failure=WEBHOOK, failing_since=noon(-60 * minutes)
    )
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(seen_with(pod, workload=workload), nodes=[node, a_node("od")])
    assert len(actions(plan_drain(seen, noon(0)), UndoRelease)) == undone


def test_without_a_deadline_a_release_is_undone_where_no_replacement_can_be_made():
    pod = released(a_pod("web-0", node="spot"))
    workload = replace(a_deployment(replicas=1), replica_failure="exceeded quota: pods")
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(seen_with(pod, workload=workload), nodes=[node, a_node("od")])

    assert sole_action(plan_drain(seen, noon(5)), UndoRelease).pod == pod


ONE_ZONE_EACH = SpreadConstraint(
    max_skew=1,
    topology_key="topology.kubernetes.io/zone",
    hard=True,
    selector=Selector(labels={"app": "web"}),
)


def spread_over_zones() -> Observation:
    """Return one released pod in zone a, whose replacement may only stand there, Pending."""

    def bound(pod: Pod) -> Pod:
        return replace(pod, scheduling=replace(pod.scheduling, spread=(ONE_ZONE_EACH,)))

    pods = [
        released(bound(a_pod("web-0", node="spot"))),
        bound(a_pod("web-8", ready=False)),
    ]
    nodes = [
        interrupted("spot", zone="us-east-1a"),
        a_node("a", zone="us-east-1a"),
        a_node("b", zone="us-east-1b", cpu="1m"),
    ]
    return replace(seen_with(*pods, workload=a_deployment(replicas=1)), nodes=nodes)


def test_a_released_pod_makes_way_where_its_replacement_is_pending_because_of_it():
    plan = plan_drain(spread_over_zones(), noon(5))
    assert "counts in the spread" in sole_action(plan, Evict).reason


def test_a_released_pod_stays_where_its_replacement_would_stay_pending_without_it():
    full = spread_over_zones()
    full = replace(full, nodes=[n if n.name != "a" else a_node("a", cpu="1m") for n in full.nodes])
    assert actions(plan_drain(full, noon(5)), Evict) == []


def test_a_deployment_whose_release_was_refused_moves_within_the_ready_floor_and_says_so():
    seen = seen_with(*pods_of("web", 2, node="spot"))
    plan = plan_drain(seen, noon(1), refused={str(WEB): "its release was refused: no right"})

    assert actions(plan, Release) == []
    assert any("was refused" in str(step) for step in plan.steps) or any(
        "was refused" in words for words in plan.waiting["spot"]
    )


def test_a_budget_that_lets_nothing_go_is_named_while_its_released_pods_wait():
    pods = [released(a_pod("web-0", node="spot")), a_pod("web-8", node="od")]
    budgets = [a_budget("web", allowed=0, maxUnavailable=0)]
    plan = plan_drain(seen_with(*pods, workload=a_deployment(replicas=1), budgets=budgets), noon(5))

    assert plan.actions == ()
    assert any("allows no disruption now" in words for words in plan.waiting["spot"])


@pytest.mark.parametrize("ends", [120, 500])
def test_a_deployment_with_an_autoscaler_is_replaced_at_once_where_a_deadline_is_near(ends):
    pods = pods_of("web", 20, node="spot", cpu="100m")
    workload = replace(a_deployment(replicas=20), scaler="web")
    seen = looked([interrupted("spot", ends=ends), a_node("od")], pods, [workload])

    assert len(actions(plan_drain(seen, noon(1)), Release)) == 20


@pytest.mark.parametrize(
    ("replicas", "standing", "now"), [(20, 0, 2), (20, 1, 1), (20, 2, 0), (9, 0, 1), (9, 1, 0)]
)
def test_without_a_near_deadline_a_tenth_is_replaced_at_a_time_where_there_is_an_autoscaler(
    replicas, standing, now
):
    pods = pods_of("web", replicas, node="spot", cpu="100m")
    pods[:standing] = map(released, pods[:standing])
    workload = replace(a_deployment(replicas=replicas), scaler="web")
    advised = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = looked([advised, a_node("od")], pods, [workload])
    plan = plan_drain(seen, noon(1))

    assert len(actions(plan, Release)) == now
    assert any("counts replacements as idle" in words for words in plan.waiting["spot"])


@pytest.mark.parametrize(("seconds", "named"), [(-5, False), (5, True)])
def test_a_count_that_an_autoscaler_changes_meanwhile_is_named(seconds, named):
    old = released(a_pod("web-0", node="spot"))
    workload = replace(a_deployment(replicas=2), scaler="web", scaled=noon(seconds))
    told = plan_drain(seen_with(old, workload=workload), noon(20)).waiting["spot"]
    assert any("changed the count to 2" in words for words in told) is named


@pytest.mark.parametrize(("least", "stays"), [(3, True), (1, False), (None, False)])
def test_a_released_pod_stays_until_its_autoscaler_has_lifted_a_count_below_its_least(least, stays):
    pods = [released(a_pod("web-0", node="spot")), a_pod("web-8", node="od")]
    workload = replace(a_deployment(replicas=1), scaler="web", min_replicas=least)
    plan = plan_drain(seen_with(*pods, workload=workload), noon(5))
    assert (actions(plan, Evict) == []) is stays
    assert replace(workload, replicas=0).held_replicas == 0  # there the autoscaler is off


def test_pods_of_the_current_replica_set_are_released_before_superseded_ones():
    old = a_pod("web-0", node="spot", owner=("ReplicaSet", "web-old"))
    new = a_pod("web-1", node="spot")
    seen = looked([interrupted("spot"), a_node("od")], [old, new], [a_deployment(replicas=4)])
    sets = {
        ref: replace(
            each,
            hash=ref.name.rpartition("-")[2],
            controller=WEB,
            controller_uid="deployment-default-web",
            revision=2 if ref.name == "web-abc" else 1,
        )
        for ref, each in seen.replica_sets.items()
    }
    plan = plan_drain(replace(seen, replica_sets=sets), noon(1))

    assert [a.pod.name for a in actions(plan, Release)] == ["web-1", "web-0"]


def test_a_release_is_undone_when_its_node_is_interrupted_no_more():
    pod = released(a_pod("web-0", node="od"))
    plan = plan_drain(seen_with(pod, workload=a_deployment(replicas=1)), NOON)

    (undone,) = actions(plan, UndoRelease)
    assert undone.pod == pod
    assert undone.replica_set.hash == "abc"


def test_a_released_pod_whose_replica_set_is_superseded_is_surplus():
    pod = replace(released(a_pod("web-0", node="od")), generate_name="web-old-")
    new = a_pod("web-8", node="od")
    plan = plan_drain(seen_with(pod, new, workload=a_deployment(replicas=1)), NOON)

    (evicted,) = actions(plan, Evict)
    assert evicted.pod == pod
    assert "surplus" in evicted.reason


def test_a_released_pod_of_an_earlier_template_stays_until_others_serve_in_its_place():
    old = [
        replace(released(a_pod(f"web-{n}", node="od")), generate_name="web-old-") for n in range(2)
    ]
    new = [a_pod("web-8", node="od"), a_pod("web-9", node="od", ready=False)]
    for replicas, gone in ((3, 0), (2, 1), (1, 2)):
        plan = plan_drain(seen_with(*old, *new, workload=a_deployment(replicas=replicas)), NOON)
        assert len(actions(plan, Evict)) == gone


def test_without_a_deadline_a_release_is_undone_when_no_node_takes_the_replacement():
    pod = released(a_pod("web-0", node="spot", cpu="6"))
    new = replace(a_pod("web-8", cpu="6"), created=NOON)
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(
        seen_with(pod, new, workload=a_deployment(replicas=1)),
        nodes=[node, a_node("od", cpu="1")],
    )
    early = plan_drain(seen, NOON + timedelta(minutes=4))
    late = plan_drain(seen, NOON + timedelta(minutes=6))

    assert actions(early, UndoRelease) == []
    assert [a.pod for a in actions(late, UndoRelease)] == [pod]


def test_without_a_deadline_no_pod_is_released_that_no_node_could_replace():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(
        seen_with(a_pod("web-0", node="spot", cpu="6"), workload=a_deployment(replicas=1)),
        nodes=[node, a_node("od", cpu="1")],
    )
    assert actions(plan_drain(seen, noon(1000)), Release) == []


ROLLOUT = Ref("Rollout", "default", "web")
ROLLOUTS_HASH = "rollouts-pod-template-hash"


def seen_of_rollout(*, surge: int | str = "25%", selected: bool = False) -> Observation:
    """Return one pod of an Argo Rollout on an interrupted node."""
    pod = a_pod("web-0", node="spot", labels={"app": "web", ROLLOUTS_HASH: "abc"})
    workload = replace(a_deployment(replicas=1), ref=ROLLOUT, max_surge=surge)
    seen = seen_with(pod, workload=workload)
    (made,) = seen.replica_sets.values()
    ours = replace(made, label=ROLLOUTS_HASH, controller=ROLLOUT)
    blue = replace(SERVICE, selector=Selector(labels={ROLLOUTS_HASH: "abc"}))
    return replace(seen, replica_sets={made.ref: ours}, label_selections=[blue] if selected else [])


@pytest.mark.parametrize(("how", "count"), [({}, 1), ({"surge": 0}, 0), ({"selected": True}, 0)])
def test_a_pod_of_an_argo_rollout_is_released_under_the_same_conditions(how, count):
    assert len(actions(plan_drain(seen_of_rollout(**how), noon(1)), Release)) == count


SUBSETS = {"istio": {"destinationRule": {"name": "web"}}}


def a_rollout(**spec: Any) -> Workload:
    """Return a Rollout as the API server shows it."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    selector = {"matchLabels": {"app": "web"}}
    metadata = {"name": "web", "uid": "deployment-default-web"}
    own = {"replicas": 1, "selector": selector, "template": template}
    return parse_rollout({"metadata": metadata, "spec": {**own, **spec}})


@pytest.mark.parametrize(
    ("routing", "why"),
    [
        (SUBSETS, "subsets of an Istio DestinationRule select it by its hash"),
        ({"appMesh": {"virtualNodeGroup": {}}}, "virtual nodes of App Mesh select it"),
        ({"istio": {"virtualService": {"name": "web"}}}, None),
        ({"alb": {"ingress": "web"}}, None),
    ],
    ids=["Istio's subsets", "App Mesh", "Istio's hosts", "ALB"],
)
def test_a_rollout_that_splits_traffic_by_its_hash_is_not_released(routing, why):
    rollout = a_rollout(strategy={"canary": {"trafficRouting": routing}})
    seen = replace(seen_of_rollout(), workloads=[rollout])
    plan = plan_drain(seen, noon(1))

    assert bool(actions(plan, Release)) is (why is None)
    assert why is None or why in " ".join(plan.waiting["spot"])


@pytest.mark.parametrize(
    "said", [{"labels": {RELEASE: "never"}}, {"annotations": {RELEASE: "never"}}]
)
def test_an_owner_forbids_releases_where_something_unread_selects_by_the_hash(said):
    pod, workload = a_pod("web-0", node="spot"), replace(a_deployment(replicas=1), **said)
    plan = plan_drain(seen_with(pod, workload=workload), noon(1))

    assert not actions(plan, Release)
    assert "its owner forbade it with plimsoll.dev/release" in " ".join(plan.waiting["spot"])


def test_a_rollout_takes_selector_and_template_of_the_deployment_that_it_names():
    ref = {"workloadRef": {"kind": "Deployment", "name": "web"}, "selector": None, "template": {}}
    deployment = a_deployment(replicas=0)
    lost = a_rollout(**ref)
    found = lost.resolved({deployment.ref: deployment})

    assert (found.selector, found.scheduling) == (deployment.selector, deployment.scheduling)
    for rollout, count in ((found, 1), (lost, 0)):
        seen = replace(seen_of_rollout(), workloads=[rollout, deployment])
        assert len(actions(plan_drain(seen, noon(1)), Release)) == count


@pytest.mark.parametrize(
    ("change", "how", "why"),
    [
        ({"strategy": "Recreate"}, {}, "Recreate"),
        ({"max_surge": 0}, {}, "maxSurge 0"),
        ({}, {"label_selections": [SERVICE]}, "selects it by its pod-template-hash"),
        ({}, {"budgets": [a_budget("web"), a_budget("b", selector={})]}, "several budgets"),
    ],
)
def test_a_release_is_undone_when_its_owner_makes_it_harmful(change, how, why):
    pods = [released(a_pod("web-0", node="spot")), a_pod("web-8", node="od", ready=False)]
    workload = replace(a_deployment(replicas=1), **change)
    plan = plan_drain(seen_with(*pods, workload=workload, **how), noon(5))

    assert why in sole_action(plan, UndoRelease).reason


def test_a_release_that_cannot_be_undone_now_is_not_tried_again_in_the_same_reconcile():
    pod = released(a_pod("web-0", node="od"))
    seen = seen_with(pod, workload=a_deployment(replicas=1))

    assert len(actions(plan_drain(seen, NOON), UndoRelease)) == 1
    assert not actions(plan_drain(seen, NOON, refused={f"Pod {pod}": "was refused"}), UndoRelease)


def parked(missing: int = 0) -> Observation:
    """Return a released pod beside its available replacement, under a recommendation and a budget."""
    pods = [
        released(a_pod("web-0", node="spot")),
        replace(a_pod("web-8", node="od"), ready_since=NOON),
    ]
    budgets = [replace(a_budget("web", allowed=0, maxUnavailable=0), missing=missing)]
    seen = seen_with(*pods, workload=a_deployment(replicas=1), budgets=budgets)
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    return replace(seen, nodes=[node, a_node("od")])


def test_without_a_deadline_a_budget_that_lets_nobody_go_for_minutes_undoes_the_release():
    early, late = (plan_drain(parked(), NOON + timedelta(minutes=m)) for m in (4, 6))

    assert early.actions == ()
    assert "allows no disruption" in sole_action(late, UndoRelease).reason


def test_without_a_deadline_no_pod_is_released_under_a_budget_that_one_more_would_not_open():
    for missing, count in ((1, 0), (0, 1)):
        seen = parked(missing)
        seen = replace(seen, pods=[a_pod("web-0", node="spot")])
        assert len(actions(plan_drain(seen, noon(400)), Release)) == count


@pytest.mark.parametrize("node", ["spot", "od"])
def test_an_annotated_pod_whose_owners_are_gone_is_surplus(node):
    pod = replace(released(a_pod("web-0", node=node)), owner=None, generate_name="web-gone-")
    plan = plan_drain(replace(seen_with(pod), workloads=[]), noon(5))
    assert [evicted.pod for evicted in actions(plan, Evict)] == [pod]


def test_a_pod_with_its_label_off_and_no_owner_still_belongs_to_its_deployment():
    pod = replace(released(a_pod("web-0", node="spot")), owner=None, generate_name="web-abc-")
    seen = seen_with(pod, a_pod("web-8", node="od", ready=False), workload=a_deployment(replicas=1))
    assert plan_drain(seen, noon(5)).actions == ()


def test_no_more_pods_are_released_than_a_quota_leaves_replacements_in_all_of_its_namespace():
    room = replace(NO_QUOTA, left=Resources(cpu=9**9, memory=9**15, pods=1))
    pods = pods_of("web", 2, node="spot")
    assert len(actions(plan_drain(seen_with(*pods, quotas=[room]), noon(1)), Release)) == 1


def test_an_operators_pods_leave_one_at_a_time():
    pods = [
        a_pod(f"db-{n}", node="spot", owner=("Cluster", "db"), labels={"app": "db"})
        for n in range(3)
    ]
    plan = plan_drain(seen_with(*pods), noon(1))
    assert len(actions(plan, Evict)) == 1
    assert not actions(plan, Release)


def test_at_its_last_call_a_released_pod_is_evicted_whatever_its_budget_says():
    pod = released(a_pod("web-0", node="spot"))
    plan = plan_drain(seen_with(pod, workload=a_deployment(replicas=1)), noon(95))

    assert sole_action(plan, Evict).overrule


def test_a_pod_that_is_never_restarted_stays_until_its_last_call():
    pod = a_pod("web-0", node="spot", restartPolicy="Never")
    seen = seen_with(pod, workload=a_deployment(replicas=1))

    assert plan_drain(seen, noon(1)).actions == ()
    assert sole_action(plan_drain(seen, noon(95)), Evict).overrule


def test_a_webhook_that_blocks_replacements_is_named_beside_what_waits_for_them():
    old = released(a_pod("web-0", node="spot"))
    workload = replace(a_deployment(replicas=1), replica_failure=WEBHOOK, failing_since=noon(2))
    (words,) = plan_drain(seen_with(old, workload=workload), noon(5)).waiting["spot"]
    assert "0 of 1 are Ready elsewhere, and no replacement is made" in words
    assert "the admission webhook pods.example.com blocks its new pods" in words
