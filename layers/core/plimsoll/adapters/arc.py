"""Which zonal shifts and autoshifts stand, as the Application Recovery Controller (ARC) lists them.

https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_Operations.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.notices import Cause, ZonalShift

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

_CAUSES: Final[Mapping[str, Cause]] = {
    "ZONAL_SHIFT": "manual",
    "PRACTICE_RUN": "practice",
    "FIS_EXPERIMENT": "experiment",
    "ZONAL_AUTOSHIFT": "autoshift",
}
"""https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_ZonalShiftSummary.html"""


class ArcZonalShifts:
    """Implements `plimsoll.services.ports.ZonalShifts`."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def active(self) -> Sequence[ZonalShift]:
        """Return notices of the shifts that stand.

        Raises:
            PlimsollError: ARC cannot be asked, in full or in part.
        """
        with translated("list the zonal shifts that stand"):
            shifts = _active(self._aws.arc_zonal_shift.get_paginator("list_zonal_shifts"))
            autoshifts = _active(self._aws.arc_zonal_shift.get_paginator("list_autoshifts"))
            region = self._aws.region
        return notices_of(shifts, autoshifts, region)


def notices_of(
    shifts: Iterable[Mapping[str, Any]],
    autoshifts: Iterable[Mapping[str, Any]],
    region: str | None,
) -> Sequence[ZonalShift]:
    """Return what ARC lists as the notices that events would have been.

    What owners shift, and practice runs, have an id and name what they are about. An autoshift has neither: it is
    about all of the account and region. A type of shift that is not known here is left out.
    """
    return [
        _notice(item, cause, region)
        for items, otherwise in ((shifts, None), (autoshifts, "ZONAL_AUTOSHIFT"))
        for item in items
        if (cause := _CAUSES.get(otherwise or _type_of(item))) is not None
    ]


def _active(paginator: Any) -> Sequence[Mapping[str, Any]]:
    pages = paginator.paginate(status="ACTIVE")
    return [item for page in pages for item in page.get("items", ())]


def _type_of(shift: Mapping[str, Any]) -> str:
    """Return the type of a shift; one that has none has the outcome of a practice run if it is one."""
    known: str | None = shift.get("shiftType")
    return known or ("PRACTICE_RUN" if "practiceRunOutcome" in shift else "ZONAL_SHIFT")


def _notice(item: Mapping[str, Any], cause: Cause, region: str | None) -> ZonalShift:
    zone, began = item["awayFrom"], item["startTime"].astimezone(UTC)
    about = item.get("resourceIdentifier")
    return ZonalShift(
        zone_id=zone,
        cause=cause,
        active=True,
        time=began,
        account="",
        region=region,
        id=item.get("zonalShiftId") or f"{zone}/{began:%Y%m%dT%H%M%S}",
        resources=() if about is None else (about,),
    )
