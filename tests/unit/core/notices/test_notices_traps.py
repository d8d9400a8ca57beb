"""Where AWS's events differ from what one would expect, and from their own documentation."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import actionable
from plimsoll.domain.notices import (
    Effect,
    HealthScheduledChange,
    LifecycleTerminate,
    SpotInterruption,
    Unknown,
    ZonalShift,
    parse,
)
from plimsoll.domain.notices.capacity_reservation import DETAIL_TYPES as RESERVATION_TYPES
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.lifecycle import HOOK_TIMEOUT, LifecycleLaunch, TestNotification
from plimsoll.domain.notices.zonal_shift import DETAIL_TYPES

EVENTS = Path(__file__).parents[3] / "events"
NOW = datetime(2026, 11, 17, 18, 0, tzinfo=UTC)


def event(name: str, **changes: object) -> Any:
    """Load a file; `detail__x=None` takes a field of the detail away, a value replaces it."""
    body = json.loads((EVENTS / f"{name}.json").read_text())
    for key, value in changes.items():
        name_of = key.removeprefix("detail__")
        place = body if name_of == key else body["detail"]
        dashed = name_of.replace("_", "-")
        field = dashed if dashed in place else name_of
        if value is None:
            del place[field]
        else:
            place[field] = value
    return body


def the_notice(body: object, **options: Any) -> Any:
    (notice,) = parse(body, received=NOW, **options)
    return notice


def health(**changes: object) -> tuple[Any, ...]:
    """Return what is read of an event of Health; only a scheduled change has the fields asked for."""
    return parse(event("health-scheduled-change", **changes), received=NOW)


def entity(value: str, **more: str) -> list[dict[str, str]]:
    return [{"entityValue": value, **more}]


# The envelope


LOCAL = "arn:aws:ec2:us-west-2-lax-1a:instance/i-0b662ef9931388ba0"
OTHERS = "arn:aws:ec2:us-east-1a:instance/i-0dead000"


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        pytest.param(
            event("spot-interruption", resources=[OTHERS]),
            *("instance", "i-0b662ef9931388ba0"),
            id="the instance is that of the detail",
        ),
        pytest.param(
            event("spot-interruption", resources=[OTHERS]),
            *("zone", None),
            id="the zone only of the ARN of the instance itself",
        ),
        pytest.param(
            event("spot-interruption", resources=[LOCAL]),
            *("zone", "us-west-2-lax-1a"),
            id="a local zone is one",
        ),
        pytest.param(
            event("state-change-terminated"),
            *("zone", None),
            id="the region of an ordinary ARN is none",
        ),
        pytest.param(
            event("state-change-running", detail__instance_id="i-12345678"),
            *("instance", "i-12345678"),
            id="a short id is one",
        ),
        pytest.param(
            event("spot-interruption", time="2026-11-17T16:14:14+02:00"),
            *("time", datetime(2026, 11, 17, 14, 14, 14, tzinfo=UTC)),
            id="an offset is turned into UTC",
        ),
        pytest.param(
            event("lifecycle-sqs-flat"),
            *("time", datetime(2026, 11, 17, 15, 20, 47, 872000, tzinfo=UTC)),
            id="a flat message has milliseconds",
        ),
        pytest.param(
            {"Event": "autoscaling:EC2_INSTANCE_TERMINATE", "AutoScalingGroupName": "spot-a"},
            *("detail_type", "autoscaling:EC2_INSTANCE_TERMINATE"),
            id="a classic notification is unknown",
        ),
    ],
)
def test_a_field_is_read_where_it_is_true(body, field, value):
    assert getattr(the_notice(body), field) == value


@pytest.mark.parametrize("resources", ["arn:aws:ec2:us-east-1b:instance/i-1", [], [7], {}, 7, None])
def test_resources_may_be_a_bare_string_anything_else_or_absent(resources):
    assert isinstance(the_notice(event("spot-interruption", resources=resources)), SpotInterruption)


def test_resources_of_a_capacity_reservation_may_be_a_list_too():
    body = event("capacity-reservation-interruption", resources=["arn:aws:ec2:us-east-1:1:i"])
    assert isinstance(the_notice(body), CapacityReservationInterruption)


@pytest.mark.parametrize("name", RESERVATION_TYPES)
def test_a_capacity_reservation_is_known_by_both_documented_names(name):
    body = event("capacity-reservation-interruption")
    body["detail-type"] = name
    assert isinstance(the_notice(body), CapacityReservationInterruption)


# Spot


@pytest.mark.parametrize(
    ("action", "seconds"), [("hibernate", 0), ("terminate", 120), ("stop", 120), ("new", 120)]
)
def test_hibernation_has_no_lead_time_and_any_other_action_two_minutes(action, seconds):
    notice = the_notice(event("spot-interruption", detail__instance_action=action))
    assert notice.ends == notice.time + timedelta(seconds=seconds)


# Lifecycle actions


def test_a_lifecycle_action_carries_what_completes_it():
    notice = the_notice(event("lifecycle-terminate"))
    assert (notice.group, notice.hook, notice.token) == (
        "orders-prod-spot-general",
        "plimsoll-terminate",
        "8264d419-ebf5-4727-9e4c-ac4eb4ef54f3",
    )
    assert notice.ends == notice.time + HOOK_TIMEOUT


@pytest.mark.parametrize("field", ["NotificationMetadata", "Destination"])
def test_fields_that_older_lifecycle_actions_lack_are_optional(field):
    assert isinstance(
        the_notice(event("lifecycle-terminate", **{f"detail__{field}": None})), LifecycleTerminate
    )


def test_a_flat_message_has_no_region_unless_the_caller_knows_it():
    assert the_notice(event("lifecycle-sqs-flat")).region is None
    assert the_notice(event("lifecycle-sqs-flat"), region="eu-west-1").region == "eu-west-1"


def test_a_flat_launch_is_a_launch():
    body = event("lifecycle-sqs-flat", LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING")
    assert isinstance(the_notice(body), LifecycleLaunch)


def test_one_lifecycle_action_told_by_event_and_by_queue_has_one_id():
    flat = event("lifecycle-sqs-flat")
    enveloped = event("lifecycle-terminate")
    enveloped["detail"]["LifecycleActionToken"] = flat["LifecycleActionToken"]
    assert the_notice(flat).id == the_notice(enveloped).id


def test_an_action_without_a_token_is_known_by_its_event():
    body = event("lifecycle-terminate", detail__LifecycleActionToken=None)
    notice = the_notice(body)
    assert (notice.token, notice.id) == (None, body["id"])


def test_a_transition_that_contradicts_the_detail_type_is_refused():
    body = event(
        "lifecycle-terminate", detail__LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING"
    )
    with pytest.raises(BadInput, match=r"detail\.LifecycleTransition"):
        the_notice(body)


def test_an_instance_on_its_way_to_a_warm_pool_is_drained_since_it_will_be_stopped():
    verdict = actionable(the_notice(event("lifecycle-terminate", detail__Destination="WarmPool")))
    assert verdict.effect is Effect.DRAIN
    assert "warm pool" in verdict.reason


@pytest.mark.parametrize("key", ["Event", "LifecycleTransition"])
@pytest.mark.parametrize("inside", ["flat", "detail"])
def test_a_test_notification_is_one_wherever_it_says_so(key, inside):
    said: dict[str, object] = {
        key: "autoscaling:TEST_NOTIFICATION",
        "AutoScalingGroupName": "spot-a",
    }
    body = said
    if inside == "detail":
        body = event("lifecycle-terminate")
        body["detail"] = said
    assert the_notice(body) == TestNotification(group="spot-a", time=NOW)


# Health


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Sat, 05 Jun 2016 15:10:09 GMT", datetime(2016, 6, 5, 15, 10, 9, tzinfo=UTC)),
        ("Fri, 3 Jun 2022 06:27:57 GMT", datetime(2022, 6, 3, 6, 27, 57, tzinfo=UTC)),
        ("Tue, 01 Dec 2026 04:00:00 +0100", datetime(2026, 12, 1, 3, tzinfo=UTC)),
        ("2026-12-01T04:00:00Z", datetime(2026, 12, 1, 4, tzinfo=UTC)),
    ],
)
def test_dates_of_health_are_rfc_1123_with_wrong_weekdays_and_one_digit_days(written, meant):
    for notice in health(detail__startTime=written):
        assert notice.starts == meant


@pytest.mark.parametrize(
    "entities",
    [
        entity("arn:aws:ec2:us-east-1:123456789012:instance/i-12345678"),
        entity("h-0123456789abcdef0") + entity("i-12345678") + entity("arn:aws:ec2:x"),
        entity("i-12345678") * 2,
    ],
    ids=["by its ARN", "among entities of other kinds", "twice"],
)
def test_an_entity_that_is_an_instance_is_one_notice(entities):
    (notice,) = health(detail__affectedEntities=entities, resources=None)
    assert notice.instance == "i-12345678"


@pytest.mark.parametrize("entities", [[], None])
def test_a_change_that_names_no_instance_is_unknown(entities):
    (notice,) = health(detail__affectedEntities=entities)
    assert isinstance(notice, Unknown)
    assert "no instance" in notice.why


def test_the_region_is_where_it_happens_and_the_account_whose_it_is():
    for notice in health(
        region="us-west-2", account="999988887777", detail__eventRegion="eu-central-1"
    ):
        assert (notice.region, notice.account) == ("eu-central-1", "111122223333")


def test_a_backup_copy_in_another_region_and_the_view_of_the_organization_have_the_same_ids():
    original = health()
    backup = health(
        id="another", region="us-west-2", time="2026-11-17T06:31:00Z", detail__backupEvent="true"
    )
    organization = health(id="a-third", account="999988887777")
    ids = [[n.id for n in copies] for copies in (original, backup, organization)]
    assert ids[0] == ids[1] == ids[2]


def test_pages_of_one_event_are_different_notices():
    second = health(
        detail__communicationId="01b0993207d81a09dcd552ebd1e633e36cf1f09a-2",
        detail__page="2",
        detail__totalPages="2",
        detail__affectedEntities=entity("i-12345678"),
    )
    ids = {n.id for n in (*health(), *second)}
    assert len(ids) == 3


def test_an_older_event_has_neither_region_nor_communication_of_its_own():
    body = event("health-scheduled-change")
    for key in ("eventRegion", "affectedAccount", "communicationId", "statusCode", "page"):
        del body["detail"][key]
    notices = parse(body, received=NOW)
    assert [(n.account, n.region) for n in notices if isinstance(n, HealthScheduledChange)] == [
        ("111122223333", "us-east-1")
    ] * 2


def test_a_closed_or_cancelled_change_is_closed_for_all():
    for notice in health(detail__statusCode="closed"):
        assert (notice.closed, notice.ends) == (True, None)
        assert actionable(notice).effect is Effect.WITHDRAW


def test_an_entity_that_is_resolved_is_closed_alone():
    entities = entity("i-12345678", status="RESOLVED") + entity("i-12345679", status="PENDING")
    assert [n.closed for n in health(detail__affectedEntities=entities)] == [True, False]


def test_a_change_that_began_before_it_was_told_has_no_deadline():
    for notice in health(detail__startTime="Tue, 10 Nov 2026 04:00:00 GMT"):
        assert notice.ends is None


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", "maintenance"),
        ("AWS_EC2_DEDICATED_HOST_NETWORK_MAINTENANCE_SCHEDULED", "maintenance"),
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", "retirement"),
        ("AWS_EC2_INSTANCE_STOP_SCHEDULED", "other"),
    ],
)
def test_maintenance_and_retirement_are_told_apart(code, change):
    for notice in health(detail__eventTypeCode=code):
        assert notice.change == change


@pytest.mark.parametrize(
    "changes", [{"detail__service": "RDS"}, {"detail__eventTypeCategory": "issue"}]
)
def test_other_events_of_health_are_unknown(changes):
    (notice,) = health(**changes)
    assert isinstance(notice, Unknown)


# State changes and zones


@pytest.mark.parametrize(
    ("states", "at_once"),
    [
        (("stopping", "stopped", "shutting-down", "terminated"), True),
        (("pending", "running"), False),
    ],
)
def test_an_instance_that_is_leaving_ends_at_once_and_one_that_comes_never(states, at_once):
    for state in states:
        notice = the_notice(event("state-change-running", detail__state=state))
        assert notice.ends == (notice.time if at_once else None)


@pytest.mark.parametrize("state", ["stop", "down", "terminated,stopped", "Terminated"])
def test_a_part_of_a_state_is_no_state(state):
    with pytest.raises(BadInput, match=r"detail\.state"):
        the_notice(event("state-change-running", detail__state=state))


@pytest.mark.parametrize("name", sorted(DETAIL_TYPES))
def test_every_kind_of_zonal_shift_is_read_with_its_zone_id(name):
    body = event("zonal-autoshift")
    body["detail-type"] = name
    notice = the_notice(body)
    assert isinstance(notice, ZonalShift)
    assert notice.zone_id == "use1-az2"
    verb = "leaves" if name.endswith(("In Progress", "Started", "Updated")) else "returns to"
    assert actionable(notice).reason.endswith(f"traffic {verb} the zone use1-az2")
    assert actionable(notice).effect is Effect.SHOW


def test_the_data_of_an_interrupted_practice_run_is_an_object():
    body = event("zonal-autoshift", detail__data={"additionalFailureInfo": "…"})
    body["detail-type"] = "Practice Run Interrupted"
    assert the_notice(body).active is False


def test_an_autoshift_without_a_zone_is_refused():
    with pytest.raises(BadInput, match=r"detail\.metadata\.awayFrom"):
        the_notice(event("zonal-autoshift", detail__metadata={}))


# Drills and the unknown


@pytest.mark.parametrize(
    "name",
    ["spot-interruption", "health-scheduled-change", "lifecycle-terminate", "zonal-autoshift"],
)
def test_a_drill_stands_for_any_source_of_aws_only_where_drills_are_accepted(name):
    body = event(name, source="plimsoll.drill")
    assert parse(body, received=NOW, drills=True) == parse(event(name), received=NOW)
    refused = the_notice(body)
    assert isinstance(refused, Unknown)
    assert "drill" in refused.why
    body["detail-type"] = "EC2 Something Else"
    assert isinstance(the_notice(body, drills=True), Unknown)


def test_a_detail_type_counts_only_from_its_own_source():
    notice = the_notice(event("spot-interruption", source="aws.health"))
    assert isinstance(notice, Unknown)
    assert (notice.source, notice.detail_type) == (
        "aws.health",
        "EC2 Spot Instance Interruption Warning",
    )


def test_of_the_unknown_nothing_but_its_name_need_be_right():
    notice = the_notice({"source": "aws.s3", "detail-type": "Object Created"})
    assert notice == Unknown(
        source="aws.s3",
        detail_type="Object Created",
        why="no kind of event that we know",
        time=NOW,
    )


def test_reading_changes_nothing_in_the_body():
    body = event("health-scheduled-change")
    before = copy.deepcopy(body)
    parse(body, received=NOW)
    assert body == before
