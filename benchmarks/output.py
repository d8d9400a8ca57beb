"""What benchmarks print alike: the machine, tables, and the figures of several runs."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version

from rich.table import Table


def machine(*packages: str) -> str:
    """Return what a figure depends on beside our code; ask before the first run, for the load."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f} before; Python {platform.python_version()}"
        + "".join(f", {package} {version(package)}" for package in packages)
    )


def table(title: str, first: str, *headings: str) -> Table:
    """Return an empty table whose rows are named in the first column, and hold figures."""
    made = Table(title=title)
    made.add_column(first)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def spread(figures: Sequence[float], form: str = "{:.2f} s") -> list[str]:
    """Return the median, the least and the most."""
    return [form.format(f) for f in (statistics.median(figures), min(figures), max(figures))]
