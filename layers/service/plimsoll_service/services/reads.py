"""What people read of their own clusters, and executors of theirs: so often and no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict

from plimsoll.domain.errors import NotFound
from plimsoll_service.domain.access import PersonRole, Principal, Role
from plimsoll_service.domain.errors import Forbidden
from plimsoll_service.domain.snapshots import (
    Span,
    interrupted_nodes,
    period_of,
    pool_rows,
    workload_rows,
)
from plimsoll_service.services.access import refuse_others
from plimsoll_service.services.cluster_rows import has_cluster
from plimsoll_service.services.clusters import agents, clusters, members
from plimsoll_service.services.gpu_history import CLASS_DAYS_KEPT, class_days
from plimsoll_service.services.history import (
    Known,
    newest,
    rollups,
    usage,
)
from plimsoll_service.services.limits import count
from plimsoll_service.services.paging import PageRequest
from plimsoll_service.services.ports import Clock, Members, TenantData, Tenants
from plimsoll_service.wire import clusters as wire
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.gpu import ClassDays
from plimsoll_service.wire.views import Interruptions, Periods, Pools, Workloads

READS_PER_MINUTE: Final = 600
"""Of all people of one tenant: what they read costs as much as what their agents send."""
DECISIONS_PER_MINUTE: Final = 60
"""Of one person, refused ones too: each leaves an audit row."""
POLLS_PER_MINUTE: Final = 30
"""Of one agent, what it reports included. It asks every five minutes, and when it is told to."""
MOST_ROWS: Final = 4000
"""Of an answer: Lambda returns 6 MB at most, and the longest rows have 1 kB."""
PERIODS: Final = {Span.HOUR: timedelta(days=7), Span.DAY: timedelta(days=92)}
"""How far an answer goes back: each hour of a large cluster is read whole."""
_DAY: Final = timedelta(days=1)
_PAGE: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}#[0-9]{1,3})?")


class _Seen(TypedDict):
    cluster_id: str
    taken_at: datetime
    age_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Reads for people and executors."""

    tenants: Tenants
    members: Members
    clock: Clock
    reads_per_minute: int = READS_PER_MINUTE
    polls_per_minute: int = POLLS_PER_MINUTE
    decisions_per_minute: int = DECISIONS_PER_MINUTE

    def clusters(self, person: Principal, asked: PageRequest) -> wire.Clusters:
        """Return a page of the clusters that a person may see.

        Raises:
            Throttled: its people read too much.
        """
        return clusters(self._counted(person), asked, self.clock.now(), _seen_by(person))

    def agents(self, person: Principal, asked: PageRequest) -> wire.Agents:
        """Return a page of the agents of these clusters.

        Raises:
            Throttled: as above.
        """
        return agents(self._counted(person), asked, self.clock.now(), _seen_by(person))

    def let_in(self, person: Principal, asked: PageRequest) -> wire.Members:
        """Return a page of who was let in to the tenant of an admin.

        Raises:
            Forbidden: the person is no admin of the tenant as a whole.
            Throttled: as above.
        """
        self._counted(person)
        if not person.may(PersonRole.ADMIN):
            raise Forbidden("this is for admins of the tenant")
        return members(self.members, person.tenant, asked, self.clock.now())

    def workloads(self, person: Principal, cluster: str) -> Workloads:
        """Return the workloads of a cluster, and what they used in the last day.

        Raises:
            NotFound: the tenant has no such cluster, or nothing is known of it yet.
            Throttled: its people read too much.
        """
        data, known = self._known(person, cluster)
        taken = known.snapshot.taken_at
        used, unmeasured = usage(data, known, taken - _DAY, taken)
        rows = workload_rows(known.snapshot, used, most=MOST_ROWS)
        return Workloads(
            workloads=rows,
            left_out=len(known.snapshot.workloads) - len(rows),
            usage_left_out=unmeasured,
            **self._seen(known),
        )

    def interruptions(self, person: Principal, cluster: str) -> Interruptions:
        """Return the nodes of a cluster that are marked as going.

        Raises:
            NotFound, Throttled: as above.
        """
        _, known = self._known(person, cluster)
        rows = interrupted_nodes(known.snapshot)
        return Interruptions(
            interruptions=rows[:MOST_ROWS], left_out=len(rows[MOST_ROWS:]), **self._seen(known)
        )

    def pools(self, person: Principal, cluster: str) -> Pools:
        """Return the capacity pools of a cluster.

        Raises:
            NotFound, Throttled: as above.
        """
        _, known = self._known(person, cluster)
        rows = pool_rows(known.snapshot)
        return Pools(pools=rows[:MOST_ROWS], left_out=len(rows[MOST_ROWS:]), **self._seen(known))

    def periods(self, person: Principal, cluster: str, span: Span, before: str | None) -> Periods:
        """Return the hours of a week, or the days of a quarter, that begin before a time; None: before now.

        Raises:
            Malformed: that is no time.
            NotFound, Throttled: as above.
        """
        data = self.data(person, cluster)
        now = self.clock.now()
        until = max(now - Span.DAY.kept, min(now, time_of(before) if before else now))
        since = span.start(until - PERIODS[span])
        found = rollups(data, cluster, span, since, until)
        periods = tuple(period_of(each) for each in found if each.start < until)
        return Periods(cluster_id=cluster, since=since, periods=periods)

    def gpu(self, person: Principal, cluster: str, days: str, after: str) -> ClassDays:
        """Return a page of what is kept of a cluster's GPUs.

        Args:
            person: Who asks.
            cluster: Of which.
            days: How many days back, today included; a number as it stands in the request.
            after: `next` of the page before.

        Raises:
            Malformed: there are no such days, or there is no such page.
            NotFound, Throttled: as above.
        """
        data = self.data(person, cluster)
        if not days.isdecimal() or len(days) > 2 or not 1 <= int(days) <= CLASS_DAYS_KEPT.days:  # noqa: PLR2004 - digits
            raise Malformed(
                f"days is a number from 1 to {CLASS_DAYS_KEPT.days}, and not {days[:64]!r}"
            )
        if _PAGE.fullmatch(after) is None:
            raise Malformed(f"{after[:64]!r} is no page: it is `next` of the page before")
        since = self.clock.now().date() - timedelta(days=int(days) - 1)
        return class_days(data, cluster, since, after)

    def data(self, person: Principal, cluster: str) -> TenantData:
        """Return the data of a person's tenant, which has that cluster.

        Raises:
            NotFound: the tenant has no such cluster, or the person may not know of it.
            Throttled: its people read too much.
        """
        data = self._counted(person)
        if not person.may(PersonRole.VIEWER, cluster) or not has_cluster(data, cluster):
            raise NotFound(f"there is no cluster {cluster[:64]}")
        return data

    def of_tenant(self, person: Principal) -> TenantData:
        """Return the data of a person's tenant.

        Raises:
            Throttled: its people read too much.
        """
        return self._counted(person)

    def for_decision(self, person: Principal, cluster: str) -> TenantData:
        """Return the data of a person's tenant, for a decision about a recommendation of a cluster.

        Raises:
            NotFound: the tenant has no such cluster.
            Throttled: the person decides too often: each attempt leaves an audit row.
        """
        refuse_others(person, "", Role.PERSON)
        now = self.clock.now()
        count(self.members, person.subject, "decisions", most=self.decisions_per_minute, now=now)
        return self.data(person, cluster)

    def for_executor(self, agent: Principal) -> TenantData:
        """Return the data of an agent's tenant, for what its executor asks and reports.

        Raises:
            Throttled: it asks too often.
        """
        now = self.clock.now()
        count(self.members, agent.subject, "polls", most=self.polls_per_minute, now=now)
        return self.tenants.of(agent.tenant)

    def _counted(self, person: Principal) -> TenantData:
        refuse_others(person, "", Role.PERSON)
        now = self.clock.now()
        count(self.members, person.tenant, "reads", most=self.reads_per_minute, now=now)
        return self.tenants.of(person.tenant)

    def _known(self, person: Principal, cluster: str) -> tuple[TenantData, Known]:
        data = self.data(person, cluster)
        known = newest(data, cluster)
        if known is None:
            raise NotFound(f"no snapshot of {cluster} was worked in yet")
        return data, known

    def _seen(self, known: Known) -> _Seen:
        taken = known.snapshot.taken_at
        return _Seen(cluster_id=known.snapshot.cluster_id, taken_at=taken, age_s=self._age(taken))

    def _age(self, taken: datetime) -> int:
        return max(0, int((self.clock.now() - taken).total_seconds()))


def _seen_by(person: Principal) -> Callable[[str], bool]:
    return lambda cluster: person.may(PersonRole.VIEWER, cluster)


def time_of(text: str) -> datetime:
    """Return a time as it stands in a request.

    Raises:
        Malformed: it is none.
    """
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Malformed(f"{text[:64]!r} is no time such as 2026-01-31T13:00:00Z") from error
