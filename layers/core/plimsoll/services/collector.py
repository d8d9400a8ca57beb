"""Python's collector of cyclic garbage, beside plans of large clusters."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Run without the collector what makes many objects, and hardly a cycle among them.

    It would walk the whole observation at least once, and free nothing: a third of the time of a plan for a million pods.
    The switch is that of the process. Of threads that plan side by side, only one that found the collector on turns it
    on again: that may be early for the others, but it never stays off.
    Source: https://devguide.python.org/internals/garbage-collector/
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
