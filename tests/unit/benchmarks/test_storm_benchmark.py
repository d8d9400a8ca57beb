"""What the benchmark of a storm makes of what it sees."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmarks.storms.cordon_times import CordonTimes, row
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import (
    AFTER_SECONDS,
    NOTICE_SECONDS,
)
from benchmarks.storms.watch import Seen
from benchmarks.storms.watcher import Watcher

ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def second(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def pod(uid: str, node: str, phase: str = "Running", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "namespace": "default", "labels": {"app": "web"}, **meta},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def played(watcher: Watcher, **more: Any) -> Outcome:
    """Return the outcome of a storm that began at `ZERO`."""
    seen = Seen.read(
        {
            "cordoned": {},
            "empty": {},
            "pods": {},
            "missing": watcher.missing,
            "requests": len(watcher.requests),
            "lost": watcher.lost(),
            "changes": 0,
            "busy_seconds": 0,
            "seconds": 1,
        }
    )
    return Outcome(
        times=CordonTimes(nodes=2),
        noticed=ZERO,
        emptied=[],
        killed=5,
        seen=seen,
        calls=Counter({"PATCH": 20, "POST": 10}),
        **more,
    )


def node(name: str, *, cordoned: bool) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"unschedulable": True} if cordoned else {}}


def test_splits_the_time_to_the_cordon_where_the_function_started() -> None:
    times = CordonTimes.split(
        {"a": second(0), "b": second(0)},
        {"a": second(2), "b": second(4)},
        {"a": second(1.5), "b": second(3)},
    )
    assert times.total == [2, 4]
    assert times.before == [1.5, 3]
    assert times.inside == [0.5, 1]
    assert times.first == [0.5]  # it began before any node was cordoned
    assert times.later == [1]


def test_counts_a_node_that_was_never_cordoned_among_the_nodes_only() -> None:
    times = CordonTimes.split({"a": second(0), "b": second(0)}, {"a": second(2)}, {})
    assert (times.nodes, times.total) == (2, [2])
    assert row([(times.nodes, times.total)])[-1] == "50%"


def test_a_pod_that_was_told_to_stop_serves_no_longer_until_another_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter(ZERO.timestamp() + n for n in (0, 0, 0, 10, 25))
    monkeypatch.setattr("benchmarks.storms.watcher.time.time", lambda: next(moments))
    watcher = Watcher()
    watcher.pod("ADDED", pod("1", "a"))
    watcher.pod("ADDED", pod("2", "b"))
    watcher.begin()
    watcher.pod("MODIFIED", pod("1", "a", deletionTimestamp="soon"))
    watcher.pod("ADDED", pod("3", "c"))

    assert (played(watcher).lost, played(watcher).lost_after) == (15, 0)


def test_a_pod_whose_instance_went_serves_no_longer_whatever_the_api_server_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.storms.watcher.time.time", ZERO.timestamp)
    watcher = Watcher()
    watcher.pod("ADDED", pod("1", "a"))
    watcher.begin()
    gone = second(NOTICE_SECONDS).timestamp()
    watcher.stopped({"uid": "1", "app": "web", "address": "10.0.0.1", "at": gone})
    watcher.pod("MODIFIED", pod("1", "a"))

    assert (played(watcher).lost, played(watcher).lost_after) == (0, AFTER_SECONDS)


def test_a_request_is_lost_without_an_endpoint_or_if_its_pod_stops_before_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter(ZERO.timestamp() + n for n in (1, 2, 2.95, 4, 200))
    monkeypatch.setattr("benchmarks.storms.watcher.time.time", lambda: next(moments))
    watcher = Watcher()
    for address in (None, "10.0.0.1", "10.0.0.1", "10.0.0.1", None):
        watcher.request(address)
    stop = {"uid": "1", "app": "web", "address": "10.0.0.1", "at": second(3).timestamp()}
    watcher.stopped(stop)

    lost = [at - ZERO.timestamp() for at in watcher.lost()]
    assert lost == pytest.approx([1, 2.95, 4, 200])
    assert played(watcher).requests_lost == 3
    assert played(watcher).requests_lost_after == 1
