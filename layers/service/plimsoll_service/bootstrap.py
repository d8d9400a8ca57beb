"""Wires the service's use cases to AWS: of the layer the only module that names adapters.

Each factory runs on first use, and what it makes is kept for the life of the process. Nothing that is
kept belongs to a tenant, but for the clients that can reach one tenant's data alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.dynamodb.frames import DynamoFrames
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.adapters.notices_queue import NoticesQueue
from plimsoll.domain.errors import NotFound, PlimsollError
from plimsoll.observability import logger, metrics
from plimsoll_service.adapters.access_tokens import AccessTokens, SecretTokenKeys
from plimsoll_service.adapters.aws import ServiceAws, TenantSessions
from plimsoll_service.adapters.bus import EventBridgeBus
from plimsoll_service.adapters.identity_provider import OidcProvider
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.adapters.price_list import AwsPrices
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.adapters.queues import SqsAdvice, SqsArrivals
from plimsoll_service.adapters.signers import is_signed, signer_of
from plimsoll_service.adapters.tenants import AwsTenants
from plimsoll_service.config import Config
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.services.access import AccessService
from plimsoll_service.services.advice_runs import AdviceSchedule, AdviceService
from plimsoll_service.services.ingest import IngestService, Intake
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.people import PeopleService
from plimsoll_service.services.reads import Reads
from plimsoll_service.services.relying_party import Client, RelyingParty
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.services.taints import TaintForwarding
from plimsoll_service.wire.access import InstructionKey
from plimsoll_service.wire.instructions import Signer, succeed

PRICE_LIST_REGION: Final = "us-east-1"
"""Few regions have the API of the price list, and each has the prices of all."""
READER: Final = "plimsoll-console"
"""The external id with which the console and the API read an interruption stack."""


@cache
def config() -> Config:
    """Return the stack's settings."""
    return Config.from_env(os.environ)  # noqa: TID251 - handed to the one reader


@cache
def clock() -> SystemClock:
    """Return the clock."""
    return SystemClock()


@cache
def aws() -> ServiceAws:
    """Return the AWS clients of the function's own role."""
    return ServiceAws(config().aws_region)


@cache
def tenants() -> AwsTenants:
    """Return the data of tenants."""
    sessions = TenantSessions(
        aws=aws(),
        region=config().aws_region,
        role=config().tenant_role,
        table=config().documents_table_arn,
        audit=config().audit_table_arn,
        bucket=config().snapshots_bucket_arn,
        clock=clock(),
    )
    return AwsTenants(
        sessions=sessions.of,
        table=config().documents_table,
        audit_table=config().audit_table,
        bucket=config().snapshots_bucket,
        clock=clock(),
        tell=_tell_of_fault,
    )


@cache
def members() -> DynamoMembers:
    """Return who was let in."""
    return DynamoMembers(aws=aws(), table=config().members_table, tell=_tell_of_fault)


@cache
def access() -> AccessService:
    """Return enrolment, tokens, and who a request is by."""
    return AccessService(
        members=members(),
        tenants=tenants(),
        tokens=AccessTokens(
            SecretTokenKeys(aws=aws(), secret=config().token_secret, clock=clock())
        ),
        verify=is_signed,
        instruction_keys=_instruction_keys,
    )


@cache
def sessions() -> Sessions:
    """Return the sessions of people, and API tokens."""
    table = PeopleTable(aws=aws(), table=config().people_table, tell=_tell_of_fault)
    return Sessions(store=table)


@cache
def people() -> PeopleService:
    """Return what admins do about people."""
    return PeopleService(sessions=sessions(), tenants=tenants())


@cache
def relying_party() -> RelyingParty:
    """Return the sign-in by the issuer.

    Raises:
        NotFound: the stack names none.
    """
    if not config().oidc_issuer:
        raise NotFound("people come in by keys: no issuer is configured")
    client = Client(
        issuer=config().oidc_issuer,
        client_id=config().oidc_client_id,
        scopes=config().oidc_scopes,
        groups_claim=config().oidc_groups_claim,
    )
    provider = OidcProvider(client=client, secret=_client_secret, clock=clock())
    return RelyingParty(client=client, provider=provider)


@cache
def signer() -> Signer:
    """Return the key that signs instructions; a former one signs once, that this one is its successor."""
    current = signer_of(aws(), config().instruction_key, clock())
    if not config().former_instruction_key:
        return current
    former = signer_of(aws(), config().former_instruction_key, clock())
    return replace(current, successor=succeed(former, current.key_id, current.public_key()))


@cache
def intake() -> Intake:
    """Return the taking in of snapshots."""
    return Intake(
        tenants=tenants(),
        members=members(),
        queue=SqsArrivals(aws=aws(), url=config().arrivals_queue),
        clock=clock(),
    )


@cache
def taints() -> TaintForwarding:
    """Return the forwarding of interruption taints."""
    return TaintForwarding(members=members(), bus=EventBridgeBus(aws=aws()), clock=clock())


@cache
def ingest() -> IngestService:
    """Return the working off of snapshots."""
    return IngestService(tenants=tenants(), advice=advice_queue(), clock=clock())


@cache
def arrivals() -> NoticesQueue:
    """Return the queue of arrivals, as the function that works it off sees it."""
    return NoticesQueue(
        aws=aws(), url=config().arrivals_queue, dead_url=config().arrivals_dead_queue
    )


@cache
def reads() -> Reads:
    """Return what people read."""
    return Reads(tenants=tenants(), members=members(), clock=clock())


@cache
def interruption_stack() -> InterruptionStack | None:
    """Return what an interruption stack tells; None: the service is told of none."""
    if not config().interruption_tables:
        return None
    clusters, frames, reports = config().interruption_tables.split(",")
    reader = aws().assuming(config().interruption_role, READER)
    return InterruptionStack(
        registry=DynamoRegistry(reader, clusters),
        frames=DynamoFrames(reader, frames),
        reports=DynamoReports(reader, reports),
    )


@cache
def advice_queue() -> SqsAdvice:
    """Return the queue of requests for advice."""
    return SqsAdvice(aws=aws(), url=config().advice_queue)


@cache
def advice_schedule() -> AdviceSchedule:
    """Return the asking for advice about all clusters."""
    return AdviceSchedule(members=members(), queue=advice_queue(), clock=clock())


@cache
def advice() -> AdviceService:
    """Return the answering of requests for advice."""
    prices = AwsPrices(
        pricing=lambda: ServiceAws(PRICE_LIST_REGION).pricing,
        ec2=lambda region: aws().in_region(region).ec2,
        shipped=price_table(),
        clock=clock(),
        warn=_warn_of_prices,
    )
    return AdviceService(tenants=tenants(), prices=prices.of, signer=signer, clock=clock())


def _client_secret() -> str:
    # Read at each sign-in: these are rare, and a rotated secret holds at once.
    if not config().oidc_client_secret:
        return ""
    with translated("read the secret of the issuer's client"):
        answer = aws().secretsmanager.get_secret_value(SecretId=config().oidc_client_secret)
    return answer["SecretString"]


def _tell_of_fault(**facts: str) -> None:
    logger.error("row not read: it counts as absent", extra=facts)
    metrics.add_metric(ServiceMetric.FAULTS, "Count", 1)


def _warn_of_prices(region: str, error: PlimsollError) -> None:
    logger.warning("prices as shipped", extra={"prices_of": region}, exc_info=error)


@cache
def _instruction_keys() -> Sequence[InstructionKey]:
    key = signer_of(aws(), config().instruction_key, clock())
    return [InstructionKey(key_id=key.key_id, public_key=key.public_key())]
