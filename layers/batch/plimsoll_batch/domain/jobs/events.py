"""What the Events on the Jobs of a gang say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.domain.kubernetes import LONGEST_MESSAGE, NAMESPACE, ClusterEvent, Ref
from plimsoll_batch.domain.jobs.jobs import GangJobs
from plimsoll_batch.domain.jobs.node_requests import NodeRequest
from plimsoll_batch.domain.names import CONFIGURATION

NOT_LEASED: Final = "QueueNotLeased"
"""The reason of Events that warn that a gang is not given its nodes, for example for want of a right."""


def gang_events(
    jobs: GangJobs, reason: str, message: str, *, cause: str, warning: bool = False
) -> Iterator[ClusterEvent]:
    """Yield the Event of each role of a gang; a new cause is a new Event."""
    for role in jobs.roles:
        yield ClusterEvent(
            about=role.ref,
            uid=role.uid,
            reason=reason,
            message=message[:LONGEST_MESSAGE],
            warning=warning,
            cause=cause[:LONGEST_MESSAGE],
        )


def problem_events(jobs: GangJobs) -> Iterator[ClusterEvent]:
    """Yield the Events that warn of what is wrong with a gang."""
    for words in jobs.problems:
        yield from gang_events(jobs, "QueueProblem", words, cause=words, warning=True)


def request_events(jobs: GangJobs, request: NodeRequest) -> Iterator[ClusterEvent]:
    """Yield the Events that tell what was asked for a gang."""
    yield from gang_events(jobs, "QueueNodes", request.in_words(), cause=request.asks[0].token)


def configuration_event(words: str) -> ClusterEvent:
    """Return the Event that warns of a wrong configuration."""
    return ClusterEvent(
        about=Ref("ConfigMap", NAMESPACE, CONFIGURATION),
        uid=CONFIGURATION,
        reason="QueueProblem",
        message=words[:LONGEST_MESSAGE],
        warning=True,
        cause=words[:LONGEST_MESSAGE],
    )
