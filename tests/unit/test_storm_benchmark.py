"""What the benchmark of a storm makes of what it sees."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.storms import __main__ as command
from benchmarks.storms.busy import busy
from benchmarks.storms.functionlog import actions, started
from benchmarks.storms.handler import VISIBILITY_SECONDS, Queue
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import (
    AFTER_SECONDS,
    HEADROOM,
    NOTICE_SECONDS,
    ON_HEADROOM,
    PODS,
    SPOT,
    drain_drill,
    headroom_nodes,
)
from benchmarks.storms.times import Times, row
from benchmarks.storms.watch import Seen
from benchmarks.storms.watcher import Watcher
from benchmarks.storms.workers import Processes

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
        times=Times(nodes=2),
        noticed=ZERO,
        emptied=[],
        killed=5,
        seen=seen,
        calls=Counter({"PATCH": 20, "POST": 10}),
        **more,
    )


def node(name: str, *, cordoned: bool) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"unschedulable": True} if cordoned else {}}


def line(message: str, request: str, **more: str) -> str:
    entry = {
        "level": "INFO",
        "message": message,
        "function_request_id": request,
        "timestamp": "2026-01-01 00:00:01,500+0000",
    }
    return json.dumps(entry | more)


def test_splits_the_time_to_the_cordon_where_the_function_started() -> None:
    times = Times.split(
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
    times = Times.split({"a": second(0), "b": second(0)}, {"a": second(2)}, {})
    assert (times.nodes, times.total) == (2, [2])
    assert row([(times.nodes, times.total)])[-1] == "50%"


def test_does_not_split_the_time_of_a_node_whose_function_left_no_line() -> None:
    times = Times.split({"a": second(0)}, {"a": second(2)}, {"a": second(30)})
    assert (times.total, times.before, times.inside) == ([2], [], [])


def test_the_first_function_that_cordoned_a_node_counts() -> None:
    again = line("batch received", "2").replace(":01,500", ":31,500")
    acted = [line("acted", r, action="cordon", target="Node spot-1") for r in ("1", "2")]
    log = "\n".join([line("batch received", "1"), again, *acted])
    assert started(log) == {"spot-1": second(1.5)}


def test_reads_from_the_log_which_function_cordoned_a_node() -> None:
    log = "\n".join(
        [
            "ESM: processed 1 SQS messages",
            line("batch received", "1"),
            line("acted", "1", action="cordon", target="Node spot-1"),
            line("acted", "2", action="cordon", target="Node spot-2"),  # its start is cut off
            line("acted", "1", action="cordon", target="Node spot-3")[:-9],
        ]
    )
    assert started(log) == {"spot-1": second(1.5)}


def test_counts_what_the_functions_did_and_what_was_refused() -> None:
    log = "\n".join(
        [
            line("acted", "1", action="scale"),
            line("action not done", "1", action="finish-surge"),
            line("acted", "2", action="finish-surge"),
        ]
    )
    assert actions(log) == ({"scale": 1, "finish-surge": 1}, {"finish-surge": 1})


def test_sees_a_node_empty_when_its_last_pod_is_over() -> None:
    watcher = Watcher()
    watcher.pod("ADDED", pod("1", "a"))
    watcher.pod("ADDED", pod("2", "a"))
    watcher.pod("DELETED", pod("1", "a"))
    assert watcher.empty == {}
    watcher.pod("MODIFIED", pod("2", "a", phase="Succeeded"))
    assert set(watcher.empty) == {"a"}


def test_sees_a_node_no_longer_empty_when_a_pod_comes() -> None:
    watcher = Watcher()
    watcher.pod("ADDED", pod("1", "a"))
    watcher.pod("DELETED", pod("1", "a"))
    watcher.pod("MODIFIED", pod("2", "a"))
    assert (watcher.empty, watcher.bound) == ({}, 1)


def test_keeps_the_first_time_that_a_node_was_cordoned() -> None:
    watcher = Watcher()
    watcher.node("ADDED", node("a", cordoned=False))
    assert watcher.cordoned == {}
    watcher.node("MODIFIED", node("a", cordoned=True))
    first = dict(watcher.cordoned)
    watcher.node("MODIFIED", node("a", cordoned=True))
    assert watcher.cordoned == first
    assert set(first) == {"a"}


def test_the_room_holds_every_pod_of_the_storm_and_stays_closed_until_it_begins() -> None:
    [cluster] = drain_drill(50).scenario.clusters
    assert cluster.group(SPOT).size == 50
    assert cluster.group(HEADROOM).size == headroom_nodes(50)
    assert headroom_nodes(50) * ON_HEADROOM >= 50 * PODS
    assert cluster.group(HEADROOM).taints[0]["effect"] == "NoSchedule"


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


def test_requests_are_counted_for_each_pod_that_left_in_time() -> None:
    assert played(Watcher()).calls_per_pod == 30 / (2 * PODS - 5)


def test_a_message_that_was_not_deleted_comes_again_and_no_other_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("benchmarks.storms.handler.time.monotonic", lambda: now[0])
    queue = Queue()
    for body in ("a", "b"):
        queue.send(body)
    first, second = queue.receive({"MaxNumberOfMessages": 10})["Messages"]
    queue.delete({"ReceiptHandle": first["ReceiptHandle"]})
    assert queue.receive({"MaxNumberOfMessages": 10}) == {}

    now[0] += VISIBILITY_SECONDS
    (again,) = queue.receive({"MaxNumberOfMessages": 10})["Messages"]
    assert again["Body"] == second["Body"] == "b"


def test_a_run_that_fails_costs_its_own_row_only(monkeypatch, tmp_path):
    def fails(*_: object, **__: object) -> Outcome:
        raise RuntimeError("the emulator is gone")

    rows = tmp_path / "rows.md"
    monkeypatch.setattr(command, "storm", fails)
    monkeypatch.setattr(command, "play", lambda *_, **__: played(Watcher()))
    options = ["--rig", "cluster", "--nodes", "2", "--runs", "1", "--rows", str(rows)]
    monkeypatch.setattr(sys, "argv", ["storms", *options])

    assert command.main() == 1
    _, _, ours, theirs, end = rows.read_text().splitlines()
    assert ours.startswith("| Plimsoll | - | - | - |")
    assert theirs.startswith("| 16 threads that evict all | 0% | - | 0% | 5 | 0 |")
    assert end == ""


def test_counts_what_functions_and_their_emulator_take_of_the_processors(tmp_path: Path) -> None:
    worker = tmp_path / "ministack-lambda-drill-DrainsFunction-1"
    starts = (
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'while True: pass', os.environ['WORKER']])"
    )
    with Processes(tmp_path) as processes:
        emulator = subprocess.Popen(
            [sys.executable, "-c", starts],
            start_new_session=True,
            env=os.environ | {"WORKER": str(worker)},
        )
        try:
            end = time.monotonic() + 20
            while not processes.cores() and time.monotonic() < end:
                time.sleep(0.1)
        finally:
            os.killpg(emulator.pid, signal.SIGKILL)
            emulator.wait()
    assert processes.cores() > 0
    assert processes.peaks()["drains"].processes == 1


def test_keeps_processors_busy_until_the_end_of_the_block() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with busy(0.5):
        time.sleep(1)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > before
