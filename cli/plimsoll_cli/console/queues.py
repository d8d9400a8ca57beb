"""What the console shows of the batch queues, out of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.admission import QueuePlan, plan_queues
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.jobs import GangJobs
from plimsoll_batch.domain.overview import QuotaUse, overview
from plimsoll_batch.domain.quota import amount_text
from plimsoll_batch.services.queue_observation import Seen, seen_in
from plimsoll_cli.batch.gangs import gang_state
from plimsoll_console.queues import GangLine, QueueLine, QueuesSeen, QuotaLine

MOST_GANGS: Final = 1000
"""Gangs that are kept."""
MOST_EXPLAINED: Final = 50
"""Gangs whose wait is explained in full: each costs as much as a small plan."""


def queues_of(cluster: KubernetesQueues, now: datetime) -> QueuesSeen | None:
    """Return the queues of a cluster, or why they cannot be read; None where it has none."""
    try:
        configuration = cluster.configuration()
        if configuration is None:
            return None
        return _seen(seen_in(cluster.read(), configuration, now), now)
    except PlimsollError as error:
        return QueuesSeen(at=now, error=str(error))


def _seen(seen: Seen, now: datetime) -> QueuesSeen:
    plan = plan_queues(seen.state, now)
    order = sorted(seen.gangs.values(), key=_urgency)
    reasons = _reasons(plan)
    waiting = [jobs.gang.uid for jobs in order if gang_state(jobs) == "waiting"]
    explained = {uid: _why(seen, uid, now) for uid in waiting[:MOST_EXPLAINED]}
    return QueuesSeen(
        at=now,
        queues=[
            QueueLine(
                name=each.name,
                cohort=each.cohort,
                stopped=each.stopped,
                quotas=[_quota(use) for use in each.quotas],
                share=each.share,
                running=each.running,
                waiting=[(str(wait), number) for wait, number in sorted(each.waiting.items())],
                preempted=each.preempted,
            )
            for each in overview(seen.state, plan, now)
        ],
        gangs=[
            GangLine(
                name=str(jobs.gang),
                queue=jobs.gang.queue,
                state=gang_state(jobs),
                running=jobs.running,
                pods=sum(role.pods for role in jobs.roles),
                since=jobs.gang.since,
                reason=reasons.get(jobs.gang.uid, ""),
                why=explained.get(jobs.gang.uid, ()),
            )
            for jobs in order[:MOST_GANGS]
        ],
        waiting=len(waiting),
        more=max(0, len(order) - MOST_GANGS),
    )


def _urgency(jobs: GangJobs) -> tuple[bool, datetime, str]:
    return gang_state(jobs) != "waiting", jobs.gang.since, str(jobs.gang)


def _reasons(plan: QueuePlan) -> Mapping[str, str]:
    """Return the reason of each decision, by uid."""
    found = {each.gang.uid: each.reason for each in plan.admitted}
    found |= {each.gang.uid: each.reason for each in plan.preempting}
    found |= {each.gang.uid: each.reason for each in plan.reserved}
    found |= {each.gang.uid: each.reason for each in plan.awaiting}
    return found | {gang.uid: each.reason for each in plan.waiting for gang in each.gangs}


def _why(seen: Seen, uid: str, now: datetime) -> tuple[str, ...]:
    told = why(seen.state, uid, now)
    return () if told is None else tuple(line.strip() for line in in_words(told).splitlines())


def _quota(use: QuotaUse) -> QuotaLine:
    words = f"{amount_text(use.resource, use.used)} of {amount_text(use.resource, use.quota)}"
    if use.borrowed:
        words += f", {amount_text(use.resource, use.borrowed)} borrowed"
    return QuotaLine(
        flavor=use.flavor,
        resource=use.resource,
        used=use.used,
        quota=use.quota,
        most=use.most,
        words=words,
    )
