from __future__ import annotations

import json
import threading
import time

import pytest

from plimsoll.domain.errors import Refused
from plimsoll_simulation.rigs.simulated.time import EPOCH, VirtualClock
from plimsoll_testbed.rigs.emulated.bus import REACH, Bus


class Events:
    """Stands for EventBridge; it can be made to wait, or to refuse."""

    def __init__(self):
        self.taken = []
        self.heard = []
        self.open = threading.Event()
        self.open.set()
        self.refused = 0

    def put_events(self, Entries):  # noqa: N803 - boto3's own word
        self.open.wait(5)
        self.taken += Entries
        return {"FailedEntryCount": self.refused, "Entries": []}


def event(number):
    return json.dumps(
        {
            "source": "plimsoll.drill",
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "time": "2026-01-01T00:00:00Z",
            "resources": [],
            "detail": {"number": number},
        }
    )


def eventually(holds):
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def bus(events, clock):
    with Bus(events, clock, hears=events.heard.append) as bus:
        yield bus


def test_events_arrive_in_order_and_as_they_were_written(bus, events, clock):
    for number in range(25):
        bus.send(event(number))
    clock.run_until(EPOCH)
    eventually(lambda: len(events.taken) == 25)
    assert [json.loads(entry["Detail"])["number"] for entry in events.taken] == list(range(25))
    assert events.taken[0]["Source"] == "plimsoll.drill"
    eventually(lambda: events.heard == [event(number) for number in range(25)])


def test_it_is_busy_until_what_it_took_must_have_come_to_somebody(bus, events, clock):
    assert not bus.busy
    events.open.clear()
    bus.send(event(1))
    clock.run_until(EPOCH + 2 * REACH)
    assert bus.busy
    events.open.set()
    eventually(lambda: events.taken)
    assert bus.busy

    def at_rest():
        clock.run_until(clock.now() + REACH)
        return not bus.busy

    eventually(at_rest)


def test_a_refused_event_is_an_error_of_the_bus(bus, events, clock):
    events.refused = 1
    bus.send(event(1))
    clock.run_until(EPOCH)
    eventually(lambda: bus.error is not None)
    assert isinstance(bus.error, Refused)
