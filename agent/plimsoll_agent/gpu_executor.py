"""Carries out a plan of GPU layouts, as `plimsoll-gpu`: looks at each Node, decides, and does one step.

Nodes are written under this identity, which may write little else. Pods leave under that of the drain, whose
admission policies hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, Protocol, assert_never

from msgspec.structs import replace as replace_fields

from plimsoll.adapters.kubernetes import KubernetesCluster, calls
from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Evict, Plan, Step
from plimsoll.domain.drain import DrainRequest, plan_nodes, plan_undo
from plimsoll.domain.errors import BadInput, Conflict, MissingRights, NotFound, Permanent
from plimsoll.domain.kubernetes import GPU_CHANGE, NAMESPACE, Node, Pod
from plimsoll.domain.observation import Observation
from plimsoll.services.executor import Executor, Writers
from plimsoll.services.node_drain import NoNodeGroups, Progress, waits
from plimsoll.services.ports import Clock
from plimsoll_agent.authorization import interrupted
from plimsoll_agent.calls import GET_CONFIG, GET_GPU_PLAN, MAY_USE
from plimsoll_agent.gpu_begin import (
    against_any,
    against_config,
    against_emptying,
    against_name,
    against_node,
    cordon,
    holds_gpus,
)
from plimsoll_agent.gpu_change import (
    LIMITS,
    Limits,
    Look,
    NextStep,
    Release,
    Undo,
    Wait,
    Write,
    next_step,
)
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.gpu_plan import CONFIG_MAP, GRANTED, KEY, GpuPlan, NodeChange, parse_plan

LOOK_SECONDS: Final = 5.0
"""Between two looks while a Node is changed."""
IDLE_SECONDS: Final = 60.0


class GpuProgress(Progress, Protocol):
    """What people and Prometheus hear."""

    def gpu_alerts(self, nodes: int) -> None:
        """So many Nodes stay cordoned until a person looks."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The plan as it is now, or why there is none that can be carried out. Not slotted: entries are kept."""

    plan: GpuPlan | None = None
    text: str = ""
    """Of the ConfigMap of the layouts."""
    why: str | None = None

    @cached_property
    def entries(self) -> Mapping[str, NodeChange]:
        """The change of each Node, by name, in the plan's order."""
        return {} if self.plan is None else {each.name: each for each in self.plan.nodes}

    def against(self, node: Node, change: GpuChange) -> str | None:
        """Return why a change that was begun is not asked for any more."""
        entry = self.entries.get(node.name)
        if self.plan is None or self.why is not None:
            return self.why
        if entry is None or (entry.uid, entry.label, entry.value) != (
            node.uid,
            change.label,
            change.target,
        ):
            return "the plan does not ask for it any more"
        if change.config != self.plan.config.sha256:
            return "it was planned with another ConfigMap"
        return against_name(entry, self.plan.config, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuExecutor:
    """Changes the Nodes of one cluster as a plan says."""

    api: KubernetesCluster
    """Under the identity `plimsoll-gpu`."""
    drain: KubernetesCluster
    """Under that of the drain."""
    clock: Clock
    progress: GpuProgress
    limits: Limits = LIMITS

    def round(self) -> float:
        """Take each change one step further, begin one more where that is allowed, and return when to look again.

        Raises:
            PlimsollError: the cluster cannot be reached; the next round goes on.
        """
        wanted = self._wanted()
        looks, unread = self._read_nodes(wanted)
        under_way = [look for look in looks if look.change is not None and look.change.under_way]
        # Changes under way go first. While one of them was written to, no other begins.
        acted = [self._step(look, wanted) for look in under_way]
        if not any(acted) and not unread:
            acted.append(self._begin(wanted, looks))
        alerts = sum(look.change is not None and look.change.step == "alert" for look in looks)
        self.progress.gpu_alerts(alerts + unread)
        if under_way or any(acted):
            return LOOK_SECONDS
        self.drain.close()
        return IDLE_SECONDS

    def _wanted(self) -> Wanted:
        try:
            found = self.api.requests.send(GET_GPU_PLAN, namespace=NAMESPACE, name=CONFIG_MAP)
            plan = parse_plan((found.get("data") or {}).get(KEY, ""))
        except Malformed as error:
            self.progress.warn("the plan cannot be read", because=f"{CONFIG_MAP}: {KEY}: {error}")
            return Wanted(why=f"the plan cannot be read: {error}")
        except NotFound:
            return Wanted(why=f"there is no ConfigMap {CONFIG_MAP}")
        source = plan.config
        try:
            found = self.api.requests.send(GET_CONFIG, namespace=source.namespace, name=source.name)
            text = (found.get("data") or {}).get(source.key)
        except Permanent as error:
            return Wanted(plan=plan, why=str(error))
        return Wanted(plan=plan, text=text or "", why=against_config(source, text))

    def _read_nodes(self, wanted: Wanted) -> tuple[Sequence[Look], int]:
        """Return the Nodes that the plan or a journal names, and how many journals cannot be read."""
        looks, unread = [], 0
        for node in self.api.nodes():
            try:
                change = GpuChange.of(node)
            except BadInput as error:
                unread += 1
                self.progress.once(str(error))
                continue
            if change is not None or node.name in wanted.entries:
                looks.append(Look(node=node, change=change))
        return looks, unread

    def _step(self, look: Look, wanted: Wanted) -> bool:
        """Do what is next about a Node whose change is under way; return whether it was written to."""
        node, change = look.node, look.change
        if change is None:
            return False
        # Listed at this moment, not taken from an observation: a layout must not change under a pod with a GPU.
        look = replace(look, holders=self._holders(node))
        against = wanted.against(node, change)
        if against is None and change.step == "emptying":
            against = self._ungranted(change.target)
        step = next_step(look, change, against, self.clock.now(), self.limits)
        step = self._held(change, step)
        try:
            match step:
                case Wait():
                    self.progress.once(f"Node {node.name}: waits: {step.reason}")
                case Release():
                    self.progress.once(f"Node {node.name}: {step.reason}")
                    self._release(node, change)
                case Undo():
                    # Releases are undone first: the Node stays cordoned until none is left.
                    if self._undone(node):
                        return self._write(node, step.write)
                case Write():
                    return self._write(node, step)
                case never:
                    assert_never(never)
        except Conflict as error:
            self.progress.once(f"Node {node.name}: looked at again: {error}")
        except Permanent as error:
            self.progress.warn("a Node is not changed", node=node.name, because=str(error))
        return False

    def _holders(self, node: Node) -> tuple[str, ...]:
        """Return the pods of a Node that hold GPUs, as they are at this moment."""
        listed = self.api.requests.list(calls.LIST_PODS, fields=f"spec.nodeName={node.name}")
        return tuple(str(pod) for pod in map(parse_pod, listed) if holds_gpus(pod))

    def _begin(self, wanted: Wanted, looks: Sequence[Look]) -> bool:
        """Cordon the next Node of the plan; of those that were tried before, the one that waits the longest."""
        plan, now = wanted.plan, self.clock.now()
        if plan is None or wanted.why is not None or (why := against_any(plan, looks, now)):
            self.progress.once(f"no Node is begun: {wanted.why or why}")
            return False
        known = {look.node.name: look for look in looks}
        entries = [entry for name, entry in wanted.entries.items() if name in known]
        seen: Observation | None = None
        # Nodes that were never tried come first, in the plan's order
        # (the sort is stable); then those with the oldest attempt.
        for entry in sorted(entries, key=lambda entry: _tried(known[entry.name])):
            look = known[entry.name]
            why = against_name(entry, plan.config, wanted.text) or against_node(
                look, entry, plan.config
            )
            why = why or self._ungranted(entry.value, look.node.labels[entry.label])
            if why is None:
                # Read last, and once for all entries: the other checks need no list of pods.
                seen = seen or self.drain.observe()
                why = against_emptying(seen, look.node, entry, now)
            if why is None:
                return self._write(look.node, cordon(look, entry, plan.config, now))
            self.progress.once(f"Node {entry.name} is not begun: {why}")
        return False

    def _ungranted(self, *names: str) -> str | None:
        """Return why a name of a layout may not be set: the owner grants those, and a journal none."""
        group, resource, verb = GRANTED
        for name in names:
            asked = {"group": group, "resource": resource, "verb": verb, "name": name}
            answer = self.api.requests.send(
                MAY_USE,
                body={
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": asked},
                },
            )
            if not (answer.get("status") or {}).get("allowed"):
                return f"grant the verb {verb} on {resource}.{group}/{name}"
        return None

    def _held(self, change: GpuChange, step: NextStep) -> NextStep:
        """Let no name pass that only the journal has: the Node stays cordoned, and a person is asked to grant the way back."""
        if not isinstance(step, Write) or (name := (step.labels or {}).get(change.label)) is None:
            return step
        if (why := self._ungranted(name)) is None:
            return step
        if change.step == "alert":
            return Wait(reason=why)
        alert = replace_fields(
            change, step="alert", since=self.clock.now(), reason=f"{step.change.reason}: {why}"
        )
        return Write(change=alert)

    def _release(self, node: Node, change: GpuChange) -> None:
        """Move the pods with GPUs that a Deployment makes anew: each is evicted once its replacement is Ready."""
        seen = self.drain.observe()
        if (why := interrupted(seen)) is not None:
            self.progress.once(f"Node {node.name}: waits: {why}")
            return
        moved = [pod for pod in seen.pods if pod.node != node.name or _moves(seen, pod)]
        request = DrainRequest(nodes=frozenset({node.name}), started=change.begun)
        planned = plan_nodes(replace(seen, pods=moved), request, self.clock.now())
        steps = filter(_replaced_first, planned.plan.steps)
        for words in waits(planned):
            self.progress.once(f"Node {node.name}: waits: {words}")
        self._carry_out(replace(planned.plan, steps=tuple(steps)))

    def _undone(self, node: Node) -> bool:
        """Undo the releases of a Node's pods; return whether none was left to undo."""
        seen = self.drain.observe()
        plan = plan_undo(seen, frozenset({node.name}), self.clock.now())
        self._carry_out(plan)
        return not plan.steps

    def _carry_out(self, plan: Plan) -> None:
        writers = Writers(cluster=self.drain, capacity=NoNodeGroups())
        executor = Executor(writers=writers, workers=SerialWorkers(), telemetry=self.progress)
        for outcome in executor.carry_out(plan):
            if isinstance(outcome.error, MissingRights):
                raise outcome.error

    def _write(self, node: Node, write: Write) -> bool:
        """Write the journal and what it tells of in one patch, under the Node's resourceVersion."""
        change = write.change
        metadata: dict[str, Any] = {
            "resourceVersion": node.resource_version,
            "annotations": {GPU_CHANGE: change.text()},
        }
        if write.labels is not None:
            metadata["labels"] = dict(write.labels)
        # Journal, label and cordon in one patch: a process that
        # dies leaves no label without the journal that explains it.
        body: dict[str, Any] = {"metadata": metadata}
        if write.unschedulable is not None:
            body["spec"] = {"unschedulable": write.unschedulable or None}
        self.api.requests.send(calls.PATCH_NODE, name=node.name, body=body)
        tell = self.progress.warn if change.step == "alert" else self.progress.log
        tell(
            "GPUs of a Node: alert" if change.step == "alert" else "GPUs of a Node",
            node=node.name,
            step=change.step,
            labels=write.labels,
            because=change.reason,
        )
        return True


def _tried(look: Look) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if look.change is None else look.change.begun


def _moves(seen: Observation, pod: Pod) -> bool:
    """Whether a pod is one that leaves for a change: the others stay where they are."""
    return holds_gpus(pod) and seen.owner(pod) in seen.workload


def _replaced_first(step: Step) -> bool:
    """Whether a step evicts no pod that still counts for its workload: released ones leave once others serve."""
    return not isinstance(step.action, Evict) or step.action.pod.released
