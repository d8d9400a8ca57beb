"""Puts what EC2 says of an instance in the place of what somebody else says of it.

Whoever forwards a taint is a tenant's agent: it may lie, and say it again and again. It gets no further than
one question to EC2, and that only about instances of the cluster that its operator bound to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.clusters import IndexEntry
from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.metrics import Metric
from plimsoll.domain.notices import InstanceNotice, InterruptionTaint, Notice
from plimsoll.services.locator import InstanceLocator, Owner
from plimsoll.services.ports import Registry, Telemetry

type Read = Sequence[Notice] | Exception
"""The notices in a body, or why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Asks EC2."""

    locator: InstanceLocator
    registry: Registry
    telemetry: Telemetry

    def of(self, read: Sequence[Read]) -> Sequence[Read]:
        """Return what was read of each body, with EC2's notices where an agent said something.

        Where EC2 or the registry does not answer, the bodies of agents fail, and no other.
        """
        said = [n for body in read for n in _notices(body) if isinstance(n, InterruptionTaint)]
        if not said:
            return read
        try:
            found = self._confirmed(said)
        except PlimsollError as error:
            taints, failed = set(said), error
            return [failed if taints.intersection(_notices(body)) else body for body in read]
        return [
            body
            if isinstance(body, Exception)
            else [
                notice
                for each in body
                for notice in (
                    found[each.instance] if isinstance(each, InterruptionTaint) else [each]
                )
            ]
            for body in read
        ]

    def _confirmed(
        self, said: Sequence[InterruptionTaint]
    ) -> Mapping[str, Sequence[InstanceNotice]]:
        owners = self.locator.of(said)
        found_in = {owner.cluster for owner in owners.values() if isinstance(owner, IndexEntry)}
        agents = {name: self._agent(name) for name in found_in}
        ours = [each for each in said if self._may_say(each, owners[each.instance], agents)]
        found: dict[str, list[InstanceNotice]] = {each.instance: [] for each in said}
        asked = sorted({each.instance for each in ours})
        for notice in self.locator.instances.interrupted(asked) if asked else ():
            found[notice.instance].append(notice)
        for each in ours:
            if not found[each.instance]:
                self._drop(each, "EC2 does not say that the instance ends", Metric.NOTICES_IGNORED)
        return found

    def _agent(self, name: str) -> str | None:
        cluster = self.registry.get(name)
        return None if cluster is None else cluster.agent

    def _may_say(
        self, said: InterruptionTaint, owner: Owner, agents: Mapping[str, str | None]
    ) -> bool:
        match owner:
            case Temporary() as error:
                raise error
            case str():  # the locator has counted and logged it
                return False
            case IndexEntry() if agents[owner.cluster] == said.agent:
                return True
            case IndexEntry():
                why = f"{owner.cluster} is not bound to that agent"
                self._drop(said, why, Metric.NOTICES_NOT_OURS)
                return False

    def _drop(self, said: InterruptionTaint, why: str, counted: Metric) -> None:
        self.telemetry.count(counted)
        self.telemetry.log(
            "interruption taint dropped", instance=said.instance, agent=said.agent, because=why
        )


def _notices(body: Read) -> Sequence[Notice]:
    return () if isinstance(body, Exception) else body
