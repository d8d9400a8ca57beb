"""The scheduled placement over a fake cluster: floors before, during and after the loss of all spot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import Refused, Temporary
from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.observation import INDEX_REFRESH, Sample, Samples
from plimsoll.domain.placement import Layout, asked_promises, label_key, reports_of
from plimsoll.domain.registry import IndexEntry, Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.node_launches import with_launches
from plimsoll.services.placement import with_stop_times
from plimsoll_simulation.fake_cluster.pod_annotations import STARTUP
from tests.support.builders import NOON, a_group
from tests.support.floors import a_cluster, spread_over, standing, web
from tests.support.scheduled import ScheduledCluster
from tests.support.workload_sets import WiredServices, deployment, method

KEY = label_key(Layout(1, 2))


def rounds(wired: WiredServices, count: int = 1) -> None:
    """Run placement as the schedule does, with the drain after it that its wake-ups start."""
    for _ in range(count):
        wired.placement.run()
        for _ in range(3):
            wired.drains.reconcile("harbor", "me")
        wired.sleep(300)


def test_pods_are_spread_over_the_groups_once_the_nodes_are_labelled():
    wired = a_cluster()
    wired.apply(web())
    assert not standing(wired)  # no node carries the label yet, so nothing fits
    rounds(wired)
    assert standing(wired) == {"od": 3, "m5": 3, "c5": 3}


def test_a_floor_on_the_namespace_counts_for_its_workloads():
    wired = a_cluster()
    metadata = {"name": "default", "annotations": {"plimsoll.dev/min-on-demand": "3"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    wired.apply(namespace, deployment(replicas=9))
    rounds(wired)
    assert wired.node("m5-0").labels[KEY].startswith("spot-")


def test_a_run_in_steady_state_writes_nothing():
    wired = a_cluster()
    wired.apply(web())
    rounds(wired, 2)
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version


@pytest.mark.parametrize("how", [{"mode": Mode.OBSERVE}, {"kill_switch": True}])
def test_where_nothing_may_be_written_the_plan_is_only_told(how):
    wired = a_cluster(**how)
    wired.apply(web())
    version = wired.version()
    wired.placement.run()
    assert wired.version() == version
    assert "would place" in [message for message, _ in wired.telemetry.said]


def test_the_floor_holds_through_the_loss_of_all_spot_and_the_return_to_it():
    wired = a_cluster()
    wired.apply(web())
    rounds(wired, 2)
    lost = ("m5-0", "m5-1", "c5-0", "c5-1")
    instances = [wired.node(name).instance or "" for name in lost]
    assert not any(wired.notices.receive([wired.spot_event(i) for i in instances]))
    lowest = 9
    for _ in range(6):
        wired.drains.reconcile("harbor", "me")
        lowest = min(lowest, standing(wired)["od"])
        wired.sleep(15)
    assert lowest >= 3
    assert standing(wired) == {"od": 9}

    for name in lost:
        wired.fake_cluster.handle("DELETE", f"/api/v1/nodes/{name}", now=wired.time)
    wired.sleep(60)
    for n, family in enumerate(("m5", "m5", "c5", "c5")):
        labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
        wired.join(f"{family}-new{n}", capacity="spot", labels=labels)
    lowest = 9
    for _ in range(10):
        rounds(wired)
        lowest = min(lowest, standing(wired)["od"])
        assert sum(standing(wired).values()) == 9
    assert standing(wired) == {"od": 3, "m5": 3, "c5": 3}
    assert lowest == 3


def test_a_floor_of_two_thirds_holds_through_the_loss_of_all_spot_and_the_return_to_it():
    wired = a_cluster()
    wired.apply(web("6", layout=Layout(2, 1)))
    rounds(wired, 2)
    lost = ("m5-0", "m5-1", "c5-0", "c5-1")
    assert standing(wired)["od"] == 6
    instances = [wired.node(name).instance or "" for name in lost]
    assert not any(wired.notices.receive([wired.spot_event(i) for i in instances]))
    for _ in range(6):
        wired.drains.reconcile("harbor", "me")
        assert standing(wired)["od"] >= 6
        wired.sleep(15)
    assert standing(wired) == {"od": 9}

    for name in lost:
        wired.fake_cluster.handle("DELETE", f"/api/v1/nodes/{name}", now=wired.time)
    wired.sleep(60)
    wired.join("m5-new", capacity="spot", labels={"node.kubernetes.io/instance-type": "m5.large"})
    for _ in range(10):
        rounds(wired)
        assert standing(wired)["od"] >= 6
        assert sum(standing(wired).values()) == 9
    assert standing(wired) == {"od": 6, "m5": 3}


def test_between_scheduled_runs_the_resync_wakes_the_drain_for_the_way_back():
    scheduled = ScheduledCluster(a_cluster())
    scheduled.wired.apply(web())
    scheduled.pass_minutes(2)
    scheduled.lose(scheduled.nodes("m5", "c5"))
    scheduled.pass_minutes(3)
    assert standing(scheduled.wired) == {"od": 9}
    for n, family in enumerate(("m5", "m5", "c5", "c5")):
        scheduled.join_spot(f"{family}-new{n}", family)
    for _ in range(8):
        scheduled.wired.resync.run()
        scheduled.reconcile()
        scheduled.wired.sleep(60)
        assert standing(scheduled.wired)["od"] >= 3
    assert standing(scheduled.wired) == {"od": 3, "m5": 3, "c5": 3}
    (report,) = scheduled.wired.reports.list(reports_of("harbor"))
    assert sum(" release Pod " in str(reason) for reason in report.reasons) == 6


def test_a_label_that_is_refused_is_not_tried_again_in_the_same_reconcile(monkeypatch):
    wired = a_cluster()
    wired.apply(web())
    rounds(wired)
    wired.join("od-9")
    tried: list[str] = []

    def refuse(node: Node, _: object) -> None:
        tried.append(node.name)
        raise Refused("a policy denies it")

    monkeypatch.setattr(KubernetesCluster, "label", method(refuse))
    wired.drains.reconcile("harbor", "me")
    assert tried == ["od-9"]


def test_a_cluster_that_cannot_be_reached_stops_no_other(monkeypatch):
    wired = a_cluster()
    wired.apply(web())

    def away() -> None:
        raise Temporary("the API server is away")

    monkeypatch.setattr(wired.api, "observe", away)
    assert wired.placement.run() == 0
    assert wired.telemetry.warned == ["cluster not placed"]
    assert wired.telemetry.metrics[Metric.CLUSTERS_NOT_RESYNCED] == 1
    assert wired.telemetry.of_clusters[Metric.CLUSTERS_NOT_RESYNCED, "harbor"] == 1


def test_a_run_that_did_something_leaves_what_and_why_in_the_report_of_its_day():
    wired = a_cluster()
    wired.apply(web())
    rounds(wired, 3)
    (report,) = wired.reports.list(reports_of("harbor"))
    assert report.closed is not None
    assert any("label Node m5-0: spot-" in str(reason) for reason in report.reasons)
    assert any("set-deletion-cost Pod" in str(reason) for reason in report.reasons)
    told = len(report.reasons)
    rounds(wired)  # steady state
    assert len(wired.reports.list(reports_of("harbor"))[0].reasons) == told


def test_in_the_mode_observe_the_report_says_what_would_be_done():
    wired = a_cluster(mode=Mode.OBSERVE)
    wired.apply(web())
    wired.placement.run()
    (report,) = wired.reports.list(reports_of("harbor"))
    assert {reason.why.partition(" ")[0] for reason in report.reasons} == {"would"}


def test_the_reserve_for_all_spot_is_a_metric_of_the_cluster():
    wired = a_cluster()
    wired.apply(web())
    rounds(wired, 2)
    assert wired.telemetry.of_clusters[Metric.ON_DEMAND_RESERVE, "harbor"] > 100


def test_a_single_replica_leaves_spot_when_on_demand_has_no_second_place_for_it():
    wired = WiredServices()
    wired.join("m5-0", capacity="spot", labels={"node.kubernetes.io/instance-type": "m5.large"})
    single = deployment(replicas=1, **spread_over(0))
    single["metadata"]["annotations"] = {"plimsoll.dev/min-on-demand": "1"}
    wired.apply(single)
    rounds(wired, 3)
    assert standing(wired) == {"m5": 1}  # no node but that takes it

    wired.join("od-0", cpu="4")
    rounds(wired, 2)
    assert standing(wired) == {"m5": 1}

    here = {"kubernetes.io/hostname": "od-0"}
    wired.apply(deployment("filler", replicas=1, cpu="3200m", nodeSelector=here))
    rounds(wired, 3)
    assert standing(wired) == {"od": 2}


def test_placement_writes_an_index_entry_again_only_when_it_changed_is_old_or_of_the_oldest(
    monkeypatch,
):
    rig = WiredServices()
    oldest = rig.join("od")
    rig.sleep(1)
    instance = rig.join("od-2")
    written: list[list[str]] = []
    real = rig.index.put

    def put(entries):
        written.append([entry.instance for entry in entries])
        real(entries)

    monkeypatch.setattr(rig.index, "put", put)
    for seconds in (0, 300, INDEX_REFRESH.total_seconds() - 300):
        rig.sleep(seconds)
        rig.placement.run()

    assert written == [[oldest, instance], [oldest], [oldest, instance]]


def test_each_hour_of_a_spot_pool_is_counted_once_though_clusters_and_runs_are_many(monkeypatch):
    wired = a_cluster()
    where = wired.cluster.place
    for _ in range(12):
        wired.placement.run()
        wired.sleep(300)
    held = wired.pools.held(where)
    assert {row.pool.capacity for row in held} == {"spot"}
    first = {row.pool: row.hours for row in held}
    assert {hours for hours in first.values() if hours <= 2} == {*first.values()}
    known = [*held]
    monkeypatch.setattr(wired.pools, "held", lambda _: known)  # two runs that read the same
    wired.sleep(3600)
    wired.placement.run()
    wired.placement.run()
    monkeypatch.undo()
    assert all(row.hours < first[row.pool] + 1.01 for row in wired.pools.held(where))


def test_without_the_table_of_pools_a_cluster_is_placed_all_the_same(monkeypatch):
    def throttled(*_: object) -> None:
        raise Temporary("throttled")

    wired = a_cluster()
    monkeypatch.setattr(wired.pools, "held", throttled)
    wired.placement.run()
    monkeypatch.undo()
    monkeypatch.setattr(wired.pools, "count", throttled)
    wired.placement.run()
    assert wired.node("m5-0").labels


def test_the_stop_times_that_floors_hinge_on_are_read_from_what_was_observed(monkeypatch):
    wired = a_cluster()
    asked = Ref("Deployment", "default", "web")
    monkeypatch.setattr("plimsoll.services.placement.floors_by_stop_time", lambda *_: [asked])
    told = tuple(Sample(uid=f"u{n}", at=wired.now(), seconds=4) for n in range(3))
    wired.times.merge("harbor", asked, Samples(stop=told))
    seen = wired.open(wired.cluster).observe()
    observed = wired.services.placement.observed_times
    nothing = asked_promises(seen, {}, {})
    found = with_stop_times(observed, wired.cluster, seen, nothing, wired.now())
    stop = found.times[asked].stop
    assert stop is not None
    assert stop.p95_seconds == 4
    monkeypatch.setattr("plimsoll.services.placement.floors_by_stop_time", lambda *_: [])
    assert with_stop_times(observed, wired.cluster, seen, nothing, wired.now()) is seen


def test_the_start_of_nodes_is_that_of_the_launches_of_their_groups():
    wired = WiredServices()
    group = a_group("base", capacity="spot")
    instances = [wired.join(f"m5-{n}", capacity="spot", cpu="1500m") for n in range(2)]
    wired.aws.groups = [replace(group, instances=frozenset(instances))]
    web = deployment(replicas=6)
    web["spec"]["template"]["metadata"]["annotations"] = {STARTUP: "100s"}
    web["metadata"]["annotations"] = {"plimsoll.dev/keep-ready": "4"}
    wired.apply(web, settle=120)
    wired.index.put(
        [
            IndexEntry(
                instance=instance,
                cluster="harbor",
                node="",
                launched=NOON - timedelta(seconds=200),
                seen=wired.time,
            )
            for instance in instances
        ]
    )
    seen = with_launches(wired.api.observe(), wired.aws, wired.index, wired.telemetry)
    window = StartWindows(seen=seen, now=wired.time).of(Ref("Deployment", "default", "web"))
    assert window is not None
    assert window.node_seconds == pytest.approx(200, abs=20)

    def away(_: object) -> None:
        raise Temporary("DynamoDB is away")

    wired.index.find = away  # type: ignore[assignment,method-assign]  # it fails from here on
    wired.placement.run()
    assert "launches not read" in wired.telemetry.warned
