"""Jobs read into roles of gangs.

Tenants write them. What a Job says of itself in a label or an annotation and cannot be read is said in
its `wrong`, so that its own gang waits for it; a Job that cannot be read at all is left out by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field, clip
from plimsoll.domain.names import PREFIX
from plimsoll.domain.pods import OwnerKind, Ref
from plimsoll_batch.domain import names
from plimsoll_batch.domain.gangs import Topology
from plimsoll_batch.domain.jobs import Job
from plimsoll_batch.domain.lifecycle import Lifecycle
from plimsoll_batch.domain.node_requests import NodeRequest
from plimsoll_batch.domain.records import Admission, Stop

MOST_PODS: Final = 100_000
"""Of one Job; as in a snapshot's file."""
MOST_SECONDS: Final = 7 * 24 * 3600
MOST_PRIORITY: Final = 10**9
_FAILURES: Final = {"Failed", "FailureTarget"}
_ENDS: Final = {"Complete", "SuccessCriteriaMet", *_FAILURES}
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


class _Read(Struct, rename="camel", omit_defaults=True, gc=False):
    """Part of an object."""


class _JobSpec(_Read):
    parallelism: schema.Whole = 1
    completions: schema.Whole | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    active_deadline_seconds: schema.Whole | None = None
    template: schema.PodTemplate = field(default_factory=schema.PodTemplate)


class _Uncounted(_Read):
    succeeded: Annotated[tuple[str, ...], Meta(max_length=MOST_PODS)] = ()
    failed: Annotated[tuple[str, ...], Meta(max_length=MOST_PODS)] = ()


class _JobStatus(_Read):
    active: schema.Whole = 0
    succeeded: schema.Whole = 0
    failed: schema.Whole = 0
    uncounted_terminated_pods: _Uncounted = field(default_factory=_Uncounted)
    conditions: schema.Conditions = ()


_Job = schema.Object[_JobSpec, _JobStatus]


class _SteeredSpec(_Read):
    tolerations: Annotated[tuple[dict[str, Any], ...], Meta(max_length=100)] = ()


class _SteeredTemplate(_Read):
    spec: _SteeredSpec = field(default_factory=_SteeredSpec)


class _SteeredJob(_Read):
    template: _SteeredTemplate = field(default_factory=_SteeredTemplate)


_Steered = schema.Described[_SteeredJob]
"""Tolerations with every field of theirs: a merge patch writes their list whole."""


@naming("Job")
def parse_job(obj: Raw) -> Job:
    """Read a Job that names a queue."""
    job = decoded(obj, _Job)
    meta, spec, status = job.metadata, job.spec, job.status
    wrong: list[str] = []

    def said[T](annotation: str, read: Callable[[str], T]) -> T | None:
        text = meta.annotations.get(annotation)
        if text is None:
            return None
        try:
            return read(text)
        except BadInput as error:
            wrong.append(f"annotation {annotation}: {error}")
            return None

    admission = said(names.ADMISSION, Admission.from_record)
    template = _unsteered(spec.template.spec, admission)
    gang = meta.labels.get(names.GANG)
    for label in (names.QUEUE, names.GANG, names.ROLE):
        text = meta.labels.get(label)
        if text is not None and not _NAME.fullmatch(text):
            wrong.append(f"label {label}: must be a name, not {clip(text)}")
    uncounted = status.uncounted_terminated_pods
    ends = {each.type for each in status.conditions if each.status == "True"} & _ENDS
    lifecycle = said(names.LIFECYCLE, Lifecycle.from_record)
    if lifecycle is not None and spec.template.metadata.labels.get(names.GANG) != (gang or None):
        wrong.append(f"annotation {names.LIFECYCLE}: its pods need the label {names.GANG}")
    limit = spec.active_deadline_seconds
    return Job(
        ref=Ref(OwnerKind.JOB, meta.namespace, meta.name),
        uid=meta.uid,
        resource_version=meta.resource_version,
        created=Field(meta.creation_timestamp, "metadata.creationTimestamp").time(),
        queue=meta.labels.get(names.QUEUE, ""),
        gang=gang,
        role=meta.labels.get(names.ROLE) or meta.name.removeprefix(f"{gang}-"),
        declared=said(names.GANG_SIZE, _whole(1, MOST_PODS)),
        priority=said(names.PRIORITY, _whole(-MOST_PRIORITY, MOST_PRIORITY)) or 0,
        topology=said(names.TOPOLOGY, _topology),
        limit=timedelta(seconds=limit) if limit and 0 < limit <= MOST_SECONDS else None,
        start_seconds=said(names.START_SECONDS, _whole(1, MOST_SECONDS)),
        held=meta.annotations.get(names.HOLD) == "true",
        leaves_whole=said(names.ON_INTERRUPTION, _suspends) or False,
        resumed=meta.annotations.get(names.RESUME),
        leases=meta.annotations.get(names.LEASE_NODES) == "true",
        lifecycle=lifecycle,
        suspended=spec.suspend,
        indexed=spec.completion_mode == "Indexed",
        parallelism=_within(spec.parallelism, "spec.parallelism"),
        completions=None
        if spec.completions is None
        else _within(spec.completions, "spec.completions"),
        active=max(0, status.active),
        succeeded=max(0, status.succeeded) + len(uncounted.succeeded),
        failed=max(0, status.failed) + len(uncounted.failed),
        finished=bool(ends),
        failure=not ends.isdisjoint(_FAILURES),
        scheduling=read_scheduling(template, spec.template.metadata.labels),
        labels=spec.template.metadata.labels,
        selector=spec.template.spec.node_selector,
        tolerations=decoded(obj, _Steered).spec.template.spec.tolerations,
        admission=admission,
        stop=said(names.STOP, Stop.from_record),
        request=said(names.NODES, NodeRequest.from_record),
        wrong=tuple(wrong),
    )


def _unsteered(spec: schema.PodSpec, admission: Admission | None) -> schema.PodSpec:
    """Return a pod spec without what an admission added to it."""
    if admission is None:
        return spec
    steering = admission.in_template
    return msgspec.structs.replace(
        spec,
        node_selector=without(spec.node_selector, steering.labels),
        tolerations=tuple(each for each in spec.tolerations if each not in steering.tolerations),
    )


def without(selector: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return a node selector without these labels."""
    return {key: value for key, value in selector.items() if labels.get(key) != value}


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise BadInput(f"must be a whole number from {least} to {most}, not {clip(text)}")
        return int(text)

    return read


def _topology(text: str) -> Topology:
    word, sign, label = text.partition("=")
    if word not in {"required", "preferred"} or not sign or not _LABEL.fullmatch(label):
        raise BadInput(
            f"must be required=LABEL or preferred=LABEL, such as required={PREFIX}rack, not {clip(text)}"
        )
    return Topology(label=label, required=word == "required")


def _suspends(text: str) -> bool:
    if text != "suspend":
        raise BadInput(f"must be suspend, not {clip(text)}")
    return True


def _within(count: int, where: str) -> int:
    if count > MOST_PODS:
        raise BadInput(f"{where}: is more than {MOST_PODS}")
    return max(0, count)
