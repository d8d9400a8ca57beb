"""What the functions' log tells of a storm."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any


def started(log: str) -> Mapping[str, datetime]:
    """Return for each node when the first function started that cordoned it."""
    entries = list(_entries(log))
    starts = {
        entry["function_request_id"]: datetime.strptime(
            entry["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z"
        )
        for entry in entries
        if entry["message"] == "batch received"
    }
    first: dict[str, datetime] = {}
    for entry in entries:
        start = starts.get(entry.get("function_request_id", ""))
        if entry["message"] == "acted" and entry["action"] == "cordon" and start is not None:
            node = entry["target"].split()[-1]
            first[node] = min(start, first.get(node, start))
    return first


def actions(log: str) -> tuple[Counter[str], Counter[str]]:
    """Return how many actions were done, and how many were not and had to be decided anew."""
    done, undone = Counter[str](), Counter[str]()
    for entry in _entries(log):
        if entry["message"] == "acted":
            done[entry["action"]] += 1
        elif entry["message"] == "action not done":
            undone[entry["action"]] += 1
    return done, undone


def _entries(log: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        if line.startswith('{"level"'):
            try:
                yield json.loads(line)
            except ValueError:  # the line of a function that was cut off in the middle
                continue
