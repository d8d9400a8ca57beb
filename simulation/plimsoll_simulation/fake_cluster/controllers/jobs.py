"""Jobs: pods side by side until enough of them have succeeded, or too many have failed.

A pod that is told to go, or whose object is gone, before it succeeded has failed and counts towards
`backoffLimit`; another is made at once (podReplacementPolicy TerminatingOrFailed, the default). So
a Job whose limit is 0 does not outlive an eviction. Pods that the Job itself takes away count not.
It is Complete, or Failed, only when its last pod is gone (see enactJobFinished and delayTerminal).

Where there is a podFailurePolicy, or pods are replaced once they have Failed, a pod counts and is replaced when it
has ended. Rules by exit codes and by DisruptionTarget are known: evictions, taints and PodGC set this condition, and
a plain delete does not.

How long a pod runs is said by `drill.plimsoll.dev/run` (see `kubelet`); without it, for ever.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/,
k8s.io/kubernetes/pkg/controller/job/job_controller.go (isPodFailed, manageJob, deleteJobPods)
Left out: the delay after a failure (10 s, doubled each time), indexes and what counts by them, success
policies, ttlSecondsAfterFinished. The finalizer batch.kubernetes.io/job-tracking, which holds a pod of a Job with a policy
that was deleted by force until PodGC says that it failed: here it has failed at once.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.conditions import (
    condition,
    controller_of,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    is_true,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.scalein import first_to_go
from plimsoll_simulation.fake_cluster.controllers.templates import pod_of
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.stamps import moment, stamp
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key


class Jobs(Controller[Key]):
    """The Job controller."""

    watches: ClassVar = frozenset({"jobs", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._succeeded: defaultdict[str, set[str]] = defaultdict(set)
        """UIDs of pods by the UID of their Job: they count also when their objects are gone."""
        self._failed: defaultdict[str, set[str]] = defaultdict(set)
        self._dismissed: set[str] = set()
        """UIDs of pods that their Job itself took away, or that its policy lets it ignore."""
        self._unfit: set[str] = set()
        """UIDs of Jobs that fail by their policy."""

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "jobs":
            self.note(change.key)
        elif (owner := controller_of(change.object)) and owner["kind"] == "Job":
            job = self.store.get("jobs", change.key[0], owner["name"])
            spec = job["spec"] if job is not None else {}
            self._count(owner["uid"], spec, change.object, gone=change.type == "DELETED")
            self.note((change.key[0], owner["name"]))

    def _count(self, job: str, spec: Json, pod: Json, *, gone: bool) -> None:
        """Count a pod once, as it first succeeded or failed. Source: isPodFailed."""
        uid, phase = pod["metadata"]["uid"], look(pod, "status", "phase")
        if phase == "Succeeded" and uid not in self._failed[job]:
            self._succeeded[job].add(uid)
        ended = gone or phase == "Failed" or (is_deleting(pod) and not _waits_for_ends(spec))
        if phase == "Succeeded" or not ended or uid in self._dismissed:
            return
        action = policy_on(spec, pod)
        if action == "Ignore":
            self._dismissed.add(uid)
            return
        if action == "FailJob":
            self._unfit.add(job)
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
        failed = self._failure(job, now)
        completions = spec.get("completions")
        # Without completions one success is enough: the others finish, and no new ones come.
        if completions is None:
            complete = done > 0 and not active
            wanted = len(active) if done else spec["parallelism"]
        else:
            complete = done >= completions
            wanted = min(spec["parallelism"], completions - done)
        if _waits_for_ends(spec):
            wanted -= sum(1 for pod in pods if not is_active(pod) and not is_finished(pod))
        if failed or complete or spec.get("suspend"):
            wanted = 0
        if len(active) > max(0, wanted):
            for pod in first_to_go(active, active, len(active) - max(0, wanted), now):
                self._dismissed.add(pod["metadata"]["uid"])
                self.delete(pod, now)
        for _ in range(wanted - len(active)):
            labels = {"batch.kubernetes.io/job-name": key[1]}
            pod = pod_of(job, labels=labels, suffix=self.state.identities.suffix())
            self.create("pods", pod, now)
        self._report(job, now, failed=failed, complete=complete)

    def _failure(self, job: Json, now: datetime) -> str | None:
        """Return why a Job fails; None where it does not."""
        uid, spec = job["metadata"]["uid"], job["spec"]
        if uid in self._unfit:
            return "PodFailurePolicy"
        if len(self._failed[uid]) > spec["backoffLimit"]:
            return "BackoffLimitExceeded"
        seconds, since = spec.get("activeDeadlineSeconds"), look(job, "status", "startTime")
        if seconds is None or since is None or spec.get("suspend"):
            return None
        late = moment(since) + timedelta(seconds=seconds)
        if now >= late:
            return "DeadlineExceeded"
        key = (job["metadata"]["namespace"], job["metadata"]["name"])
        self.state.timers.write(late, lambda _: self.note(key))
        return None

    def _report(self, job: Json, now: datetime, *, failed: str | None, complete: bool) -> None:
        suspended = is_true(job, "Suspended")
        job = put(job, ("status",), self._status(job, now))
        status = job["status"]
        at_rest = not status["active"] and not status["terminating"]
        if failed:
            job = with_condition(job, "FailureTarget", "True", now=now, reason=failed)
            if at_rest:
                job = with_condition(job, "Failed", "True", now=now, reason=failed)
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
            if suspended:
                job = put(job, ("status", "startTime"), stamp(now))
                if job["spec"].get("activeDeadlineSeconds") is not None:
                    self.note((job["metadata"]["namespace"], job["metadata"]["name"]))
        self.store.replace("jobs", job, now=now)

    def _status(self, job: Json, now: datetime) -> Json:
        uid, status = job["metadata"]["uid"], job.get("status") or {}
        waits = bool(job["spec"].get("suspend"))
        pods = self.state.indexes.owned(uid, "pods")
        active = [pod for pod in pods if is_active(pod)]
        return {
            "startTime": status.get("startTime") or (None if waits else stamp(now)),
            "conditions": status.get("conditions") or [],
            "active": len(active),
            "ready": sum(1 for pod in active if is_ready(pod)),
            "succeeded": len(self._succeeded[uid]),
            "failed": len(self._failed[uid]),
            "terminating": sum(1 for p in pods if not is_active(p) and not is_finished(p)),
        }


def _waits_for_ends(spec: Json) -> bool:
    """Whether a pod that was told to go counts, and is replaced, once it has ended."""
    return "podFailurePolicy" in spec or spec.get("podReplacementPolicy") == "Failed"


def policy_on(spec: Json, pod: Json) -> str | None:
    """Return the action of the first rule that a failed pod matches."""
    ends = [
        look(each, "state", "terminated", "exitCode")
        for each in look(pod, "status", "containerStatuses", default=())
    ]
    codes = {code for code in ends if code}
    for rule in look(spec, "podFailurePolicy", "rules", default=()):
        by_code = rule.get("onExitCodes")
        if by_code is None:
            wanted = [each["type"] for each in rule.get("onPodConditions", ())]
            fits = any(is_true(pod, kind) for kind in wanted)
        elif by_code["operator"] == "In":
            fits = bool(codes & {*by_code["values"]})
        else:
            fits = bool(codes - {*by_code["values"]})
        if fits:
            return str(rule["action"])
    return None
