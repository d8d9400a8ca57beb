"""Carries out a plan of steps, one after the other, and stops at the first that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Registry
from plimsoll_cli.setup.access import ClusterAccess
from plimsoll_cli.setup.identity import is_registered
from plimsoll_cli.setup.objects import ClusterObjects
from plimsoll_cli.setup.steps import (
    Action,
    Apply,
    Delete,
    Deregister,
    Grant,
    LetGrow,
    Register,
    Revoke,
    Step,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The step that failed, and why. Those before it are done, those after it are not begun."""

    number: int
    """From 1."""
    error: PlimsollError


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupExecutor:
    """Changes one cluster, its account and the registry."""

    cluster: Cluster
    objects: ClusterObjects
    access: ClusterAccess
    registry: Registry

    def carry_out(self, steps: Sequence[Step], say: Callable[[str], None]) -> Failure | None:
        """Do every step that is not done yet, and tell of each.

        Each can be repeated: if a run dies, the next plan finds what is left to do.
        """
        for number, step in enumerate(steps, start=1):
            if not step.done:
                try:
                    self._do(step.action)
                except PlimsollError as error:
                    return Failure(number=number, error=error)
            say(f"{number}. {'already' if step.done else 'done'}: {step.what}")
        return None

    def _do(self, action: Action) -> None:
        match action:
            case Apply(objects):
                for obj in objects:
                    self.objects.apply(obj)
            case Delete(objects):
                for obj in objects:
                    self.objects.delete(obj)
            case Grant(role):
                self.access.grant(self.cluster, role)
            case Revoke(role):
                self.access.revoke(self.cluster, role)
            case LetGrow(group, allowed):
                self.access.let_grow(self.cluster, group, allowed=allowed)
            case Register():
                self._register()
            case Deregister():
                with suppress(NotFound):  # another run of this command was faster
                    self.registry.remove(self.cluster.name)
            case _:
                assert_never(action)

    def _register(self) -> None:
        try:
            self.registry.add(self.cluster)
        except Conflict:  # another run of this command was faster, or another cluster took the name
            if not is_registered(self.registry.get(self.cluster.name), self.cluster):
                raise
