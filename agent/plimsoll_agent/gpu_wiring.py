"""Puts the agent that changes GPUs together, and runs it: it speaks to the API server and to nobody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.workers import SerialWorkers, ThreadWorkers
from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.services.ports import Clock
from plimsoll_agent.backoff import pause_after
from plimsoll_agent.gpu_executor import GpuExecutor
from plimsoll_agent.loops import STALE
from plimsoll_agent.metrics_server import serve
from plimsoll_agent.output import Output
from plimsoll_agent.wiring import NAME, THREADS

DRAIN: Final = "system:serviceaccount:plimsoll:plimsoll-agent"
"""As whom pods leave: the agent that drains, whose admission policies hold it."""


@dataclass(slots=True, kw_only=True)
class GpuLoop:
    """Rounds of an executor, until it is stopped."""

    executor: GpuExecutor
    clock: Clock
    output: Output
    stopping: Event = field(default_factory=Event)
    beat: datetime | None = None
    """When it last came round."""

    def healthy(self) -> bool:
        """Whether it goes on, whatever the API server answers."""
        return self.beat is None or self.clock.now() - self.beat < STALE

    def run(self, port: int) -> None:
        """Go on round after round; what failed is tried again later."""
        server, failures = serve(self.output.registry, port, self.healthy), 0
        try:
            while not self.stopping.is_set():
                self.beat = self.clock.now()
                try:
                    pause, failures = self.executor.round(), 0
                except PlimsollError as error:
                    failures += 1
                    self.output.failed("gpus")
                    self.output.warn("gpus: tried again later", because=str(error))
                    asked = error.retry_after if isinstance(error, Temporary) else None
                    pause = pause_after(failures, asked=asked)
                self.stopping.wait(pause)
        finally:
            server.shutdown()
            server.server_close()


def put_together(own: Transport, drain: Transport, clock: Clock, output: Output) -> GpuLoop:
    """Return the agent that changes the GPUs of a cluster, ready to run.

    Args:
        own: comes as `plimsoll-gpu`.
        drain: comes as `DRAIN`.
        clock: the time.
        output: what people and Prometheus hear.
    """
    executor = GpuExecutor(
        api=KubernetesCluster(own, NAME, clock, workers=SerialWorkers(), warn=output.once),
        drain=KubernetesCluster(
            drain, NAME, clock, workers=ThreadWorkers(THREADS), warn=output.once, follow=True
        ),
        clock=clock,
        progress=output,
    )
    return GpuLoop(executor=executor, clock=clock, output=output)
