"""Threads that are kept, and the clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC
from functools import partial

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.workers import THREADS, SerialWorkers, ThreadWorkers
from plimsoll.services.ports import Workers


@pytest.fixture(params=["threads", "serial"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    if request.param == "serial":
        yield SerialWorkers()
        return
    threads = ThreadWorkers()
    yield threads
    threads.close()


def test_answers_come_in_the_order_of_the_tasks(workers: Workers) -> None:
    assert list(workers.run([partial(abs, -i) for i in range(40)])) == list(range(40))


def test_nothing_to_do_is_nothing(workers: Workers) -> None:
    assert list(workers.run([])) == []


def test_what_one_task_raises_is_its_answer_and_stops_no_other(workers: Workers) -> None:
    first, failed, last = workers.run([partial(int, text) for text in ("1", "two", "3")])
    assert (first, last) == (1, 3)
    assert isinstance(failed, ValueError)


def test_as_many_tasks_as_threads_run_side_by_side() -> None:
    workers, together = ThreadWorkers(), threading.Barrier(THREADS, timeout=5)
    assert set(workers.run([together.wait] * THREADS)) == set(range(THREADS))
    workers.close()


def test_what_is_done_beside_goes_on_until_its_context_ends_and_not_longer() -> None:
    clock, done = SystemClock(), threading.Semaphore(0)
    with clock.repeating(done.release, 0.001):
        assert all(done.acquire(timeout=5) for _ in range(3))
    while done.acquire(blocking=False):
        pass
    clock.sleep(0.05)
    assert not done.acquire(blocking=False)


def test_a_call_that_is_under_way_beside_ends_before_its_context_does() -> None:
    begun, ended = threading.Event(), []

    def act() -> None:
        begun.set()
        SystemClock().sleep(0.05)
        ended.append(True)

    with SystemClock().repeating(act, 0.001):
        assert begun.wait(timeout=5)
    assert ended


def test_the_clock_is_in_utc_and_waits() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    clock.sleep(-1)
    assert before.tzinfo is UTC
    assert clock.now() > before
