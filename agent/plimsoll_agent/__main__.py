"""The agent in its pod: `python -m plimsoll_agent`, or with `gpu` the one that changes GPUs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.domain.errors import PlimsollError
from plimsoll_agent import gpu_wiring
from plimsoll_agent.config import api_server, config, gpu_metrics_port
from plimsoll_agent.output import Output
from plimsoll_agent.wiring import TokenFile, put_together, run

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""


def main() -> int:
    """Run until the kubelet ends the pod; a failed start ends it, and the kubelet tries again."""
    clock = SystemClock()
    output = Output(clock)
    try:
        run_until_stopped = (
            _gpus(clock, output) if sys.argv[1:] == ["gpu"] else _agent(clock, output)
        )
    except (PlimsollError, OSError) as error:
        output.warn("the agent cannot start", because=str(error))
        return 1
    run_until_stopped()
    return 0


def _agent(clock: SystemClock, output: Output) -> Callable[[], None]:
    settings = config()
    loops = put_together(_transport(), settings, clock, output)
    signal.signal(signal.SIGTERM, lambda *_: loops.stop())
    return partial(run, loops, output, settings.metrics_port)


def _gpus(clock: SystemClock, output: Output) -> Callable[[], None]:
    port = gpu_metrics_port()
    loop = gpu_wiring.put_together(
        _transport(), _transport(as_user=gpu_wiring.DRAIN), clock, output
    )
    signal.signal(signal.SIGTERM, lambda *_: loop.stopping.set())
    return partial(loop.run, port)


def _transport(*, as_user: str | None = None) -> ClientTransport:
    return ClientTransport(
        api_server(),
        ca=(ACCOUNT / "ca.crt").read_text(encoding="ascii"),
        token=TokenFile(ACCOUNT / "token"),
        as_user=as_user,
    )


if __name__ == "__main__":
    sys.exit(main())
