"""What the kubelets do: start pods, stop them in their grace period, and kill what overruns it.

A pod that was bound is Pending until its start-up time is over (`drill.plimsoll.dev/startup`, else
the cluster's default), and its volumes are attached first. Told to go, it gets SIGTERM and exits
after its stop time (`drill.plimsoll.dev/stop`), or is killed when its grace period ends. The Ready
condition stays as it was until the object goes: who serves is told by deletionTimestamp.

A pod that is not restarted (restartPolicy other than Always) and says how long it runs
(`drill.plimsoll.dev/run`) succeeds after that time, also when it was told to go meanwhile.

Sources: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination,
k8s.io/kubernetes/pkg/kubelet/pod_workers.go (a shorter grace period starts the kill anew).
Left out: images, probes, restarts, init containers, preStop as something apart from the stop time,
resource pressure, node shutdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, override

from plimsoll_testbed.model.durations import parse_duration
from plimsoll_testbed.model.hollow.conditions import is_deleting, is_finished, with_condition
from plimsoll_testbed.model.hollow.controllers.base import Controller
from plimsoll_testbed.model.hollow.controllers.volumes import attached
from plimsoll_testbed.model.hollow.edits import Json, look, put
from plimsoll_testbed.model.hollow.stamps import stamp
from plimsoll_testbed.model.hollow.state import ClusterState, How
from plimsoll_testbed.model.hollow.store import Change, Key, key_of

STARTUP = "drill.plimsoll.dev/startup"
STOP = "drill.plimsoll.dev/stop"
NEVER_READY = "drill.plimsoll.dev/never-ready"
RUN = "drill.plimsoll.dev/run"


@dataclass(slots=True, kw_only=True)
class _Held:
    """A pod that a kubelet has in hand."""

    key: Key
    node: str
    pod: Json
    starting: bool = False
    """Its start-up time is running."""
    running: bool = False
    told: datetime | None = None
    """When it got SIGTERM."""
    exits: datetime | None = None
    killed: datetime | None = None
    """When its grace period ends."""


type Held = tuple[str, Key]
"""(UID, key): a pod of the same name may follow at once."""


class Kubelets(Controller[Held]):
    """All kubelets of the cluster."""

    watches: ClassVar = frozenset({"pods", "volumeattachments"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._held: dict[str, _Held] = {}
        self._waiting: dict[str, Key] = {}
        """Pods that cannot start before their volumes are attached, by UID."""

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "volumeattachments":
            for uid, key in self._waiting.items():
                self.note((uid, key))
            return
        meta = change.object["metadata"]
        held = self._held.get(meta["uid"])
        if held is None and not look(change.object, "spec", "nodeName"):
            return
        if held is not None and change.type == "MODIFIED":
            held.pod = change.object
            old = (change.before or {})["metadata"].get("deletionGracePeriodSeconds")
            if old == meta.get("deletionGracePeriodSeconds"):
                return
        self.note((meta["uid"], change.key))

    @override
    def reconcile(self, key: Held, now: datetime) -> None:
        uid, name = key
        pod = self.store.get("pods", *name)
        held = self._held.get(uid)
        if pod is None or pod["metadata"]["uid"] != uid:
            if held is not None:
                self._forget(held, now)
            return
        node = look(pod, "spec", "nodeName")
        if node in self.state.vanished or is_finished(pod):
            return
        if held is None:
            if self.store.get("nodes", "", node) is None:
                return
            held = self._held[uid] = _Held(key=name, node=node, pod=pod)
        if is_deleting(pod):
            self._stop(held, now)
        elif not held.starting:
            self._start(held, now)

    def vanish(self, node: str, now: datetime) -> None:
        """Let a node's instance be gone: everything that ran on it is killed."""
        for uid, held in [(u, h) for u, h in self._held.items() if h.node == node]:
            del self._held[uid]
            self._waiting.pop(uid, None)
            if held.running:
                self.state.stopped(held.pod, "killed", now)

    def begin(self, node: str) -> None:
        """Let a node that joined, perhaps again, start what the API says stands on it."""
        for pod in self.state.indexes.on_node(node):
            self.note((pod["metadata"]["uid"], key_of(pod)))

    def _start(self, held: _Held, now: datetime) -> None:
        uid = held.pod["metadata"]["uid"]
        if not attached(self.store, held.pod):
            self._waiting[uid] = held.key
            return
        self._waiting.pop(uid, None)
        held.starting = True
        startup = _duration(held.pod, STARTUP, self.state.settings.pod_startup)
        self.state.timers.process(now + startup, lambda at: self._begin(uid, at))

    def _begin(self, uid: str, now: datetime) -> None:
        held = self._held.get(uid)
        if held is None:
            return
        held.running = True
        self.state.timers.write(now, lambda at: self._publish(uid, at))
        run = (held.pod["metadata"].get("annotations") or {}).get(RUN)
        if run is not None and held.pod["spec"]["restartPolicy"] != "Always":
            self.state.timers.process(now + parse_duration(run), lambda at: self._succeed(uid, at))

    def _succeed(self, uid: str, now: datetime) -> None:
        """The containers are done. Nothing was stopped, so nobody is told that a pod was."""
        held = self._held.get(uid)
        if held is None:
            return
        self._drop(held)

        def confirm(at: datetime) -> None:
            pod = self.store.get("pods", *held.key)
            if pod is None or pod["metadata"]["uid"] != uid:
                return
            done = put(pod, ("status", "phase"), "Succeeded")
            for kind in ("ContainersReady", "Ready"):
                done = with_condition(done, kind, "False", now=at, reason="PodCompleted")
            self.store.replace("pods", done, now=at)
            if is_deleting(pod):
                self.store.remove("pods", *held.key, now=at)

        self.state.timers.write(now, confirm)

    def _publish(self, uid: str, now: datetime) -> None:
        held = self._held.get(uid)
        pod = self.store.get("pods", *held.key) if held is not None else None
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        ready = look(pod, "metadata", "annotations", default={}).get(NEVER_READY) != "true"
        self.store.replace("pods", _running(pod, now, ready=ready), now=now)

    def _stop(self, held: _Held, now: datetime) -> None:
        if not held.running:
            self._drop(held)
            self.store.remove("pods", *held.key, now=now)
            return
        grace = timedelta(seconds=held.pod["metadata"]["deletionGracePeriodSeconds"])
        if held.told is None or held.exits is None or held.killed is None:
            held.told = now
            held.exits = now + _duration(held.pod, STOP, self.state.settings.pod_stop)
            held.killed = now + grace
        elif now + grace < held.killed:
            held.killed = now + grace
        else:
            return
        uid, end = held.pod["metadata"]["uid"], min(held.exits, held.killed)
        self.state.timers.process(end, lambda at: self._end(uid, end, at))

    def _end(self, uid: str, end: datetime, now: datetime) -> None:
        held = self._held.get(uid)
        if held is None or held.exits is None or held.killed is None:
            return
        if end != min(held.exits, held.killed):
            return
        self._drop(held)
        exited = held.exits <= held.killed
        self.state.stopped(held.pod, "exited" if exited else _by_force(held, now), now)

        def confirm(at: datetime) -> None:
            pod = self.store.get("pods", *held.key)
            if pod is not None and pod["metadata"]["uid"] == uid:
                self.store.remove("pods", *held.key, now=at)

        self.state.timers.write(now, confirm)

    def _forget(self, held: _Held, now: datetime) -> None:
        """The object went first, by force: what runs is killed without ceremony."""
        self._drop(held)
        if held.running:
            self.state.stopped(held.pod, _by_force(held, now), now)

    def _drop(self, held: _Held) -> None:
        uid = held.pod["metadata"]["uid"]
        self._held.pop(uid, None)
        self._waiting.pop(uid, None)


def _by_force(held: _Held, now: datetime) -> How:
    own = look(held.pod, "spec", "terminationGracePeriodSeconds", default=30)
    if held.told is not None and now >= held.told + timedelta(seconds=own):
        return "overran"
    return "cut-short"


def _duration(pod: Json, annotation: str, default: timedelta) -> timedelta:
    text = (pod["metadata"].get("annotations") or {}).get(annotation)
    return default if text is None else parse_duration(text)


def _running(pod: Json, now: datetime, *, ready: bool) -> Json:
    """Return a pod whose containers run. Source: the PodStatus a kubelet posts."""
    since = stamp(now)
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }
        for container in look(pod, "spec", "containers", default=())
    ]
    status = {**pod["status"], "phase": "Running", "startTime": since}
    pod = {**pod, "status": {**status, "containerStatuses": containers}}
    for kind in ("Initialized", "ContainersReady", "Ready"):
        holds = ready or kind == "Initialized"
        pod = with_condition(pod, kind, "True" if holds else "False", now=now)
    return pod
