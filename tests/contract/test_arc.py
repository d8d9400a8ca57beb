"""What the Application Recovery Controller lists, in the words of its service model; moto does not play it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from plimsoll.adapters.arc import ArcZonalShifts, notices_of
from plimsoll.adapters.aws import Aws
from plimsoll.domain.errors import PlimsollError, Refused, Temporary, Throttled
from plimsoll.domain.notices import ZonalShift

from .conftest import REGION, T0

EKS = f"arn:aws:eks:{REGION}:123456789012:cluster/shop"
ACTIVE = {"status": "ACTIVE"}


def shift(**how: Any) -> dict[str, Any]:
    return {
        "zonalShiftId": "0f1e2d3c",
        "resourceIdentifier": EKS,
        "awayFrom": "euw1-az1",
        "startTime": T0,
        "expiryTime": T0 + timedelta(hours=1),
        "status": "ACTIVE",
        "comment": "slow",
        **how,
    }


AUTOSHIFT = {"awayFrom": "euw1-az2", "startTime": T0, "status": "ACTIVE"}


@pytest.fixture
def arc(moto_aws: Aws) -> Iterator[Stubber]:
    with Stubber(moto_aws.arc_zonal_shift) as stubber:
        yield stubber


def test_shifts_and_autoshifts_that_stand_are_listed_page_by_page(moto_aws: Aws, arc: Stubber):
    first = {"items": [shift()], "nextToken": "more"}
    second = {"items": [shift(zonalShiftId="another", awayFrom="euw1-az3")]}
    arc.add_response("list_zonal_shifts", first, ACTIVE)
    arc.add_response("list_zonal_shifts", second, {**ACTIVE, "nextToken": "more"})
    arc.add_response("list_autoshifts", {"items": [AUTOSHIFT]}, ACTIVE)
    found = ArcZonalShifts(moto_aws).active()
    assert [(s.zone_id, s.cause, s.resources) for s in found] == [
        ("euw1-az1", "manual", (EKS,)),
        ("euw1-az3", "manual", (EKS,)),
        ("euw1-az2", "autoshift", ()),
    ]
    assert found[0] == ZonalShift(
        zone_id="euw1-az1",
        cause="manual",
        active=True,
        time=T0,
        account="",
        region=REGION,
        id="0f1e2d3c",
        resources=(EKS,),
    )


def test_where_nothing_is_shifted_nothing_is_listed(moto_aws: Aws, arc: Stubber):
    arc.add_response("list_zonal_shifts", {"items": []}, ACTIVE)
    arc.add_response("list_autoshifts", {}, ACTIVE)
    assert ArcZonalShifts(moto_aws).active() == []


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ({"shiftType": "ZONAL_SHIFT"}, "manual"),
        ({"shiftType": "PRACTICE_RUN", "practiceRunOutcome": "PENDING"}, "practice"),
        ({"practiceRunOutcome": "PENDING"}, "practice"),
        ({"shiftType": "FIS_EXPERIMENT"}, "experiment"),
        ({"shiftType": "ZONAL_AUTOSHIFT"}, "autoshift"),
        ({}, "manual"),
    ],
)
def test_its_type_says_who_shifts(told: dict[str, str], cause: str):
    [found] = notices_of([shift(**told)], [], REGION)
    assert (found.cause, found.is_about("shop")) == (cause, True)


def test_a_type_that_is_not_known_is_left_out():
    assert notices_of([shift(shiftType="REGION_SWITCH")], [], REGION) == []


def test_every_type_of_the_service_model_is_known(moto_aws: Aws):
    shapes = moto_aws.arc_zonal_shift.meta.service_model
    for kind in shapes.shape_for("ShiftType").enum:
        assert notices_of([shift(shiftType=kind)], [], REGION), kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDeniedException", Refused),
        ("ThrottlingException", Throttled),
        ("InternalServerException", Temporary),
    ],
)
@pytest.mark.parametrize("operation", ["list_zonal_shifts", "list_autoshifts"])
def test_an_answer_that_is_not_whole_is_an_error(
    moto_aws: Aws, arc: Stubber, code: str, kind: type[PlimsollError], operation: str
):
    if operation == "list_autoshifts":
        arc.add_response("list_zonal_shifts", {"items": [shift()]}, ACTIVE)
    status = {"AccessDeniedException": 403, "ThrottlingException": 429}.get(code, 500)
    arc.add_client_error(operation, code, "no", http_status_code=status)
    with pytest.raises(kind):
        ArcZonalShifts(moto_aws).active()


def test_a_region_without_arc_is_an_error_and_no_empty_list(credentials: None):
    nowhere = Aws(REGION, endpoints={"arc-zonal-shift": "https://arc.invalid"})
    with pytest.raises(PlimsollError):
        ArcZonalShifts(nowhere).active()
