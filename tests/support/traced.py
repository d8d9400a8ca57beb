"""An interruption of two nodes that is traced, from the batch of events to the reconciles it wakes."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider

from plimsoll.adapters.opentelemetry import OpenTelemetryTraces
from tests.support.workload_sets import WiredServices, deployment, handled


def rig_of(provider: TracerProvider, warned: list[str] | None = None) -> WiredServices:
    """Return wired services whose spans go to a provider."""
    told = [] if warned is None else warned
    return WiredServices(traces=OpenTelemetryTraces(told.append, provider))


def two_interrupted(rig: WiredServices) -> tuple[str, str]:
    """Interrupt two spot nodes by one batch of notices; return the identities of the interruptions."""
    instances = [rig.join(name, capacity="spot") for name in ("spot-1", "spot-2")]
    rig.resync.run()
    rig.apply(deployment(replicas=4))
    rig.join("od-1")
    rig.join("od-2")
    rig.wake_ups.sent.clear()
    rig.wake_ups.traceparents.clear()
    handled(rig, *(rig.spot_event(instance) for instance in instances))
    first, second = (rig.node(name).interruption for name in ("spot-1", "spot-2"))
    assert first is not None
    assert second is not None
    return first.identity, second.identity


def woken(rig: WiredServices, holder: str = "me", seconds: float = 30) -> None:
    """Reconcile as the first wake-up that was sent asks for, and take it from the queue."""
    (cluster, _), traceparent = rig.wake_ups.sent.pop(0), rig.wake_ups.traceparents.pop(0)
    rig.drains.reconcile(cluster, holder, seconds=seconds, traceparent=traceparent)
