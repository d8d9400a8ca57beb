"""What a hosted screen may ask: the service's own use cases, in the name of whoever is signed in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from plimsoll_console.hosted.storms import TenantStorms
from plimsoll_console.pages import Method, Page, Request
from plimsoll_service.domain.access import PersonRole, Principal
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.paging import PAGE_ROWS, Filter, PageRequest, page_request
from plimsoll_service.services.people import PeopleService
from plimsoll_service.services.ports import Members, TenantData
from plimsoll_service.services.reads import Reads

ALL: Final = "all"
"""Lifts a filter that a list has by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of one person."""

    person: Principal
    now: datetime
    data: TenantData
    """Of the person's tenant."""
    reads: Reads
    people: PeopleService
    members: Members
    """Who holds a key."""
    stack: InterruptionStack | None
    """None: the service is told of no interruption stack."""
    storms: TenantStorms
    """Of the cluster that the path names."""
    ask_for_advice: Callable[[str], None]
    """Has what was decided about a cluster seen at once."""
    cluster: str = ""
    """The id of the cluster that the path names; the person may see it."""

    @property
    def may_decide(self) -> bool:
        """Whether the person may decide about the cluster."""
        return self.person.may(PersonRole.OPERATOR, self.cluster)

    def sees(self, cluster: str) -> bool:
        """Whether the person may see a cluster, by its id."""
        return self.person.may(PersonRole.VIEWER, cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Which page of a list a request asks for, and what the form above the list shows."""

    page: PageRequest
    filters: Mapping[str, Filter]
    usual: Collection[str]
    """Filters that the list has by itself."""

    @property
    def given(self) -> Mapping[str, Any]:
        """What the template of a list needs."""
        return {
            "first": not self.page.after,
            "filters": {
                name: self.page.filters.get(name, ALL if name in self.usual else "")
                for name in self.filters
            },
            "choices": {
                name: (*each.values, *([ALL] if name in self.usual else []))
                for name, each in self.filters.items()
            },
            "limit": self.page.limit if self.page.limit != PAGE_ROWS else "",
        }


def listed(request: Request, prefix: str, filters: Mapping[str, Filter], **usual: str) -> Listed:
    """Return which page of a list is asked for, by the page contract of the API.

    Args:
        request: its query names `limit`, `after` and filters.
        prefix: how the sort keys of the list begin.
        filters: those that the list has.
        usual: filters of whoever gives none; `all` lifts one.

    Raises:
        Malformed: the query names no such page or filter.
    """
    # A form sends the filters that are left open, too.
    query = usual | {name: value for name, value in request.query.items() if value}
    kept = {name: value for name, value in query.items() if name not in usual or value != ALL}
    page = page_request(kept, prefix=prefix, filters=filters)
    return Listed(page=replace(page, explicit=True), filters=filters, usual=usual.keys())


type HostedView = Callable[[Request, Asked], Page]


class HostedRoute(NamedTuple):
    """One line of the table of routes."""

    method: Method
    path: str
    view: HostedView
