"""The list of clusters: a row for each, and which function writes which of its columns.

A column that nobody told is null, and never 0: `seen` before the first snapshot, `seen.agent` of an agent of an older
version, `advised` before the first analysis, `saved` before the first whole day.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count, Time
from plimsoll_service.wire.pages import Page
from plimsoll_service.wire.snapshot import AgentState

WRITER: Final = "x-plimsoll-writer"
"""In the description of the API: who writes a column."""


class Columns(Struct, frozen=True, kw_only=True):
    """Columns of a row that one function writes."""


class SeenColumns(Columns, frozen=True, kw_only=True):
    """Columns of the newest snapshot. The function `metrics` writes them when it works a snapshot in."""

    taken_at: Time
    """When the agent took the snapshot."""
    received_at: Time
    """When the service received it: the agent was last seen then."""
    nodes: Count
    spot: Count
    """Nodes on spot."""
    open_interruptions: Count
    """Nodes that are marked as going."""
    agent: AgentState | None = None
    """What the agent tells of itself; null: it is of an older version, and tells nothing."""


class AdvisedColumns(Columns, frozen=True, kw_only=True):
    """Columns of the last analysis. The function `advice` writes them at the end of a run."""

    taken_at: Time
    """When the snapshot was taken that was analysed."""
    floors: Count
    """Workloads whose owner states an on-demand floor."""
    floors_missed: Count
    """Of these, the ones with fewer Ready pods on on-demand nodes than the floor asks for."""
    lines: Count | None = None
    """Deployments of which `plimsoll.dev/keep-ready` promises a number of Ready replicas; null: the agent is of an older
    version, and tells of no promise."""
    lines_broken: Count | None = None
    """Of these, the ones with fewer Ready replicas than promised; null as above."""
    decisions: Count
    """Recommendations that are open; each decision counts them anew."""
    monthly: float | None = None
    """Dollars a month of its nodes; null: the price of one of them is not known."""
    saveable: float | None = None
    """Of these, what the cheapest mix found for the same pods saves; null as above."""


class SavedMonth(Columns, frozen=True, kw_only=True):
    """A month of a cluster, as `savings/history` compares it."""

    month: str
    """Such as 2026-11."""
    days: Count
    """Days that are known."""
    gaps: Count
    """Days that are not."""
    cost: float
    """Dollars of the days that are known."""
    foreseen: float
    """Dollars of these days, by recommendations that were carried out."""
    realised: float | None = None
    """Dollars of these days, against the days before the changes; null: there is nothing to compare, or it cannot be."""


class SavedColumns(Columns, frozen=True, kw_only=True):
    """Columns of the bill. The function `advice` writes them once a day."""

    until: date
    """The last whole day."""
    months: tuple[SavedMonth, ...]
    """The last month and the one before it, as far as a day of theirs is known."""


class ClusterRow(Struct, frozen=True, kw_only=True):
    """A cluster with an agent."""

    id: Annotated[str, Meta(extra_json_schema={WRITER: "enrolment"})]
    name: Annotated[str, Meta(extra_json_schema={WRITER: "enrolment"})]
    silent: Annotated[bool, Meta(extra_json_schema={WRITER: "this request"})]
    """Whether no snapshot came for ten minutes, or ever."""
    seen: Annotated[SeenColumns | None, Meta(extra_json_schema={WRITER: "metrics"})] = None
    """Null: no snapshot was worked in yet."""
    advised: Annotated[AdvisedColumns | None, Meta(extra_json_schema={WRITER: "advice"})] = None
    """Null: it was not analysed yet."""
    saved: Annotated[SavedColumns | None, Meta(extra_json_schema={WRITER: "advice"})] = None
    """Null: no run of the advice looked at its days yet."""


class ClusterCounts(Struct, frozen=True, kw_only=True):
    """Sums over all rows that pass the filters, on every page the same. Rows that do not tell count as nothing."""

    clusters: Count
    silent: Count
    interrupted: Count
    """Clusters with nodes that are marked as going."""
    nodes: Count
    spot: Count
    floors_missed: Count
    lines_broken: Count
    decisions: Count
    monthly: float
    saveable: float
    unpriced: Count
    """Clusters that `monthly` and `saveable` leave out, because they were not analysed or have a node without a price."""


class Cluster(Struct, frozen=True, kw_only=True):
    """A cluster with an agent, as clients of version 0.2 and before read it."""

    id: str
    name: str
    taken_at: Time | None = None
    """When its newest snapshot was taken; None: none came yet."""
    age_s: int | None = None


class Clusters(Page, frozen=True, kw_only=True):
    """The clusters of a tenant, by name."""

    items: tuple[ClusterRow, ...]
    counts: ClusterCounts
    clusters: tuple[Cluster, ...] = ()
    """For clients of version 0.2 and before: 1,000 clusters by id, given only if the request names neither `limit` nor
    `after`."""
    left_out: Count = 0
    """How many clusters `clusters` leaves out."""


class AgentRow(Struct, frozen=True, kw_only=True):
    """The agent of a cluster, from the row of its cluster."""

    cluster_id: str
    name: str
    silent: bool
    last_seen: Time | None = None
    """When the service received its newest snapshot; null: none was worked in yet."""
    agent: AgentState | None = None
    """What it tells of itself; null: no snapshot came, or the agent is of an older version."""


class Agents(Page, frozen=True, kw_only=True):
    """The agents of a tenant, by the name of their cluster."""

    items: tuple[AgentRow, ...]
    silent: Count = 0
    """How many of all that pass the filters are silent."""


class Member(Struct, frozen=True, kw_only=True):
    """Somebody who was let in."""

    subject: str
    role: str
    """`agent` or `person`."""
    name: str
    kid: str
    """The name of their key."""


class Members(Page, frozen=True, kw_only=True):
    """The agents and people of a tenant, by subject."""

    items: tuple[Member, ...]
