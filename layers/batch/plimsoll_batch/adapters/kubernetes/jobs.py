"""Jobs read into roles of gangs.

Tenants write them. What a Job says of itself in a label or an annotation and cannot be read is said in
its `wrong`, so that its own gang waits for it; a Job that cannot be read at all is left out by name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct, field

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import clip
from plimsoll.domain.kubernetes import OwnerKind, Ref
from plimsoll_batch.adapters.kubernetes.job_reader import MOST_PODS, MOST_SECONDS, TELL, Asked
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import Job, Lifecycle

_FAILURES: Final = {"Failed", "FailureTarget"}
_ENDS: Final = {"Complete", "SuccessCriteriaMet", *_FAILURES}


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
    asked = Asked(meta)
    gang = meta.labels.get(names.GANG)
    template = asked.unsteered(spec.template.spec)
    uncounted = status.uncounted_terminated_pods
    ends = {each.type for each in status.conditions if each.status == "True"} & _ENDS
    lifecycle = asked.said(names.LIFECYCLE, Lifecycle.from_record)
    if lifecycle is not None and spec.template.metadata.labels.get(names.GANG) != (gang or None):
        asked.wrong.append(f"annotation {names.LIFECYCLE}: its pods need the label {names.GANG}")
    on_interruption = asked.said(names.ON_INTERRUPTION, _on_interruption)
    if (
        on_interruption == TELL
        and not {names.GANG, names.QUEUE} & spec.template.metadata.labels.keys()
    ):
        asked.wrong.append(
            f"annotation {names.ON_INTERRUPTION}: its pods need the label {names.GANG} or {names.QUEUE}"
        )
    fields = asked.fields()
    limit = spec.active_deadline_seconds
    return Job(
        **fields,
        ref=Ref(OwnerKind.JOB, meta.namespace, meta.name),
        limit=timedelta(seconds=limit) if limit and 0 < limit <= MOST_SECONDS else None,
        leaves_whole=on_interruption == "suspend",
        told=on_interruption == TELL,
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
        wrong=tuple(asked.wrong),
    )


def _on_interruption(text: str) -> str:
    if text not in {"suspend", TELL}:
        raise BadInput(f"must be suspend or {TELL}, not {clip(text)}")
    return text


def _within(count: int, where: str) -> int:
    if count > MOST_PODS:
        raise BadInput(f"{where}: is more than {MOST_PODS}")
    return max(0, count)
