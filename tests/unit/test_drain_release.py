"""Release: which pods are handed to their Deployment, when they leave, and when they go back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import Evict, Release, UndoRelease
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.names import POD_TEMPLATE_HASH
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import Pod, PodTerm, Ref, Selector, SpreadConstraint
from plimsoll.domain.quantities import Resources
from plimsoll.domain.workloads import LabelSelection, Quota, Workload
from tests.support.builders import (
    NOON,
    a_budget,
    a_claim,
    a_deployment,
    a_node,
    a_pod,
    mounting,
    pods_of,
)
from tests.support.observations import WEB, at, interrupted, looked, of, only, released


def seen_with(*pods: Pod, workload: Workload | None = None, **how: object) -> Observation:
    """Return an observation of the Deployment `web`, whose nodes are `spot` (interrupted) and `od`."""
    nodes = [interrupted("spot"), a_node("od")]
    template = a_pod("template", owner=("ReplicaSet", "web-abc"))
    known = looked(nodes, [*pods, template], [workload or a_deployment(replicas=2)], **how)
    return replace(known, pods=list(pods))


def test_every_ready_pod_on_an_interrupted_node_is_released_at_once():
    pods = pods_of("web", 2, node="spot")
    plan = plan_drain(seen_with(*pods), at(1))

    releases = of(plan, Release)
    assert [a.pod.name for a in releases] == ["web-0", "web-1"]
    assert releases[0].owner == WEB
    assert releases[0].owner_uid == "deployment-default-web"
    assert plan.busy


def test_a_released_pod_stays_while_its_replacement_is_not_available():
    old = released(a_pod("web-0", node="spot"))
    new = a_pod("web-8", node="od", ready=False)
    plan = plan_drain(seen_with(old, new, workload=a_deployment(replicas=1)), at(20))

    assert plan.actions == ()
    assert "0 of 1" in plan.waiting["spot"][0]


def test_a_released_pod_is_evicted_at_the_first_observation_of_its_available_replacement():
    old = released(a_pod("web-0", node="spot"))
    new = a_pod("web-8", node="od")
    plan = plan_drain(seen_with(old, new, workload=a_deployment(replicas=1)), at(20))

    assert only(plan, Evict).pod == old


def test_a_replacement_is_available_only_after_the_min_ready_seconds():
    old = released(a_pod("web-0", node="spot"))
    new = replace(a_pod("web-8", node="od"), ready_since=at(15))
    workload = a_deployment(replicas=1, minReadySeconds=10)

    assert plan_drain(seen_with(old, new, workload=workload), at(20)).actions == ()
    assert only(plan_drain(seen_with(old, new, workload=workload), at(25)), Evict).pod == old


def test_as_many_released_pods_stay_as_replacements_are_missing():
    old = [released(pod) for pod in pods_of("web", 3, node="spot")]
    new = [a_pod("web-7", node="od"), a_pod("web-8", node="od", ready=False)]
    plan = plan_drain(seen_with(*old, *new, workload=a_deployment(replicas=3)), at(20))

    assert [a.pod.name for a in of(plan, Evict)] == ["web-0"]


def test_a_budget_that_allows_one_disruption_lets_one_released_pod_leave():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    new = [a_pod(f"web-{n}", node="od") for n in (7, 8)]
    budgets = [a_budget("web", allowed=1, maxUnavailable=0)]
    plan = plan_drain(seen_with(*old, *new, budgets=budgets), at(20))

    assert len(of(plan, Evict)) == 1


def test_a_pod_that_is_not_ready_is_not_released():
    plan = plan_drain(seen_with(a_pod("web-0", node="spot", ready=False)), at(1))
    assert of(plan, Release) == []


def test_a_replacement_on_a_node_that_is_interrupted_next_is_released_in_its_turn():
    old = released(a_pod("web-0", node="spot"))
    new = a_pod("web-8", node="spot")
    plan = plan_drain(seen_with(old, new, workload=a_deployment(replicas=1)), at(20))

    assert [a.pod for a in of(plan, Evict)] == [old]
    assert [a.pod for a in of(plan, Release)] == [new]


SERVICE = LabelSelection(
    ref=Ref("Service", "default", "blue"), selector=Selector(labels={POD_TEMPLATE_HASH: "abc"})
)
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
        ({}, {"budgets": [a_budget("web"), a_budget("also", selector={})]}, "several budgets"),
        ({}, {"quotas": [NO_QUOTA]}, "ResourceQuota"),
    ],
)
def test_a_pod_that_a_release_would_harm_moves_within_the_ready_floor(workload, how, why):
    pods = pods_of("web", 2, node="spot")
    plan = plan_drain(seen_with(*pods, workload=a_deployment(replicas=2, **workload), **how), at(1))

    assert of(plan, Release) == []
    told = [*plan.waiting.get("spot", ()), *(a.reason for a in of(plan, Evict))]
    assert any(why in words for words in told)


def test_a_pod_whose_replica_set_names_an_earlier_deployment_is_not_released():
    workload = replace(a_deployment(replicas=1), uid="made-anew")
    plan = plan_drain(seen_with(a_pod("web-0", node="spot"), workload=workload), at(1))
    assert of(plan, Release) == []


def test_a_pod_with_a_volume_of_one_node_is_not_released():
    pod = a_pod("web-0", node="spot", volumes=mounting("data"))
    seen = seen_with(
        pod, workload=a_deployment(replicas=1), claims={("default", "data"): a_claim(zone=None)}
    )
    assert of(plan_drain(seen, at(1)), Release) == []


def test_anti_affinity_by_zone_forbids_a_release_and_by_hostname_does_not():
    pod = a_pod("web-0", node="spot")
    apart = replace(pod, scheduling=replace(pod.scheduling, anti_affinity=(OWN_ZONE,)))
    by_host = replace(OWN_ZONE, topology_key="kubernetes.io/hostname")
    beside = replace(pod, scheduling=replace(pod.scheduling, anti_affinity=(by_host,)))
    one = a_deployment(replicas=1)

    assert of(plan_drain(seen_with(apart, workload=one), at(1)), Release) == []
    assert len(of(plan_drain(seen_with(beside, workload=one), at(1)), Release)) == 1


def test_where_no_replacement_can_be_made_one_released_pod_leaves_at_once():
    old = [released(pod) for pod in pods_of("web", 2, node="spot")]
    workload = replace(a_deployment(replicas=2), replica_failure="exceeded quota: pods")
    plan = plan_drain(seen_with(*old, workload=workload), at(5))

    assert "exceeded quota" in only(plan, Evict).reason


def test_where_no_replacement_can_be_made_the_next_pod_waits_until_the_first_was_replaced():
    first = replace(released(a_pod("web-0", node="spot")), deleting=at(35))
    second = released(a_pod("web-1", node="spot"))
    starting = a_pod("web-8", node="od", ready=False)
    workload = replace(a_deployment(replicas=2), replica_failure="exceeded quota: pods")

    assert plan_drain(seen_with(first, second, workload=workload), at(6)).actions == ()
    assert plan_drain(seen_with(second, starting, workload=workload), at(8)).actions == ()


def test_a_workload_whose_replica_set_cannot_make_pods_is_not_released():
    workload = replace(a_deployment(replicas=2), replica_failure="denied by a webhook")
    plan = plan_drain(seen_with(*pods_of("web", 2, node="spot"), workload=workload), at(1))
    assert of(plan, Release) == []


def test_without_a_deadline_a_release_is_undone_where_no_replacement_can_be_made():
    pod = released(a_pod("web-0", node="spot"))
    workload = replace(a_deployment(replicas=1), replica_failure="exceeded quota: pods")
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(seen_with(pod, workload=workload), nodes=[node, a_node("od")])

    assert only(plan_drain(seen, at(5)), UndoRelease).pod == pod


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
    plan = plan_drain(spread_over_zones(), at(5))
    assert "counts in the spread" in only(plan, Evict).reason


def test_a_released_pod_stays_where_its_replacement_would_stay_pending_without_it():
    full = spread_over_zones()
    full = replace(full, nodes=[n if n.name != "a" else a_node("a", cpu="1m") for n in full.nodes])
    assert of(plan_drain(full, at(5)), Evict) == []


def test_a_deployment_whose_release_was_refused_moves_within_the_ready_floor_and_says_so():
    seen = seen_with(*pods_of("web", 2, node="spot"))
    plan = plan_drain(seen, at(1), refused={WEB: "its release was refused: no right"})

    assert of(plan, Release) == []
    assert any("was refused" in str(step) for step in plan.steps) or any(
        "was refused" in words for words in plan.waiting["spot"]
    )


def test_a_budget_that_lets_nothing_go_is_named_while_its_released_pods_wait():
    pods = [released(a_pod("web-0", node="spot")), a_pod("web-8", node="od")]
    budgets = [a_budget("web", allowed=0, maxUnavailable=0)]
    plan = plan_drain(seen_with(*pods, workload=a_deployment(replicas=1), budgets=budgets), at(5))

    assert plan.actions == ()
    assert any("allows no disruption now" in words for words in plan.waiting["spot"])


def test_with_an_autoscaler_a_quarter_of_the_replicas_is_replaced_at_a_time():
    pods = pods_of("web", 8, node="spot")
    workload = replace(a_deployment(replicas=8), scaler="web")
    patient = looked([interrupted("spot", ends=600), a_node("od")], pods, [workload])

    assert len(of(plan_drain(patient, at(1)), Release)) == 2
    assert len(of(plan_drain(seen_with(*pods, workload=workload), at(1)), Release)) == 8


def test_pods_of_the_current_replica_set_are_released_before_superseded_ones():
    old = a_pod("web-0", node="spot", owner=("ReplicaSet", "web-old"))
    new = a_pod("web-1", node="spot")
    workload = replace(a_deployment(replicas=4), scaler="web")
    seen = looked([interrupted("spot", ends=600), a_node("od")], [old, new], [workload])
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
    plan = plan_drain(replace(seen, replica_sets=sets), at(1))

    assert [a.pod.name for a in of(plan, Release)] == ["web-1"]


def test_a_release_is_undone_when_its_node_is_interrupted_no_more():
    pod = released(a_pod("web-0", node="od"))
    plan = plan_drain(seen_with(pod, workload=a_deployment(replicas=1)), NOON)

    (undone,) = of(plan, UndoRelease)
    assert undone.pod == pod
    assert undone.replica_set.hash == "abc"


def test_a_released_pod_whose_replica_set_is_superseded_is_surplus():
    pod = replace(released(a_pod("web-0", node="od")), generate_name="web-old-")
    plan = plan_drain(seen_with(pod, workload=a_deployment(replicas=1)), NOON)

    (evicted,) = of(plan, Evict)
    assert "surplus" in evicted.reason


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

    assert of(early, UndoRelease) == []
    assert [a.pod for a in of(late, UndoRelease)] == [pod]


def test_without_a_deadline_no_pod_is_released_that_no_node_could_replace():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = replace(
        seen_with(a_pod("web-0", node="spot", cpu="6"), workload=a_deployment(replicas=1)),
        nodes=[node, a_node("od", cpu="1")],
    )
    assert of(plan_drain(seen, at(1000)), Release) == []


def test_at_its_last_call_a_released_pod_is_evicted_whatever_its_budget_says():
    pod = released(a_pod("web-0", node="spot"))
    plan = plan_drain(seen_with(pod, workload=a_deployment(replicas=1)), at(95))

    assert only(plan, Evict).overrule


@pytest.mark.parametrize(
    ("annotation", "seconds"), [("5", 5), ("500", 60), ("soon", 30), ("-3", 30), (None, 30)]
)
def test_the_last_call_follows_the_time_that_a_pod_needs_to_stop(annotation, seconds):
    annotations = {} if annotation is None else {"plimsoll.dev/stop-seconds": annotation}
    pod = a_pod("web-0", node="spot", grace_seconds=60, annotations=annotations)
    assert pod.stop_seconds == seconds


def test_a_pod_with_a_claim_needs_its_whole_grace_period():
    pod = a_pod("db-0", node="spot", grace_seconds=300, volumes=mounting("data"))
    assert pod.stop_seconds == 300


def test_a_pod_that_is_never_restarted_stays_until_its_last_call():
    pod = a_pod("web-0", node="spot", restartPolicy="Never")
    seen = seen_with(pod, workload=a_deployment(replicas=1))

    assert plan_drain(seen, at(1)).actions == ()
    assert only(plan_drain(seen, at(95)), Evict).overrule
