"""Puts what EC2 says of an instance in the place of what somebody else says of it.

Whoever forwards a taint is a tenant's agent: it may lie, and say it again and again. It gets no further than
one question to EC2, in the account of the cluster that its operator bound to it, about instances of that cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.notices import InstanceNotice, InterruptionTaint, Notice
from plimsoll.domain.registry import Cluster, IndexEntry
from plimsoll.domain.reports import Metric
from plimsoll.services.instance_locator import InstanceLocator
from plimsoll.services.ports import Instances, RegisteredClusters, Telemetry

type Read = Sequence[Notice] | Exception
"""The notices in a body, or why there are none."""
type Answers = Mapping[InterruptionTaint, Sequence[InstanceNotice] | PlimsollError]
"""What EC2 says of the instance of each taint, or why that cannot be told now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintConfirmation:
    """Asks EC2."""

    locator: InstanceLocator
    registry: RegisteredClusters
    instances_of: Callable[[Cluster], Instances]
    telemetry: Telemetry

    def of(self, read: Sequence[Read]) -> Sequence[Read]:
        """Return what was read of each body, with EC2's notices where an agent said something.

        Where the registry does not answer, the bodies of agents fail, and no other; where EC2 does not, those
        about the clusters whose account it is.
        """
        said = {n for body in read for n in _notices(body) if isinstance(n, InterruptionTaint)}
        if not said:
            return read
        answers: Answers
        try:
            answers = self._confirmed(said)
        except PlimsollError as error:
            answers = dict.fromkeys(said, error)
        return [body if isinstance(body, Exception) else _answered(body, answers) for body in read]

    def _confirmed(self, said: set[InterruptionTaint]) -> Answers:
        bound: dict[str, list[Cluster]] = defaultdict(list)
        for cluster in self.registry.list():
            if cluster.agent is not None:
                bound[cluster.agent].append(cluster)
        answers: dict[InterruptionTaint, Sequence[InstanceNotice] | PlimsollError] = {}
        for agent in sorted({each.agent for each in said}):
            its = [each for each in said if each.agent == agent]
            answers |= self._of_agent(its, bound[agent])
        return answers

    def _of_agent(self, said: Sequence[InterruptionTaint], bound: Sequence[Cluster]) -> Answers:
        """Confirm what an agent says of the clusters that are bound to it."""
        if not bound:
            return {each: self._dropped(each, "no cluster is bound to that agent") for each in said}
        asked = [self.instances_of(cluster) for cluster in bound]
        owners = self.locator.find(
            {each.instance for each in said}, partial(self.locator.by_tags, asked=asked)
        )
        answers: dict[InterruptionTaint, Sequence[InstanceNotice] | PlimsollError] = {}
        # By cluster, not by agent: the instance must belong to a cluster that the operator bound to this agent.
        for cluster, ec2 in zip(bound, asked, strict=True):
            its = [
                each
                for each in said
                if isinstance(owner := owners[each.instance], IndexEntry)
                and owner.cluster == cluster.name
            ]
            answers |= self._asked(ec2, its)
        for each in said:
            match owners[each.instance]:
                case IndexEntry() as owner if each not in answers:
                    why = f"{owner.cluster} is not bound to that agent"
                    answers[each] = self._dropped(each, why)
                case PlimsollError() as error:
                    answers[each] = error
                case _:  # answered; or not ours, which the locator has counted and logged
                    answers.setdefault(each, ())
        return answers

    def _asked(self, ec2: Instances, said: Sequence[InterruptionTaint]) -> Answers:
        if not said:
            return {}
        try:
            told = ec2.interrupted(sorted({each.instance for each in said}))
        except PlimsollError as error:
            return dict.fromkeys(said, error)
        found = {each: [n for n in told if n.instance == each.instance] for each in said}
        for each, notices in found.items():
            if not notices:
                why = "EC2 does not say that the instance ends"
                self._dropped(each, why, Metric.NOTICES_IGNORED)
        return found

    def _dropped(
        self, said: InterruptionTaint, why: str, counted: Metric = Metric.NOTICES_NOT_OURS
    ) -> Sequence[InstanceNotice]:
        self.telemetry.count(counted)
        self.telemetry.log(
            "interruption taint dropped", instance=said.instance, agent=said.agent, because=why
        )
        return ()


def _notices(body: Read) -> Sequence[Notice]:
    return () if isinstance(body, Exception) else body


def _answered(body: Sequence[Notice], answers: Answers) -> Read:
    """Return a body with what EC2 says in it; the error where it could not be asked."""
    found: list[Notice] = []
    for each in body:
        if not isinstance(each, InterruptionTaint):
            found.append(each)
        elif isinstance(answer := answers[each], PlimsollError):
            return answer
        else:
            found += answer
    return found
