"""What admins read of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from plimsoll_service.domain.access import PersonRole, Principal
from plimsoll_service.domain.errors import Forbidden
from plimsoll_service.services.paging import Filter, PageRequest, cut
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.audit import Action, AuditEntry, AuditRows

FILTERS: Final[Mapping[str, Filter]] = {
    "who": Filter(description="the name or the id of a person"),
    "action": Filter(description="what was done", values=tuple(Action)),
    "object": Filter(description="how the object begins, as in clusters/a-1"),
    "outcome": Filter(description="what came of it", values=("done", "refused")),
}


def audit_rows(data: TenantData, by: Principal, asked: PageRequest, now: datetime) -> AuditRows:
    """Return a page of the audit log, newest first.

    Raises:
        Forbidden: the person is no admin.
    """
    if not by.may(PersonRole.ADMIN):
        raise Forbidden("the audit log takes the role admin")
    page = cut(
        data.audit.list(asked.after),
        asked,
        key=lambda row: row[0],
        keep=lambda row: _fits(row[1], asked.filters),
        descending=True,
    )
    return AuditRows(items=tuple(entry for _, entry in page.items), next=page.next, as_of=now)


def _fits(entry: AuditEntry, filters: Mapping[str, str]) -> bool:
    return (
        filters.get("who", entry.who) in {entry.who, entry.subject}
        and filters.get("action", entry.action) == entry.action
        and entry.object.startswith(filters.get("object", ""))
        and filters.get("outcome", entry.outcome) == entry.outcome
    )
