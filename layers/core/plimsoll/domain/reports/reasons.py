"""Why an interruption went as it did: one reason for each workload and cause, with its pods and times.

Plans come each second and say much the same each time. Reasons are therefore folded: the same verb about the same
workload with the same cause is one reason, whatever the figures in its words. Folding is merging, so it may be
repeated: a reconcile that writes its report twice changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Final, Self, override

MAX_BYTES: Final = 100_000
"""What the reasons of one report take at most: a DynamoDB item holds 400 KB, and a report names pods elsewhere too."""
MOST_PODS: Final = 500
"""How many pods one reason names: more than a node holds."""
CUT: Final = "older reasons are left out: a report has no room for more"
WAIT: Final = "wait:"
NOTE: Final = "note:"
LEFT_OUT: Final = "left out:"
"""Objects that could not be read: each is named with its own words."""
_FRAME: Final = 160
"""Bytes that a reason takes beside its words and pods."""
_NAMED: Final = 3
"""How many workloads a line names that stands for more."""
_FIGURES: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that was done or waited for, and why."""

    why: str
    verb: str = ""
    """What was done, as in `evict`; `wait:` and `note:` are no actions. Nothing where the words say all."""
    about: str = ""
    """The workload, or the object where it is no pod."""
    pods: tuple[str, ...] = ()
    """Pods of the workload that it holds for, by name."""
    first: datetime | None = None
    """When a plan first said it."""
    last: datetime | None = None
    urgent: bool = False
    """Whether somebody may have to act: a pod left before it was replaced, or cannot be replaced."""

    @property
    def cause(self) -> str:
        """The words without their figures: `1 of 4 are Ready` and `2 of 4 are Ready` are one cause."""
        if self.verb in {"", LEFT_OUT}:
            return self.why
        if self.verb not in {WAIT, NOTE} and not self.pods:
            return ""  # of what was done to a node or a group the last words count
        return _without_figures(self.why)

    @property
    def key(self) -> tuple[str, str, str]:
        """What two reasons have in common that are one."""
        return self.verb, self.about, self.cause

    def merged(self, others: Sequence[Self]) -> Self:
        """Return all of them as one: all pods, the whole time, and the latest words."""
        if not others:
            return self
        every = (self, *others)
        named = {pod for one in every for pod in one.pods}
        return replace(
            max(every, key=lambda one: (one.last is not None, one.last, one.why)),
            pods=tuple(sorted(named)[:MOST_PODS]) if named != {*self.pods} else self.pods,
            first=min(filter(None, (one.first for one in every)), default=None),
            urgent=any(one.urgent for one in every),
        )

    @property
    def what(self) -> str:
        """The workload with its pods, or the object."""
        if len(self.pods) == 1:
            return f"Pod {self.pods[0]}"
        more = " or more" if len(self.pods) >= MOST_PODS else ""
        return f"{len(self.pods)} pods{more} of {self.about}" if self.pods else self.about

    @property
    def timed(self) -> str:
        """The line of a report: when, what, why."""
        return f"{_span(self)}{self}"

    @override
    def __str__(self) -> str:
        head = " ".join(filter(None, (self.verb, self.what)))
        return f"{head}: {self.why}" if self.what else f"{head} {self.why}".lstrip()


@lru_cache(maxsize=4_096)  # a plan says the same words of many pods and on many nodes
def _without_figures(words: str) -> str:
    return _FIGURES.sub("#", words)


def merge_reasons(*told: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return reasons folded, in the order in which they were first told; the urgent and the last ones are kept."""
    found: dict[tuple[str, str, str], list[Reason]] = defaultdict(list)
    for reason in (reason for some in told for reason in some):
        found[reason.key].append(reason)
    return _bounded({key: one.merged(others) for key, (one, *others) in found.items()})


def summary(reasons: Sequence[Reason], most: int) -> list[str]:
    """Return the reasons in at most so many lines, the urgent ones first, each part by its time.

    Where they are too many, those of one verb and cause share a line: the others before the urgent ones, and the
    largest groups first. What is too much then is counted.
    """
    lines = [[reason] for reason in _in_order(reasons)]
    # Urgent lines are joined last, and only if joining the others was not enough.
    for urgent in (False, True):
        groups: dict[tuple[str, str], list[Reason]] = defaultdict(list)
        for reason in reasons:
            if reason.verb and reason.urgent is urgent:
                groups[reason.verb, reason.cause].append(reason)
        for group in sorted(groups.values(), key=len, reverse=True):
            if len(lines) > most and len(group) > 1:
                joined = _in_order(group)
                at = next(n for n, line in enumerate(lines) if line[0] is joined[0])
                lines[at] = joined
                lines = [line for line in lines if line is joined or line[0] not in group]
    if len(lines) <= most:
        return [_joined(line) for line in lines]
    first = [line for line in lines if line[0].urgent]
    rest = lines[len(first) :]
    kept = [*first, *rest[len(rest) - max(0, most - 1 - len(first)) :]][: most - 1]
    left = sum(len(line) for line in lines) - sum(len(line) for line in kept)
    return [*map(_joined, kept), f"{left} more reasons are not shown"]


def _in_order(reasons: Iterable[Reason]) -> list[Reason]:
    # Reasons of earlier versions have no time and come first, so that None is never compared with a time.
    return sorted(reasons, key=lambda one: (not one.urgent, one.first is not None, one.first))


def _joined(reasons: Sequence[Reason]) -> str:
    if len(reasons) == 1:
        return reasons[0].timed
    first = min((one.first for one in reasons if one.first), default=None)
    last = max((one.last for one in reasons if one.last), default=None)
    pods = sum(len(one.pods) for one in reasons)
    names = [one.about for one in reasons]
    named = ", ".join(names[:_NAMED]) + (
        f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    )
    whole = replace(
        reasons[0],
        about=f"{len({*names})} workloads ({named})" if pods else named,
        why=_common(one.why for one in reasons),
        pods=(),
        first=first,
        last=last,
    )
    if pods:
        whole = replace(whole, about=f"{pods} pods of {whole.about}")
    return whole.timed


def _common(whys: Iterable[str]) -> str:
    counts = Counter(whys)
    (words, _), *_ = counts.most_common(1)
    return words if len(counts) == 1 else f"for example {words}"


def _span(reason: Reason) -> str:
    if reason.first is None or reason.last is None:
        return ""
    first, last = f"{reason.first:%H:%M:%S}", f"{reason.last:%H:%M:%S}"
    return f"{first} " if first == last else f"{first} to {last} "


def _bounded(found: dict[tuple[str, str, str], Reason]) -> tuple[Reason, ...]:
    if sum(map(_size, found.values())) <= MAX_BYTES:
        return tuple(found.values())
    cut = Reason(why=CUT)
    kept, left = {cut.key}, MAX_BYTES - _size(cut)
    # Urgent and late reasons stand at the end. The loop takes them from there until the room is used up.
    newest = sorted(
        found.items(), key=lambda item: (item[1].urgent, item[1].last is not None, item[1].last)
    )
    for key, reason in reversed(newest):
        left -= _size(reason)
        if left < 0:
            break
        kept.add(key)
    return tuple(reason for key, reason in ({cut.key: cut} | found).items() if key in kept)


def _size(reason: Reason) -> int:
    words = (reason.why, reason.verb, reason.about, *reason.pods)
    return _FRAME + sum(
        3 + (len(each) if each.isascii() else len(each.encode("ascii", "backslashreplace")))
        for each in words
    )
