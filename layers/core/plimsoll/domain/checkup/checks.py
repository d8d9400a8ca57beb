"""The checks, in the order in which a notice meets what they are about: one function, one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from plimsoll.domain.checkup.cluster import access, answers, index, rights
from plimsoll.domain.checkup.facts import Facts
from plimsoll.domain.checkup.findings import Finding
from plimsoll.domain.checkup.groups import groups, quota
from plimsoll.domain.checkup.guards import fields, queue
from plimsoll.domain.checkup.stack import canary, drills, kill_switch, mode, stack

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


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """Return what is to be said of an installation: at least one line for each check."""
    return tuple(finding for check in CHECKS for finding in check(facts))
