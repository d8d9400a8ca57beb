"""The way back to spot: what placement is told of spot pools, and the spot nodes that are asked for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.actions import Grow, Step
from plimsoll.domain.drain import added_entry, added_since, report_of_added
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import ADDED_WITHIN, SpotReturn, growth_for_return
from plimsoll.domain.registry import Cluster
from plimsoll.domain.spot import hours_stood
from plimsoll.services.executor import ActionResult
from plimsoll.services.ports import NodeGroups, Pools, Reports, Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotReturns:
    """The returns to spot of all clusters."""

    groups: Callable[[Cluster], NodeGroups]
    pools: Pools
    reports: Reports
    telemetry: Telemetry

    def of(self, cluster: Cluster, promised: Collection[Ref], now: datetime) -> SpotReturn:
        """Return what the way back to spot is decided by; nothing returns to pools that are not known."""
        if not (cluster.policy.return_to_spot or promised):
            return SpotReturn()
        try:
            stood = hours_stood(self.pools.memory(cluster.place, now), now)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not read", because=str(error))
            return SpotReturn()
        return SpotReturn(hours_stood=stood, promised=promised)

    def grows(
        self,
        cluster: Cluster,
        seen: Observation,
        homeless: Sequence[Pod],
        spot_return: SpotReturn,
        now: datetime,
    ) -> Sequence[Step]:
        """Return what spot groups are asked for; groups and reports are read only where a pod has no place.

        Only the policy of the cluster lets nodes be asked for: an autoscaler may empty them again, and evicts pods for it.
        """
        if not homeless or not cluster.policy.return_to_spot:
            return ()
        try:
            groups = self.groups(cluster).list(seen.nodes)
            added = added_since(self.reports.list(cluster.name), now - ADDED_WITHIN)
        except PlimsollError as error:
            self.telemetry.warn("no spot node is asked for", because=str(error))
            return ()
        grows = growth_for_return(seen.among(groups=groups), homeless, spot_return, added, now)
        return [Step(action=grow, nodes=frozenset()) for grow in grows]

    def report(self, cluster: Cluster, outcomes: Iterable[ActionResult], now: datetime) -> None:
        """Keep how many nodes were added: a group may take them back, and no more are asked for than that allows."""
        for outcome in outcomes:
            match outcome.action:
                case Grow() as grow if outcome.done:
                    added = added_entry(grow.group, outcome.promised, now, grow.token)
                    report = report_of_added(cluster.name, added, grow.reason, now)
                    try:
                        self.reports.merge(report)
                    except PlimsollError as error:
                        self.telemetry.warn("added nodes not reported", because=str(error))
