"""The requests about clusters: their lists, and reads of one cluster."""

from __future__ import annotations

from typing import Final

import msgspec

from functions.api_requests import ApiRequest
from plimsoll.domain.errors import NotFound
from plimsoll_service import bootstrap
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.cluster_rows import CLUSTER
from plimsoll_service.services.clusters import AGENT_FILTERS, CLUSTER_FILTERS
from plimsoll_service.services.kept_advice import SAVINGS
from plimsoll_service.services.reads import time_of
from plimsoll_service.services.report_pages import REPORT, REPORT_FILTERS, report_page
from plimsoll_service.services.savings import savings_history
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice


def list_clusters(asked: ApiRequest) -> msgspec.Struct:
    """List the clusters of the tenant."""
    return bootstrap.reads().clusters(asked.principal(), asked.page(CLUSTER, CLUSTER_FILTERS))


def list_agents(asked: ApiRequest) -> msgspec.Struct:
    """List the agents of the tenant."""
    return bootstrap.reads().agents(asked.principal(), asked.page(CLUSTER, AGENT_FILTERS))


def read_savings(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Return the nodes and cost of today, and of the cheapest mix."""
    data = bootstrap.reads().data(asked.principal(), cluster)
    found, _ = stored(data, cluster, SAVINGS, Advice)
    if found is None:
        raise NotFound(f"{cluster} was not analysed yet")
    return found


def read_savings_history(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """Return foreseen and realised savings."""
    data, before = bootstrap.reads().data(asked.principal(), cluster), asked.query.get("before")
    until = time_of(before) if before else None
    return savings_history(data, cluster, until, asked.now)


def read_workloads(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the workloads, with their requests and usage."""
    return bootstrap.reads().workloads(asked.principal(), cluster)


def read_interruptions(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the nodes that an interruption taints."""
    return bootstrap.reads().interruptions(asked.principal(), cluster)


def list_reports(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the reports of interruptions, newest first."""
    # Refuses whoever may not see the cluster: the stack knows no tenants.
    bootstrap.reads().data(asked.principal(), cluster)
    page = asked.page(REPORT, REPORT_FILTERS)
    return report_page(bootstrap.interruption_stack(), cluster, page, asked.now)


def read_hours(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the hours of a week."""
    before = asked.query.get("before")
    return bootstrap.reads().periods(asked.principal(), cluster, Span.HOUR, before)


def read_days(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the days of a quarter."""
    before = asked.query.get("before")
    return bootstrap.reads().periods(asked.principal(), cluster, Span.DAY, before)


def read_pools(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the capacity pools."""
    return bootstrap.reads().pools(asked.principal(), cluster)


def read_gpu(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the usage of GPUs, by class of workload and day."""
    days, after = asked.query.get("days", "7"), asked.query.get("next", "")
    return bootstrap.reads().gpu(asked.principal(), cluster, days, after)


VIEWS: Final = (
    list_clusters,
    list_agents,
    read_savings,
    read_savings_history,
    read_workloads,
    read_interruptions,
    list_reports,
    read_hours,
    read_days,
    read_pools,
    read_gpu,
)
