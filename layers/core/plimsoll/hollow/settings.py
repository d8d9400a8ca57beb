"""How long things take in a hollow cluster, each with where the figure is from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations of one cluster."""

    pod_startup: timedelta = _s(15)
    """From bound to Ready, where the pod's annotation says nothing."""
    pod_stop: timedelta = _s(3)
    """From SIGTERM to exit, where the pod's annotation says nothing."""
    reaction: timedelta = _s(0.05)
    """From a change to what scheduler, controllers and kubelets make of it: they watch, and their
    queues are short here."""
    unreachable: timedelta = _s(50)
    """From the last heartbeat to Ready=Unknown: --node-monitor-grace-period, 50 s since 1.32."""
    node_deleted: timedelta = _s(5)
    """From not Ready to the Node's deletion when its instance is gone: the cloud node lifecycle
    controller looks every --node-monitor-period, 5 s."""
    orphans_scan: timedelta = _s(20)
    """How often the pod garbage collector looks: gcCheckPeriod in pkg/controller/podgc."""
    orphans_quarantine: timedelta = _s(40)
    """How long a missing node is given to come back: quarantineTime in pkg/controller/podgc."""
    volume_attach: timedelta = _s(3)
    """Ask to attached. Measured by nobody here: an EBS volume takes some seconds."""
    volume_detach: timedelta = _s(3)
    """Last pod gone to detached. As above."""
    volume_forced_detach: timedelta = _s(360)
    """As above where the node did not confirm the unmount: ReconcilerMaxWaitForUnmountDuration,
    6 min in pkg/controller/volume/attachdetach. The taint out-of-service spares this wait."""
