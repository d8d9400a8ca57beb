"""A stand-in of NVIDIA's mig-manager on one Node, and of the device plugin's reports to the kubelet there.

It behaves as mig-manager 0.15 was measured to, row by row, and has none of its code:

| case | state | plugin label | plugin pod |
|---|---|---|---|
| first change | success | true | runs |
| later change, apply fails | failed | paused | gone |
| old label back | success | paused | gone |
| another label, apply works | success | true | runs |
| name not in the file | failed | true | runs |
| plugin pod cannot leave | pending for ever, 5 min to give up | paused | |
| then pod gone, old label back | success | paused | gone |
| then manager restarted | success | true | runs |

The DaemonSets are real: their controller moves their pods by the labels. Only the Node's state, its GPUs and
its readiness are written here, over the one transport that it is given: to a fake cluster or an API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from plimsoll.adapters.kubernetes import Transport, calls
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import NotFound, Temporary
from plimsoll.domain.kubernetes import MIG_STATE
from plimsoll_simulation.fake_cluster.conditions import is_finished, is_ready, with_condition
from plimsoll_simulation.fake_cluster.edits import Json, look

MIG: Final = "nvidia.com/mig.config"
SHARING: Final = "nvidia.com/device-plugin.config"
DEPLOY: Final = "nvidia.com/gpu.deploy."
PLUGIN: Final = "nvidia.com/gpu.deploy.device-plugin"
PAUSED: Final = "paused-for-mig-change"
_STATUS: Final = Call(verb="patch", resource="nodes/status")
_NVIDIA: Final = "nvidia.com/"

type Gpus = Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class _Job:
    """One layout that it is making."""

    name: str
    phase: Literal["leaving", "applying", "rebooting"]
    until: datetime


@dataclass(slots=True, kw_only=True)
class MigManager:
    """The manager of one Node."""

    transport: Transport
    node: str
    layouts: dict[str, Gpus]
    """What each name of its file makes of the GPUs."""
    gpus: Gpus
    """What the GPUs are split into now."""
    shared: dict[str, Gpus] = field(default_factory=dict)
    """What the device plugin shows under a configuration of its own, by name."""
    applying: timedelta = timedelta(seconds=5)
    reboots: timedelta | None = None
    """How long the Node is not Ready meanwhile."""
    gives_up: timedelta = timedelta(minutes=5)
    """How long it waits for the pods of the operands to leave."""
    failing: set[str] = field(default_factory=set)
    """Names that cannot be applied."""
    lacking: set[str] = field(default_factory=set)
    """Names after which one instance is missing."""
    up: bool = True
    killed: list[str] = field(default_factory=list)
    """Pods that held GPUs when it took them: it evicts nobody and asks nobody."""
    _read: str | None = None
    """The label as it was read last."""
    _job: _Job | None = None
    _leaves_paused: bool = False
    """Set at the first success of the process, and never reset: from then on a failure leaves the DaemonSets paused,
    and so does a layout that is there already."""

    def restart(self) -> None:
        """Begin anew, as a new process."""
        self._read, self._job, self._leaves_paused = None, None, False

    @property
    def busy(self) -> bool:
        """Whether it makes a layout."""
        return self._job is not None

    def step(self, now: datetime) -> None:
        """Do what is due by now; while the API server is away, nothing."""
        with suppress(Temporary, NotFound):
            node = dict(self._requests.send(calls.GET_NODE, name=self.node))
            here = f"spec.nodeName={self.node}"
            pods = [dict(pod) for pod in self._requests.list(calls.LIST_PODS, fields=here)]
            self._show(node, pods)
            if self.up:
                self._manage(node, pods, now)

    @property
    def _requests(self) -> Requests:
        return Requests(transport=self.transport, cluster="mig-manager")

    def _show(self, node: Json, pods: list[Json]) -> None:
        """Have the Node show its GPUs while the device plugin runs, and else none."""
        runs = any(PLUGIN in _selector(pod) and is_ready(pod) for pod in pods)
        sharing = self.shared.get(_labels(node).get(SHARING, ""))
        gpus = (sharing or self.gpus) if runs else {}
        shown = look(node, "status", "allocatable", default={})
        known = {*gpus, *(name for name in shown if name.startswith(_NVIDIA))}
        amounts = {name: str(gpus.get(name, 0)) for name in known}
        if any(shown.get(name) != amount for name, amount in amounts.items()):
            self._status({"allocatable": amounts, "capacity": amounts})

    def _manage(self, node: Json, pods: list[Json], now: datetime) -> None:
        label, job = _labels(node).get(MIG), self._job
        if job is None:
            if label is not None and label != self._read:
                self._begin(label, node, now)
            return
        match job.phase:
            case "leaving" if not any(_paused_away(pod) for pod in pods):
                self.killed += [_name(pod) for pod in pods if _holds(pod)]
                self._job = _Job(name=job.name, phase="applying", until=now + self.applying)
            case "leaving" if now >= job.until:
                self._job = None  # the state stays as it is
            case "applying" if now >= job.until:
                self._applied(job, node, now)
            case "rebooting" if now >= job.until:
                self._ready(node, now, ready=True)
                self._succeeded(node)
            case _:
                pass

    def _begin(self, name: str, node: Json, now: datetime) -> None:
        if name not in self.layouts:
            self._failed(node)
        elif self.gpus == self.layouts[name]:
            self._succeeded(node, restarts=not self._leaves_paused)
        else:
            deployed = {
                k: PAUSED for k, v in _labels(node).items() if k.startswith(DEPLOY) and v == "true"
            }
            self._label({MIG_STATE: "pending", **deployed})
            self._job = _Job(name=name, phase="leaving", until=now + self.gives_up)
        self._read = name

    def _applied(self, job: _Job, node: Json, now: datetime) -> None:
        if job.name in self.failing:
            self._failed(node)
            return
        made = dict(self.layouts[job.name])
        if job.name in self.lacking:
            made[min(made)] -= 1
        self.gpus = made
        if self.reboots is None:
            self._succeeded(node)
            return
        self._label({MIG_STATE: "rebooting"})
        self._ready(node, now, ready=False)
        self._job = _Job(name=job.name, phase="rebooting", until=now + self.reboots)

    def _succeeded(self, node: Json, *, restarts: bool = True) -> None:
        self._label({MIG_STATE: "success", **(_deployed(node) if restarts else {})})
        self._leaves_paused, self._job = True, None

    def _failed(self, node: Json) -> None:
        self._label({MIG_STATE: "failed", **({} if self._leaves_paused else _deployed(node))})
        self._job = None

    def _label(self, labels: Mapping[str, str]) -> None:
        self._requests.send(calls.PATCH_NODE, name=self.node, body={"metadata": {"labels": labels}})

    def _ready(self, node: Json, now: datetime, *, ready: bool) -> None:
        changed = with_condition(node, "Ready", "True" if ready else "False", now=now)
        self._status({"conditions": changed["status"]["conditions"]})

    def _status(self, status: Mapping[str, Any]) -> None:
        self._requests.send(_STATUS, name=self.node, body={"status": status})


def _labels(node: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = look(node, "metadata", "labels", default={})
    return found


def _deployed(node: Json) -> Mapping[str, str]:
    """Return the labels that bring back what was paused."""
    return {k: "true" for k, v in _labels(node).items() if k.startswith(DEPLOY) and v == PAUSED}


def _selector(pod: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = look(pod, "spec", "nodeSelector", default={})
    return found


def _paused_away(pod: Json) -> bool:
    """Whether a pod is one of the operands that leave for a change."""
    return any(key.startswith(DEPLOY) for key in _selector(pod)) and not is_finished(pod)


def _holds(pod: Json) -> bool:
    containers = look(pod, "spec", "containers", default=())
    asked = [look(container, "resources", "requests", default={}) for container in containers]
    return not is_finished(pod) and any(name.startswith(_NVIDIA) for each in asked for name in each)


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
