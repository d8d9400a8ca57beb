"""When a reconcile writes what it reports: early, but never before pods that have to be told."""

from __future__ import annotations

from datetime import timedelta

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.drain import deadline_evictions
from plimsoll.domain.drain.deadline_evictions import AT_ONCE
from plimsoll.domain.errors import Temporary
from plimsoll.domain.reports import Report
from plimsoll.services.reconcile import MANY_ACTIONS
from tests.support.workload_sets import (
    Interrupted,
    WiredServices,
    deployment,
    handled,
    interrupt,
    method,
)


def test_a_report_is_there_before_the_first_pause_for_a_reconcile_may_be_killed_in_it():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1))
    found: list[str] = []

    rig.meanwhile = lambda: found.extend(r.node for r in rig.reports.list("harbor"))
    rig.drains.reconcile("harbor", "me")

    assert found == ["spot"]


def test_reports_that_say_nothing_yet_wait_while_a_plan_moves_many_pods():
    rig = Interrupted()
    instance = rig.join("spot", capacity="spot", cpu="64")
    rig.apply(deployment("web", replicas=MANY_ACTIONS, cpu="100m"))
    rig.join("od", cpu="64")
    handled(rig, rig.spot_event(instance))
    found: list[Report] = []

    rig.meanwhile = lambda: found.extend(rig.reports.list("harbor"))
    rig.drains.reconcile("harbor", "me")

    assert found == []
    assert [report.node for report in rig.reports.list("harbor")] == ["spot"]


def test_reports_that_say_nothing_yet_wait_while_a_plan_is_hurried(monkeypatch):
    monkeypatch.setattr(deadline_evictions, "MOST_EVICTIONS", 1)
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=2))
    found: list[Report] = []

    rig.meanwhile = lambda: found.extend(rig.reports.list("harbor"))
    rig.drains.reconcile("harbor", "me")

    assert found == []
    assert [report.node for report in rig.reports.list("harbor")] == ["spot"]


def test_a_plan_is_cut_where_many_pods_have_their_last_call_and_its_reports_wait_for_these(
    monkeypatch,
):
    rig = WiredServices()
    interrupted = [rig.join(name, capacity="spot", cpu="64") for name in ("spot-1", "spot-2")]
    rig.apply(deployment("web", replicas=AT_ONCE + 10, cpu="100m"))
    for name in ("od-1", "od-2"):
        rig.join(name, cpu="64")
    handled(rig, *map(rig.spot_event, interrupted))
    interruption = rig.node("spot-1").interruption
    assert interruption is not None
    assert interruption.deadline is not None
    last_call = interruption.deadline - timedelta(seconds=10)
    release, observe = rig.api.release, rig.api.observe
    released, written = [], []

    def slowly(*args):
        released.append(rig.time)
        rig.sleep(5)
        release(*args)

    def observed():
        written.append(rig.reports.list("harbor"))
        return observe()

    monkeypatch.setattr(KubernetesCluster, "release", method(slowly))
    monkeypatch.setattr(KubernetesCluster, "observe", method(observed))
    rig.drains.reconcile("harbor", "me", seconds=115)

    assert max(released) < last_call
    assert len(released) < MANY_ACTIONS, "or reports had waited for that"
    assert written[:2] == [[], []]
    assert {report.node for report in rig.reports.list("harbor")} == {"spot-1", "spot-2"}


def test_a_report_that_cannot_be_written_is_warned_about_and_stops_nothing(monkeypatch):
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "first")
    assert rig.telemetry.warned == []

    def fail(_):
        raise Temporary("the table is away")

    monkeypatch.setattr(rig.reports, "merge", fail)
    rig.drains.reconcile("harbor", "second")

    assert set(rig.telemetry.warned) == {"report not written"}
