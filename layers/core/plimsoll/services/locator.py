"""From an instance to its node: the index first, then the instance's tags, else not ours.

A storm costs no EC2 call for instances that the resync has indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.clusters import IndexEntry, Instance
from plimsoll.domain.errors import Temporary
from plimsoll.domain.metrics import Metric
from plimsoll.domain.notices import InstanceNotice, InterruptionTaint
from plimsoll.services.ports import Clock, Instances, NodeIndex, Registry, Telemetry

type Owner = IndexEntry | str | Temporary
"""Where the node is; or why it is not ours; or why that cannot be told now."""
type Locate = Callable[[Sequence[InstanceNotice]], Mapping[str, Owner]]
"""Tells the owner of every instance in the notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLocator:
    """Finds the cluster and node of instances."""

    registry: Registry
    index: NodeIndex
    instances: Instances
    clock: Clock
    telemetry: Telemetry

    def of(self, notices: Collection[InstanceNotice | InterruptionTaint]) -> Mapping[str, Owner]:
        """Return the owner of every instance in the notices."""
        ids = sorted({notice.instance for notice in notices})
        if not ids:
            return {}
        owners: dict[str, Owner] = dict(self._indexed(ids))
        unknown = [i for i in ids if i not in owners]
        if unknown:
            owners |= self._tagged(unknown)
        return owners

    def _indexed(self, ids: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Ask the index. Without it (an outage) tags tell the same, only slower."""
        try:
            return self.index.find(ids)
        except Temporary as error:
            self.telemetry.warn("node index not read", because=str(error))
            return {}

    def _tagged(self, ids: Sequence[str]) -> Mapping[str, Owner]:
        try:
            found = self.instances.describe(ids)
            return {i: self._by_tags(i, found.get(i)) for i in ids}
        except Temporary as error:
            return dict.fromkeys(ids, error)

    def _by_tags(self, instance: str, said: Instance | None) -> Owner:
        name = None if said is None else said.cluster_name()
        if said is None or name is None or self.registry.get(name) is None:
            why = "EC2 does not know it" if said is None else "no tag names a registered cluster"
            self.telemetry.count(Metric.NOTICES_NOT_OURS)
            self.telemetry.log("notice not ours", instance=instance, because=why, cluster=name)
            return f"{instance} is not ours: {why}"
        return IndexEntry(
            instance=instance,
            cluster=name,
            node="",
            launched=said.launched,
            zone=said.zone,
            instance_type=said.instance_type,
            seen=self.clock.now(),
        )
