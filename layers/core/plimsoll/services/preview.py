"""What an event would lead to: the path of a notice and of the first plan after it, without a write.

It takes the same steps as `plimsoll.services.notices` and a reconcile's first look, so what it shows is
what would be done now. What comes later depends on what the cluster does meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.domain.actions import Cordon
from plimsoll.domain.clusters import Cluster, IndexEntry
from plimsoll.domain.interruptions import Interruption, actionable
from plimsoll.domain.nodes import Node
from plimsoll.domain.notices import InstanceNotice, Notice, ZonalShift
from plimsoll.domain.plan import Plan, Step
from plimsoll.services.cordons import Located, look
from plimsoll.services.locator import Owner
from plimsoll.services.ports import Clock, ClusterApi
from plimsoll.services.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeOutcome:
    """What one notice leads to, in words."""

    notice: Notice
    effect: str
    reason: str
    cluster: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """What all notices of an event lead to."""

    answers: tuple[NoticeOutcome, ...]
    plans: tuple[tuple[Cluster, Plan], ...] = ()
    """One for each cluster with a node that would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Foresees what notices lead to. Writes nothing."""

    rehearsal: Rehearsal
    clock: Clock
    locate: Callable[[Sequence[InstanceNotice]], Mapping[str, Owner]]
    """Tells where instances are."""
    open: Callable[[str], tuple[Cluster, ClusterApi] | None]
    """Opens a cluster by the name that `locate` gave; None when nobody registered it."""

    def of(self, notices: Sequence[Notice]) -> DryRunResult:
        """Return what these notices would lead to.

        Raises:
            PlimsollError: a cluster, or where an instance is, cannot be read.
        """
        answers: list[NoticeOutcome] = []
        merging: list[InstanceNotice] = []
        for notice in notices:
            verdict = actionable(notice)
            if verdict.merges and not isinstance(notice, ZonalShift):
                merging.append(notice)  # type: ignore[arg-type]  # only notices of instances merge
            else:
                answers.append(
                    NoticeOutcome(notice=notice, effect=verdict.effect, reason=verdict.reason)
                )
        owners = self.locate(merging) if merging else {}
        by_cluster: dict[str, list[Located]] = defaultdict(list)
        for notice in merging:
            match owners[notice.instance]:
                case IndexEntry() as entry:
                    by_cluster[entry.cluster].append((notice, entry))
                case str() as why:
                    answers.append(NoticeOutcome(notice=notice, effect="nothing", reason=why))
                case error:
                    raise error
        plans = []
        for name, found in sorted(by_cluster.items()):
            opened = self.open(name)
            if opened is None:
                why = f"{name} is not a registered cluster"
                answers += [NoticeOutcome(notice=n, effect="nothing", reason=why) for n, _ in found]
                continue
            cluster, api = opened
            told, plan = self._in_cluster(cluster, api, found)
            answers += told
            if plan is not None:
                plans.append((cluster, plan))
        return DryRunResult(answers=tuple(answers), plans=tuple(plans))

    def _in_cluster(
        self, cluster: Cluster, api: ClusterApi, found: Sequence[Located]
    ) -> tuple[list[NoticeOutcome], Plan | None]:
        by_instance: dict[str, list[Located]] = defaultdict(list)
        for notice, entry in found:
            by_instance[notice.instance].append((notice, entry))
        answers: list[NoticeOutcome] = []
        steps: list[Step] = []
        interrupted: dict[str, Interruption] = {}
        for batch in by_instance.values():
            node, merged = look(api, batch, self.clock.now())
            answers += [_answer(notice, cluster, node, merged) for notice, _ in batch]
            if node is None or isinstance(merged, str):
                continue
            interrupted[node.name] = merged
            if node.interruption != merged:
                reason = actionable(batch[0][0]).reason
                action = Cordon(node=node, interruption=merged, reason=reason)
                steps.append(Step(action=action, nodes=frozenset({node.name})))
        if not interrupted:
            return answers, None
        plan = self.rehearsal.plan(cluster, api, interrupted)
        return answers, replace(plan, steps=(*steps, *plan.steps))


def _answer(
    notice: InstanceNotice, cluster: Cluster, node: Node | None, merged: Interruption | str
) -> NoticeOutcome:
    verdict = actionable(notice)
    nothing = isinstance(merged, str)
    return NoticeOutcome(
        notice=notice,
        effect="nothing" if nothing else verdict.effect,
        reason=merged if isinstance(merged, str) else verdict.reason,
        cluster=cluster.name,
        node=None if node is None else node.name,
    )
