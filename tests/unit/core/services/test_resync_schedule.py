"""One message for each cluster and minute: twice, late, out of order, and where one is broken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.errors import Temporary
from plimsoll.domain.registry import LABELLED_CLUSTERS, RESYNC_EVERY, Cluster, ResyncRequest
from plimsoll.domain.registry.clusters import OTHERS
from plimsoll.domain.reports import Metric
from tests.support.workload_sets import WiredServices


@pytest.fixture
def wired() -> WiredServices:
    """The cluster `harbor` with an interrupted node whose notice came a moment ago."""
    wired = WiredServices()
    wired.join("od")
    instance = wired.join("spot", capacity="spot")
    wired.resync.run()
    assert wired.notices.receive([wired.spot_event(instance)]) == [None]
    wired.wake_ups.sent.clear()
    return wired


def sent(wired: WiredServices) -> list[ResyncRequest]:
    """Let the schedule run, and return what it put into the queue."""
    wired.services.resync_schedule.run()
    found, wired.resyncs.sent = wired.resyncs.sent, []
    return found


def asked(wired: WiredServices) -> list[ResyncRequest]:
    """Let the schedule run, and return the resyncs of clusters that it asks for."""
    return [request for request in sent(wired) if request.place is None]


def test_each_registered_cluster_has_a_message_of_its_own(wired: WiredServices):
    for number in range(LABELLED_CLUSTERS):
        wired.registry.add(replace(wired.cluster, name=f"m{number:03}"))
    requests = asked(wired)
    assert [r.cluster for r in requests] == [c.name for c in wired.registry.list()]
    assert [r.label for r in requests if r.label != r.cluster] == [OTHERS]
    assert [ResyncRequest.read(r.message()) for r in requests] == requests


def test_a_message_of_a_newer_version_is_read_while_both_run(wired: WiredServices):
    [request] = asked(wired)
    newer = json.dumps(json.loads(request.message()) | {"shard": 3})
    assert ResyncRequest.read(newer) == request


def test_each_account_and_region_with_clusters_has_one_message_about_zonal_shifts(
    wired: WiredServices,
):
    role = "arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1"
    spoke = replace(wired.cluster, name="a-spoke", role=role, external_id="between-us-two")
    for cluster in (
        spoke,
        replace(spoke, name="a-spoke-2"),
        replace(wired.cluster, name="quay"),
        replace(wired.cluster, name="lisbon", region="eu-west-1"),
    ):
        wired.registry.add(cluster)
    about = [request for request in sent(wired) if request.place is not None]
    assert [(r.place, r.cluster) for r in about] == [
        ("210987654321/us-east-1", "a-spoke"),
        ("us-east-1", "harbor"),
        ("eu-west-1", "lisbon"),
    ]
    assert [ResyncRequest.read(r.message()) for r in about] == about


def test_where_no_cluster_is_registered_the_schedule_itself_has_ended_well(wired: WiredServices):
    wired.registry.remove("harbor")
    wired.telemetry.metrics.clear()
    assert asked(wired) == []
    assert wired.telemetry.metrics[Metric.RESYNC_FINISHED] == 1


def test_a_message_that_comes_twice_is_harmless(wired: WiredServices):
    [request] = asked(wired)
    assert [wired.services.resync.run(request) for _ in range(2)] == [1, 1]
    [entry] = wired.index.find([wired.node("spot").instance or ""]).values()
    assert entry.node == "spot"
    assert {cluster for cluster, _ in wired.wake_ups.sent} == {"harbor"}


@pytest.mark.parametrize("late", [RESYNC_EVERY, timedelta(minutes=4)])
def test_a_message_that_comes_after_the_next_was_sent_does_nothing_and_is_counted(
    wired: WiredServices, late: timedelta
):
    [request] = asked(wired)
    wired.time += late
    before = wired.version()
    assert wired.services.resync.run(request) == 0
    assert wired.wake_ups.sent == []
    assert wired.version() == before
    assert wired.telemetry.of_clusters[Metric.CLUSTERS_NOT_RESYNCED, "harbor"] == 1


def test_an_older_message_after_a_newer_one_leaves_the_index_newer(wired: WiredServices):
    [older] = asked(wired)
    wired.time += timedelta(seconds=50)
    [newer] = asked(wired)
    newest = wired.time
    for request in (newer, older):
        wired.services.resync.run(request)
    [entry] = wired.index.find([wired.node("od").instance or ""]).values()
    assert entry.seen == newest


def test_a_cluster_that_was_removed_meanwhile_is_nothing_to_do(wired: WiredServices):
    [request] = asked(wired)
    wired.registry.remove("harbor")
    assert wired.services.resync.run(request) == 0
    assert wired.wake_ups.sent == []


def test_a_resync_that_dies_half_way_is_made_up_for_by_the_next(
    wired: WiredServices, monkeypatch: pytest.MonkeyPatch
):
    [request] = asked(wired)
    with monkeypatch.context() as dying:
        dying.setattr(wired.index, "find", Killed.now)
        with pytest.raises(Killed):
            wired.services.resync.run(request)
    wired.time += RESYNC_EVERY
    [after] = asked(wired)
    wired.wake_ups.sent.clear()
    assert wired.services.resync.run(after) == 1
    assert {cluster for cluster, _ in wired.wake_ups.sent} == {"harbor"}


def test_a_cluster_that_fails_delays_no_other(wired: WiredServices):
    wired.registry.add(replace(wired.cluster, name="away"))
    open_ = wired.open

    def open_or_fail(cluster: Cluster) -> object:
        if cluster.name == "away":
            raise Temporary("no route")
        return open_(cluster)

    wired.open = open_or_fail  # type: ignore[method-assign,assignment]
    wired.telemetry.metrics.clear()
    assert wired.resync.run() == 1
    assert wired.telemetry.metrics[Metric.RESYNC_FINISHED] == 1
    assert wired.telemetry.metrics[Metric.CLUSTERS_NOT_RESYNCED] == 1


class Killed(BaseException):
    """Lambda took the process away."""

    @classmethod
    def now(cls, *_: object) -> None:
        raise cls
