"""The command executor: checks instructions, writes down that it begins, acts, and reports.

What was begun by somebody who died is brought to an end first: a drain that is not over is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain import DrainRequest, plan_nodes
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.observation import Observation
from plimsoll.services.node_drain import NodeDrain, Progress, waits
from plimsoll.services.ports import Clock, ClusterApi
from plimsoll_agent.authorization import (
    against_cordon,
    against_drain,
    against_instruction,
    against_node,
    against_policy,
    leaving,
)
from plimsoll_agent.drain_permission import DrainPermission
from plimsoll_agent.journal import Journal, JournalEntry
from plimsoll_agent.owner_policy import ACT, OwnerPolicy
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.instructions import (
    Instruction,
    Instructions,
    Outcome,
    Results,
    SignedInstruction,
    verify,
)

MOST_RESULTS: Final = 100
"""In one report."""


class Instructing(Protocol):
    """The service, as far as an executor talks to it."""

    def instructions(self) -> Instructions:
        """Return what is asked."""

    def report(self, results: Results) -> None:
        """Report what became of it."""


class JournalStore(Protocol):
    """Where the journal is kept."""

    def load(self) -> Journal:
        """Return it."""

    def save(self, journal: Journal) -> None:
        """Replace what was loaded; `Conflict` where somebody else did."""


class Reporting(Progress, Protocol):
    """What people and Prometheus hear."""

    def answered(self, kind: str, outcome: str) -> None:
        """An instruction was answered; `untrusted` where nobody knows whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionExecutor:
    """Carries out instructions on one cluster, one at a time."""

    cluster_id: str
    api: ClusterApi
    service: Instructing
    policy: Callable[[], OwnerPolicy]
    """Reads the owner's policy anew: it may change at any time, also while a node is drained."""
    journal: JournalStore
    clock: Clock
    progress: Reporting

    def round(self) -> None:
        """End what was begun, take what is asked, and report.

        Raises:
            PlimsollError: the cluster or the service cannot be reached; the next round goes on.
        """
        # The order matters: the agent ends the last instruction before it begins
        # another, and reports each result before it takes the next instruction.
        self._end_what_was_begun()
        self._report()
        for signed in self.service.instructions().instructions:
            self._take(signed)
            self._report()

    def _take(self, signed: SignedInstruction) -> None:
        # Read before the signature is checked: the owner's policy names the keys.
        policy = self.policy()
        try:
            instruction = verify(signed, policy.instruction_keys)
        except Malformed as error:
            self._heard("instruction", "untrusted", str(error))
            return
        journal, now = self.journal.load(), self.clock.now()
        why = against_instruction(instruction, self.cluster_id, journal, now)
        if why is not None and journal.answered(instruction):
            self._again(instruction, journal)
            return
        why = why or against_policy(instruction, policy, journal, now)
        if why is not None:
            self._answer(journal, instruction, "refused", why)
            return
        match instruction.kind:
            case "consolidate-node":
                self._consolidate(signed, instruction, policy, journal)
            case "label-node":
                self._label(instruction, policy, journal)

    def _again(self, instruction: Instruction, journal: Journal) -> None:
        """Say once more what became of it: the service lost the answer. Or it is an old one."""
        found = journal.find(instruction)
        if found is None:
            self._heard(instruction.kind, "replayed", f"number {instruction.number} came before")
        elif found.outcome is not None:
            self._send([found])

    def _label(self, instruction: Instruction, policy: OwnerPolicy, journal: Journal) -> None:
        node = self.api.node(instruction.target.name)
        why = against_node(instruction, policy, node)
        if why is not None or node is None:
            self._answer(journal, instruction, "refused", why or "")
            return
        if policy.mode != ACT:
            said = ", ".join(f"{key}={value}" for key, value in instruction.labels.items())
            self._answer(journal, instruction, "would-do", f"would label Node {node.name} {said}")
            return
        # The journal is written before the patch: an entry without
        # an outcome makes the next process look at the Node.
        journal = self._begin(journal, instruction)
        try:
            self.api.label(node, instruction.labels)
        except PlimsollError as error:
            self._end(journal, journal.entries[-1], "failed", str(error))
        else:
            self._end(journal, journal.entries[-1], "done", f"Node {node.name} is labelled")

    def _consolidate(
        self,
        signed: SignedInstruction,
        instruction: Instruction,
        policy: OwnerPolicy,
        before: Journal,
    ) -> None:
        """Look, cordon, look again, and drain: a pod may land between the first look and the cordon."""
        seen, name, now = self.api.observe(), instruction.target.name, self.clock.now()
        why = against_cordon(instruction, policy, seen.node.get(name)) or against_drain(
            instruction, policy, seen, now
        )
        if why is not None:
            self._answer(before, instruction, "refused", why)
            return
        request = DrainRequest(nodes=frozenset({name}), started=now, until=now + policy.drain_limit)
        if policy.mode != ACT:
            plan = plan_nodes(seen, request, request.started)
            steps = [f"{s.action.verb} {s.action.target}" for s in plan.plan.steps]
            said = "; ".join([f"cordon Node {name}", *steps, *waits(plan)])
            self._answer(before, instruction, "would-do", f"would {said}")
            return
        # The journal is written before the cordon. Of two executors,
        # the second gets a Conflict here and does nothing.
        journal = self._begin(before, instruction)
        permission = DrainPermission(
            signed=signed,
            policy=self.policy,
            before=before,
            clock=self.clock,
            started=now,
            read=now,
        )
        outcome, reason = self._drain(request, permission)
        self._end(journal, journal.entries[-1], outcome, reason)

    def _drain(self, request: DrainRequest, permission: DrainPermission) -> tuple[Outcome, str]:
        """Drain a node as `plimsoll drain` does; what is not drained in time, or refused meanwhile, is undone."""
        try:
            with self.api.following() as api:
                end, plan = replace(self._work(api), check=permission.check).run(request)
        except PlimsollError as error:
            why = str(error)
        else:
            if end == "drained":
                return "done", f"Node {', '.join(request.nodes)} is empty, and stays cordoned"
            why = "; ".join([end, *plan.blocked.values(), *waits(plan)])
        self._work(self.api).undo(request.nodes)
        return "failed", f"undone: {why}"

    def _work(self, api: ClusterApi) -> NodeDrain:
        return NodeDrain(
            api=api,
            clock=self.clock,
            workers=SerialWorkers(),
            progress=self.progress,
        )

    def _end_what_was_begun(self) -> None:
        """End what somebody began who is gone: this executor begins one at a time, and ends it."""
        journal = self.journal.load()
        for entry in journal.open():
            outcome, reason = self._found(entry, self.api.observe())
            journal = self._end(journal, entry, outcome, reason)

    def _found(self, entry: JournalEntry, seen: Observation) -> tuple[Outcome, str]:
        node = seen.node.get(entry.node)
        if node is None or node.uid != entry.uid:
            return "failed", "the agent ended midway, and the Node is gone"
        if entry.kind == "label-node":
            if all(node.labels.get(key) == value for key, value in entry.labels.items()):
                return "done", f"Node {node.name} is labelled"
            return "failed", "the agent ended midway"
        if node.unschedulable and not leaving(seen, node):
            return "done", f"Node {node.name} is empty, and stays cordoned"
        self._work(self.api).undo(frozenset({node.name}))
        return "failed", "the agent ended midway, and what it had begun is undone"

    def _begin(self, journal: Journal, instruction: Instruction) -> Journal:
        begun = journal.begin(instruction, self.clock.now())
        self.journal.save(begun)
        return begun

    def _answer(
        self, journal: Journal, instruction: Instruction, outcome: Outcome, reason: str
    ) -> None:
        """Write an answer down without having acted."""
        begun = journal.begin(instruction, self.clock.now())
        self._end(begun, begun.entries[-1], outcome, reason)

    def _end(self, journal: Journal, entry: JournalEntry, outcome: Outcome, reason: str) -> Journal:
        ended = journal.end(entry, outcome, reason, self.clock.now())
        self.journal.save(ended)
        self._heard(entry.kind, outcome, reason)
        return ended

    def _report(self) -> None:
        journal = self.journal.load()
        unreported = journal.unreported()
        if not unreported:
            return
        told = unreported[:MOST_RESULTS]
        # Sent before the journal notes it: after a crash the agent sends
        # it again, and the service keeps the first result of a number.
        self._send(told)
        self.journal.save(journal.reported(told))

    def _send(self, entries: Sequence[JournalEntry]) -> None:
        if entries:
            self.service.report(Results(results=tuple(entry.result() for entry in entries)))

    def _heard(self, kind: str, outcome: str, why: str) -> None:
        self.progress.answered(kind, outcome)
        self.progress.warn("instruction answered", kind=kind, outcome=outcome, because=why)
