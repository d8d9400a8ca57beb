"""The requests about clusters: their lists, and reads of one cluster."""

from __future__ import annotations

from typing import Final

from plimsoll_service.domain.access import Role
from plimsoll_service.openapi.operation import CLUSTER, Operation
from plimsoll_service.services.clusters import AGENT_FILTERS, CLUSTER_FILTERS
from plimsoll_service.services.paging import query_schemas
from plimsoll_service.services.report_pages import REPORT_FILTERS
from plimsoll_service.wire.advice import Advice
from plimsoll_service.wire.clusters import Agents, Clusters
from plimsoll_service.wire.gpu import ClassDays
from plimsoll_service.wire.reports import ReportPage
from plimsoll_service.wire.savings import SavingsHistory
from plimsoll_service.wire.views import Interruptions, Periods, Pools, Workloads

_BEFORE: Final = {"before": {"type": "string", "format": "date-time"}}
OPERATIONS: Final = (
    Operation(
        name="list_clusters",
        method="GET",
        path="/v1/clusters",
        role=Role.PERSON,
        answer=Clusters,
        query=query_schemas(CLUSTER_FILTERS),
        summary="List the clusters of the tenant",
    ),
    Operation(
        name="list_agents",
        method="GET",
        path="/v1/agents",
        role=Role.PERSON,
        answer=Agents,
        query=query_schemas(AGENT_FILTERS),
        summary="List the agents of the tenant, with version, mode, policy and spool",
    ),
    Operation(
        name="read_savings",
        method="GET",
        path=f"{CLUSTER}/savings",
        role=Role.PERSON,
        answer=Advice,
        summary="Read the nodes and cost of today, and of the cheapest mix that was found",
    ),
    Operation(
        name="read_savings_history",
        method="GET",
        path=f"{CLUSTER}/savings/history",
        role=Role.PERSON,
        answer=SavingsHistory,
        query=_BEFORE,
        summary="Read the foreseen and realised savings of the 92 days before a time",
    ),
    Operation(
        name="read_workloads",
        method="GET",
        path=f"{CLUSTER}/workloads",
        role=Role.PERSON,
        answer=Workloads,
        summary="List the workloads, with their requests and usage",
    ),
    Operation(
        name="read_interruptions",
        method="GET",
        path=f"{CLUSTER}/interruptions",
        role=Role.PERSON,
        answer=Interruptions,
        summary="List the nodes that an interruption taints",
    ),
    Operation(
        name="list_reports",
        method="GET",
        path=f"{CLUSTER}/reports",
        role=Role.PERSON,
        answer=ReportPage,
        query=query_schemas(REPORT_FILTERS),
        summary="List the reports of interruptions, newest first",
    ),
    Operation(
        name="read_hours",
        method="GET",
        path=f"{CLUSTER}/hours",
        role=Role.PERSON,
        answer=Periods,
        query=_BEFORE,
        summary="List the hours of the week before a time",
    ),
    Operation(
        name="read_days",
        method="GET",
        path=f"{CLUSTER}/days",
        role=Role.PERSON,
        answer=Periods,
        query=_BEFORE,
        summary="List the days of the 92 days before a time",
    ),
    Operation(
        name="read_pools",
        method="GET",
        path=f"{CLUSTER}/pools",
        role=Role.PERSON,
        answer=Pools,
        summary="List the capacity pools of the nodes",
    ),
    Operation(
        name="read_gpu",
        method="GET",
        path=f"{CLUSTER}/gpu",
        role=Role.PERSON,
        answer=ClassDays,
        query={
            "days": {"type": "integer", "minimum": 1, "maximum": 35, "default": 7},
            "next": {
                "type": "string",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}#[0-9a-f]{32}$",
                "description": "`next` of the page before",
            },
        },
        summary="List the usage of GPUs, by class of workload and day",
    ),
)
