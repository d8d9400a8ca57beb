"""Jobs: pods side by side until enough of them have succeeded, or too many have failed.

A pod that is told to go, or whose object is gone, before it succeeded has failed and counts towards
`backoffLimit`; another is made at once (podReplacementPolicy TerminatingOrFailed, the default). So
a Job whose limit is 0 does not outlive an eviction. Pods that the Job itself takes away count not.
It is Complete, or Failed, only when its last pod is gone (see enactJobFinished and delayTerminal).

How long a pod runs is said by `drill.plimsoll.dev/run` (see `kubelet`); without it, for ever.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/,
k8s.io/kubernetes/pkg/controller/job/job_controller.go (isPodFailed, manageJob, deleteJobPods)
Left out: podFailurePolicy, podReplacementPolicy Failed, the delay after a failure (10 s, doubled
each time), deadlines, indexes, success policies, ttlSecondsAfterFinished.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import ClassVar, override

from plimsoll_testbed.model.hollow.conditions import (
    condition,
    controller_of,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    is_true,
    with_condition,
)
from plimsoll_testbed.model.hollow.controllers.base import Controller
from plimsoll_testbed.model.hollow.controllers.scalein import first_to_go
from plimsoll_testbed.model.hollow.controllers.templates import pod_of
from plimsoll_testbed.model.hollow.edits import Json, look, put
from plimsoll_testbed.model.hollow.stamps import stamp
from plimsoll_testbed.model.hollow.state import ClusterState
from plimsoll_testbed.model.hollow.store import Change, Key


class Jobs(Controller[Key]):
    """The Job controller."""

    watches: ClassVar = frozenset({"jobs", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._succeeded: defaultdict[str, set[str]] = defaultdict(set)
        """UIDs of pods by the UID of their Job: they count also when their objects are gone."""
        self._failed: defaultdict[str, set[str]] = defaultdict(set)
        self._dismissed: set[str] = set()
        """UIDs of pods that their Job itself took away."""

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "jobs":
            self.note(change.key)
        elif (owner := controller_of(change.object)) and owner["kind"] == "Job":
            self._count(owner["uid"], change.object, gone=change.type == "DELETED")
            self.note((change.key[0], owner["name"]))

    def _count(self, job: str, pod: Json, *, gone: bool) -> None:
        """Count a pod once, as it first succeeded or failed. Source: isPodFailed."""
        uid, phase = pod["metadata"]["uid"], look(pod, "status", "phase")
        if phase == "Succeeded":
            if uid not in self._failed[job]:
                self._succeeded[job].add(uid)
        elif (gone or is_deleting(pod) or phase == "Failed") and uid not in self._dismissed:
            self._failed[job].add(uid)

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        job = self.store.get("jobs", *key)
        if job is None or is_true(job, "Complete") or is_true(job, "Failed"):
            return
        uid, spec = job["metadata"]["uid"], job["spec"]
        pods = self.state.indexes.owned(uid, "pods")
        active = [pod for pod in pods if is_active(pod)]
        done = len(self._succeeded[uid])
        failed = len(self._failed[uid]) > spec["backoffLimit"]
        completions = spec.get("completions")
        # Without completions one success is enough: the others finish, and no new ones come.
        if completions is None:
            complete = done > 0 and not active
            wanted = len(active) if done else spec["parallelism"]
        else:
            complete = done >= completions
            wanted = min(spec["parallelism"], completions - done)
        if failed or complete or spec.get("suspend"):
            wanted = 0
        if len(active) > wanted:
            for pod in first_to_go(active, active, len(active) - wanted, now):
                self._dismissed.add(pod["metadata"]["uid"])
                self.delete(pod, now)
        for _ in range(wanted - len(active)):
            labels = {"batch.kubernetes.io/job-name": key[1]}
            pod = pod_of(job, labels=labels, suffix=self.state.identities.suffix())
            self.create("pods", pod, now)
        self._report(job, now, failed=failed, complete=complete)

    def _report(self, job: Json, now: datetime, *, failed: bool, complete: bool) -> None:
        job = put(job, ("status",), self._status(job, now))
        status = job["status"]
        at_rest = not status["active"] and not status["terminating"]
        if failed:
            why = "BackoffLimitExceeded"
            job = with_condition(job, "FailureTarget", "True", now=now, reason=why)
            if at_rest:
                job = with_condition(job, "Failed", "True", now=now, reason=why)
        elif complete:
            why = "CompletionsReached"
            job = with_condition(job, "SuccessCriteriaMet", "True", now=now, reason=why)
            if at_rest:
                job = put(job, ("status", "completionTime"), stamp(now))
                job = with_condition(job, "Complete", "True", now=now, reason=why)
        elif job["spec"].get("suspend"):
            job = with_condition(job, "Suspended", "True", now=now, reason="JobSuspended")
        elif condition(job, "Suspended") is not None:
            job = with_condition(job, "Suspended", "False", now=now, reason="JobResumed")
        self.store.replace("jobs", job, now=now)

    def _status(self, job: Json, now: datetime) -> Json:
        uid, status = job["metadata"]["uid"], job.get("status") or {}
        pods = self.state.indexes.owned(uid, "pods")
        active = [pod for pod in pods if is_active(pod)]
        return {
            "startTime": status.get("startTime") or stamp(now),
            "conditions": status.get("conditions") or [],
            "active": len(active),
            "ready": sum(1 for pod in active if is_ready(pod)),
            "succeeded": len(self._succeeded[uid]),
            "failed": len(self._failed[uid]),
            "terminating": sum(1 for p in pods if not is_active(p) and not is_finished(p)),
        }
