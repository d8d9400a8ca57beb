"""A minimal Lambda runtime for one invocation, which says where the time of a cold start goes.

`cold_start.py` starts it as a fresh process; the built artefact stands first on its path:

    python cold_runtime.py EVENT

Standard error gets one JSON line, the moments on the system's monotonic clock and the seconds spent
in each part. The parts are timed from outside, at calls that the product makes anyway.
"""

from __future__ import annotations

import time

BEGAN = time.monotonic()

# ruff: noqa: E402, PLC0415 - the clock is looked at first, and between imports
import json
import sys
from collections.abc import Callable
from threading import Lock, local
from typing import Any

SPENT: dict[str, float] = {}
PARTS: dict[str, float] = {}
MOMENTS: dict[str, float] = {"began": BEGAN}
_LOCK = Lock()
_NESTED = local()


class Context:
    """What Powertools reads of Lambda's context."""

    function_name = "notices"
    function_version = "$LATEST"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:notices"
    aws_request_id = "00000000-0000-0000-0000-000000000000"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """Return the function's whole time."""
        return 20_000


def timed[**P, R](part: str, call: Callable[P, R]) -> Callable[P, R]:
    """Add to a part what a call takes, less what the timed calls take that it makes itself."""

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        outer, _NESTED.seconds = getattr(_NESTED, "seconds", 0.0), 0.0
        began = time.monotonic()
        try:
            return call(*args, **kwargs)
        finally:
            took = time.monotonic() - began
            with _LOCK:
                SPENT[part] = SPENT.get(part, 0.0) + took - _NESTED.seconds
            _NESTED.seconds = outer + took

    return run


def time_the_parts() -> None:
    """Wrap what the product calls. Nothing is imported here that it would not import."""
    from plimsoll.adapters.aws import Aws
    from plimsoll.adapters.kubernetes.client import ClientTransport

    Aws._client = timed("clients", with_calls_timed(Aws._client))  # type: ignore[method-assign, arg-type] # noqa: SLF001 - a stopwatch
    plain = ClientTransport.call

    def call(self: ClientTransport, method: str, path: str, **more: Any) -> Any:
        if method == "PATCH" and not PARTS:
            # What comes later is no part of the way to the first patch.
            PARTS.update(SPENT, processor=time.process_time())
        MOMENTS.setdefault(method, time.monotonic())
        return timed(f"{method} cluster", plain)(self, method, path, **more)

    ClientTransport.call = call  # type: ignore[method-assign]


def with_calls_timed(make: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Time what is asked of AWS, too, once a client was made."""

    def made(self: Any, service: str) -> Any:
        client = make(self, service)
        if not hasattr(client, "timed"):
            client.timed = True
            client._make_api_call = timed(f"AWS {service}", client._make_api_call)  # noqa: SLF001 - a stopwatch
        return client

    return made


def main() -> None:
    time_the_parts()
    from functions.notices import handler

    MOMENTS["ready"] = time.monotonic()
    ready = dict(SPENT)
    answer = handler(json.loads(sys.argv[1]), Context())
    MOMENTS["answered"] = time.monotonic()
    import plimsoll

    told = {
        "moments": MOMENTS,
        "ready": ready,
        "spent": PARTS,
        "answer": answer,
        "file": plimsoll.__file__,
    }
    print(json.dumps(told), file=sys.stderr)


if __name__ == "__main__":
    main()
