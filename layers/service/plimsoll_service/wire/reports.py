"""The reports of interruptions of one cluster, as its interruption stack keeps them for 90 days."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plimsoll_service.wire.documents import Count, Time
from plimsoll_service.wire.pages import Page

type Outcome = Literal["killed", "below floor", "past a budget", "unhurt", "under way"]
"""`past a budget`: a pod was deleted past its PodDisruptionBudget."""


class ReportRow(Struct, frozen=True, kw_only=True):
    """One interruption of a node. A time is null until its step is done."""

    interruption: str
    """Instance and launch time; of a scale-up or a placement, the id of that report."""
    node: str
    kind: str
    """The kind of the notice, `scale-up` or `placement`."""
    outcome: Outcome
    """The worst that it came to, so far."""
    noticed: Time
    deadline: Time | None = None
    cordoned: Time | None = None
    capacity_asked: Time | None = None
    """When nodes were first asked of a node group."""
    replaced: Time | None = None
    """When every pod that can run twice was first Ready elsewhere."""
    emptied: Time | None = None
    gone: Time | None = None
    """When the instance was gone."""
    closed: Time | None = None
    killed: Count
    """Pods that were on the instance when it went."""
    below_floor: Count
    """Workloads that had fewer Ready replicas than their ready floor."""
    overruled: Count
    """Pods that were deleted past their PodDisruptionBudget."""
    added: Count
    """Nodes that node groups were asked for."""
    refused: Count
    """Requests for nodes that were refused."""


class ReportPage(Page, frozen=True, kw_only=True):
    """A page of the reports of one cluster, newest first."""

    items: tuple[ReportRow, ...]
    counts: dict[Outcome, Count]
    """Outcome -> how many of all that pass the filters."""
    complete: bool = True
    """Whether all reports of 90 days are listed and counted; false: the newest 1,000 are."""
