"""What becomes of a gang when something happens to a role of it: events, and the action that each calls for.

It stands on each Job as one annotation, which `plimsoll jobs submit` writes: the role's own policies, then those
of the whole job; the first that fits an event counts. What the Job controller does by native fields is not
written here. Tenants write annotations: what is read is bounded, and must make sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll_batch.domain.jobs.job_annotations import record_in, text_of

LONGEST_POLICIES_CHARACTERS: Final = 16 * 1024
"""Characters of the annotation."""
MOST_POLICIES: Final = 20
MOST_CODES: Final = 255
"""Exit codes in one policy."""
MOST_RETRIES: Final = 1000
MOST_TIMES: Final = 100_000
LONGEST_TIMEOUT_SECONDS: Final = 24 * 3600
MOST_WAITED_FOR: Final = 20
READY: Final = "Ready"
COMPLETED: Final = "Completed"


class Event(StrEnum):
    """What happens to a role."""

    POD_FAILED = "PodFailed"
    """A container of a pod ended with a code that is not 0."""
    POD_EVICTED = "PodEvicted"
    """A pod was evicted, preempted or deleted before it had succeeded."""
    ROLE_COMPLETED = "RoleCompleted"
    """Its Job is Complete."""
    ROLE_FAILED = "RoleFailed"
    """Its Job has failed for good: its retries, or its time, are over."""
    ANY = "Any"
    """Each of them but RoleCompleted."""


class Action(StrEnum):
    """What is done about it."""

    RESTART_POD = "RestartPod"
    """Nothing: the Job controller makes another pod."""
    RESTART_ROLE = "RestartRole"
    """The role is suspended, and started again where it was."""
    RESTART_JOB = "RestartJob"
    """The gang is suspended whole, and admitted anew before all others."""
    ABORT_JOB = "AbortJob"
    """The gang is suspended whole, until its owner resumes it."""
    COMPLETE_JOB = "CompleteJob"
    """What has not ended is ended as Complete."""
    TERMINATE_JOB = "TerminateJob"
    """What has not ended is ended as Failed."""


FINAL: Final = frozenset({Action.COMPLETE_JOB, Action.TERMINATE_JOB})
"""What can be done about a Job that has ended: it cannot be started again."""
_OF_ROLES: Final = frozenset({Event.ROLE_COMPLETED, Event.ROLE_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One row of the table."""

    event: Event
    action: Action
    exit_codes: frozenset[int] = frozenset()
    """Of PodFailed: only these codes."""
    except_codes: frozenset[int] = frozenset()
    """Of PodFailed: any code but these."""
    times: int = 1
    """So many pods in one run, before it counts."""
    timeout: timedelta = timedelta()
    """The role has so long to be whole again by itself."""

    def fits(self, event: Event) -> bool:
        """Whether it is about an event; of PodFailed, some code."""
        return self.event is event or (
            self.event is Event.ANY and event is not Event.ROLE_COMPLETED
        )

    def fits_code(self, code: int | None) -> bool:
        """Whether it is about an exit code; None where nobody knows it."""
        if self.exit_codes:
            return code in self.exit_codes
        return code not in self.except_codes

    def problem(self) -> str | None:
        """Say what makes no sense in it."""
        codes = self.exit_codes or self.except_codes
        if codes and self.event is not Event.POD_FAILED:
            return f"exit codes are those of PodFailed, not of {self.event}"
        if self.exit_codes and self.except_codes:
            return "names exit codes and exceptions at once"
        if self.event in _OF_ROLES and self.action not in FINAL:
            return (
                f"{self.event}: a Job that has ended cannot be started again, so not {self.action}"
            )
        if self.event in _OF_ROLES and (self.times > 1 or self.timeout):
            return f"{self.event} happens once, and nothing is waited for"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The policies of one role, and what it waits for."""

    policies: tuple[Policy, ...] = ()
    retries: int = 3
    """So often its job, or a role of it, is restarted; then it is terminated."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Role of the same gang -> `Ready` or `Completed`: this one is started after that."""
    after_gangs: Mapping[str, str] = field(default_factory=dict)
    """The same of gangs of its namespace: its gang is not considered before."""

    def to_record(self) -> str:
        """Return it as an annotation."""
        return text_of(
            {
                "policies": [_row(each) for each in self.policies],
                "retries": self.retries,
                "after": dict(self.after),
                "afterGangs": dict(self.after_gangs),
            }
        )

    @classmethod
    def from_record(cls, text: str) -> Self:
        """Read an annotation.

        Raises:
            BadInput: it is none; the message names the field.
        """
        found = record_in(text, limit=LONGEST_POLICIES_CHARACTERS)
        return cls(
            policies=tuple(_policy(each) for each in found["policies"].each(MOST_POLICIES)),
            retries=found["retries"].whole(0, MOST_RETRIES, default=3),
            after=_waits(found["after"]),
            after_gangs=_waits(found["afterGangs"]),
        )


def _row(policy: Policy) -> dict[str, Any]:
    said: dict[str, Any] = {"event": policy.event, "action": policy.action}
    if policy.exit_codes:
        said["exitCodes"] = sorted(policy.exit_codes)
    if policy.except_codes:
        said["exceptExitCodes"] = sorted(policy.except_codes)
    if policy.times > 1:
        said["times"] = policy.times
    if policy.timeout:
        said["timeoutSeconds"] = int(policy.timeout.total_seconds())
    return said


def _policy(found: Field) -> Policy:
    policy = Policy(
        event=_one_of(Event, found["event"]),
        action=_one_of(Action, found["action"]),
        exit_codes=_codes(found["exitCodes"]),
        except_codes=_codes(found["exceptExitCodes"]),
        times=found["times"].whole(1, MOST_TIMES, default=1),
        timeout=timedelta(
            seconds=found["timeoutSeconds"].whole(0, LONGEST_TIMEOUT_SECONDS, default=0)
        ),
    )
    if (problem := policy.problem()) is not None:
        raise BadInput(f"{found.path}: {problem}")
    return policy


def _one_of[E: StrEnum](kind: type[E], found: Field) -> E:
    try:
        return kind(found.required())
    except ValueError:
        raise found.wrong(f"one of {', '.join(kind)}") from None


def _codes(found: Field) -> frozenset[int]:
    return frozenset(each.whole(0, 255) for each in found.each(MOST_CODES))


def _waits(found: Field) -> Mapping[str, str]:
    states = dict(found.pairs(MOST_WAITED_FOR))
    for state in states.values():
        if state.value not in {READY, COMPLETED}:
            raise state.wrong("Ready or Completed")
    return {name: state.required() for name, state in states.items()}
