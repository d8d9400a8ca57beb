"""The loops of the agent: one sends snapshots, one forwards taints, one reports changes of queues, one executes instructions.

Each has a thread, because a drain or a backlog of snapshots takes minutes, and no other loop waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import SystemRandom
from threading import Event
from typing import Final

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.services.ports import Clock
from plimsoll_agent.backoff import pause_after
from plimsoll_agent.instruction_executor import InstructionExecutor
from plimsoll_agent.queue_changes import QueueChanges
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.taint_forwarder import TaintForwarder

FOLLOW_SECONDS: Final = 5.0
"""How often what watches told is taken in between two snapshots."""
POLL_SECONDS: Final = 300.0
"""How often instructions are asked for although no answer spoke of any."""
STALE: Final = timedelta(minutes=15)
"""After this time without a round of `send_snapshots` the agent counts as hung; no request waits as long."""
_SPREAD: Final = 0.05
"""Share of the interval by which agents drift apart, so that they do not come together."""
_RANDOM: Final = SystemRandom()


@dataclass(slots=True, kw_only=True)
class Loops:
    """What the loops of one process share."""

    sender: SnapshotSender
    taints: TaintForwarder
    queues: QueueChanges
    executor: InstructionExecutor
    clock: Clock
    failed: Callable[[str, Exception], None]
    stopping: Event = field(default_factory=Event)
    wake: Event = field(default_factory=Event)
    """Set when instructions wait."""
    beat: datetime | None = None
    """When the loop of snapshots last came round."""

    def healthy(self) -> bool:
        """Whether the loop of snapshots goes on, whatever the service answers."""
        return self.beat is None or self.clock.now() - self.beat < STALE

    def stop(self) -> None:
        """Let all loops end after what they do now."""
        self.stopping.set()
        self.wake.set()

    def send_snapshots(self) -> None:
        """Take a snapshot each interval, and send what waits; until it is stopped."""
        send_at = take_at = follow_at = self.clock.now()
        while not self.stopping.is_set():
            self.beat = now = self.clock.now()
            if now >= take_at:
                self.sender.take()
                take_at = now + self._drifting(self.sender.interval)
                follow_at = now + timedelta(seconds=FOLLOW_SECONDS)
            elif now >= follow_at:
                kept_up = self.sender.keep_up()
                follow_at = now + timedelta(seconds=FOLLOW_SECONDS) if kept_up else take_at
            if now >= send_at:
                send_at = self.clock.now() + timedelta(seconds=self.sender.send())
                if not self.sender.spool.entries:
                    # From then on both times are the same: the loop takes a snapshot and sends it at once.
                    send_at = take_at = min(
                        take_at, self.clock.now() + self._drifting(self.sender.interval)
                    )
                if self.sender.pending:
                    self.wake.set()
            pause = min(take_at, send_at, follow_at) - self.clock.now()
            self.stopping.wait(max(0.0, pause.total_seconds()))

    def forward_taints(self) -> None:
        """Forward interruption taints as they come; until it is stopped. Without it the agent ends."""
        self._rounds("taints", self.taints.round, self.stopping)

    def report_queue_changes(self) -> None:
        """Tell of Jobs of queues that change; until it is stopped. Without it the agent ends."""
        self._rounds("queues", self.queues.round, self.stopping)

    def execute_instructions(self) -> None:
        """Carry out instructions when there are any; until it is stopped. Without it the agent ends."""

        def round_() -> float:
            # Cleared before the round: a signal that arrives during the round starts another one.
            self.wake.clear()
            self.executor.round()
            return POLL_SECONDS

        self._rounds("instructions", round_, self.wake)

    def _rounds(self, what: str, round_: Callable[[], float], wake: Event) -> None:
        """Run rounds, each after the pause that the one before returned, or until it is woken."""
        failures = 0
        try:
            while not self.stopping.is_set():
                try:
                    pause = round_()
                except PlimsollError as error:
                    failures += 1
                    asked = error.retry_after if isinstance(error, Temporary) else None
                    self.failed(what, error)
                    self.stopping.wait(pause_after(failures, asked=asked))
                else:
                    failures = 0
                    wake.wait(pause)
        finally:
            # If one loop ends for another reason, all end, and the kubelet restarts the agent.
            self.stop()

    @staticmethod
    def _drifting(seconds: float) -> timedelta:
        return timedelta(seconds=seconds * _RANDOM.uniform(1 - _SPREAD, 1 + _SPREAD))
