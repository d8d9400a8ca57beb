"""What a gang's training loses, by which of its pods run, second by second.

A step needs all pods of the gang. What was done since the last checkpoint is lost with the first pod that ends. The
trainer writes a checkpoint from time to time, and one more after it read that a node is reclaimed. No step runs while
it writes; a checkpoint counts once it is written, if all pods still run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

CHECKPOINT_SECONDS: Final = 1800
"""From one checkpoint to the next."""
WRITES_SECONDS: Final = 27
"""As long as 1.3 billion parameters take to a local disk: docs/guides/gpu.md."""
LAG_SECONDS: Final = 60
"""The longest that a container waits until it reads an annotation of its pod."""
TOGETHER_SECONDS: Final = 35
"""Pods of a gang that still run so long after the first has ended were left behind: a grace period, and 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """How a training program takes its end."""

    name: str
    stops_seconds: int
    """From SIGTERM to its end."""
    saves_on_sigterm: bool
    """Whether all pods write a checkpoint once one of them gets SIGTERM. Else a pod takes no step more."""


READS: Final = Trainer(name="deadline", stops_seconds=3, saves_on_sigterm=False)
SAVES: Final = Trainer(name="deadline, SIGTERM", stops_seconds=28, saves_on_sigterm=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A pod whose containers run."""

    told: bool = False
    """Whether its deadline is written on it."""
    stopping: bool = False
    """Whether it got SIGTERM."""


@dataclass(slots=True, kw_only=True)
class Training:
    """One gang from time 0 on, when all of its pods run."""

    size: int
    trainer: Trainer
    unsaved: int
    """Seconds of steps since the last checkpoint."""
    lost: int = 0
    """Seconds of steps that were lost, times pods."""
    still: int = 0
    """Seconds without a step, times pods: the gang was not whole, or wrote a checkpoint."""
    half_killed: int = 0
    """How often a pod ended, and others of its gang ran on without it."""
    _run: frozenset[str] = frozenset()
    """The pods that train together, by uid."""
    _writes: int = 0
    """Seconds until the checkpoint is written; 0: none is."""
    _told: int | None = None
    """Seconds since the first pod was told."""
    _saved: set[str] = field(default_factory=set)
    """Why this run has written a checkpoint before its time."""
    _left: list[tuple[int, frozenset[str]]] = field(default_factory=list)
    """Pods that ran on when another ended, and the seconds until they are judged."""

    def second(self, there: Mapping[str, Member]) -> None:
        """Let a second pass in which these pods of the gang run, by uid."""
        running = {
            uid for uid, pod in there.items() if self.trainer.saves_on_sigterm or not pod.stopping
        }
        self._judge(there.keys())
        if not self._run <= running:
            self._left.append((TOGETHER_SECONDS, self._run & running))
            self.lost += self.unsaved * self.size
            self._begin(frozenset())
        if not self._run and len(running) == self.size:
            self._begin(frozenset(running), self.unsaved)
        if not self._run:
            self.still += self.size
            return
        self._step(stopping=any(pod.stopping for pod in there.values()), there=there)

    def _begin(self, run: frozenset[str], unsaved: int = 0) -> None:
        self._run, self.unsaved, self._writes, self._told = run, unsaved, 0, None
        self._saved = set()

    def _step(self, *, stopping: bool, there: Mapping[str, Member]) -> None:
        if self._told is not None:
            self._told += 1
        elif any(pod.told for pod in there.values()):
            self._told = 0
        why = None
        if stopping:
            why = "SIGTERM"
        elif self._told is not None and self._told >= LAG_SECONDS:
            why = "deadline"
        if why is not None and why not in self._saved:
            self._saved.add(why)
            self._writes = self._writes or WRITES_SECONDS
        elif self.unsaved >= CHECKPOINT_SECONDS:
            self._writes = self._writes or WRITES_SECONDS
        if self._writes:
            self.still += self.size
            self._writes -= 1
            if not self._writes:
                self.unsaved = 0
        elif stopping:
            self.still += self.size
        else:
            self.unsaved += 1

    def _judge(self, there: Collection[str]) -> None:
        self._left = [(left - 1, pods) for left, pods in self._left]
        self.half_killed += sum(
            not left and not pods.isdisjoint(there) for left, pods in self._left
        )
        self._left = [(left, pods) for left, pods in self._left if left]
