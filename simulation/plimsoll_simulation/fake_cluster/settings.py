"""How long things take in a fake cluster, each with where the figure is from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

type Choice = Literal["best", "packed", "any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations of one cluster, and how free its scheduler is."""

    pod_startup: timedelta = timedelta(seconds=15)
    """From bound to Ready, where the pod's annotation says nothing."""
    pod_stop: timedelta = timedelta(seconds=3)
    """From SIGTERM to exit, where the pod's annotation says nothing."""
    reaction: timedelta = timedelta(seconds=0.05)
    """From a change to what scheduler, controllers and kubelets make of it: they watch, and their
    queues are short here."""
    unreachable: timedelta = timedelta(seconds=50)
    """From the last heartbeat to Ready=Unknown: --node-monitor-grace-period, 50 s since 1.32."""
    node_deleted: timedelta = timedelta(seconds=5)
    """From not Ready to the Node's deletion when its instance is gone: the cloud node lifecycle
    controller looks every --node-monitor-period, 5 s."""
    orphans_scan: timedelta = timedelta(seconds=20)
    """How often the pod garbage collector looks: gcCheckPeriod in pkg/controller/podgc."""
    orphans_quarantine: timedelta = timedelta(seconds=40)
    """How long a missing node is given to come back: quarantineTime in pkg/controller/podgc."""
    volume_attach: timedelta = timedelta(seconds=3)
    """Ask to attached. Measured by nobody here: an EBS volume takes some seconds."""
    volume_detach: timedelta = timedelta(seconds=3)
    """Last pod gone to detached. As above."""
    volume_forced_detach: timedelta = timedelta(seconds=360)
    """As above where the node did not confirm the unmount: ReconcilerMaxWaitForUnmountDuration,
    6 min in pkg/controller/volume/attachdetach. The taint out-of-service spares this wait."""
    choice: Choice = "best"
    """Which of the nodes that fit a pod gets: the one that scores best; or, whatever the scores, any,
    or the same one as long as it fits, in an order drawn by the seed. With any, it is also drawn who
    of the pods that waited together is tried first. What comes out the same for all of these, and
    for several seeds, hangs on no free choice."""
