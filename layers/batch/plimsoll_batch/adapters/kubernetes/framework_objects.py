"""The objects of the frameworks that a configuration names, kept up to date as other kinds are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Raw

from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.decoding import Json
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import MissingRights, NotFound
from plimsoll_batch.adapters.kubernetes.calls import call_of
from plimsoll_batch.adapters.kubernetes.framework_reader import (
    FrameworkObject,
    framework_reader,
    outermost,
)
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain import names
from plimsoll_batch.domain.frameworks import FRAMEWORKS, Framework, rows_of
from plimsoll_batch.domain.jobs import Job


class FrameworkObjects:
    """Reads them by the rows of their kinds."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._admission = PodAdmission()
        self._kinds: dict[str, Collection[FrameworkObject]] = {}
        """By the names of resources."""

    def admit(self, admission: PodAdmission) -> None:
        """Count pods from now on as admission makes them."""
        self._admission = admission

    def kinds(self, frameworks: tuple[str, ...]) -> Sequence[Collection[Any]]:
        """Return what is to be listed or followed for some frameworks."""
        for row in _read_for(frameworks):
            if row.resource not in self._kinds:
                shapes = any(each.shape_of == row.kind for each in rows_of(frameworks))
                self._kinds[row.resource] = Collection(
                    call_of(row, "list"),
                    partial(self._parse, row),
                    # A child that says what pods its parent has carries no label of ours.
                    labels=None if shapes else names.QUEUE,
                )
        return [*self._kinds.values()]

    def list(self, kind: Collection[Any], requests: Requests) -> bool:
        """List a kind, if it is one of these; one that the cluster does not serve, or that nobody may read, has none."""
        if kind not in self._kinds.values():
            return False
        try:
            kind.list(requests, self._warn)
        except NotFound:
            kind.forget()
        except MissingRights as error:
            kind.forget()
            self._warn(f"left out: {error}")
        return True

    @property
    def jobs(self) -> Sequence[Job]:
        """Those that name a queue, and belong to no other."""
        return outermost(self._objects(), self._admission)

    def parsed(self, job: Job, answer: Json) -> Job:
        """Return what an answer says of an object.

        Raises:
            NotFound: it is in no queue any more.
        """
        children = [each for each in self._objects() if each.parent == job.ref]
        found = outermost([self._parse(job.framework, answer), *children], self._admission)
        if not found:
            raise NotFound(f"{job}: it is in no queue any more")
        return found[0]

    def wrote(self, job: Job, answer: Json) -> None:
        """Take in the answer to a write of ours."""
        if (kind := self._kinds.get(job.framework.resource)) is not None:
            kind.wrote(answer)

    def _objects(self) -> Iterator[FrameworkObject]:
        for kind in self._kinds.values():
            yield from kind.objects

    def _parse(self, row: Framework, obj: Json | Raw) -> FrameworkObject:
        return framework_reader(row, self._admission)(obj)


def _read_for(frameworks: tuple[str, ...]) -> Iterator[Framework]:
    """Yield the rows of some frameworks, and of children that say what pods these have."""
    mine = rows_of(frameworks)
    shapes = {row.shape_of for row in mine}
    return (row for row in FRAMEWORKS if row in mine or row.kind in shapes)
