"""The agent in its pod: `python -m plimsoll_agent`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.domain.errors import PlimsollError
from plimsoll_agent.config import api_server, config
from plimsoll_agent.output import Output
from plimsoll_agent.wiring import TokenFile, put_together, run

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""


def main() -> int:
    """Run until the kubelet ends the pod; a failed start ends it, and the kubelet tries again."""
    clock = SystemClock()
    output = Output(clock)
    try:
        settings = config()
        transport = ClientTransport(
            api_server(),
            ca=(ACCOUNT / "ca.crt").read_text(encoding="ascii"),
            token=TokenFile(ACCOUNT / "token"),
        )
        loops = put_together(transport, settings, clock, output)
    except (PlimsollError, OSError) as error:
        output.warn("the agent cannot start", because=str(error))
        return 1
    signal.signal(signal.SIGTERM, lambda *_: loops.stop())
    run(loops, output, settings.metrics_port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
