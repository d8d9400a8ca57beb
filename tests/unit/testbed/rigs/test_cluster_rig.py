"""What the cluster rig does beside the drill's time: retry queues, outages, kills, and what watches show."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Literal

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.rigs.threads import RetryQueue
from plimsoll_simulation.scenario.problems import Place
from plimsoll_simulation.scenario.timeline import FaultEntry
from plimsoll_testbed.rigs.cluster.outage import Outages
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


@dataclass
class Registry:
    """An API server that is away for the first few requests."""

    away: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    joined: list[list[str]] = field(default_factory=list)

    def join(self, nodes: list[str]) -> None:
        self.gate.wait(SECONDS)
        if self.away:
            self.away -= 1
            raise Temporary("connection refused")
        self.joined.append(list(nodes))


def test_an_errand_is_tried_again_until_the_api_server_is_back_and_is_open_until_then():
    registry = Registry(away=2)
    retry_queue = RetryQueue[str]("arrivals", registry.join)
    retry_queue.start()
    retry_queue.ask("a")
    assert retry_queue.open == 1
    registry.gate.set()
    eventually(lambda: retry_queue.open == 0)
    retry_queue.end()
    assert registry.joined == [["a"]]
    assert retry_queue.error is None


def test_an_errand_that_is_refused_ends_the_drill_and_not_only_its_thread():
    def refuse(_: list[str]) -> None:
        raise Refused("there is no such node")

    retry_queue = RetryQueue[str]("departures", refuse)
    retry_queue.start()
    retry_queue.ask("a")
    eventually(lambda: retry_queue.error is not None)
    assert str(retry_queue.error) == "there is no such node"


def test_a_queue_ends_however_soon_its_thread_wakes_up(monkeypatch: pytest.MonkeyPatch):
    retry_queue = RetryQueue[str]("arrivals", lambda _: None)
    told = retry_queue._waiting

    def put(what: str | None) -> None:
        told.put(what)
        time.sleep(0.2)

    waiting = SimpleNamespace(get=told.get, empty=told.empty, put=put)
    monkeypatch.setattr(retry_queue, "_waiting", waiting)
    retry_queue.start()
    ending = threading.Thread(target=retry_queue.end, daemon=True)
    ending.start()
    ending.join(SECONDS)
    assert not ending.is_alive()


@dataclass
class Plane:
    """A control plane whose API server starts in no time, or in the time given."""

    start_takes: float = 0.0
    done: list[tuple[str, float]] = field(default_factory=list)

    def stop_api(self) -> None:
        self.done.append(("stop", time.monotonic()))

    def start_api(self) -> None:
        time.sleep(self.start_takes)
        self.done.append(("start", time.monotonic()))

    @property
    def words(self) -> list[str]:
        return [what for what, _ in self.done]


def outages_of(plane: Plane, said: list[str] | None = None) -> Outages:
    return Outages(plane, SystemClock(), (said if said is not None else []).append)  # type: ignore[arg-type] # what it uses of a control plane


def in_seconds(seconds: float):
    return SystemClock().now() + timedelta(seconds=seconds)


def test_the_api_server_answers_again_when_the_outage_ends_though_its_start_takes_time():
    plane = Plane(start_takes=0.3)
    said: list[str] = []
    outages = outages_of(plane, said)
    assert outages.rehearse() >= 0.3
    began = time.monotonic()
    outages.begin(in_seconds(1))
    assert outages.lasting
    eventually(lambda: not outages.lasting)
    assert plane.words == ["stop", "start", "stop", "start"]
    assert 0.9 <= plane.done[-1][1] - began < 2
    assert len(said) == 1


def test_outages_that_overlap_are_one_and_end_with_the_later():
    plane = Plane()
    outages = outages_of(plane)
    began = time.monotonic()
    outages.begin(in_seconds(0.8))
    outages.begin(in_seconds(0.2))
    eventually(lambda: not outages.lasting)
    assert plane.words == ["stop", "start"]
    assert plane.done[-1][1] - began >= 0.7


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


def test_all_processes_of_the_function_and_no_others_are_killed_when_the_fault_begins(emulator):
    drains = [emulator.start("DrainsFunction") for _ in range(2)]
    notices = emulator.start("NoticesFunction")
    said: list[str] = []
    clock = SystemClock()
    with Kills(emulator, 7, clock, said.append) as kills:
        kills.begin(fault(0.2), clock.now())
        eventually(lambda: all(process.poll() == -9 for process in drains))
    assert notices.poll() is None
    assert kills.killed == len(said) == 2
    assert kills.error is None


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


def test_what_is_shown_is_what_was_told_last():
    shown = WatchedStore()
    indexes = Indexes(shown)
    shown.show("pods", "ADDED", pod("web-0", "1"), now=NOW)
    shown.show("pods", "MODIFIED", pod("web-0", "1", "a"), now=NOW)
    assert shown.get("pods", "shop", "web-0") == pod("web-0", "1", "a")
    assert list(indexes.on_node("a")) == [pod("web-0", "1", "a")]
    shown.show("pods", "DELETED", pod("web-0", "1", "a"), now=NOW)
    assert list(shown.all("pods")) == list(indexes.on_node("a")) == []


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
