"""Jobs whose pods run until they are stopped: as many active ones as `parallelism`.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/ (a pod that was deleted is
made again). Left out: completions, backoff limits, deadlines, indexes, suspension with pods.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll.hollow.admission import admitted
from plimsoll.hollow.conditions import controller_of, is_active, is_finished, is_ready
from plimsoll.hollow.controllers.base import Controller
from plimsoll.hollow.controllers.templates import pod_of
from plimsoll.hollow.edits import look, put
from plimsoll.hollow.resources import BY_PLURAL
from plimsoll.hollow.store import Change, Key


class Jobs(Controller[Key]):
    """The Job controller, as far as a drain meets it."""

    watches: ClassVar = frozenset({"jobs", "pods"})

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "jobs":
            self.note(change.key)
        elif (owner := controller_of(change.object)) and owner["kind"] == "Job":
            self.note((change.key[0], owner["name"]))

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        job = self.store.get("jobs", *key)
        if job is None:
            return
        pods = self.world.indexes.owned(job["metadata"]["uid"], "pods")
        # Replacements of terminating pods are made at once: podReplacementPolicy
        # TerminatingOrFailed, the default.
        active = [pod for pod in pods if is_active(pod)]
        done = sum(1 for pod in pods if look(pod, "status", "phase") == "Succeeded")
        wanted = min(job["spec"]["parallelism"], job["spec"]["completions"] - done)
        if look(job, "spec", "suspend"):
            wanted = 0
        for _ in range(wanted - len(active)):
            pod = pod_of(job, labels={"batch.kubernetes.io/job-name": key[1]})
            pod["metadata"]["generateName"] = f"{key[1]}-"
            pod["metadata"]["name"] = f"{key[1]}-{self.world.identities.suffix()}"
            pod = admitted(BY_PLURAL["pods"], pod, self.store)
            self.store.create("pods", pod, now=now)
        status = {
            "active": len(active),
            "ready": sum(1 for pod in active if is_ready(pod)),
            "succeeded": done,
            "terminating": sum(1 for p in pods if not is_active(p) and not is_finished(p)),
        }
        self.store.replace("jobs", put(job, ("status",), status), now=now)
