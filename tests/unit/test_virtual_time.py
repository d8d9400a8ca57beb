from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest

from plimsoll_testbed.rigs.simulated.time import EPOCH, GreenletWorkers, Invocation, VirtualClock


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


def test_a_touched_source_is_stepped_before_time_goes_on():
    clock = VirtualClock()
    seen = []

    class Lazy:
        def step(self, now: datetime) -> datetime | None:
            seen.append(now)
            return None

    lazy = Lazy()
    clock.follow(lazy)
    clock.run_until(after_start(1))

    def change() -> None:
        clock.touch(lazy)
        clock.sleep(5)

    clock.spawn(after_start(3), change, "change")
    clock.run_until(after_start(10))
    assert seen == [after_start(0), after_start(3)]


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


def test_workers_with_nothing_to_do_return_at_once():
    assert GreenletWorkers(VirtualClock()).run([]) == []


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


def test_a_kill_ends_all_lanes_of_the_invocation():
    clock = VirtualClock()
    workers = GreenletWorkers(clock)
    events: list[int] = []

    def call(number: int) -> None:
        clock.sleep(number)
        events.append(number)
        clock.called("call")

    def kill(invocation: Invocation) -> None:
        if invocation.calls == 2:
            invocation.kill()

    clock.on_call = kill
    invocation = clock.spawn(
        after_start(0), lambda: workers.run([partial(call, n) for n in (1, 2, 3, 4)]), "victim"
    )
    clock.run_until(after_start(100))
    assert events == [1, 2]
    assert invocation.finished


def test_an_exception_ends_the_invocation_and_not_the_drill():
    clock = VirtualClock()

    def fail() -> None:
        clock.sleep(1)
        raise ValueError("no")

    invocation = clock.spawn(after_start(0), fail, "fails")
    clock.run_until(after_start(5))
    assert str(invocation.error) == "no"


def test_outside_any_invocation_sleep_moves_the_whole_world():
    clock = VirtualClock()
    log: list[str] = []
    clock.follow(Ticking(1, log))
    clock.sleep(2.5)
    assert log == ["step 1", "step 2"]
    assert seconds(clock) == 2.5


def test_what_goes_round_in_circles_is_found_out():
    class Stuck:
        def step(self, now: datetime) -> datetime | None:
            return now

    clock = VirtualClock()
    clock.follow(Stuck())
    with pytest.raises(RuntimeError, match="time stands still"):
        clock.run_until(after_start(1))


def test_close_drops_what_still_sleeps():
    clock = VirtualClock()
    log: list[str] = []

    def run() -> None:
        try:
            clock.sleep(100)
        finally:
            log.append("left")

    clock.spawn(after_start(0), run, "sleeper")
    clock.run_until(after_start(1))
    clock.close()
    assert log == ["left"]


def test_what_is_done_beside_goes_on_while_its_invocation_sleeps_and_ends_with_its_context():
    clock, log = VirtualClock(), list[str]()

    def act() -> None:
        log.append(f"begins {seconds(clock):g}")
        clock.sleep(0.5)
        log.append(f"ends {seconds(clock):g}")

    def run() -> None:
        with clock.repeating(act, 1):
            clock.sleep(2.7)
        log.append(f"over {seconds(clock):g}")

    clock.spawn(after_start(0), run, "run")
    clock.run_until(after_start(10))

    assert log == ["begins 1", "ends 1.5", "begins 2.5", "ends 3", "over 3"]


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
