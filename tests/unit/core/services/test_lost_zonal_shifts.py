"""Zonal shifts of which events were lost: ARC is asked each minute what stands."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import MissingRights, Temporary, Throttled
from plimsoll.domain.notices import Cause, ZonalShift, parse
from plimsoll.domain.registry import Mode
from plimsoll.domain.zones import LONGEST_SHIFT, ShiftEvent, inferred_events, shifted_zones
from plimsoll.domain.zones.shift_events import BEHIND
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from plimsoll.services.zonal_shifts import ZonalShiftService
from tests.support.builders import NOON, ZONE_A, ZONE_B, deployment_json
from tests.support.workload_sets import Aws, WiredServices, handled
from tests.unit.core.services.test_zonal_shifts import EKS, reconciled, shift, tainted

ZONE = "us-east-1a"
AUTOSHIFT = ("Autoshift In Progress", "Autoshift Completed")
PRACTICE = ("Practice Run Started", "Practice Run Succeeded")


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def event(minutes: float, *, active: bool = True, cause: Cause = "autoshift", **how) -> ShiftEvent:
    return ShiftEvent(zone=ZONE, cause=cause, active=active, at=at(minutes), **how)


# --- What is decided -------------------------------------------------------------------------------


BEGUN, OVER = event(0), event(10, active=False)


@pytest.mark.parametrize(
    ("told", "listed", "asked", "added"),
    [
        pytest.param([], [BEGUN], at(3), [BEGUN], id="not told, stands since it began"),
        pytest.param([BEGUN], [event(0.2)], at(3), [], id="told"),
        pytest.param([BEGUN], [], at(10), [event(9, active=False)], id="not listed any more"),
        pytest.param([BEGUN, event(5, active=False)], [], at(10), [], id="over"),
        pytest.param([event(10)], [], at(10) + BEHIND, [], id="told since the answer"),
        pytest.param([BEGUN, OVER], [BEGUN], at(10) + BEHIND, [], id="its end told since"),
        pytest.param([BEGUN, OVER], [BEGUN], at(20), [event(19)], id="listed long after its end"),
        pytest.param([BEGUN, OVER], [event(15)], at(15.5), [event(15)], id="a second one"),
    ],
)
def test_an_answer_tells_what_events_did_not(told, listed, asked, added):
    assert inferred_events(told, listed, asked) == added


def test_one_that_lasts_longer_than_its_events_count_goes_on():
    hours = LONGEST_SHIFT["autoshift"] / timedelta(minutes=1)
    assert inferred_events([event(0)], [event(0)], at(hours - 1)) == [event(hours - 2)]
    assert inferred_events([], [event(0)], at(2 * hours)) == [event(2 * hours - 1)]


def test_an_experiment_is_found_and_not_ended_since_nobody_promises_that_it_is_listed():
    experiment = event(0, cause="experiment", cluster="harbor")
    assert inferred_events([], [experiment], at(3)) == [experiment]
    assert inferred_events([experiment], [], at(60)) == []


def test_shifts_of_other_causes_and_clusters_are_apart():
    manual = event(0, cause="manual", cluster="harbor")
    others = [event(0), event(0, cause="practice", cluster="harbor")]
    others += [event(0, cause="manual", cluster="quay")]
    assert inferred_events([manual, *others], others, at(10)) == [
        replace(manual, active=False, at=at(9))
    ]


EVENTS = st.lists(
    st.builds(event, st.integers(0, 90), active=st.booleans()),
    max_size=6,
    unique_by=lambda e: e.key,
)


@given(told=EVENTS, begins=st.integers(0, 60), lasts=st.integers(0, 60), asked=st.integers(0, 120))
def test_an_answer_counts_once_and_undoes_nothing_that_was_told_since(told, begins, lasts, asked):
    listed = [event(begins)] if begins <= asked < begins + lasts else []
    added = inferred_events(told, listed, at(asked))
    assert inferred_events([*told, *added], listed, at(asked)) == []
    newest = max(told, key=lambda e: (e.at, not e.active), default=None)
    stands = bool(shifted_zones([*told, *added], "harbor", at(asked)))
    if newest is not None and newest.at >= at(asked) - BEHIND:
        assert stands is newest.active or (newest.at < at(begins) and bool(listed))
    else:
        assert stands is bool(listed)


@given(told=EVENTS, first=EVENTS, asked=st.integers(0, 120))
def test_events_count_the_same_before_and_after_the_answer(told, first, asked):
    """What was told too late to be known when the answer came counts by its own time."""
    added = inferred_events(first, [event(0)], at(asked))
    late = shifted_zones([*first, *added, *told], "harbor", at(120))
    early = shifted_zones([*told, *first, *added], "harbor", at(120))
    assert late == early


# --- What is done ----------------------------------------------------------------------------------


@pytest.fixture
def rig() -> WiredServices:
    rig = WiredServices()
    rig.join("a", zone=ZONE_A)
    rig.apply(deployment_json(replicas=2))
    rig.join("b", zone=ZONE_B)
    return rig


def listed(title: str = AUTOSHIFT[0], **how) -> ZonalShift:
    """Return what ARC lists of the shift whose event this is."""
    [notice] = parse(json.loads(shift(title, **how)), received=NOON)
    assert isinstance(notice, ZonalShift)
    return notice


def a_minute(rig: WiredServices, minutes: float = 3) -> None:
    """Let the schedule of a minute run so many minutes after noon."""
    rig.pass_to(at(minutes))
    rig.wake_ups.sent.clear()
    rig.resync.run()


def ask(rig: WiredServices, service: ZonalShiftService | None = None) -> None:
    """Ask ARC as the schedule says, and do nothing else."""
    rig.services.resync_schedule.run()
    requests, rig.resyncs.sent = rig.resyncs.sent, []
    for request in requests:
        if request.place is not None:
            (service or rig.services.zonal_shifts).run(request)


def test_a_lost_beginning_is_found_and_the_drain_is_woken(rig):
    rig.aws.shifts = [listed()]
    ask(rig)
    assert rig.wake_ups.sent == [("harbor", delay) for delay in SLOW_WAKE_UPS]
    reconciled(rig)
    assert (tainted(rig), rig.pods_on("a"), rig.ready("web")) == (["a"], [], 2)


def test_a_lost_end_ends_it(rig):
    handled(rig, shift())
    rig.aws.shifts = [listed()]
    a_minute(rig)
    reconciled(rig)
    rig.aws.shifts = []
    a_minute(rig, 8)
    reconciled(rig)
    assert tainted(rig) == []


def test_a_practice_run_that_is_found_freezes_and_moves_nothing(rig):
    rig.aws.shifts = [listed(PRACTICE[0], resources=[f"{EKS}harbor"])]
    a_minute(rig)
    reconciled(rig)
    assert (tainted(rig), len(rig.pods_on("a"))) == (["a"], 2)


def test_an_answer_that_comes_again_writes_nothing_more(rig):
    rig.aws.shifts = [listed()]
    a_minute(rig)
    told = [*rig.pools.shifts("us-east-1", rig.now())]
    a_minute(rig, 4)
    assert [*rig.pools.shifts("us-east-1", rig.now())] == told
    assert len(rig.reports.list("*")) == 1


def test_a_shift_that_goes_on_wakes_nobody_and_is_not_told_anew(rig):
    practice = listed(PRACTICE[0], resources=[f"{EKS}harbor"])
    rig.aws.shifts = [practice]
    ask(rig)
    rig.wake_ups.sent.clear()
    rig.pass_to(at(50))
    ask(rig)
    assert (rig.wake_ups.sent, len(rig.reports.list("*"))) == ([], 1)
    assert shifted_zones(rig.pools.shifts("us-east-1", at(90)), "harbor", at(90))


def test_an_event_that_comes_after_all_merges_with_what_was_found(rig):
    rig.aws.shifts = [listed()]
    a_minute(rig)
    handled(rig, shift())
    assert len(rig.pools.shifts("us-east-1", rig.now())) == 1


@pytest.mark.parametrize("error", [MissingRights("denied"), Temporary("away"), Throttled("slow")])
def test_where_arc_does_not_answer_what_is_known_stands(rig, error):
    handled(rig, shift())
    rig.pass_to(at(10))
    rig.aws.fails = error
    ask(rig)
    assert rig.telemetry.warned == ["zonal shifts not asked for"]
    rig.aws.fails = None
    reconciled(rig)
    assert tainted(rig) == ["a"]


def test_a_message_that_waited_until_the_next_was_sent_asks_nobody(rig):
    rig.services.resync_schedule.run()
    [request] = [r for r in rig.resyncs.sent if r.place]
    rig.aws.shifts = [listed()]
    rig.pass_to(at(3))
    rig.services.zonal_shifts.run(request)
    assert not rig.pools.shifts("us-east-1", rig.now())


def test_a_shift_of_a_load_balancer_concerns_no_cluster_and_asks_ec2_for_no_zone(rig):
    balancer = "arn:aws:elasticloadbalancing:us-east-1:111122223333:loadbalancer/app/web/1"
    found = listed("Manual Shift Started", resources=[balancer])

    def no_names(cluster):
        return Aws(fails=Temporary("nobody should ask"))

    service = replace(
        rig.services.zonal_shifts, shifts_of=lambda _: Aws(shifts=[found]), instances_of=no_names
    )
    ask(rig, service)
    assert rig.telemetry.warned == []
    assert not rig.pools.shifts("us-east-1", rig.now())


def test_a_zone_that_ec2_does_not_know_is_told_and_left(rig):
    rig.aws.shifts = [replace(listed(), zone_id="use1-az9")]
    ask(rig)
    assert rig.telemetry.warned == ["zone not known"]
    assert rig.wake_ups.sent == []


def test_in_a_cluster_that_is_only_observed_it_is_kept_and_nobody_is_woken(rig):
    rig.registry.update(replace(rig.cluster, mode=Mode.OBSERVE))
    rig.aws.shifts = [listed()]
    ask(rig)
    assert rig.wake_ups.sent == []
    assert rig.pools.shifts("us-east-1", rig.now())


def test_people_are_shown_what_was_found_and_that_it_is_over(rig):
    rig.aws.shifts = [listed()]
    a_minute(rig)
    rig.aws.shifts = []
    a_minute(rig, 10)
    over, began = rig.reports.list("*")
    assert [report.interruption.partition("@")[0] for report in (began, over)] == ["use1-az1"] * 2
    assert (began.closed, over.closed) == (None, at(9))
    assert "of which no event told" in began.reasons[0].why


def test_all_clusters_of_an_account_and_region_share_one_answer_and_no_other_has_it(rig):
    rig.registry.add(replace(rig.cluster, name="quay"))
    rig.registry.add(replace(rig.cluster, name="lisbon", region="eu-west-1"))
    asked = []

    def of(cluster):
        asked.append(cluster.name)
        return Aws(shifts=[listed()] if cluster.region == "us-east-1" else [])

    service = replace(rig.services.zonal_shifts, shifts_of=of)
    rig.pass_to(at(3))
    ask(rig, service)
    assert len(asked) == 2
    assert {cluster for cluster, _ in rig.wake_ups.sent} == {"harbor", "quay"}
    assert not rig.pools.shifts("eu-west-1", rig.now())


def test_a_wrong_external_id_does_not_keep_another_role_of_the_account_from_asking(rig):
    role = "arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1"
    rig.registry.remove("harbor")
    for name, external_id in (("astray", "wrong"), ("spoke", "between-us-two")):
        rig.registry.add(replace(rig.cluster, name=name, role=role, external_id=external_id))

    def of(cluster):
        if cluster.external_id == "wrong":
            return Aws(fails=MissingRights("AccessDenied"))
        return Aws(shifts=[listed()])

    service = replace(rig.services.zonal_shifts, shifts_of=of)
    rig.pass_to(at(3))
    ask(rig, service)
    assert rig.pools.shifts("210987654321/us-east-1", rig.now())
