"""Which object of a framework a pod belongs to, where its controller is another that was made for that one.

Labels tell, and tenants write labels. So a pod never leaves its namespace, and its controller has a kind that the
framework makes pods by, and a name that begins with that of the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll_batch.domain.jobs.jobs import Job

_GENERATED: Final = re.compile(r"(-raycluster)?-[a-z0-9]{5}$")
"""What KubeRay puts behind the name of a RayJob.
https://github.com/ray-project/kuberay/blob/master/ray-operator/controllers/ray/utils/util.go"""


class PodOwners:
    """Knows the pods of some Jobs and objects of frameworks."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._exact: dict[tuple[str, str, str], list[tuple[Ref, frozenset[str]]]] = {}
        self._generated: dict[tuple[str, str, str], tuple[Ref, frozenset[str]]] = {}
        for job in jobs:
            for each in job.pod_labels:
                found = job.ref, each.owners
                key = job.ref.namespace, each.label, each.value
                self._exact.setdefault(key, []).append(found)
            for label in job.framework.pods:
                if label.generated:
                    key = job.ref.namespace, label.label, job.ref.name
                    self._generated[key] = job.ref, label.owners
        self._labels = {label for _, label, _ in (*self._exact, *self._generated)}

    def of(self, pod: Pod) -> Ref | None:
        """Return what a pod belongs to; None where its controller says it, or nobody knows."""
        if pod.owner is None:
            return None
        for label in self._labels & pod.labels.keys():
            value = pod.labels[label]
            if not f"{pod.owner.name}-".startswith(f"{value}-"):
                continue
            known: list[tuple[Ref, frozenset[str]]]
            known = [*self._exact.get((pod.namespace, label, value), ())]
            base = _GENERATED.sub("", value)
            if not known and (made := self._generated.get((pod.namespace, label, base))):
                known.append(made)
            for ref, owners in known:
                if pod.owner.kind in owners:
                    return ref
        return None
