"""The owner's policy: what the executor of a cluster may do, when, and how much of it in an hour.

It is the ConfigMap `plimsoll-agent-policy`, which the agent can read and not write. A key that is
not known, or a value that cannot be read, allows nothing: an owner's limit is never stepped over
because of a slip of the pen.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll.domain.interruptions import MaintenanceWindow
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_agent.calls import GET_POLICY, POLICY
from plimsoll_agent.identity import PinnedKey

ACT: Final = "act"
READ_ONLY: Final = "read-only"
KINDS: Final = ("consolidate-node", "label-node")

_MOST: Final = 10_000
"""Nodes, pods or minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPolicy:
    """What an executor may do. By default: nothing."""

    mode: str = READ_ONLY
    """`act`, or `read-only`: say what would be done, and do nothing."""
    kinds: frozenset[str] = frozenset()
    """Kinds of instructions that are carried out."""
    hours: tuple[MaintenanceWindow, ...] = ()
    """When, in UTC; none: at any time."""
    nodes_per_hour: int = 1
    """Nodes that are drained within any sixty minutes."""
    pods_per_hour: int = 30
    """Pods that may have to leave them."""
    drain_minutes: int = 15
    """After this a drain that is not over is called off and undone."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Labels of the Nodes that may be touched; none: all."""
    namespaces_kept: frozenset[str] = frozenset()
    """A node with pods of these is not drained."""
    labels: tuple[str, ...] = ()
    """What the keys of labels begin with that may be written, such as `agent.plimsoll.dev/`."""
    instruction_keys: Mapping[str, PinnedKey] = field(default_factory=dict)
    """Key id -> the public key of who signs instructions, pinned when the agent was installed."""

    @property
    def drain_limit(self) -> timedelta:
        """How long a drain may take."""
        return timedelta(minutes=self.drain_minutes)

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Self:
        """Read the data of the ConfigMap.

        Raises:
            BadInput: it is not as the owner meant it; the message names the key.
        """
        values: dict[str, Any] = {}
        for key, text in data.items():
            read = _READERS.get(key)
            if read is None:
                known = ", ".join(sorted(_READERS))
                raise BadInput(f"ConfigMap {POLICY}: {key[:64]!r} is none of {known}")
            try:
                values[key.replace("-", "_")] = read(text.strip())
            except (ValueError, BadInput) as error:
                raise BadInput(f"ConfigMap {POLICY}: {key}: {error}") from error
        return cls(**values)

    def open(self, now: datetime) -> bool:
        """Whether it is an hour in which the owner lets nodes be drained."""
        return not self.hours or any(window.is_open(now) for window in self.hours)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise BadInput(f"{text[:64]!r} must be one of {', '.join(words)}")
        return text

    return read


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _kinds(text: str) -> frozenset[str]:
    return frozenset(map(_one_of(*KINDS), _words(text)))


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _MOST:
        raise BadInput(f"{number} must be a number from 0 to {_MOST}")
    return number


def _windows(text: str) -> tuple[MaintenanceWindow, ...]:
    return tuple(MaintenanceWindow.parse(each.strip()) for each in text.split(";") if each.strip())


def _labels(text: str) -> Mapping[str, str]:
    pairs = [word.partition("=") for word in _words(text)]
    if not all(sign for _, sign, _ in pairs):
        raise BadInput(f"{text[:64]!r} must be labels such as team=web")
    return {key: value for key, _, value in pairs}


def _keys(text: str) -> Mapping[str, PinnedKey]:
    pairs = [word.rpartition(":") for word in text.split()]
    if not all(sign for _, sign, _ in pairs):
        raise BadInput(f"{text[:64]!r} must be key ids and keys in base64, as in ID:KEY")
    return {kid: PinnedKey(b64decode(key, validate=True)) for kid, _, key in pairs}


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "mode": _one_of(ACT, READ_ONLY),
    "kinds": _kinds,
    "hours": _windows,
    "nodes-per-hour": _count,
    "pods-per-hour": _count,
    "drain-minutes": _count,
    "nodes": _labels,
    "namespaces-kept": lambda text: frozenset(_words(text)),
    "labels": _words,
    "instruction-keys": _keys,
}


def read_policy(requests: Requests) -> OwnerPolicy:
    """Read the owner's policy; where there is none, nothing is allowed.

    Raises:
        BadInput: it cannot be understood.
        PlimsollError: it cannot be read.
    """
    try:
        found = requests.send(GET_POLICY, namespace=NAMESPACE, name=POLICY)
    except NotFound:
        return OwnerPolicy()
    return OwnerPolicy.parse(found.get("data") or {})
