"""What is kept on the Jobs of a gang: by which plan they start, and why they were suspended.

Both are JSON in annotations that states its version, so they fail with the object that they are about, and any
planner can carry on from there. Tenants can write annotations where no admission policy keeps them from it: the
length of an annotation is checked before it is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import Toleration

LONGEST_RECORD_CHARACTERS: Final = 200 * 1024
"""Characters of a record: an object's annotations may have 256 KiB together."""
MOST_RECORDED_NODES: Final = 4_000
"""Nodes that one record names. Of a role on more of them the plan forgets where the others are to be."""
MOST_ROLES: Final = 100
"""Jobs of one gang: a plan names all of them on each."""
MOST_COUNTED: Final = 10**6
"""Pods, failures or attempts in one field."""
MOST_REMEMBERED: Final = 64
"""Gangs in `Gang.made_way_for`; it is kept on the gang's own objects."""
LONGEST_WHY_CHARACTERS: Final = 500
"""Characters of a reason in one record."""
BACKOFF: Final = timedelta(seconds=10)
"""After the first failure of a gang; twice as long after each more in a row."""
LONGEST_BACKOFF: Final = timedelta(minutes=10)
_VERSION: Final = 1
_PLAN: Final = re.compile(r"[0-9a-z.-]{1,80}")


def text_of(record: Mapping[str, Any]) -> str:
    """Return a record as an annotation."""
    return json.dumps({"v": _VERSION, **record}, separators=(",", ":"))


def record_in(text: str, *, limit: int) -> Field:
    """Return the record in an annotation of at most `limit` characters.

    Raises:
        BadInput: it is none, or of another version than this Plimsoll writes.
    """
    if len(text) > limit:
        raise BadInput(f"is longer than {limit} characters")
    try:
        found = Field(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no JSON: {type(error).__name__}") from None
    if found["v"].value != _VERSION:
        raise found["v"].wrong(f"{_VERSION}, the version that this Plimsoll writes")
    return found


def pause_after(failures: int) -> timedelta:
    """Return how long a gang waits after so many failures in a row, before it is tried again."""
    return min(LONGEST_BACKOFF, BACKOFF * (1 << min(max(0, failures - 1), 10)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """What a plan adds to a Job's template, so that its pods go to their flavors."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the node selector."""
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAdmission:
    """What a plan decided for the pods of one template."""

    flavors: Mapping[str, str] = field(default_factory=dict)
    """Resource -> flavor that it is counted in."""
    steering: Steering = Steering()
    """Added by the patch that starts it."""
    standing: Steering = Steering()
    """Added by a former plan; until it is started it stands in the template."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Node -> how many of the pods are expected there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The plan by which one Job, or object of a framework, of a gang starts."""

    plan: str
    """The same for all roles of the gang."""
    at: datetime
    started: bool = False
    """Written by the patch that starts the role."""
    sets: Mapping[str, PodSetAdmission] = field(default_factory=dict)
    """By the names of its pod sets; that of a Job has none."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Job -> uid, of all roles of the plan."""
    parallelism: int | None = None
    """Of its Job when the plan was made: it has quota for no more. None: an older Plimsoll wrote it."""
    failed: int = 0
    """Pods that its Job had counted as failed before it was started."""
    seen: int = 0
    """How many of them were still there."""
    noticed: datetime | None = None
    """Since when one of its policies waits for it to be whole again."""
    restarts: int = 0
    """How often its policies have restarted it in this run."""

    def to_record(self) -> str:
        """Return it as an annotation."""
        return text_of(
            {
                "plan": self.plan,
                "at": self.at.isoformat(),
                "started": self.started,
                # Of a Job they stand here, where older planners read them.
                **(_set_record(self.sets[""]) if "" in self.sets else {}),
                "sets": {name: _set_record(each) for name, each in self.sets.items() if name},
                "roles": dict(self.roles),
                "parallelism": self.parallelism,
                "failed": self.failed,
                "seen": self.seen,
                "noticed": None if self.noticed is None else self.noticed.isoformat(),
                "restarts": self.restarts,
            }
        )

    @classmethod
    def from_record(cls, text: str) -> Self:
        """Read an annotation.

        Raises:
            BadInput: it is no such record; the message names the field.
        """
        found = record_in(text, limit=LONGEST_RECORD_CHARACTERS)
        return cls(
            plan=found["plan"].matching(_PLAN, "the id of a plan"),
            at=found["at"].time(),
            started=found["started"].flag(),
            sets=({"": _set_in(found)} if found["flavors"].value is not None else {})
            | {name: _set_in(each) for name, each in found["sets"].pairs(MOST_ROLES)},
            roles=_texts(found["roles"], MOST_ROLES),
            parallelism=None
            if found["parallelism"].value is None
            else found["parallelism"].whole(0, MOST_COUNTED),
            failed=found["failed"].whole(0, MOST_COUNTED, default=0),
            seen=found["seen"].whole(0, MOST_COUNTED, default=0),
            noticed=found["noticed"].optional_time(),
            restarts=found["restarts"].whole(0, MOST_COUNTED, default=0),
        )

    def in_template(self, name: str) -> Steering:
        """What of the template of a pod set is not its owner's."""
        found = self.sets.get(name, PodSetAdmission())
        return found.steering if self.started else found.standing

    def as_started(self) -> Self:
        """Return it as the patch writes it that starts the role."""
        return replace(self, started=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a gang was suspended, and what it remembers of that while it waits."""

    plan: str
    """The plan that was ended. Once a later one has started, only the memory counts."""
    at: datetime
    why: str
    made_way: str = ""
    """The uid of the gang that it was stopped for; empty: it was not for another."""
    by: str = ""
    """The same gang by namespace and name; empty also where an older Plimsoll wrote it."""
    made_way_for: tuple[str, ...] = ()
    """See `Gang.made_way_for`."""
    first: bool = False
    """It lost its place to an interruption: it is considered before all others."""
    attempts: int = 0
    """How often in a row it did not start in time."""
    not_before: datetime | None = None
    """It is not considered earlier."""
    restarts: int = 0
    """How often its policies have restarted it."""
    aborted: bool = False
    """Its policies have aborted it: it waits until it is resumed."""

    def to_record(self) -> str:
        """Return it as an annotation."""
        return text_of(
            {
                "plan": self.plan,
                "at": self.at.isoformat(),
                "why": self.why[:LONGEST_WHY_CHARACTERS],
                "madeWay": self.made_way,
                "by": self.by,
                "madeWayFor": list(self.made_way_for),
                "first": self.first,
                "attempts": self.attempts,
                "notBefore": None if self.not_before is None else self.not_before.isoformat(),
                "restarts": self.restarts,
                "aborted": self.aborted,
            }
        )

    @classmethod
    def from_record(cls, text: str) -> Self:
        """Read an annotation.

        Raises:
            BadInput: it is no such record; the message names the field.
        """
        found = record_in(text, limit=LONGEST_RECORD_CHARACTERS)
        return cls(
            plan=found["plan"].matching(_PLAN, "the id of a plan"),
            at=found["at"].time(),
            why=found["why"].optional(limit=LONGEST_WHY_CHARACTERS) or "",
            made_way=found["madeWay"].optional(limit=600) or "",
            by=found["by"].optional(limit=600) or "",
            made_way_for=tuple(
                each.required(limit=600) for each in found["madeWayFor"].each(MOST_REMEMBERED)
            ),
            first=found["first"].flag(),
            attempts=found["attempts"].whole(0, MOST_COUNTED, default=0),
            not_before=found["notBefore"].optional_time(),
            restarts=found["restarts"].whole(0, MOST_COUNTED, default=0),
            aborted=found["aborted"].flag(),
        )


def _set_record(each: PodSetAdmission) -> dict[str, Any]:
    return {
        "flavors": dict(each.flavors),
        "steering": _steering(each.steering),
        "standing": _steering(each.standing),
        "nodes": dict(list(each.nodes.items())[:MOST_RECORDED_NODES]),
    }


def _set_in(found: Field) -> PodSetAdmission:
    return PodSetAdmission(
        flavors=_texts(found["flavors"], MOST_ROLES),
        steering=_steered(found["steering"]),
        standing=_steered(found["standing"]),
        nodes={
            name: pods.whole(1, MOST_COUNTED)
            for name, pods in found["nodes"].pairs(MOST_RECORDED_NODES)
        },
    )


def _steering(steering: Steering) -> dict[str, Any]:
    return {
        "labels": dict(steering.labels),
        "tolerations": [toleration_record(each) for each in steering.tolerations],
    }


def _steered(found: Field) -> Steering:
    return Steering(
        labels=_texts(found["labels"], MOST_ROLES),
        tolerations=tuple(
            Toleration(
                key=each["key"].optional() or "",
                operator=each["operator"].optional() or "Equal",
                value=each["value"].optional() or "",
                effect=each["effect"].optional() or "",
            )
            for each in found["tolerations"].each(MOST_ROLES)
        ),
    )


def toleration_record(each: Toleration) -> dict[str, str]:
    """Return a toleration as it stands in a pod; fields that are empty are left out."""
    said = {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
    return {name: text for name, text in said.items() if text}


def _texts(found: Field, most: int) -> dict[str, str]:
    return {name: each.required() for name, each in found.pairs(most)}
