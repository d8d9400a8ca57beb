"""The one write to a Job, an object of a framework or a bare pod: a JSON patch that tests what was read.

A merge patch replaces lists whole, and roles of most frameworks stand in lists. The patch that starts an object also
steers its pods: what is started first and steered after may have made pods in between.
https://kubernetes.io/docs/concepts/workloads/controllers/job/#suspending-a-job
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plimsoll.domain.kubernetes import Toleration
from plimsoll_batch.domain import names
from plimsoll_batch.domain.frameworks import Path
from plimsoll_batch.domain.jobs import (
    Admission,
    Job,
    NodeRequest,
    PodSet,
    Steering,
    Stop,
    toleration_record,
)

type Operation = Mapping[str, Any]
type Pointer = Sequence[str | int]

_GATES: Path = ("spec", "schedulingGates")


def planned(job: Job, admission: Admission) -> Sequence[Operation]:
    """Return the patch that writes a plan."""
    return [*_noted(job, {names.ADMISSION: admission.to_record()})]


def requested(job: Job, request: NodeRequest) -> Sequence[Operation]:
    """Return the patch that writes what node groups were asked for."""
    return [*_noted(job, {names.NODES: request.to_record()})]


def started(job: Job, admission: Admission) -> Sequence[Operation]:
    """Return the patch that starts an object and steers its pods."""
    noted = _noted(job, {names.ADMISSION: admission.as_started().to_record()})
    if job.bare:  # with another gate it is not admitted
        switch: Operation = {"op": "remove", "path": _pointer(_GATES)}
    else:
        switch = _add(job.framework.suspend, value=False)
    return [*noted, switch, *_steered(job, admission)]


def suspended(job: Job, stop: Stop) -> Sequence[Operation]:
    """Return the patch that suspends an object and says why."""
    noted = _noted(job, {names.STOP: stop.to_record()})
    return [*noted, _add(job.framework.suspend, value=True)]


def restarted(job: Job, admission: Admission) -> Sequence[Operation]:
    """Return the patch that suspends an object and says how it is started again."""
    noted = _noted(job, {names.ADMISSION: admission.to_record()})
    return [*noted, _add(job.framework.suspend, value=True)]


def ended(job: Job, *, complete: bool) -> Sequence[Operation]:
    """Return the patch by which a Job ends as Complete, or as Failed.

    An Indexed Job of no completions is Complete. A Job past its deadline has Failed, but only where it is not
    suspended: so it is started without pods.
    """
    fields: dict[str, Any]
    if complete:
        fields = {"parallelism": 0, "completions": 0}
    else:
        fields = {"activeDeadlineSeconds": 1}
        if job.suspended:
            fields |= {"suspend": False, "parallelism": 0}
    return [*_noted(job, {}), *(_add(("spec", name), value) for name, value in fields.items())]


def _noted(job: Job, annotations: Mapping[str, str]) -> Iterator[Operation]:
    for name, value in (("uid", job.uid), ("resourceVersion", job.resource_version)):
        yield {"op": "test", "path": _pointer(("metadata", name)), "value": value}
    if annotations and not job.annotated:
        yield _add(("metadata", "annotations"), {})
    for name, value in annotations.items():
        yield _add(("metadata", "annotations", name), value)


def _steered(job: Job, admission: Admission) -> Iterator[Operation]:
    """Yield what has to change where pods are steered; nothing where all of it stands there already.

    Of a Job that ran before, the template may be changed since Kubernetes 1.36 only, so what is right is left alone.
    """
    path = job.framework.overrides
    if path is not None:
        ours = _overrides(admission.as_started())
        before = [] if job.admission is None else _overrides(job.admission)
        wanted = [*(each for each in job.overrides if each not in before), *ours]
        if wanted != [*job.overrides]:
            yield _add(path, wanted)
        return
    for each in job.sets:
        if each.at is not None and each.name in admission.sets:
            yield from _steered_set(job, each, admission.sets[each.name].steering)


def _steered_set(job: Job, each: PodSet, wanted: Steering) -> Iterator[Operation]:
    at = each.at or ()
    before = Steering() if job.admission is None else job.admission.in_template(each.name)
    kept = {k: v for k, v in each.selector.items() if before.labels.get(k) != v}
    selector = kept | dict(wanted.labels)
    if selector != each.selector:
        place = (*at, "nodeSelector")
        yield (_add(place, selector) if selector else {"op": "remove", "path": _pointer(place)})
    there = [_known(one) for one in each.tolerations]
    not_ours = {*there} - ({*before.tolerations} - {*wanted.tolerations})
    stays = [one for one, known in zip(each.tolerations, there, strict=True) if known in not_ours]
    more = [toleration_record(one) for one in wanted.tolerations if one not in not_ours]
    if more or len(stays) < len(there):
        yield _add((*at, "tolerations"), [*stays, *more])


def _overrides(admission: Admission) -> list[Mapping[str, Any]]:
    """Return what an admission adds to a list of overrides by role."""
    found: list[Mapping[str, Any]] = []
    for name in admission.sets:
        steering = admission.in_template(name)
        says: dict[str, Any] = {}
        if steering.labels:
            says["nodeSelector"] = dict(steering.labels)
        if steering.tolerations:
            says["tolerations"] = [toleration_record(one) for one in steering.tolerations]
        if says:
            found.append({"targetJobs": [{"name": name}], **says})
    return found


def _add(path: Pointer, value: Any) -> Operation:
    return {"op": "add", "path": _pointer(path), "value": value}


def _pointer(path: Pointer) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _known(each: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=str(each.get("key") or ""),
        operator=str(each.get("operator") or "Equal"),
        value=str(each.get("value") or ""),
        effect=str(each.get("effect") or ""),
    )
