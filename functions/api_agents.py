"""The requests of agents: enrolment, tokens, snapshots and instructions."""

from __future__ import annotations

from typing import Final

import msgspec

from functions.api_requests import ApiRequest
from plimsoll.observability import logger
from plimsoll_service import bootstrap
from plimsoll_service.services.instructions import pending, report
from plimsoll_service.wire.access import Enrolment, TokenRequest
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.instructions import Results


def enrol(asked: ApiRequest) -> msgspec.Struct:
    """Admit a key by a join token."""
    asked.count_address("enrolments")
    return bootstrap.access().enrol(decode(asked.body, Enrolment), asked.now)


def grant(asked: ApiRequest) -> msgspec.Struct:
    """Exchange a signed assertion for an access token."""
    asked.count_address("assertions")
    return bootstrap.access().grant(decode(asked.body, TokenRequest), asked.now)


def renew(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Renew the access token of an agent, apart from the rate that callers without a token share."""
    return bootstrap.access().renew(asked.agent(cluster), asked.now)


def push_snapshot(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Accept a snapshot."""
    taken = bootstrap.intake().take(asked.agent(cluster), asked.body)
    if taken.left_out:
        facts = {"cluster": cluster, "sequence": taken.accepted, "objects": taken.left_out}
        logger.warning("objects with invalid names left out", extra=facts)
    return taken


def forward_taints(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Forward interruption taints of other handlers."""
    return bootstrap.taints().forward(asked.agent(cluster), asked.body)


def forward_queue_change(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Forward that a Job of a batch queue changed."""
    return bootstrap.taints().queue_changed(asked.agent(cluster))


def poll_instructions(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the instructions that wait for the executor."""
    agent = asked.agent(cluster)
    return pending(bootstrap.reads().for_executor(agent), cluster)


def post_results(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Store the results of instructions."""
    agent = asked.agent(cluster)
    data = bootstrap.reads().for_executor(agent)
    results = decode(asked.body, Results)
    # Written before the request for advice: the run that answers it reads the results.
    report(data, cluster, results.results, asked.now)
    asked.ask_for_advice(agent, cluster)
    return results


VIEWS: Final = (
    enrol,
    grant,
    renew,
    push_snapshot,
    forward_taints,
    forward_queue_change,
    poll_instructions,
    post_results,
)
