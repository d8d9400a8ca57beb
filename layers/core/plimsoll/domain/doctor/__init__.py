"""What is wrong with an installation, decided from what was read of it, each with its cure.

A check is a function of the facts that yields findings. To add one, write it and put it in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from plimsoll.domain.doctor.cluster import access, answers, index, rights
from plimsoll.domain.doctor.facts import Facts
from plimsoll.domain.doctor.findings import Finding, State
from plimsoll.domain.doctor.groups import groups, quota
from plimsoll.domain.doctor.guards import fields, queue
from plimsoll.domain.doctor.stack import canary, drills, kill_switch, mode, stack

type Check = Callable[[Facts], Iterable[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    stack,
    kill_switch,
    drills,
    mode,
    canary,
    answers,
    access,
    rights,
    fields,
    queue,
    index,
    groups,
    quota,
)
"""In the order in which a notice meets what they are about."""


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of every check: at least one each."""
    return tuple(finding for check in CHECKS for finding in check(facts))


__all__ = ["Facts", "Finding", "State", "findings_of"]
