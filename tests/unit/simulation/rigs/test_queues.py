from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from plimsoll.domain.errors import BadInput, Temporary
from plimsoll.services.retry_policy import NOTICES, WAKE_UPS
from plimsoll_simulation.rigs.simulated.queues import BATCH, SimulatedQueue
from plimsoll_simulation.rigs.simulated.time import EPOCH, Invocation, VirtualClock


class Function:
    """Notes when it was called with what, and answers as it is told."""

    def __init__(self, clock: VirtualClock, answer: Callable[[str], object]) -> None:
        self.clock, self.answer = clock, answer
        self.calls: list[tuple[float, list[str]]] = []

    def receive(self, bodies: Sequence[str], _run: str) -> Sequence[object]:
        self.calls.append(((self.clock.now() - EPOCH).total_seconds(), list(bodies)))
        return [self.answer(body) for body in bodies]


Queue = partial(SimulatedQueue, notice_seconds=0.3, function_seconds=0.2)


def notices(answer: Callable[[str], object]) -> tuple[VirtualClock, SimulatedQueue, Function]:
    clock = VirtualClock()
    function = Function(clock, answer)
    queue = Queue(clock=clock, function="notices", handle=function.receive, policy=NOTICES,
                  batch=BATCH)  # fmt: skip
    return clock, queue, function


def test_messages_of_one_instant_come_in_batches_of_ten():
    clock, queue, function = notices(lambda _: None)
    for number in range(12):
        queue.send(str(number))
    clock.sleep(10)
    assert [(at, len(bodies)) for at, bodies in function.calls] == [(0.5, 10), (0.5, 2)]
    assert queue.in_flight == 0


def test_a_notice_that_failed_comes_back_within_seconds_and_alone():
    answers = iter([Temporary("not now"), Temporary("not now"), None])
    clock, queue, function = notices(lambda body: next(answers) if body == "bad" else None)
    queue.send("good")
    queue.send("bad")
    clock.sleep(60)
    # At 0.5 both; one second and the way, then two seconds and the way later the bad one again.
    assert function.calls == [(0.5, ["good", "bad"]), (1.7, ["bad"]), (3.9, ["bad"])]
    assert queue.in_flight == 0


def test_what_no_attempt_can_mend_is_set_aside_with_its_reason():
    clock, queue, function = notices(lambda _: BadInput("no JSON"))
    queue.send("{")
    clock.sleep(600)
    assert len(function.calls) == 1
    assert [(body, str(why)) for body, why in queue.set_aside] == [("{", "no JSON")]
    assert queue.in_flight == 0


def test_a_batch_whose_run_was_killed_comes_back_after_the_visibility_timeout():
    clock, queue, function = notices(lambda _: clock.called("any"))
    killed: list[Invocation] = []

    def kill_the_first(invocation: Invocation) -> None:
        if not killed:
            killed.append(invocation)
            invocation.kill()

    clock.on_call = kill_the_first
    queue.send("one")
    clock.sleep(60)
    assert [at for at, _ in function.calls] == [0.5, 30.7]
    assert queue.in_flight == 0


def test_a_wake_up_comes_after_its_delay_and_with_a_holder_of_its_own():
    clock = VirtualClock()
    worked: list[tuple[float, str, str]] = []

    def work(clusters: Sequence[str], holder: str) -> Sequence[object]:
        worked.append(((clock.now() - EPOCH).total_seconds(), clusters[0], holder))
        return [None]

    queue = Queue(clock=clock, function="drains", handle=work, policy=WAKE_UPS)
    queue.send("harbor", delay_seconds=10)
    queue.send("harbor")
    clock.run_until(EPOCH + timedelta(seconds=60))
    assert [(at, cluster) for at, cluster, _ in worked] == [(0.5, "harbor"), (10.5, "harbor")]
    assert len({holder for *_, holder in worked}) == 2
    assert queue.running == 0
