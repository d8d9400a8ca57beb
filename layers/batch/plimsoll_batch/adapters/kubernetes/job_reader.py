"""Jobs, bare pods and failed pods read into the terms of the queues.

Tenants write them. What an object says of itself in a label or an annotation and cannot be read is said in words
in its `wrong`, so that its own gang waits for it; an object that cannot be read at all is left out by name.

A bare pod is one that nobody makes anew, and that our scheduling gate keeps from nodes. To take the gate off starts
such a pod, and it cannot be put on again. So a bare pod cannot be suspended.
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import LIST_LIMIT_ITEMS, Field, clip
from plimsoll.domain.kubernetes import PREFIX, OwnerKind, Ref
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain import names
from plimsoll_batch.domain.frameworks import is_child
from plimsoll_batch.domain.jobs import (
    BARE_POD,
    MOST_PRIORITY,
    Admission,
    FailedPod,
    Job,
    Lifecycle,
    NodeRequest,
    PodSet,
    Stop,
    Topology,
)

MOST_PODS: Final = 100_000
"""Of one Job; as in a snapshot's file."""
MOST_SECONDS: Final = 7 * 24 * 3600
TELL: Final = "tell"
"""What is asked of an interruption that suspends nothing."""
MOST_ZONES: Final = 20
"""Zones that the data of one Job weighs."""
_FAILURES: Final = {"Failed", "FailureTarget"}
_ENDS: Final = {"Complete", "SuccessCriteriaMet", *_FAILURES}
FAILED: Final = "status.phase=Failed"
"""The field selector of pods that have failed."""
_DISRUPTED: Final = "DisruptionTarget"
_DIGITS: Final = 6
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


class Asked:
    """Reads the metadata of one object, and keeps what is wrong with it."""

    def __init__(self, meta: schema.Metadata) -> None:
        """Check its labels."""
        self._meta = meta
        self.wrong: list[str] = []
        for label in (names.QUEUE, names.GANG, names.ROLE):
            text = meta.labels.get(label)
            if text is not None and not _NAME.fullmatch(text):
                self.wrong.append(f"label {label}: must be a name, not {clip(text)}")
        self.admission = self.said(names.ADMISSION, Admission.from_record)

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return self._meta.namespace

    def said[T](self, annotation: str, read: Callable[[str], T]) -> T | None:
        """Return what an annotation says; None where it is missing or wrong."""
        text = self._meta.annotations.get(annotation)
        if text is None:
            return None
        try:
            return read(text)
        except BadInput as error:
            self.wrong.append(f"annotation {annotation}: {error}")
            return None

    def fields(self) -> dict[str, Any]:
        """Return the fields of a role that follow from metadata alone."""
        meta = self._meta
        gang = meta.labels.get(names.GANG)
        least, declared = self.said(names.GANG_SIZE, _size) or (None, None)
        return {
            "uid": meta.uid,
            "resource_version": meta.resource_version,
            "created": Field(meta.creation_timestamp, "metadata.creationTimestamp").time(),
            "queue": meta.labels.get(names.QUEUE, ""),
            "gang": gang,
            "role": meta.labels.get(names.ROLE) or meta.name.removeprefix(f"{gang}-"),
            "declared": declared,
            "least": least,
            "priority": self.said(names.PRIORITY, _priority) or 0,
            "topology": self.said(names.TOPOLOGY, _topology),
            "data": self.said(names.DATA, _weights) or (),
            "start_seconds": self.said(names.START_SECONDS, _whole(1, MOST_SECONDS)),
            "checkpoint_seconds": self.said(names.CHECKPOINT_SECONDS, _whole(1, MOST_SECONDS)),
            "checkpoint_takes": self.said(names.CHECKPOINT_TAKES_SECONDS, _whole(1, MOST_SECONDS)),
            "annotated": bool(meta.annotations),
            "held": meta.annotations.get(names.HOLD) == "true",
            "resumed": meta.annotations.get(names.RESUME),
            "leases": meta.annotations.get(names.LEASE_NODES) == "true",
            "admission": self.admission,
            "stop": self.said(names.STOP, Stop.from_record),
            "request": self.said(names.NODES, NodeRequest.from_record),
        }

    def unsteered(self, spec: schema.PodSpec, name: str = "") -> schema.PodSpec:
        """Return the pod spec of a pod set without what an admission added to it."""
        if self.admission is None:
            return spec
        steering = self.admission.in_template(name)
        return msgspec.structs.replace(
            spec,
            node_selector={
                k: v for k, v in spec.node_selector.items() if steering.labels.get(k) != v
            },
            tolerations=tuple(
                each for each in spec.tolerations if each not in steering.tolerations
            ),
        )


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


def job_reader(admission: PodAdmission) -> Callable[[Json | Raw], Job | None]:
    """Return what reads a Job that names a queue; its pods count as admission will make them.

    None: it belongs to an object of a framework, which is started and suspended as a whole.
    """

    @naming("Job")
    def read(obj: Raw) -> Job | None:
        return _job(obj, admission)

    return read


def _job(obj: Raw, admission: PodAdmission) -> Job | None:
    job = decoded(obj, _Job)
    meta, spec, status = job.metadata, job.spec, job.status
    if meta.controller is not None and is_child(OwnerKind.JOB, meta.controller.kind):
        return None
    asked = Asked(meta)
    gang = meta.labels.get(names.GANG)
    template, refused = admission.admitted(meta.namespace, asked.unsteered(spec.template.spec))
    if spec.suspend:
        asked.wrong += [f"its pods: {words}" for words in refused]
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
    parallelism = _within(spec.parallelism, "spec.parallelism")
    completions = (
        None if spec.completions is None else _within(spec.completions, "spec.completions")
    )
    active = max(0, status.active)
    succeeded = max(0, status.succeeded) + len(uncounted.succeeded)
    failed = max(0, status.failed) + len(uncounted.failed)
    if completions is None:
        pods = active if succeeded else parallelism
    else:
        pods = min(parallelism, max(0, completions - succeeded))
    return Job(
        **fields,
        ref=Ref(OwnerKind.JOB, meta.namespace, meta.name),
        limit=timedelta(seconds=limit) if limit and 0 < limit <= MOST_SECONDS else None,
        leaves_whole=on_interruption == "suspend",
        told=on_interruption == TELL,
        lifecycle=lifecycle,
        suspended=spec.suspend,
        indexed=spec.completion_mode == "Indexed",
        parallelism=parallelism,
        completions=completions,
        active=active,
        failed=failed,
        made_pods=bool(active or succeeded or failed),
        finished=bool(ends),
        failure=not ends.isdisjoint(_FAILURES),
        sets=(
            PodSet(
                pods=pods,
                scheduling=read_scheduling(template, spec.template.metadata.labels),
                labels=spec.template.metadata.labels,
                selector=spec.template.spec.node_selector,
                tolerations=decoded(obj, _Steered).spec.template.spec.tolerations,
                at=("spec", "template", "spec"),
            ),
        ),
        group=_group_of(spec.template.spec),
        priority_class=spec.template.spec.priority_class_name,
        wrong=tuple(asked.wrong),
    )


def _group_of(spec: schema.PodSpec) -> str | None:
    return (spec.scheduling_group and spec.scheduling_group.pod_group_name) or None


class _PodSpec(schema.PodSpec):
    active_deadline_seconds: schema.Whole | None = None


_BarePod = schema.Object[_PodSpec, schema.PodStatus]
_SteeredPod = schema.Described[_SteeredSpec]


@naming("Pod")
def parse_bare_pod(obj: Raw) -> Job | None:
    """Read a pod that names a queue; None where a controller makes it anew: its Job is what is queued."""
    pod = decoded(obj, _BarePod)
    meta, spec, phase = pod.metadata, pod.spec, pod.status.phase
    if meta.controller is not None:
        return None
    asked = Asked(meta)
    gates = [gate.name for gate in spec.scheduling_gates]
    asked.wrong += [
        f"scheduling gate {clip(gate)}: must be taken off first, by whoever put it on"
        for gate in gates
        if gate != names.GATE
    ]
    on_interruption = meta.annotations.get(names.ON_INTERRUPTION)
    for name in (names.LIFECYCLE, *([names.ON_INTERRUPTION] if on_interruption != TELL else [])):
        if name in meta.annotations:
            asked.wrong.append(f"annotation {name}: a bare pod cannot be suspended: submit a Job")
    limit, finished = spec.active_deadline_seconds, phase in {"Succeeded", "Failed"}
    waits = names.GATE in gates
    fields = asked.fields()
    return Job(
        **fields,
        ref=Ref(BARE_POD, meta.namespace, meta.name),
        limit=timedelta(seconds=limit) if limit and 0 < limit <= MOST_SECONDS else None,
        told=on_interruption == TELL,
        suspended=waits,
        completions=1,
        active=int(not waits and not finished),
        failed=int(phase == "Failed"),
        made_pods=not waits,
        finished=finished,
        failure=phase == "Failed",
        sets=(
            PodSet(
                pods=int(phase != "Succeeded"),
                scheduling=read_scheduling(asked.unsteered(spec), meta.labels, meta.name),
                labels=meta.labels,
                selector=spec.node_selector,
                tolerations=decoded(obj, _SteeredPod).spec.tolerations,
                at=("spec",),
            ),
        ),
        group=_group_of(spec),
        priority_class=spec.priority_class_name,
        wrong=tuple(asked.wrong),
    )


class _Terminated(_Read):
    exit_code: schema.Whole = 0
    finished_at: str | None = None


class _State(_Read):
    terminated: _Terminated | None = None


class _Container(_Read):
    name: str = ""
    state: _State = field(default_factory=_State)


type _Containers = Annotated[tuple[_Container, ...], Meta(max_length=LIST_LIMIT_ITEMS)]


class _Status(_Read):
    conditions: schema.Conditions = ()
    container_statuses: _Containers = ()
    init_container_statuses: _Containers = ()


class _FailedSpec(_Read):
    init_containers: Annotated[tuple[schema.Container, ...], Meta(max_length=LIST_LIMIT_ITEMS)] = ()


_FailedPod = schema.Object[_FailedSpec, _Status]


@naming("Pod")
def parse_failed_pod(obj: Raw) -> FailedPod:
    """Read a pod that has failed."""
    pod = decoded(obj, _FailedPod)
    meta, status = pod.metadata, pod.status
    owner = meta.controller
    # A sidecar stops last, most often by SIGTERM: its exit code says nothing of the work.
    # https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#sidecar-containers-and-pod-lifecycle
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    initial = [each for each in status.init_container_statuses if each.name not in sidecars]
    ends = [
        each.state.terminated
        for each in (*initial, *status.container_statuses)
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


def _on_interruption(text: str) -> str:
    if text not in {"suspend", TELL}:
        raise BadInput(f"must be suspend or {TELL}, not {clip(text)}")
    return text


def _within(count: int, where: str) -> int:
    if count > MOST_PODS:
        raise BadInput(f"{where}: is more than {MOST_PODS}")
    return max(0, count)


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise BadInput(f"must be a whole number from {least} to {most}, not {clip(text)}")
        return int(text)

    return read


def _priority(text: str) -> int | str:
    """Return a number, or a name: whether it is one, the configuration says."""
    if _NAME.fullmatch(text) and not text.isdecimal():
        return text
    return _whole(-MOST_PRIORITY, MOST_PRIORITY)(text)


def _size(text: str) -> tuple[int | None, int]:
    least, sign, pods = text.rpartition(":")
    most = _whole(1, MOST_PODS)(pods)
    return _whole(1, most)(least) if sign else None, most


def _topology(text: str) -> Topology:
    word, sign, label = text.partition("=")
    if word not in {"required", "preferred"} or not sign or not _LABEL.fullmatch(label):
        raise BadInput(
            f"must be required=LABEL or preferred=LABEL, such as required={PREFIX}rack, not {clip(text)}"
        )
    return Topology(label=label, required=word == "required")


def _weights(text: str) -> tuple[tuple[str, int], ...]:
    pairs = [part.partition("=") for part in text.split(",")]
    right = 0 < len(pairs) <= MOST_ZONES and all(
        _NAME.fullmatch(zone) and weight.isdecimal() and 0 < len(weight) <= _DIGITS
        for zone, _, weight in pairs
    )
    if not right or len({zone for zone, *_ in pairs}) < len(pairs):
        raise BadInput(
            f"must be ZONE=WEIGHT, {MOST_ZONES} of them at most, such as us-east-1a=3,us-east-1b=1,"
            f" not {clip(text)}"
        )
    return tuple(sorted((zone, int(weight)) for zone, _, weight in pairs))
