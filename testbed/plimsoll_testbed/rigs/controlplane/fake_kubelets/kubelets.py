"""The kubelets of a control plane: start pods, stop them in their grace period, kill what overruns.

The same rules, annotations and times as the hollow cluster's (`plimsoll_testbed.model.hollow.controllers.kubelet`),
here against a real API server and by the wall clock. A pod that was bound is Pending until its
volumes are attached and its start-up time is over; told to go, it exits after its stop time or is
killed when its grace period ends. While the API server is away containers run on, exit and are
killed in their time; what waits to be written is written when it is back.

Left out: as there, and the last status that a kubelet posts before it deletes a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from plimsoll.domain.errors import BadInput
from plimsoll_testbed.model.hollow.conditions import is_deleting, is_finished
from plimsoll_testbed.model.hollow.controllers.kubelet import NEVER_READY
from plimsoll_testbed.model.hollow.edits import Json, look
from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.model.hollow.stamps import moment
from plimsoll_testbed.model.hollow.state import How, PodStopped
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import STRATEGIC, Loop, Write
from plimsoll_testbed.rigs.controlplane.fake_kubelets.podstatus import address, running, succeeded
from plimsoll_testbed.rigs.controlplane.fake_kubelets.podtimes import Times
from plimsoll_testbed.rigs.controlplane.fake_kubelets.volumes import Volumes


@dataclass(slots=True, kw_only=True)
class _Held:
    """A pod that a kubelet has in hand."""

    pod: Json
    node: str
    times: Times = field(default_factory=Times)
    starting: bool = False
    """Its start-up time is running."""
    running: bool = False
    finished: bool = False
    """Its containers are done; the API may not know it yet."""
    told: datetime | None = None
    """When it got SIGTERM."""
    exits: datetime | None = None
    killed: datetime | None = None
    """When its grace period ends."""
    grace: int | None = None
    """The grace period that was last seen, in seconds."""

    @property
    def uid(self) -> str:
        uid: str = self.pod["metadata"]["uid"]
        return uid


class Kubelets:
    """All kubelets of the cluster.

    Args:
        loop: everything here runs in it.
        settings: times of pods without annotations.
        volumes: what pods mount before they start, and let go when they end.
        stopped: told of each pod that ran and stopped running.
    """

    def __init__(
        self,
        loop: Loop,
        settings: Settings,
        volumes: Volumes,
        *,
        stopped: Callable[[PodStopped], None],
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._volumes = volumes
        volumes.changed = self._look_at_waiting
        self._stopped = stopped
        self._held: dict[str, _Held] = {}
        self._waiting: dict[str, _Held] = {}
        """Pods that cannot start before their volumes are attached."""
        self._unclaimed: dict[str, dict[str, Json]] = {}
        """Node -> UID -> pods bound to a node that was not seen yet."""
        self._nodes: set[str] = set()
        self._vanished: dict[str, datetime] = {}
        """Node -> when its instance went."""
        self._addresses = 0

    def node(self, change: str, node: Json) -> None:
        """Take note of a node."""
        name = node["metadata"]["name"]
        if change == "DELETED":
            self._nodes.discard(name)
            self._vanished.pop(name, None)
        elif name not in self._nodes:
            self._nodes.add(name)
            gone = self._vanished.get(name)
            if gone is not None and moment(node["metadata"]["creationTimestamp"]) > gone:
                del self._vanished[name]  # another instance, of the same name
            for pod in self._unclaimed.pop(name, {}).values():
                self.pod("ADDED", pod)

    def vanish(self, name: str) -> None:
        """Let a node's instance be gone: everything that ran on it is killed.

        The API's word of the node may come later than this.
        """
        now = self._vanished[name] = self._loop.now()
        for held in [h for h in self._held.values() if h.node == name]:
            self._drop(held)
            if held.running:
                self._stopped(PodStopped(pod=held.pod, how="killed", at=now))

    def pod(self, change: str, pod: Json) -> None:
        """React to a pod."""
        node, uid = look(pod, "spec", "nodeName"), pod["metadata"]["uid"]
        if node is None or node in self._vanished:
            return
        held = self._held.get(uid)
        if change == "DELETED":
            self._unclaimed.get(node, {}).pop(uid, None)
            if held is not None:
                self._forget(held)
            return
        if node not in self._nodes:
            self._unclaimed.setdefault(node, {})[uid] = pod
            return
        if held is None:
            if is_finished(pod) and not is_deleting(pod):
                return
            held = self._held[uid] = _Held(pod=pod, node=node, finished=is_finished(pod))
        held.pod = pod
        if is_deleting(pod):
            self._stop(held)
        elif not held.starting:
            self._start(held)

    def _start(self, held: _Held) -> None:
        if held.finished:
            return
        if not self._volumes.mounted(held.pod):
            self._waiting[held.uid] = held
            return
        self._waiting.pop(held.uid, None)
        held.starting = True
        try:
            held.times = Times.of(held.pod, self._settings)
        except BadInput as error:
            # As a kubelet tells of a container that it cannot make: the pod waits for ever.
            self._publish(
                held, {"phase": "Pending", "reason": "BadAnnotation", "message": str(error)}
            )
        else:
            self._loop.at(self._loop.now() + held.times.startup, lambda: self._begin(held))

    def _look_at_waiting(self) -> None:
        """Look again at the pods that wait for their volumes."""
        for held in list(self._waiting.values()):
            self._start(held)

    def _begin(self, held: _Held) -> None:
        if not self._holds(held):
            return
        held.running = True
        ready = look(held.pod, "metadata", "annotations", default={}).get(NEVER_READY) != "true"
        self._addresses += 1
        status = running(held.pod, self._loop.now(), address(self._addresses), ready=ready)
        self._publish(held, status)
        if held.times.run is not None and held.pod["spec"]["restartPolicy"] != "Always":
            self._loop.at(self._loop.now() + held.times.run, lambda: self._succeed(held))

    def _succeed(self, held: _Held) -> None:
        """The containers are done. Nothing was stopped, so nobody is told that a pod was."""
        if not self._holds(held):
            return
        self._finish(held)
        self._publish(held, succeeded(held.pod, self._loop.now()))
        if is_deleting(held.pod):
            self._remove(held)

    def _stop(self, held: _Held) -> None:
        if not held.running:
            if held.told is None:
                held.told = self._loop.now()
                self._remove(held)
            return
        now, seconds = self._loop.now(), held.pod["metadata"]["deletionGracePeriodSeconds"]
        if seconds == held.grace:
            return
        held.grace, grace = seconds, timedelta(seconds=seconds)
        if held.told is None or held.exits is None or held.killed is None:
            held.told = now
            held.exits = now + held.times.stop
            held.killed = now + grace
        else:
            held.killed = min(held.killed, now + grace)
        end = min(held.exits, held.killed)
        self._loop.at(end, lambda: self._end(held, end))

    def _end(self, held: _Held, end: datetime) -> None:
        if not self._holds(held) or held.exits is None or held.killed is None:
            return
        if not held.running or end != min(held.exits, held.killed):
            return
        self._finish(held)
        now = self._loop.now()
        how = "exited" if held.exits <= held.killed else _by_force(held, now)
        self._stopped(PodStopped(pod=held.pod, how=how, at=now))
        self._remove(held)

    def _forget(self, held: _Held) -> None:
        """The object went first, by force: what runs is killed without ceremony."""
        self._drop(held)
        if held.running:
            now = self._loop.now()
            self._stopped(PodStopped(pod=held.pod, how=_by_force(held, now), at=now))
        self._finish(held)

    def _finish(self, held: _Held) -> None:
        held.running, held.finished = False, True
        self._volumes.unmount(held.pod)

    def _drop(self, held: _Held) -> None:
        self._held.pop(held.uid, None)
        self._waiting.pop(held.uid, None)

    def _holds(self, held: _Held) -> bool:
        return self._held.get(held.uid) is held

    def _publish(self, held: _Held, status: Json) -> None:
        body = {"metadata": {"uid": held.uid}, "status": status}
        self._loop.write(
            Write(
                method="PATCH",
                path=f"{_path(held.pod)}/status",
                body=body,
                content_type=STRATEGIC,
                wanted=lambda: self._holds(held),
            )
        )

    def _remove(self, held: _Held) -> None:
        """Confirm that a pod's containers are gone: its object may go."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": held.uid}}
        self._loop.write(
            Write(
                method="DELETE",
                path=_path(held.pod),
                body=options,
                wanted=lambda: self._holds(held),
            )
        )


def _by_force(held: _Held, now: datetime) -> How:
    own = look(held.pod, "spec", "terminationGracePeriodSeconds", default=30)
    if held.told is not None and now >= held.told + timedelta(seconds=own):
        return "overran"
    return "cut-short"


def _path(pod: Json) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
