"""What a hosted screen may ask: the service's own use cases, in the name of whoever is signed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from plimsoll_console.hosted.storms import TenantStorms
from plimsoll_console.pages import Method, Page, Request
from plimsoll_service.domain.access import PersonRole, Principal
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.people import PeopleService
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.reads import Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of one person."""

    person: Principal
    now: datetime
    data: TenantData
    """Of the person's tenant."""
    reads: Reads
    people: PeopleService
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


type HostedView = Callable[[Request, Asked], Page]


class HostedRoute(NamedTuple):
    """One line of the table of routes."""

    method: Method
    path: str
    view: HostedView
