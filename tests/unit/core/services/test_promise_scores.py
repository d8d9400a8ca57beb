"""Placement and the drain together score promises: what reconciles see to the second, and runs add up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import Throttled
from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import Score, months_until
from plimsoll_simulation.fake_aws.stores import MemoryReports
from plimsoll_simulation.fake_cluster.pod_annotations import STARTUP, STOP
from tests.support.builders import NOON
from tests.support.scheduled import ScheduledCluster
from tests.support.workload_sets import WiredServices, deployment, method

WEB = "Deployment default/web"


def slow_web(promise: str | None) -> dict[str, Any]:
    """Return six replicas that start in 170 s, and only on spot."""
    manifest = deployment(replicas=6, nodeSelector={"node.kubernetes.io/capacity": "spot"})
    template = manifest["spec"]["template"]
    template["metadata"]["annotations"] = {STARTUP: "170s", STOP: "5s"}
    if promise is not None:
        manifest["metadata"]["annotations"] = {"plimsoll.dev/keep-ready": promise}
    return manifest


def a_cluster(promise: str | None = "4", **how: Any) -> ScheduledCluster:
    """Return a cluster whose spot nodes are full, ten minutes after its workload was promised."""
    scheduled = ScheduledCluster(WiredServices(**how))
    for name, family in (("m5-0", "m5"), ("c5-0", "c5")):
        scheduled.join_spot(name, family, cpu="1500m")
    scheduled.wired.apply(slow_web(promise), settle=200)
    scheduled.pass_minutes(11)
    return scheduled


def score(scheduled: ScheduledCluster) -> Score | None:
    wired = scheduled.wired
    found = wired.reports.scores("harbor", months_until(wired.time)[:1])
    return next(iter(found), None)


def interrupt(scheduled: ScheduledCluster, node: str) -> None:
    wired = scheduled.wired
    event = wired.spot_event(wired.node(node).instance or "")
    assert not any(wired.notices.receive([event]))


def through_a_loss(scheduled: ScheduledCluster) -> int:
    """Let a family go, whose next node comes 70 s after the notice.

    Returns:
        for how many seconds fewer than four replicas were Ready.
    """
    wired, below = scheduled.wired, 0
    interrupt(scheduled, "m5-0")
    for second in range(260):
        if second == 70:
            scheduled.join_spot("m5-1", "m5", cpu="1500m")
        if second == 125:
            scheduled.remove(["m5-0"])
        if second % 60 == 0:
            wired.resync.run()
        if second % 10 == 0 or 95 < second < 130:  # in between nothing happens that it would see
            wired.drains.reconcile("harbor", "me", seconds=0.5)
        below += wired.ready("web") < 4
        wired.sleep(1)
    return below


def test_what_fell_below_a_promise_after_a_notice_is_scored_to_the_second_and_once():
    scheduled = a_cluster()
    before = score(scheduled)
    assert before is not None
    assert (before.judged, before.total.observed) == (timedelta(minutes=10), timedelta())
    assert before.total.predicted > timedelta()
    below = through_a_loss(scheduled)
    assert below > 100
    scheduled.wired.placement.run()
    scheduled.wired.placement.run()
    scheduled.pass_minutes(6)
    found = score(scheduled)
    assert found is not None
    assert found.total.observed.total_seconds() == pytest.approx(below, abs=3)
    assert found.workloads.keys() == {WEB}


@pytest.mark.parametrize(("promise", "how"), [(None, {}), ("4", {"mode": Mode.OBSERVE})])
def test_without_a_promise_or_reports_that_would_tell_nothing_is_scored(promise, how):
    assert score(a_cluster(promise, **how)) is None


def test_a_run_that_could_not_read_or_write_is_made_up_for_by_the_next(monkeypatch):
    scheduled = a_cluster()
    known = score(scheduled)
    assert known is not None
    for method_of_store in ("scores", "put_score"):
        with monkeypatch.context() as patch:
            patch.setattr(MemoryReports, method_of_store, method(throttled))
            scheduled.pass_minutes(5)
        assert "promises not scored" in scheduled.wired.telemetry.warned
        scheduled.wired.telemetry.warned.clear()
    scheduled.pass_minutes(5)
    found = score(scheduled)
    assert found is not None
    assert found.judged == known.judged + timedelta(minutes=15)


def test_of_two_runs_at_once_one_adds_the_time(monkeypatch):
    scheduled = a_cluster()
    placement, put = scheduled.wired.placement, MemoryReports.put_score
    scheduled.wired.sleep(60)

    def overtaken(store: MemoryReports, made: Score) -> None:
        monkeypatch.setattr(MemoryReports, "put_score", put)
        placement.run()
        store.put_score(made)

    monkeypatch.setattr(MemoryReports, "put_score", overtaken)
    placement.run()
    found = score(scheduled)
    assert found is not None
    assert found.judged == scheduled.wired.time - NOON - timedelta(seconds=200)
    assert "promises not scored" not in scheduled.wired.telemetry.warned


def throttled(*_: object) -> None:
    raise Throttled("the table")
