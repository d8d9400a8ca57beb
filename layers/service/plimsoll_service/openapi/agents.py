"""The requests of agents: enrolment, tokens, snapshots and instructions."""

from __future__ import annotations

from typing import Final

from plimsoll_service.domain.access import Role
from plimsoll_service.openapi.operation import CLUSTER, Operation
from plimsoll_service.wire.access import Accepted, Enrolled, Enrolment, Granted, TokenRequest
from plimsoll_service.wire.instructions import Instructions, Results
from plimsoll_service.wire.snapshot import Snapshot
from plimsoll_service.wire.taints import Forwarded, TaintedInstances

OPERATIONS: Final = (
    Operation(
        name="enrol",
        method="POST",
        path="/v1/enrolments",
        role=None,
        body=Enrolment,
        answer=Enrolled,
        status=201,
        summary="Admit a key by a join token",
    ),
    Operation(
        name="grant",
        method="POST",
        path="/v1/token",
        role=None,
        body=TokenRequest,
        answer=Granted,
        summary="Exchange a signed assertion for an access token",
    ),
    Operation(
        name="renew",
        method="POST",
        path=f"{CLUSTER}/token",
        role=Role.AGENT,
        answer=Granted,
        summary="Renew an access token before it ends",
    ),
    Operation(
        name="push_snapshot",
        method="POST",
        path=f"{CLUSTER}/snapshots",
        role=Role.AGENT,
        body=Snapshot,
        answer=Accepted,
        status=202,
        compressed=True,
        summary="Push a snapshot",
    ),
    Operation(
        name="forward_taints",
        method="POST",
        path=f"{CLUSTER}/taints",
        role=Role.AGENT,
        body=TaintedInstances,
        answer=Forwarded,
        status=202,
        summary="Forward interruption taints of other handlers",
    ),
    Operation(
        name="forward_queue_change",
        method="POST",
        path=f"{CLUSTER}/queue-changes",
        role=Role.AGENT,
        answer=Forwarded,
        status=202,
        summary="Report that a Job of a batch queue changed",
    ),
    Operation(
        name="poll_instructions",
        method="GET",
        path=f"{CLUSTER}/instructions",
        role=Role.AGENT,
        answer=Instructions,
        summary="List the instructions that wait for the executor",
    ),
    Operation(
        name="post_results",
        method="POST",
        path=f"{CLUSTER}/results",
        role=Role.AGENT,
        body=Results,
        answer=Results,
        summary="Report the results of instructions",
    ),
)
