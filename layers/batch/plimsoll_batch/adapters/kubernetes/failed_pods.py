"""Failed pods of gangs, as far as policies ask for them: how each ended.

The Job controller keeps them until their Job is deleted. Only pods with the label of a gang are read.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.domain.fields import LIST_LIMIT, Field
from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.domain.jobs import FailedPod

FAILED = "status.phase=Failed"
_DISRUPTED = "DisruptionTarget"


class _Read(Struct, rename="camel", omit_defaults=True, gc=False):
    """Part of an object."""


class _Terminated(_Read):
    exit_code: schema.Whole = 0
    finished_at: str | None = None


class _State(_Read):
    terminated: _Terminated | None = None


class _Container(_Read):
    state: _State = field(default_factory=_State)


type _Containers = Annotated[tuple[_Container, ...], Meta(max_length=LIST_LIMIT)]


class _Status(_Read):
    conditions: schema.Conditions = ()
    container_statuses: _Containers = ()
    init_container_statuses: _Containers = ()


_Pod = schema.Object[schema.Nothing, _Status]


@naming("Pod")
def parse_failed_pod(obj: Raw) -> FailedPod:
    """Read a pod that has failed."""
    pod = decoded(obj, _Pod)
    meta, status = pod.metadata, pod.status
    owner = meta.controller
    ends = [
        each.state.terminated
        for each in (*status.init_container_statuses, *status.container_statuses)
        if each.state.terminated is not None
    ]
    created = Field(meta.creation_timestamp, "metadata.creationTimestamp").time()
    times = [Field(end.finished_at, "finishedAt").time_or_bound() for end in ends]
    return FailedPod(
        owner=Ref(
            owner.kind if owner is not None else "",
            meta.namespace,
            owner.name if owner is not None else "",
        ),
        name=meta.name,
        ended=max((time for time in times if time is not None), default=created),
        code=next((end.exit_code for end in ends if end.exit_code), None),
        disrupted=any(c.type == _DISRUPTED and c.status == "True" for c in status.conditions),
    )
