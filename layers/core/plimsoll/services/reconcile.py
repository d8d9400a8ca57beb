"""The work of one reconcile while its Lease is held: observe, plan, act, and again until its time is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from plimsoll.domain.actions import (
    Evict,
    Grow,
    LabelNode,
    Plan,
    Release,
    TerminateInstance,
)
from plimsoll.domain.drain import (
    ClusterPlan,
    added_entry,
    plan_drain,
    report_of_added,
    reports_wanted,
)
from plimsoll.domain.errors import BadInput, Refused, Temporary
from plimsoll.domain.kubernetes import webhook_in
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.placement import report_of, words_of
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Report
from plimsoll.services.collector import collector_paused
from plimsoll.services.executor import ActionResult, Executor, requested_pause
from plimsoll.services.lease import Lease, LeaseLost
from plimsoll.services.ports import Clock, ClusterApi, Reports, Span, Telemetry, Workers
from plimsoll.services.reconcile_inputs import ReconcileInputs
from plimsoll.services.reconcile_memory import EVICTED_AGAIN, ReconcileMemory
from plimsoll.services.storm_frames import StormFrames

PAUSE_SECONDS: Final = 1.0
"""Between two observations: a replacement that is Ready is seen within this time."""
MANY_ACTIONS: Final = 48
"""A plan of so many actions has its reports written after a later one: no pod waits for a database."""


def pause_after(error: Temporary, now: datetime, until: datetime) -> float:
    """Return how many seconds to wait before the next attempt.

    Raises:
        Temporary: the error itself, where `until` comes first.
    """
    pause = max(PAUSE_SECONDS, error.retry_after or 0.0)
    if now + timedelta(seconds=pause) >= until:
        raise error
    return pause


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """When a reconcile has to end."""

    usual: datetime
    hurried: datetime

    @classmethod
    def of(cls, now: datetime, seconds: float, hurried: float) -> Self:
        """Return the limit of a reconcile that begins now, and of one that is hurried."""
        return cls(now + timedelta(seconds=seconds), now + timedelta(seconds=hurried))

    def ends(self, plan: Plan) -> datetime:
        """Return when the work has to end that a plan belongs to."""
        return self.hurried if plan.hurried else self.usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Carries the open interruptions of one cluster on."""

    cluster: Cluster
    api: ClusterApi
    inputs: ReconcileInputs
    executor: Executor
    lease: Lease
    time: TimeLimit
    reports: Reports
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    memory: ReconcileMemory
    frames: StormFrames
    span: Span

    def work(self) -> tuple[int, float | None]:
        """Return how often the cluster was observed, and in how many seconds it is to be again, if it is.

        Raises:
            LeaseLost: somebody else has the Lease by now.
            Temporary: the cluster has not answered until the time was over.
        """
        observations, until = 0, self.time.usual
        while True:
            try:
                pause, until = self._once()
            # LeaseLost is also Temporary, and must be caught first:
            # another reconcile works on the cluster, so waiting is wrong.
            except LeaseLost:
                raise
            except Temporary as error:
                # Another reconcile would first have to wait until the Lease expires.
                pause = pause_after(error, self.clock.now(), until)
                self.telemetry.warn(
                    "observation failed", cluster=self.cluster.name, because=str(error)
                )
            else:
                observations += 1
                # A pause beyond the time limit is not slept here: it becomes the delay of the next wake-up.
                over = self.clock.now() + timedelta(seconds=pause or 0.0) >= until
                if pause is None or over:
                    return observations, pause
            self.clock.sleep(pause)

    def save(self, reports: Sequence[Report]) -> Sequence[Report]:
        """Write reports, and return what stands there then.

        A drain does not wait for a database: what fails is only logged.
        """
        answers = self.workers.run([lambda r=r: self.reports.merge(r) for r in reports])  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, Exception):
                self.telemetry.warn(
                    "report not written", interruption=report.interruption, because=str(answer)
                )
        return [
            report if isinstance(answer, Exception) else answer
            for report, answer in zip(reports, answers, strict=True)
        ]

    def _once(self) -> tuple[float | None, datetime]:
        """Observe, plan and act.

        Returns:
            the pause before the next time, None where nothing is left; and when the work has to end.
        """
        began, memory = self.clock.now(), self.memory
        # Checked before the observation: otherwise pods that another reconcile is evicting would count as Ready.
        self.lease.require()
        plan = self._plan()
        planned, until = self.clock.now(), self.time.ends(plan)
        spent = (planned - began).total_seconds()
        over = min(until, plan.expires or until)
        outcomes = self.executor.carry_out(
            plan, held=lambda: self.lease.held, enough=lambda: self.clock.now() >= over
        )
        acted = (self.clock.now() - planned).total_seconds()
        if outcomes:
            self.telemetry.log(
                "plan carried out",
                cluster=self.cluster.name,
                actions=len(outcomes),
                planned_in=round(spent, 1),
                carried_out_in=round(acted, 1),
            )
        # Before the reports are chosen, since they name added nodes and overruled budgets.
        self._learn(plan, outcomes)
        placed = [
            o.action for o in outcomes if o.done and isinstance(o.action, LabelNode | Release)
        ]
        words = words_of(placed, began)
        busy = plan.hurried or len(outcomes) >= MANY_ACTIONS
        news = memory.news(defer=busy or self.clock.now() >= over)
        self.save([*news, *([report_of(self.cluster.name, words, began)] if words else [])])
        # After all actions: no pod waits for a database.
        self.inputs.remember_counts()
        pause_began = self.clock.now()
        self.frames.show(plan, [o.action for o in outcomes if o.done], memory.refusals)
        # Without the Lease the executor only stops. Here the loss ends the reconcile.
        self.lease.require()
        return self._pause(plan, outcomes, pause_began) if plan.busy else None, until

    def _pause(self, plan: Plan, outcomes: Sequence[ActionResult], began: datetime) -> float:
        """Return the seconds until the next observation: less where a pod has to be told before it.

        It costs the API server nothing: a reconcile lists once, and then takes in what watches have told. The pause
        begins before the frame is made, so that the frame delays no plan.
        """
        pause = max(PAUSE_SECONDS, requested_pause(outcomes))
        pause = max(0.0, pause - (self.clock.now() - began).total_seconds())
        if plan.next_eviction is not None:
            pause = min(pause, max(0.0, (plan.next_eviction - self.clock.now()).total_seconds()))
        return pause

    def _plan(self) -> ClusterPlan:
        memory, inputs = self.memory, self.inputs
        if not memory.zones_read:
            memory.shifts, memory.pools = inputs.shifts(), inputs.pool_ranks()
            memory.zones_read = True
        began = self.clock.now()  # no later plan waits for what is read once
        with self.span.child("observe"):
            observed = self.api.observe()
        seen = replace(observed, policy=self.cluster.policy, shifts=memory.shifts)
        self.span.link(
            notice.traceparent
            for node in seen.nodes
            if node.interruption is not None
            for notice in node.interruption.notices
        )
        # `terminated` dates from the previous observation: EC2 is asked after this.
        memory.endings.note(seen, began, self.clock.now(), memory.terminated)
        if reports_wanted(seen):
            seen = replace(seen, reports=inputs.past_reports())
        instances = inputs.instances(seen)
        # Before the counts, which start from the remembered number of pods.
        seen = replace(seen, times=inputs.times(seen))
        memory.count(seen, began)
        fresh = memory.wants_groups(seen.nodes, self.clock.now())
        while True:
            if fresh:
                memory.note_groups(inputs.groups(seen.nodes), self.clock.now())
                memory.note_launches(seen.nodes)
            now, read = self.clock.now(), memory.groups or ()
            took = now - began + 2 * memory.planning
            with collector_paused():
                plan = plan_drain(
                    seen.among(
                        groups=read,
                        instances=instances,
                        counts=memory.counts,
                        uncounted=memory.uncounted(seen, began),
                        pools=memory.pools,
                    ),
                    now,
                    refusals=memory.refusals,
                    refused=memory.refused_at(now),
                    ahead=took if took > timedelta(seconds=PAUSE_SECONDS) else timedelta(),
                )
            memory.planning = self.clock.now() - now
            if fresh or not any(isinstance(action, Grow) for action in plan.actions):
                break
            fresh = True  # somebody else may have asked since: look again before asking for more
        memory.learn(plan.reports)
        return plan

    def _learn(self, plan: Plan, outcomes: Sequence[ActionResult]) -> None:
        now, memory = self.clock.now(), self.memory
        steps = {(step.action.verb, step.action.target): step for step in plan.steps}
        for outcome in outcomes:
            if (webhook := webhook_in(str(outcome.error or ""))) is not None:
                memory.block(steps[outcome.action.verb, outcome.action.target], webhook, now)
            refused = isinstance(outcome.error, Refused | BadInput)
            match outcome.action:
                # The groups are read again in any case: a request whose answer was lost may have been carried out.
                case Grow(group=group, token=token, reason=reason):
                    memory.groups = None
                    if outcome.error is not None:
                        memory.not_grown(group, outcome.error, now)
                    elif outcome.done:
                        memory.grown(group, outcome.promised, now)
                        added = added_entry(group, outcome.promised, now, token)
                        memory.add(report_of_added(self.cluster.name, added, reason, now))
                case TerminateInstance(shrunk=NodeGroup() as group) as action if outcome.done:
                    memory.groups = None
                    memory.take_back(
                        added_entry(group, -1, now, action.interruption.instance),
                        action.interruption.identity,
                    )
                case Evict(pod=pod) if outcome.overruled is not None:
                    memory.overrule(pod, outcome.overruled)
                case Release(replica_set=made) if refused:
                    why = f"its release was refused: {outcome.error}"
                    memory.refused[str(made.controller)] = why, None
                case action if refused and action.refusable:
                    until = now + EVICTED_AGAIN if isinstance(action, Evict) else None
                    memory.refused[action.target] = f"{action.target}: {outcome.error}", until
