"""From an instance to its node: the index first, then the instance's tags, else not ours.

A storm costs no EC2 call for instances that the resync has indexed. For the others EC2 is asked in the account
and region that the notice is from: in another account than the stack's by the role of a cluster there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.interruptions import actionable
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.notices import Decision, InstanceNotice
from plimsoll.domain.registry import Cluster, IndexEntry
from plimsoll.domain.reports import Metric
from plimsoll.services.ports import Clock, Instances, NodeIndex, RegisteredClusters, Span, Telemetry
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.untraced import UNTRACED

type Owner = IndexEntry | str | PlimsollError
"""Where the node is; or why it is not ours; or why that cannot be told now."""
type Locate = Callable[[Sequence[InstanceNotice]], Mapping[str, Owner]]
"""Tells the owner of every instance in the notices."""
type Ask = Callable[[Sequence[str]], Mapping[str, Owner]]
"""Tells the owner of instances that the index does not know."""

NOWHERE: Final = "no cluster is registered in the account and region of the notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedNotice:
    """A notice, where its instance is, and what it leads to in the present life of that instance."""

    notice: InstanceNotice
    decision: Decision
    entry: IndexEntry
    node: Node | None = None
    """The instance's node, where it has just been listed."""
    span: Span = field(default=UNTRACED, compare=False)
    """In which the notice is handled."""

    @classmethod
    def of(cls, notice: InstanceNotice, entry: IndexEntry, node: Node | None = None) -> Self:
        """Return a notice as decided on by the launch of its instance, if the entry names that."""
        decision = actionable(notice, launched=entry.launched)
        return cls(notice=notice, decision=decision, entry=entry, node=node)


def located(
    notices: Sequence[InstanceNotice], locate: Locate
) -> tuple[Mapping[str, Sequence[LocatedNotice]], Mapping[InstanceNotice, str | PlimsollError]]:
    """Return the notices by the name of their cluster, and why the others have none.

    Args:
        notices: those that may lead to something; each is looked up once.
        locate: tells where instances are.
    """
    owners = locate(notices)
    found: dict[str, list[LocatedNotice]] = defaultdict(list)
    elsewhere: dict[InstanceNotice, str | PlimsollError] = {}
    for notice in notices:
        owner = owners[notice.instance]
        if isinstance(owner, IndexEntry):
            found[owner.cluster].append(LocatedNotice.of(notice, owner))
        else:
            elsewhere[notice] = owner
    return found, elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLocator:
    """Finds the cluster and node of instances."""

    registry: RegisteredClusters
    index: NodeIndex
    instances: Instances
    instances_of: Callable[[Cluster], Instances]
    clock: Clock
    telemetry: Telemetry
    sources: TrustedSources

    def of(self, notices: Collection[InstanceNotice]) -> Mapping[str, Owner]:
        """Return the owner of every instance in the notices."""
        places: dict[tuple[str, str | None], list[str]] = defaultdict(list)

        def ask(unknown: Sequence[str]) -> Mapping[str, Owner]:
            for notice in notices:
                if notice.instance in unknown:
                    places[notice.account, notice.region].append(notice.instance)
            owners: dict[str, Owner] = {}
            for (account, region), ids in places.items():
                for instance, owner in self._in_place(account, region, ids).items():
                    if not isinstance(owners.get(instance), IndexEntry):
                        owners[instance] = owner
            return owners

        return self.find({notice.instance for notice in notices}, ask)

    def find(self, instances: Collection[str], ask: Ask) -> Mapping[str, Owner]:
        """Return the owner of every instance; those that the index does not know are asked for."""
        ids = sorted(instances)
        # The index first: a few reads answer a whole storm, and EC2 throttles.
        owners: dict[str, Owner] = dict(self._indexed(ids)) if ids else {}
        unknown = [i for i in ids if i not in owners]
        if unknown:
            owners |= ask(unknown)
        return owners

    def by_tags(self, ids: Sequence[str], asked: Sequence[Instances]) -> Mapping[str, Owner]:
        """Return the owners that the tags of instances name.

        Args:
            ids: the instances.
            asked: EC2 of one account and region, by one role or by several: the first that answers counts.
        """
        refused: PlimsollError = Temporary("nobody was asked")
        for ec2 in asked:
            try:
                found = ec2.describe(ids)
                return {i: self._by_tags(i, found.get(i)) for i in ids}
            except PlimsollError as error:
                refused = error
        return dict.fromkeys(ids, refused)

    def _in_place(
        self, account: str, region: str | None, ids: Sequence[str]
    ) -> Mapping[str, Owner]:
        """Ask EC2 where notices are from."""
        own = self.sources.account in {None, account}
        if own and (region is None or self.sources.region in {None, region}):
            return self.by_tags(ids, [self.instances])
        try:
            # Only a registered cluster has a role there: without one Plimsoll cannot ask EC2.
            clusters = self.registry.list()
        except PlimsollError as error:
            return dict.fromkeys(ids, error)
        there = {
            (c.role, c.external_id, c.region): c
            for c in clusters
            if c.account == (None if own else account) and region in {None, c.region}
        }
        if not there:
            return {i: self._not_ours(i, NOWHERE) for i in ids}
        return self.by_tags(ids, [self.instances_of(cluster) for cluster in there.values()])

    def _indexed(self, ids: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Ask the index. Without it (an outage) tags tell the same, only slower."""
        try:
            return self.index.find(ids)
        except Temporary as error:
            self.telemetry.warn("node index not read", because=str(error))
            return {}

    def _by_tags(self, instance: str, said: Instance | None) -> Owner:
        if said is None:
            return self._not_ours(instance, "EC2 does not know it")
        name = said.cluster_name()
        if name is None or self.registry.get(name) is None:
            return self._not_ours(instance, "no tag names a registered cluster", cluster=name)
        return IndexEntry(
            instance=instance,
            cluster=name,
            node="",
            launched=said.launched,
            zone=said.zone,
            instance_type=said.instance_type,
            seen=self.clock.now(),
        )

    def _not_ours(self, instance: str, why: str, cluster: str | None = None) -> str:
        self.telemetry.count(Metric.NOTICES_NOT_OURS)
        self.telemetry.log("notice not ours", instance=instance, because=why, cluster=cluster)
        return f"{instance} is not ours: {why}"
