from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest

from plimsoll_simulation.rigs.simulated.time import EPOCH, GreenletWorkers, Invocation, VirtualClock


def after_start(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def seconds(clock: VirtualClock) -> float:
    return (clock.now() - EPOCH).total_seconds()


class Ticking:
    """A source that is due every `every` seconds."""

    def __init__(self, every: float, log: list[str]) -> None:
        self.every, self.log = timedelta(seconds=every), log
        self.next = EPOCH + self.every

    def step(self, now: datetime) -> datetime | None:
        while self.next <= now:
            self.log.append(f"step {(self.next - EPOCH).total_seconds():g}")
            self.next += self.every
        return self.next


def test_sleeping_code_interleaves_by_time_and_then_by_who_asked_first():
    clock = VirtualClock()
    log: list[str] = []

    def run(name: str, pause: float) -> Callable[[], None]:
        def body() -> None:
            for _ in range(2):
                clock.sleep(pause)
                log.append(f"{name} {seconds(clock):g}")

        return body

    clock.spawn(after_start(0), run("slow", 2), "slow")
    clock.spawn(after_start(0), run("fast", 1), "fast")
    clock.run_until(after_start(10))
    # At 2 the slow one goes first: it asked for that moment at 0, the fast one only at 1.
    assert log == ["fast 1", "slow 2", "fast 2", "slow 4"]
    assert seconds(clock) == 10


def test_a_source_moves_before_an_invocation_at_the_same_instant():
    clock = VirtualClock()
    log: list[str] = []
    clock.follow(Ticking(1, log))
    clock.spawn(after_start(2), lambda: log.append("call 2"), "call")
    clock.run_until(after_start(2))
    assert log == ["step 1", "step 2", "call 2"]


def test_workers_overlap_in_virtual_time_up_to_their_bound():
    clock = VirtualClock()
    workers = GreenletWorkers(clock, parallel=4)
    found: list[object] = []

    def call(number: int) -> int:
        clock.sleep(1)
        if number == 3:
            raise ValueError("three")
        return number

    def run() -> None:
        found.extend(workers.run([partial(call, n) for n in range(8)]))
        found.append(seconds(clock))

    clock.spawn(after_start(0), run, "run")
    clock.run_until(after_start(100))
    assert [str(f) for f in found] == ["0", "1", "2", "three", "4", "5", "6", "7", "2.0"]


def test_a_killed_run_changes_nothing_more_not_even_in_its_cleaning_up():
    clock = VirtualClock()
    done: list[Invocation] = []
    ended: list[bool] = []
    events: list[str] = []

    def call(what: str) -> None:
        clock.sleep(1)
        events.append(what)
        clock.called("call")

    def run() -> None:
        try:
            call("one")
            call("two")
            call("three")
        except Exception:  # noqa: BLE001 - must not catch a kill
            events.append("caught")
        finally:
            call("clean up")

    def kill_after_two(invocation: Invocation) -> None:
        if invocation.calls == 2:
            invocation.kill()

    clock.on_call = kill_after_two
    invocation = clock.spawn(after_start(0), run, "victim", done.append)
    clock.spawn(after_start(60), lambda: ended.append(True), "later")
    clock.run_until(after_start(100))
    assert events == ["one", "two"]
    assert done == [invocation]
    assert (invocation.finished, invocation.error, invocation.calls) == (True, None, 2)
    assert ended == [True]


def test_what_goes_round_in_circles_is_found_out():
    class Stuck:
        def step(self, now: datetime) -> datetime | None:
            return now

    clock = VirtualClock()
    clock.follow(Stuck())
    with pytest.raises(RuntimeError, match="time stands still"):
        clock.run_until(after_start(1))


def test_what_is_done_beside_dies_with_its_invocation():
    clock, acts = VirtualClock(), list[float]()

    def run() -> None:
        with clock.repeating(lambda: acts.append(seconds(clock)), 1):
            clock.sleep(10)

    invocation = clock.spawn(after_start(0), run, "run")
    clock.run_until(after_start(2))
    invocation.kill()
    clock.run_until(after_start(20))

    assert acts == [1, 2]
    assert invocation.finished
