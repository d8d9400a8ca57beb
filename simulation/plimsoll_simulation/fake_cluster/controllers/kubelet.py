"""What the kubelets do: start pods, stop them in their grace period, and kill what overruns it.

A pod that was bound is Pending until its start-up time is over (`drill.plimsoll.dev/startup`, else
the cluster's default), and its volumes are attached first. Told to go, it gets SIGTERM and exits
after its stop time (`drill.plimsoll.dev/stop`), or is killed when its grace period ends. The Ready
condition stays as it was until its containers have ended: who serves is told by deletionTimestamp. Then
its status says how they ended, and the object goes. A pod with readiness gates is Ready only while
their conditions, which others write, are all True. A pod whose annotations cannot be read stays
Pending, and its status says why.

A pod that runs and is resized holds what it asks for from then on, or waits for room (`resizes`).

A pod that is not restarted (restartPolicy other than Always) and says how long it runs
(`drill.plimsoll.dev/run`) succeeds after that time, also when it was told to go meanwhile.

Sources: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination,
k8s.io/kubernetes/pkg/kubelet/pod_workers.go (a shorter grace period starts the kill anew),
pkg/kubelet/kubelet_pods.go (getPhase: a pod that was told to go ends as Failed or Succeeded).
The store may also be what watches showed of another API server, which takes writes later: so a pod is
held until its object is gone.
Left out: images, probes, restarts, the time that init containers take, preStop and the turn of native sidecars as
something apart from the stop time, resource pressure, node shutdown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Self, override

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import parse_duration
from plimsoll_simulation.fake_cluster.conditions import (
    is_deleting,
    is_finished,
    is_true,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.volumes import attached
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.pod_annotations import NEVER_READY, RUN, STARTUP, STOP
from plimsoll_simulation.fake_cluster.resizes import holding, is_resized, resized
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.stamps import stamp
from plimsoll_simulation.fake_cluster.state import ClusterState, How
from plimsoll_simulation.fake_cluster.store import Change, Key, key_of

_SIGTERM, _SIGKILL = 128 + 15, 128 + 9
"""Exit codes. A container that was told to go has not done its work, so it never ends with 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """How long a pod takes, by its annotations and the settings of its cluster."""

    startup: timedelta = timedelta()
    stop: timedelta = timedelta()
    run: timedelta | None = None

    @classmethod
    def of(cls, pod: Json, settings: Settings) -> Self:
        """Read a pod's annotations.

        Raises:
            BadInput: one is no duration; the message names it.
        """

        def read(annotation: str) -> timedelta | None:
            text = look(pod, "metadata", "annotations", default={}).get(annotation)
            try:
                return None if text is None else parse_duration(text)
            except BadInput as error:
                raise BadInput(f"{annotation}: {error}") from error

        startup, stop = read(STARTUP), read(STOP)
        return cls(
            startup=settings.pod_startup if startup is None else startup,
            stop=settings.pod_stop if stop is None else stop,
            run=read(RUN),
        )


@dataclass(slots=True, kw_only=True)
class _Held:
    """A pod that a kubelet has in hand."""

    key: Key
    node: str
    pod: Json
    times: _Times = field(default_factory=_Times)
    starting: bool = False
    """Its start-up time is running."""
    running: bool = False
    code: int | None = None
    """With which its containers ended, once they are done or will never start; its object may not say so yet."""
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
        self._deferred: dict[str, Key] = {}
        """Pods whose resize waits for room on their node, by UID."""
        self._addresses = 0

    def mounted(self, pod: Json) -> bool:
        """Whether all volumes of a pod are there, so that it can start."""
        return attached(self.store, pod)

    def unmounted(self, pod: Json) -> None:
        """Take note that a pod's containers let go of its volumes."""

    def confirm(self, pod: Json, now: datetime) -> None:
        """Write how the containers of a pod ended, and let its object go."""
        ended = self.store.replace("pods", pod, now=now)
        delete(self.store, "pods", ended, DeleteOptions(grace_seconds=0), now=now)

    @override
    def observe(self, change: Change) -> None:
        if change.resource != "pods":
            for uid, key in self._waiting.items():
                self.note((uid, key))
            return
        meta = change.object["metadata"]
        held = self._held.get(meta["uid"])
        if change.type == "DELETED" or is_finished(change.object):
            self._retry_deferred()
        if held is None and not look(change.object, "spec", "nodeName"):
            return
        if held is not None and change.type == "MODIFIED":
            held.pod = change.object
            old = (change.before or {})["metadata"].get("deletionGracePeriodSeconds")
            gated = look(change.object, "spec", "readinessGates")
            same = change.object["spec"] == (change.before or {})["spec"]
            if same and old == meta.get("deletionGracePeriodSeconds") and not gated:
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
        if node in self.state.vanished:
            return
        if held is None:
            if is_finished(pod) or self.store.get("nodes", "", node) is None:
                return
            held = self._held[uid] = _Held(key=name, node=node, pod=pod)
        if is_deleting(pod):
            self._stop(held, now)
        elif not held.starting:
            self._start(held, now)
        elif held.running:
            self._follow(pod, now)

    def _follow(self, pod: Json, now: datetime) -> None:
        """Follow what is changed of a pod that runs."""
        pod = self._resize(pod, now) if is_resized(pod) else pod
        if is_true(pod, "ContainersReady"):
            ready = "True" if _gates_open(pod) else "False"
            gated = with_condition(pod, "Ready", ready, now=now)
            if gated is not pod:
                self.store.replace("pods", gated, now=now)

    def _resize(self, pod: Json, now: datetime) -> Json:
        """Give a pod what it asks for, or say why it has to wait; return it."""
        node = self.store.get("nodes", "", pod["spec"]["nodeName"])
        if node is None:
            return pod
        there = self.state.indexes.on_node(node["metadata"]["name"])
        answered = self.store.replace("pods", resized(pod, node, there, now), now=now)
        if is_resized(answered):
            self._deferred[pod["metadata"]["uid"]] = key_of(pod)
        else:
            self._retry_deferred()  # it may hold less than before
        return answered

    def _retry_deferred(self) -> None:
        """Look again at the pods whose resize waits."""
        deferred, self._deferred = self._deferred, {}
        for uid, key in deferred.items():
            self.note((uid, key))

    def vanish(self, node: str, now: datetime) -> None:
        """Let a node's instance be gone: everything that ran on it is killed."""
        for held in [held for held in self._held.values() if held.node == node]:
            self._drop(held)
            if held.running:
                self.state.stopped(held.pod, "killed", now)

    def begin(self, node: str) -> None:
        """Let a node that joined, perhaps again, start what the API says stands on it."""
        for pod in self.state.indexes.on_node(node):
            self.note((pod["metadata"]["uid"], key_of(pod)))

    def found_stopped(self, node: str, now: datetime) -> None:
        """Publish that nothing runs on a node that came back: Ready once it has started anew."""
        for pod in list(self.state.indexes.on_node(node)):
            if look(pod, "status", "phase") == "Running":
                stopped = with_condition(pod, "Ready", "False", now=now)
                if pod["spec"]["restartPolicy"] != "Always":
                    stopped = {**stopped, "status": {**stopped["status"], "phase": "Failed"}}
                self.store.replace("pods", stopped, now=now)

    def _start(self, held: _Held, now: datetime) -> None:
        uid = held.pod["metadata"]["uid"]
        if not self.mounted(held.pod):
            self._waiting[uid] = held.key
            return
        self._waiting.pop(uid, None)
        held.starting = True
        try:
            held.times = _Times.of(held.pod, self.state.settings)
        except BadInput as error:
            # As a kubelet tells of a container that it cannot make: the pod waits for ever.
            status = {"phase": "Pending", "reason": "BadAnnotation", "message": str(error)}
            self.store.replace("pods", {**held.pod, "status": status}, now=now)
        else:
            self.state.timers.process(now + held.times.startup, lambda at: self._begin(uid, at))

    def _begin(self, uid: str, now: datetime) -> None:
        held = self._held.get(uid)
        if held is None or held.code is not None:
            return
        held.running = True
        self.state.timers.write(now, lambda at: self._publish(uid, at))
        if held.times.run is not None and held.pod["spec"]["restartPolicy"] != "Always":
            self.state.timers.process(now + held.times.run, lambda at: self._succeed(uid, at))

    def _succeed(self, uid: str, now: datetime) -> None:
        """The containers are done. Nothing was stopped, so nobody is told that a pod was."""
        held = self._held.get(uid)
        if held is None or not held.running:
            return
        self._finish(held, 0)

        def say(at: datetime) -> None:
            pod = self._shown(held)
            if pod is not None and is_deleting(pod):
                self._remove(held, at)
            elif pod is not None:
                self.store.replace("pods", _ended(pod, at, 0), now=at)

        self.state.timers.write(now, say)

    def _publish(self, uid: str, now: datetime) -> None:
        held = self._held.get(uid)
        pod = self._shown(held) if held is not None else None
        if pod is None:
            return
        ready = look(pod, "metadata", "annotations", default={}).get(NEVER_READY) != "true"
        self._addresses += 1
        address = _address(self._addresses)
        self.store.replace("pods", _running(pod, now, address, ready=ready), now=now)

    def _stop(self, held: _Held, now: datetime) -> None:
        if not held.running:
            self._finish(held, _SIGKILL)
            self._remove(held, now)
            return
        grace = timedelta(seconds=held.pod["metadata"]["deletionGracePeriodSeconds"])
        if held.told is None or held.exits is None or held.killed is None:
            held.told = now
            held.exits = now + held.times.stop
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
        if not held.running or end != min(held.exits, held.killed):
            return
        exited = held.exits <= held.killed
        self._finish(held, _SIGTERM if exited else _SIGKILL)
        self.state.stopped(held.pod, "exited" if exited else _by_force(held, now), now)
        self.state.timers.write(now, lambda at: self._remove(held, at))

    def _remove(self, held: _Held, now: datetime) -> None:
        pod = self._shown(held)
        if pod is not None:
            ended = pod if is_finished(pod) else _ended(pod, now, held.code or 0)
            self.confirm(ended, now)

    def _forget(self, held: _Held, now: datetime) -> None:
        """The object went first, by force: what runs is killed without ceremony."""
        self._drop(held)
        if held.running:
            self.state.stopped(held.pod, _by_force(held, now), now)
        self._finish(held, _SIGKILL)

    def _finish(self, held: _Held, code: int) -> None:
        held.running = False
        held.code = code if held.code is None else held.code
        self.unmounted(held.pod)

    def _shown(self, held: _Held) -> Json | None:
        """Return a pod as the store has it; None when its object or its node's instance is gone."""
        pod = self.store.get("pods", *held.key)
        uid = held.pod["metadata"]["uid"]
        if pod is None or pod["metadata"]["uid"] != uid or uid not in self._held:
            return None
        return pod

    def _drop(self, held: _Held) -> None:
        uid = held.pod["metadata"]["uid"]
        self._held.pop(uid, None)
        self._waiting.pop(uid, None)


def _by_force(held: _Held, now: datetime) -> How:
    own = look(held.pod, "spec", "terminationGracePeriodSeconds", default=30)
    if held.told is not None and now >= held.told + timedelta(seconds=own):
        return "overran"
    return "cut-short"


def _address(number: int) -> str:
    """Return an address out of 100.64.0.0/10, which no cluster's Services are in."""
    return f"100.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"


def _containers(pod: Json, *, ready: bool, state: Json) -> Json:
    """Return the fields of a status about containers: native sidecars run beside them, other init containers are done."""
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    inits = [
        _container(each, ready=ready, state=state)
        if each.get("restartPolicy") == "Always"
        else _container(each, ready=True, state=done)
        for each in look(pod, "spec", "initContainers", default=())
    ]
    main = [
        _container(each, ready=ready, state=state)
        for each in look(pod, "spec", "containers", default=())
    ]
    return {"containerStatuses": main, **({"initContainerStatuses": inits} if inits else {})}


def _container(container: Json, *, ready: bool, state: Json) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        **holding(container),
    }


def _running(pod: Json, now: datetime, address: str, *, ready: bool) -> Json:
    """Return a pod whose containers run. Source: the PodStatus a kubelet posts."""
    since = stamp(now)
    status = {
        **pod["status"],
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        **_containers(pod, ready=ready, state={"running": {"startedAt": since}}),
    }
    pod = {**pod, "status": status}
    for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"):
        holds = ready or not kind.endswith("Ready")
        if kind == "Ready":
            holds = holds and _gates_open(pod)
        pod = with_condition(pod, kind, "True" if holds else "False", now=now)
    return pod


def _gates_open(pod: Json) -> bool:
    """Whether all readiness gates of a pod hold; one without its condition does not."""
    gates = look(pod, "spec", "readinessGates", default=())
    return all(is_true(pod, gate["conditionType"]) for gate in gates)


def _ended(pod: Json, now: datetime, code: int) -> Json:
    """Return a pod whose containers have ended with an exit code."""
    since = stamp(now)
    began = look(pod, "status", "startTime", default=since)
    phase, reason, why = (
        ("Failed", "Error", "PodFailed") if code else ("Succeeded", "Completed", "PodCompleted")
    )
    ended = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": since}
    statuses = _containers(pod, ready=False, state={"terminated": ended})
    pod = {**pod, "status": {**pod["status"], "phase": phase, **statuses}}
    for kind in ("ContainersReady", "Ready"):
        pod = with_condition(pod, kind, "False", now=now, reason=why)
    return pod
