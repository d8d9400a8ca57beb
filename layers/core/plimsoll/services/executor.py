"""The one place where plans become calls.

It carries out what a plan says, wave after wave and side by side within a wave, and answers what
came of each action. It decides nothing: an action that did not work is decided anew, from a fresh
observation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import groupby
from typing import Final

from plimsoll.domain.actions import Action, Plan, Step, Writers
from plimsoll.domain.drain import event_of_action
from plimsoll.domain.errors import NotFound, PlimsollError, Temporary, Throttled
from plimsoll.domain.kubernetes import ClusterEvent
from plimsoll.domain.reports import Metric
from plimsoll.services.cluster_events import MOST, create_events
from plimsoll.services.ports import Telemetry, Workers

TOGETHER: Final = 48
"""How many of a wave are begun at least. Once the API has asked one of them for patience, no more of their wave
follow."""
ROUND: Final = 16
"""How many of a wave are begun however late it is: fewer than there are workers, so they last as long as one call. A
reconcile with no time left still gets something done, and an API server that takes seconds for a call does not hold it."""


class _Left(Enum):
    """What came of an action that was not begun."""

    LEFT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one action."""

    action: Action
    done: bool
    """Also true for what was gone already: that is what was wanted."""
    error: PlimsollError | None = None
    overruled: str | None = None
    """How a budget had refused the pod that was deleted all the same."""
    promised: int = 0
    """How many nodes a group promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Carries out plans on one cluster."""

    writers: Writers
    workers: Workers
    telemetry: Telemetry
    noted: dict[str, ClusterEvent] = field(default_factory=dict)
    """Events to create, by name: so often repeated, so often the same."""

    def note(self, event: ClusterEvent | None) -> None:
        """Keep an Event for `create_events`, unless there are too many."""
        if event is not None and len(self.noted) < MOST:
            self.noted.setdefault(event.name, event)

    def create_events(self) -> None:
        """Create the Events of all that was done. For the end: nobody may wait for it."""
        create_events(self.writers.cluster, [*self.noted.values()], self.workers, self.telemetry)
        self.noted.clear()

    def carry_out(
        self,
        plan: Plan,
        *,
        held: Callable[[], bool] = lambda: True,
        enough: Callable[[], bool] = lambda: False,
    ) -> Sequence[Outcome]:
        """Carry out a plan and return what came of every action that was begun, in the plan's order.

        Where the API asks for patience, the rest of that wave is left for another plan.

        Args:
            plan: its steps are in the order of their waves.
            held: asked before each action. False leaves it and all that follow: we may not write any
                more, for example since the Lease is lost.
            enough: asked before each action of a wave, but for its first `ROUND`. True leaves the
                rest of it, and what follows, to be decided anew from another observation. However late it
                is, of every wave up to there something is done: where calls are slow, pods to be
                told now come after capacity.

        Raises:
            Exception: whatever no action is meant to raise, after those begun with it are done.
        """
        outcomes: list[Outcome] = []
        for _, wave in groupby(plan.steps, key=lambda step: step.action.wave):
            begun, over = self._carry_out([*wave], held, enough)
            outcomes += begun
            if over:
                break
        return outcomes

    def _carry_out(
        self, steps: Sequence[Step], held: Callable[[], bool], enough: Callable[[], bool]
    ) -> tuple[Sequence[Outcome], bool]:
        """Return what came of one wave, and whether nothing may follow it.

        No action waits for those beside it: were they begun by the dozen, each dozen would last as long as its
        slowest call.
        """
        over = throttled = False

        def perform(place: int, step: Step) -> _Left | int | str | None:
            nonlocal over, throttled
            if not held() or (place >= ROUND and enough()):
                over = True
                return _Left.LEFT
            if throttled and place >= TOGETHER:
                return _Left.LEFT
            try:
                return step.action.perform(self.writers)
            except Throttled:
                throttled = True
                raise

        answers = self.workers.run([partial(perform, n, step) for n, step in enumerate(steps)])
        outcomes = [
            self._judge(step, answer)
            for step, answer in zip(steps, answers, strict=True)
            if answer is not _Left.LEFT
        ]
        return outcomes, over

    def _judge(self, step: Step, answer: object) -> Outcome:
        match answer:
            case NotFound():
                self._say("was gone already", step)
                return Outcome(action=step.action, done=True)
            case PlimsollError():
                self.telemetry.warn(
                    "action not done",
                    action=step.action.verb,
                    target=step.action.target,
                    error=type(answer).__name__,
                    because=str(answer),
                )
                self.note(event_of_action(step.action, error=answer))
                return Outcome(action=step.action, done=False, error=answer)
            case Exception():
                raise answer
            case str() as refusal:
                self.telemetry.count(Metric.BUDGETS_OVERRULED)
                self.telemetry.warn(
                    "overruled",
                    action=step.action.verb,
                    target=step.action.target,
                    because=refusal,
                )
                self._say("acted", step)
                self.note(event_of_action(step.action, overruled=refusal))
                return Outcome(action=step.action, done=True, overruled=refusal)
            case _:
                self._say("acted", step)
                self.note(event_of_action(step.action))
                promised = answer if isinstance(answer, int) else 0
                return Outcome(action=step.action, done=True, promised=promised)

    def _say(self, message: str, step: Step) -> None:
        self.telemetry.log(
            message,
            action=step.action.verb,
            target=step.action.target,
            because=step.action.reason,
            nodes=sorted(step.nodes),
        )


def requested_pause(outcomes: Sequence[Outcome]) -> float:
    """Return how long an API that protects itself wants to be left alone, in seconds."""
    errors = [o.error for o in outcomes if isinstance(o.error, Temporary)]
    return max((error.retry_after or 0.0 for error in errors), default=0.0)
