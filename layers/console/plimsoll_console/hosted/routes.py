"""Every screen of the hosted console: one table, which `service.yaml` declares again."""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import HostedRoute
from plimsoll_console.hosted.audit import audit
from plimsoll_console.hosted.decisions import cluster_decisions, decide, decision, decisions
from plimsoll_console.hosted.fleet import cluster, fleet, of_storms
from plimsoll_console.hosted.people import end_access, people
from plimsoll_console.hosted.savings import cluster_savings, savings
from plimsoll_console.views.interruptions import interruption, interruptions
from plimsoll_console.views.storm import storm
from plimsoll_console.views.workload import workload

_CLUSTER: Final = "/c/{cluster}"
_DECISION: Final = f"{_CLUSTER}/decisions/{{recommendation}}"

ROUTES: Final = (
    HostedRoute("GET", "/", fleet),
    HostedRoute("GET", _CLUSTER, cluster),
    HostedRoute("GET", f"{_CLUSTER}/storm", of_storms(storm, "storm")),
    HostedRoute(
        "GET", f"{_CLUSTER}/w/{{kind}}/{{namespace}}/{{name}}", of_storms(workload, "storm")
    ),
    HostedRoute("GET", f"{_CLUSTER}/interruptions", of_storms(interruptions, "interruptions")),
    HostedRoute(
        "GET",
        f"{_CLUSTER}/interruptions/{{interruption}}",
        of_storms(interruption, "interruptions"),
    ),
    HostedRoute("GET", f"{_CLUSTER}/decisions", cluster_decisions),
    HostedRoute("GET", _DECISION, decision),
    HostedRoute("POST", _DECISION, decide),
    HostedRoute("GET", f"{_CLUSTER}/savings", cluster_savings),
    HostedRoute("GET", "/decisions", decisions),
    HostedRoute("GET", "/savings", savings),
    HostedRoute("GET", "/audit", audit),
    HostedRoute("GET", "/people", people),
    HostedRoute("POST", "/people", end_access),
)
