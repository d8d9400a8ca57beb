"""What Events tell on Nodes, pods and workloads, and what creating them never costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Evict, LabelNode, Release, Uncordon
from plimsoll.domain.drain import event_of_action
from plimsoll.domain.errors import (
    BadInput,
    Blocked,
    Conflict,
    MissingRights,
    PlimsollError,
    Temporary,
)
from plimsoll.domain.kubernetes import (
    LONGEST_MESSAGE_CHARACTERS,
    MIN_ON_DEMAND,
    ClusterEvent,
    Pod,
    event_of_report,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import Report
from plimsoll.services.cluster_events import EVENTS_AT_ONCE, MOST_EVENTS, create_events
from plimsoll.services.drains import TELLING
from plimsoll.services.retry_policy import RECONCILE_SECONDS
from tests.support.builders import NOON, a_node, pods_of
from tests.support.workload_sets import Telemetry, WiredServices, deployment, handled, method

WEB = "/apis/apps/v1/namespaces/default/deployments/web"


def told(rig: WiredServices) -> list[tuple[str, str, str, str]]:
    """Kind and name of what each Event is about, its type and its reason."""
    return sorted(
        (e["involvedObject"]["kind"], e["involvedObject"]["name"], e["type"], e["reason"])
        for e in rig.get("/api/v1/events")["items"]
    )


def an_interruption(
    rig: WiredServices, *others: dict[str, Any], elsewhere: bool = True, times: int = 1
) -> str:
    """Interrupt the node of a workload, which has headroom elsewhere or not; return its pod."""
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment("web", replicas=1), *others)
    (pod,) = rig.pods_on("spot")
    if elsewhere:
        rig.join("od")
    assert rig.notices.receive([rig.spot_event(instance)] * times) == [None] * times
    for _ in range(24):
        rig.drains.reconcile("harbor", "one")
        rig.sleep(5)
    return pod


def test_an_interruption_is_told_once_on_its_node_and_on_each_pod_that_left():
    rig = WiredServices()
    pod = an_interruption(rig, times=2)
    assert told(rig) == [
        ("Node", "spot", "Normal", "FloorsKept"),
        ("Node", "spot", "Warning", "Cordoned"),
        ("Pod", pod, "Normal", "Evicted"),
        ("Pod", pod, "Normal", "Released"),
    ]


def test_a_cordon_is_told_by_its_most_urgent_notice_and_later_advice_denies_no_deadline():
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.rebalance_event(instance), rig.spot_event(instance))
    (event,) = rig.get("/api/v1/events")["items"]
    assert event["message"].startswith("spot-interruption: spot reclaims it (terminate) at ")
    rig.sleep(5)
    handled(rig, rig.rebalance_event(instance))
    (first, later) = [facts["because"] for what, facts in rig.telemetry.said if what == "acted"]
    assert f"spot-interruption: {first}" == event["message"]
    assert later == "likely to be reclaimed: this notice names no deadline"


def test_a_floor_that_was_missed_is_told_with_the_workload():
    rig = WiredServices()
    an_interruption(rig, elsewhere=False)
    (event,) = [e for e in rig.get("/api/v1/events")["items"] if e["reason"].startswith("Floor")]
    assert (event["reason"], event["type"]) == ("FloorMissed", "Warning")
    assert event["message"] == "below its ready floor was Deployment default/web by 1"


def test_a_budget_that_is_overruled_is_named_in_the_report_and_on_the_pod():
    rig = WiredServices()
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    pod = an_interruption(rig, budget, elsewhere=False)
    (report,) = rig.reports.list("harbor")
    assert list(report.overruled) == [f"default/{pod}"]
    assert "budget" in report.overruled[f"default/{pod}"]
    assert ("Pod", pod, "Warning", "BudgetOverruled") in told(rig)


def test_a_reconcile_that_took_too_long_tells_nothing_more(monkeypatch: pytest.MonkeyPatch):
    rig = WiredServices()
    observe = rig.api.observe

    def slowly() -> Observation:
        rig.sleep(RECONCILE_SECONDS + TELLING.total_seconds())
        return observe()

    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment("web", replicas=1))
    rig.join("od")
    assert rig.notices.receive([rig.spot_event(instance)]) == [None]
    monkeypatch.setattr(KubernetesCluster, "observe", method(slowly))
    rig.drains.reconcile("harbor", "one", hurried=RECONCILE_SECONDS)
    assert [reason for *_, reason in told(rig)] == ["Cordoned"]
    monkeypatch.undo()
    rig.drains.reconcile("harbor", "one")
    assert "Evicted" in [reason for *_, reason in told(rig)]


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ACT])
def test_where_nothing_is_written_no_event_is_either(mode):
    rig = WiredServices(mode=mode, kill_switch=mode is Mode.ACT)
    an_interruption(rig)
    rig.placement.run()
    assert told(rig) == []


def test_an_owner_is_told_of_a_floor_that_cannot_be_understood():
    rig = WiredServices()
    rig.join("od")
    manifest = deployment("web", replicas=1)
    manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: "many"}
    rig.apply(manifest)
    rig.placement.run()
    rig.placement.run()
    assert told(rig) == [("Deployment", "web", "Warning", "FloorNotUnderstood")]
    (event,) = rig.get("/api/v1/events")["items"]
    assert event["involvedObject"]["uid"] == rig.get(WEB)["metadata"]["uid"]
    assert "'many'" in event["message"]


def test_owners_are_told_in_time_however_many_others_there_are_to_tell():
    rig = WiredServices()
    for n in range(MOST_EVENTS + 4):
        manifest = deployment(f"web-{n}", replicas=0)
        manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: "many"}
        rig.apply(manifest, settle=0)
    rig.placement.run()
    assert len(told(rig)) == MOST_EVENTS
    for _ in range(9):
        rig.sleep(300)
        rig.placement.run()
    assert len(told(rig)) == MOST_EVENTS + 4


@pytest.fixture
def pod() -> Pod:
    return replace(pods_of("web", 1)[0], grace_seconds=60)


@pytest.mark.parametrize(
    ("how", "outcome", "reason"),
    [
        ({}, {}, "Evicted"),
        ({"grace_seconds": 30}, {}, "Evicted"),
        ({"grace_seconds": 29}, {}, "StopTimeCutShort"),
        ({"overrule": True}, {"overruled": "the budget allows none"}, "BudgetOverruled"),
        ({}, {"error": Blocked("the budget allows none")}, "EvictionBlocked"),
        ({}, {"error": BadInput("two budgets")}, "Refused"),
    ],
    ids=["evicted", "time enough", "cut short", "overruled", "blocked", "refused"],
)
def test_what_became_of_a_pod_is_one_word(pod, how, outcome, reason):
    event = event_of_action(Evict(pod=pod, reason="a test", **how), **outcome)
    assert event is not None
    assert event.reason == reason
    assert event.warning is (reason != "Evicted")


def test_what_was_done_to_a_node_is_told():
    event = event_of_action(Uncordon(node=a_node("a"), reason="a test"))
    assert event is not None
    assert (event.about.name, event.reason, event.message) == ("a", "Uncordoned", "a test")


def test_what_the_next_try_may_do_and_what_moves_nothing_is_not_told(pod):
    assert event_of_action(Evict(pod=pod, reason="a test"), error=Temporary("away")) is None
    assert (
        event_of_action(Uncordon(node=a_node("a"), reason="a test"), error=Temporary("away"))
        is None
    )
    assert event_of_action(LabelNode(node=a_node("a"), labels={}, reason="a test")) is None


def test_what_tenants_wrote_does_not_make_an_event_long(pod):
    event = event_of_action(Evict(pod=pod, reason="a test"), error=BadInput("x" * 5000))
    assert event is not None
    assert len(event.message) == LONGEST_MESSAGE_CHARACTERS


def test_a_report_is_told_once_its_node_is_empty_or_gone():
    report = Report(
        interruption="i-1@noon",
        cluster="harbor",
        node="a",
        kind="spot",
        noticed=NOON,
        below_floor={f"Deployment shop/app-{n:02}": 1 for n in range(12)},
    )
    assert event_of_report(report) is None
    event = event_of_report(replace(report, gone=NOON))
    assert event is not None
    assert event.message.endswith("Deployment shop/app-09 by 1 and 2 more")


def test_merging_reports_keeps_the_worst_that_a_floor_was_missed_by():
    report = Report(interruption="i-1@noon", cluster="harbor", node="a", kind="s", noticed=NOON)
    one, other = replace(report, below_floor={"web": 1}), replace(report, below_floor={"web": 2})
    assert one.merged(other).below_floor == other.merged(one).below_floor == {"web": 2}


@dataclass
class Cluster:
    """A cluster that takes Events, or does not."""

    error: PlimsollError | None = None
    tried: list[ClusterEvent] = field(default_factory=list)

    def create_event(self, event: ClusterEvent) -> None:
        self.tried.append(event)
        if self.error is not None:
            raise self.error


def some_events(count: int) -> list[ClusterEvent]:
    made = [
        event_of_action(Release(pod=p, replica_set=None, interruption="i", reason="a test"))  # type: ignore[arg-type]  # of no matter here
        for p in pods_of("web", count)
    ]
    return [event for event in made if event is not None]


@pytest.mark.parametrize(
    ("error", "tried"),
    [
        (None, MOST_EVENTS),
        (Conflict("it is there"), MOST_EVENTS),
        (Temporary("away"), EVENTS_AT_ONCE),
        (MissingRights("not granted"), EVENTS_AT_ONCE),
    ],
    ids=["taken", "told before", "away", "not granted"],
)
def test_events_are_bounded_and_a_cluster_that_takes_none_is_pressed_no_further(error, tried):
    cluster: Any = Cluster(error)
    create_events(cluster, some_events(3 * MOST_EVENTS), SerialWorkers(), Telemetry())
    assert len(cluster.tried) == tried
