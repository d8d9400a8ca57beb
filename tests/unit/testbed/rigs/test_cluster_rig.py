"""What would hide a failure of a rig: errors of its threads, complaints of its functions, and ends that are heard late."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.rigs.threads import RetryQueue
from plimsoll_simulation.scenario.problems import Place
from plimsoll_simulation.scenario.timeline import FaultEntry
from plimsoll_testbed.rigs.emulated.emulator import is_complaint
from plimsoll_testbed.rigs.emulated.kills import Kills
from plimsoll_testbed.rigs.watched_store import WatchedStore

SECONDS = 10.0
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def eventually(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def test_an_errand_that_is_refused_ends_the_drill_and_not_only_its_thread():
    def refuse(_: list[str]) -> None:
        raise Refused("there is no such node")

    retry_queue = RetryQueue[str]("departures", refuse)
    retry_queue.start()
    retry_queue.ask("a")
    eventually(lambda: retry_queue.error is not None)
    assert str(retry_queue.error) == "there is no such node"


@dataclass
class Emulator:
    """Runs functions as processes that would sleep for a minute."""

    running: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def start(self, function: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.running.setdefault(function, []).append(process)
        return process

    def workers(self, function: str) -> Sequence[int]:
        return [p.pid for p in self.running.get(function, ()) if p.poll() is None]


@pytest.fixture
def emulator():
    emulator = Emulator()
    yield emulator
    for processes in emulator.running.values():
        for process in processes:
            process.kill()
            process.wait()


def fault(seconds: float, function: Literal["drains", "notices"] = "drains") -> FaultEntry:
    return FaultEntry(
        place=Place(file="drill.yaml", line=1),
        at=timedelta(0),
        fault="function-killed",
        lasts=timedelta(seconds=seconds),
        function=function,
    )


def test_only_after_a_kill_a_process_that_died_is_explained(emulator):
    clock = SystemClock()
    complaint = '{"errorMessage": "Worker process died"}'
    with Kills(emulator, 7, clock, print) as kills:
        assert not kills.explain(complaint)
        emulator.start("DrainsFunction")
        kills.begin(fault(0.1), clock.now())
        eventually(lambda: kills.killed)
        assert kills.explain(complaint)
        assert kills.explain("Task timed out after 30.00 seconds")
        assert not kills.explain('{"errorMessage": "No module named plimsoll"}')


def pod(name: str, uid: str, node: str | None = None):
    spec = {} if node is None else {"nodeName": node}
    return {"metadata": {"namespace": "shop", "name": name, "uid": uid}, "spec": spec}


def test_the_end_of_an_old_pod_that_is_heard_late_takes_nothing_from_the_new_one():
    shown = WatchedStore()
    indexes = Indexes(shown)
    shown.show("pods", "ADDED", pod("cart-0", "1", "a"), now=NOW)
    shown.show("pods", "ADDED", pod("cart-0", "2", "b"), now=NOW)
    shown.show("pods", "DELETED", pod("cart-0", "1", "a"), now=NOW)
    assert shown.get("pods", "shop", "cart-0") == pod("cart-0", "2", "b")
    assert [list(indexes.on_node(node)) for node in "ab"] == [[], [pod("cart-0", "2", "b")]]


@pytest.mark.parametrize(
    ("line", "complains"),
    [
        ('{"level":"WARNING","message":"notice comes back","exception":"read timed out"}', False),
        ('{"level":"ERROR","message":"reconcile failed","exception_name":"KeyError"}', True),
        ('{"level":"ERROR","message":"reconcile failed","exception_name":"Temporary"}', False),
        ("Lambda drill-Drains timed out after 30s", True),
        ("Lambda drill-Drains took 12 ms", False),
    ],
)
def test_a_function_that_failed_is_complained_of_and_one_that_comes_back_is_not(line, complains):
    assert is_complaint(line, ["timed out"]) == complains
