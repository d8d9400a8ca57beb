"""What notices would lead to: the path of a notice and of the first plan after it, without a write.

Observe mode and the kill switch log it and keep it as a report, `plimsoll rehearse --event` shows it. It decides
by the same functions as `plimsoll.services.notices` and the first plan of a reconcile, so it shows
what would be done now; what would come later depends on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.domain.actions import Cordon, Plan, Step
from plimsoll.domain.disruptions import StopTime, known_stops
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.interruptions import Interruption, marked
from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.notices import About, Effect, Notice
from plimsoll.domain.observation import leaves
from plimsoll.domain.registry import Cluster
from plimsoll.services.instance_locator import Locate, LocatedNotice, located
from plimsoll.services.node_cordon import Cordoned, cordon, find_nodes, heeded
from plimsoll.services.observed_times import ObservedTimes, disrupted
from plimsoll.services.ports import Clock, ClusterApi, Reports, Telemetry, Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeOutcome:
    """What one notice would lead to, in words."""

    notice: Notice
    effect: Effect
    reason: str
    cluster: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What would be done in one cluster, and what is reckoned with."""

    plan: Plan
    stops: Mapping[Ref, StopTime]
    """How long the pods on the interrupted nodes need to stop, the longest of each workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """What all notices of an event would lead to."""

    outcomes: tuple[NoticeOutcome, ...]
    plans: tuple[tuple[Cluster, Planned], ...] = ()
    """One for each cluster with a node that would be drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Plans as if notices were acted on."""

    groups: Callable[[Cluster, Sequence[Node]], Sequence[NodeGroup]]
    """Lists the node groups of a cluster, given its nodes."""
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    observed_times: ObservedTimes | None = None
    """None without a stack: then stop times are stated or assumed."""

    def of(
        self,
        notices: Sequence[Notice],
        locate: Locate,
        connect: Callable[[str], tuple[Cluster, ClusterApi] | None],
    ) -> DryRunResult:
        """Return what these notices would lead to.

        Args:
            notices: those of one event.
            locate: tells where instances are.
            connect: opens a cluster by the name that `locate` gave; None when nobody registered it.

        Raises:
            PlimsollError: a cluster, or where an instance is, cannot be read.
        """
        draining = [n for n in notices if isinstance(n, About) and n.decision.merges]
        outcomes = [
            NoticeOutcome(notice=n, effect=n.decision.effect, reason=n.decision.reason)
            for n in notices
            if n not in draining
        ]
        by_cluster, elsewhere = located(draining, locate)
        for notice, why in elsewhere.items():
            if isinstance(why, Exception):
                raise why
            outcomes.append(_nothing(notice, why))
        plans = []
        for name, found in sorted(by_cluster.items()):
            connected = connect(name)
            if connected is None:
                why = f"{name} is not a registered cluster"
                outcomes += [_nothing(each.notice, why) for each in found]
                continue
            told, planned = self.in_cluster(*connected, found)
            outcomes += told
            if planned is not None:
                plans.append((connected[0], planned))
        return DryRunResult(outcomes=tuple(outcomes), plans=tuple(plans))

    def in_cluster(
        self, cluster: Cluster, api: ClusterApi, found: Sequence[LocatedNotice]
    ) -> tuple[Sequence[NoticeOutcome], Planned | None]:
        """Return what notices would lead to in one cluster, and the plan; None: no node is drained.

        Raises:
            PlimsollError: the cluster cannot be read.
        """
        outcomes: list[NoticeOutcome] = []
        cordons: list[Step] = []
        interrupted: dict[str, Interruption] = {}
        kept = heeded(cluster, found)
        outcomes += [
            _nothing(each.notice, "the policy of the cluster ignores it")
            for each in found
            if each not in kept
        ]
        reader = _Unwritten(api)
        for batch in find_nodes(reader, kept, self.workers):
            notices, node = batch
            if isinstance(node, Exception):
                raise node
            answer = cordon(reader, batch, self.clock)
            outcomes += [_outcome(each, cluster, node, answer) for each in notices]
            if node is None or isinstance(answer, str):
                continue
            # On advice, too, the plan shows what follows the cordon.
            now, stands = self.clock.now(), answer.interruption
            interrupted[node.name] = marked(stands, cordoned=stands.cordoned or now)
            if answer.written or stands.cordoned is None:
                action = Cordon(
                    node=node, interruption=interrupted[node.name], reason=answer.reason
                )
                cordons.append(Step(action=action, nodes=frozenset({node.name})))
        if not interrupted:
            return outcomes, None
        planned = self._plan(cluster, api, interrupted)
        plan = replace(planned.plan, steps=(*cordons, *planned.plan.steps))
        return outcomes, replace(planned, plan=plan)

    def report(
        self, cluster: Cluster, api: ClusterApi, found: Sequence[LocatedNotice], reports: Reports
    ) -> None:
        """Log what would be done now, and keep it as reports.

        Raises:
            PlimsollError: the cluster cannot be read, or a report not be written.
        """
        _, planned = self.in_cluster(cluster, api, found)
        if planned is None:
            return
        plan = planned.plan
        for step in plan.steps:
            self.telemetry.log(
                "would act",
                action=step.action.verb,
                target=step.action.target,
                because=step.action.reason,
            )
        for report in plan.reports:
            reasons = tuple(
                replace(reason, verb=f"would {reason.verb}", first=None, last=None)
                for reason in report.reasons
            )
            reports.merge(replace(report, cordoned=None, reasons=reasons))

    def _plan(
        self, cluster: Cluster, api: ClusterApi, interrupted: Mapping[str, Interruption]
    ) -> Planned:
        seen = api.observe()
        try:
            groups = self.groups(cluster, seen.nodes)
        except PlimsollError as error:
            self.telemetry.warn("node groups not read", because=str(error))
            groups = ()
        seen = replace(seen.with_interruptions(interrupted), policy=cluster.policy)
        known = self.observed_times
        if known is not None:
            seen = replace(seen, times=known.of(cluster.name, disrupted(seen)) or {})
        seen = seen.among(groups=groups)
        leaving = (p for p in seen.pods if p.node in interrupted and leaves(p))
        return Planned(plan=plan_drain(seen, self.clock.now()), stops=known_stops(seen, leaving))


class _Unwritten:
    """A cluster whose Nodes are read, and none of which is written to."""

    def __init__(self, api: ClusterApi) -> None:
        self.node, self.nodes = api.node, api.nodes

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Write nothing."""

    record = cordon


def _nothing(notice: Notice, why: str) -> NoticeOutcome:
    return NoticeOutcome(notice=notice, effect=Effect.NOTHING, reason=why)


def _outcome(
    found: LocatedNotice, cluster: Cluster, node: Node | None, answer: Cordoned | str
) -> NoticeOutcome:
    nothing = isinstance(answer, str)
    return NoticeOutcome(
        notice=found.notice,
        effect=Effect.NOTHING if nothing else found.decision.effect,
        reason=answer if isinstance(answer, str) else found.decision.reason,
        cluster=cluster.name,
        node=None if node is None else node.name,
    )
