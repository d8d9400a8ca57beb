"""Python's collector of cyclic garbage, beside plans of large clusters."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let what makes many objects, and hardly a cycle among them, run without the collector.

    It would walk the whole observation at least once, and free nothing: of a million pods a third of the plan's time.
    Source: https://devguide.python.org/internals/garbage-collector/
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
