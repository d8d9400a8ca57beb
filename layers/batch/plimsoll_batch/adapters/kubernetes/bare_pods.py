"""Bare pods read into roles of gangs: pods that nobody makes anew, and that our scheduling gate keeps from nodes.

To take the gate off starts such a pod, and it cannot be put on again. So a bare pod cannot be suspended.
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.fields import clip
from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.adapters.kubernetes.job_reader import MOST_SECONDS, TELL, Asked
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import BARE_POD, Job


class _Spec(schema.PodSpec):
    active_deadline_seconds: schema.Whole | None = None


class _Steered(Struct, omit_defaults=True, gc=False):
    tolerations: Annotated[tuple[dict[str, Any], ...], Meta(max_length=100)] = ()


_Pod = schema.Object[_Spec, schema.PodStatus]
_SteeredPod = schema.Described[_Steered]


@naming("Pod")
def parse_bare_pod(obj: Raw) -> Job | None:
    """Read a pod that names a queue; None where a controller makes it anew: its Job is what is queued."""
    pod = decoded(obj, _Pod)
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
        succeeded=int(phase == "Succeeded"),
        failed=int(phase == "Failed"),
        finished=finished,
        failure=phase == "Failed",
        scheduling=read_scheduling(asked.unsteered(spec), meta.labels, meta.name),
        labels=meta.labels,
        selector=spec.node_selector,
        tolerations=decoded(obj, _SteeredPod).spec.tolerations,
        wrong=tuple(asked.wrong),
    )
