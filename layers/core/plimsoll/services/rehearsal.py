"""What would be done: for observe-only clusters, dry runs, and the kill switch. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from plimsoll.domain.clusters import Cluster
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.foresight import as_if
from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.plan import Plan
from plimsoll.services.ports import Clock, ClusterApi, NodeGroups, Reports, Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Plans as if nodes were going."""

    groups: Callable[[Cluster], NodeGroups]
    reports: Reports
    clock: Clock
    telemetry: Telemetry

    def plan(
        self, cluster: Cluster, api: ClusterApi, interrupted: Mapping[str, Interruption]
    ) -> Plan:
        """Return the plan that would be made if these nodes, by name, were going."""
        seen = api.observe()
        try:
            groups = self.groups(cluster).list(seen.nodes)
        except PlimsollError as error:
            self.telemetry.warn("node groups not read", because=str(error))
            groups = ()
        seen = as_if(seen, interrupted).among(groups=groups, gone=frozenset())
        return plan_drain(seen, self.clock.now())

    def report(
        self, cluster: Cluster, api: ClusterApi, interrupted: Mapping[str, Interruption]
    ) -> None:
        """Log and store what would be done now. A failure is logged: nothing depends on it."""
        try:
            plan = self.plan(cluster, api, interrupted)
            for step in plan.steps:
                self.telemetry.log(
                    "would act",
                    action=step.action.verb,
                    target=step.action.target,
                    because=step.action.reason,
                )
            for report in plan.reports:
                reasons = tuple(f"would {reason}" for reason in report.reasons)
                self.reports.merge(replace(report, cordoned=None, reasons=reasons))
        except PlimsollError as error:
            self.telemetry.warn("rehearsal failed", cluster=cluster.name, because=str(error))
