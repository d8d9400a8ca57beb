"""What a kind of object that can be suspended looks like, as data: one reader and one writer serve all kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from plimsoll_batch.domain.frameworks.paths import Path, at

NAME: Final = ("metadata", "name")
TEMPLATE: Final = ("template", "spec")


class Form(StrEnum):
    """How the entries of roles stand in an object."""

    ONE = "one"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """That an object says one of some values, or says nothing and the default is one of them."""

    path: Path
    values: tuple[Any, ...]
    default: Any = None

    def holds(self, obj: Any) -> bool:
        """Whether it does."""
        found = at(obj, self.path)
        said = self.default if found is None else found
        return any(said == value and type(said) is type(value) for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What an object must say so that it can be queued."""

    must: Says
    why: str
    """What to write, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One factor of how many pods a role has."""

    path: Path
    default: int = 1
    most: Path | None = None
    """A field that it cannot exceed, where the object says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSource:
    """Where an object says what some of its pods are."""

    entries: Path
    form: Form = Form.ONE
    name: str = ""
    """Of the one role; of a list: the field of an entry with its name. In a map the key is the name, in lower case."""
    template: Path = TEMPLATE
    """From an entry to the spec of its pods."""
    counts: tuple[Count, ...] = ()
    """The product of these; without any, one pod. The first counts entries, which succeed one by one."""
    succeeded: Path = ()
    """Of a list or map of roles in the status, and of the field in it that counts the entries that have succeeded."""
    only: Says | None = None
    """None: the role is always there."""
    default: Mapping[str, str] = field(default_factory=dict)
    """What one pod requests where the object has no template of it; its operator writes that one, and nobody steers it."""
    amounts: bool = False
    """The object states amounts of one pod instead of a template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Where an object says that it has ended."""

    complete: frozenset[str]
    failed: frozenset[str]
    path: Path | None = None
    """Of a word; None: these are types of conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLabel:
    """How pods of an object are known: by a label with its name, if their controller is of one of these kinds."""

    label: str
    owners: frozenset[str]
    value: Path = NAME
    """Where the object says the value."""
    generated: bool = False
    """The value may also be the object's name and what its operator puts behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A row: one kind of object that the planner suspends, steers and starts."""

    name: str
    """What `--frameworks` and the file of the queues call it; kinds of one operator share it."""
    kind: str
    group: str
    version: str
    resource: str
    suspend: Path = ("spec", "suspend")
    roles: tuple[RoleSource, ...] = ()
    shape_of: str | None = None
    """The kind of a child with its name that says which pods it has; None: it says so itself."""
    ended: Ended | None = None
    """None: it never ends, and holds its quota until it is deleted."""
    pods: tuple[PodLabel, ...] = ()
    """Empty: its pods have it as their controller."""
    role_label: str = ""
    """On its pods: the name of their role."""
    unlabelled: str = ""
    """The role of its pods without that label."""
    made_pods: tuple[Path, ...] = ()
    """Fields of which one says something once its operator has made pods; `*` is each entry of a list or map."""
    repeats_nothing: Says | None = None
    """Where it says this, or where this is None, what has succeeded does not run again before it is suspended."""
    limit: Path | None = None
    """Where it says after how many seconds it is ended."""
    overrides: Path | None = None
    """Of a list of node selectors and tolerations by role, which it has instead of templates."""
    merges_selectors: bool = False
    """A node selector of a former start stays beside that of the next one."""
    refuses: tuple[Refusal, ...] = ()
    children: frozenset[str] = frozenset()
    """Kinds that its operator makes for it: these are never gangs of their own."""

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}"
