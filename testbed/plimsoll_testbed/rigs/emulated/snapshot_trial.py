"""A total-queue test of the deployed service: what is acknowledged is accounted for, whatever happens.

Agents with their real spool and client tell of clusters through a faulty wire, minute after minute as
fast as they can. In the middle the service is away for each of them, longer than the spool can hold;
they are started anew meanwhile, and lose a file of their spool. Then the faults end, the queue is
worked off, and each snapshot is looked for: in its minute, or set aside with a reason.

https://github.com/jepsen-io/jepsen/blob/main/jepsen/src/jepsen/checker.clj (total-queue)
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, override

import msgspec

from plimsoll_service.domain.access import Role
from plimsoll_service.domain.snapshots import Arrival, Span
from plimsoll_service.services.history import rollups
from plimsoll_testbed.measure.total_queue import TotalQueue
from plimsoll_testbed.rigs.emulated.faulty_wire import Fault, FaultyWire
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from plimsoll_testbed.rigs.emulated.trial_agent import MINUTE, TrialAgent
from plimsoll_testbed.scenario.drill import read_drill

EXAMPLE: Final = Path("examples", "one-node.yaml")
HOUR: Final = timedelta(hours=1)
VISIBILITY_SECONDS: Final = 31
"""Of the queue meanwhile: what a killed worker held comes back sooner, and never while it works."""
HELD_SECONDS: Final = (0, 0, 3)
"""By how long the queue delays messages: one that comes later may overtake."""
POLL_SECONDS: Final = 0.5

type Told = tuple[str, int]
"""A cluster and the number of one of its minutes: what is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How much is played."""

    clusters: int = 4
    """Of two tenants in turn."""
    minutes: int = 40
    """Of each cluster; a snapshot each."""
    seed: int = 16
    seconds: float = 600.0
    """The most that it may take. What is not worked off by then is counted as waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checker found."""

    queue: TotalQueue[Told]
    taken: int
    given_up: Mapping[str, int]
    """Why an agent gave snapshots up before they were acknowledged -> how many."""
    set_aside: Mapping[Told, str]
    """In the dead-letter queue -> its reason."""
    miscounted: AbstractSet[tuple[str, datetime]]
    """Hours that do not hold each of their minutes once."""
    waiting: int
    """Messages that were still to be worked off when the time was over."""
    faults: Mapping[Fault, int]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether all is worked off and accounted for, once."""
        wrong = self.queue.lost or self.queue.unexpected or self.miscounted
        return not (wrong or self.waiting)

    @override
    def __str__(self) -> str:
        """Return the report, for people."""
        given_up = _counts(self.given_up) or "none"
        # the error, the snapshot, and what is wrong with it: "its base 5 never came"
        words = (re.sub(r" \d+", "", each.rpartition(": ")[2]) for each in self.set_aside.values())
        reasons = _counts(Counter(words))
        accounts = (
            f"{len(self.set_aside)} set aside{f' ({reasons})' if reasons else ''}, "
            f"{len(self.miscounted)} hours miscounted, {self.waiting} messages waiting after "
            f"{self.seconds:.0f} s"
        )
        return "\n".join(
            [
                f"{self.taken} snapshots taken, given up before they were sent: {given_up}",
                *(f"{count} {fault}" for fault, count in self.faults.items()),
                accounts,
                str(self.queue),
            ]
        )


@contextmanager
def faulty_rig(seed: int) -> Iterator[tuple[ServiceRig, FaultyWire]]:
    """Deploy the service with a wire before its table and its queue, without faults as yet.

    Raises:
        Refused: something is not installed or built, or the deployment failed.
    """
    with (
        FaultyWire(seed) as wire,
        ServiceRig(emulator=MiniStack(endpoints=wire.endpoints)) as rig,
    ):
        wire.connect(rig.emulator.url)
        yield rig, wire


def play(rig: ServiceRig, wire: FaultyWire, trial: Trial) -> Verdict:
    """Play a trial on a deployed service whose functions reach their services through the wire.

    Raises:
        PlimsollError: the emulator does not answer.
    """
    with TemporaryDirectory(prefix="plimsoll-trial-") as folder:
        return _Play(rig=rig, wire=wire, trial=trial, folder=Path(folder)).play()


@dataclass(slots=True, kw_only=True)
class _Play:
    rig: ServiceRig
    wire: FaultyWire
    trial: Trial
    folder: Path
    _end: float = field(init=False)
    _sqs: Any = field(init=False)
    _draw: Random = field(init=False)

    def play(self) -> Verdict:
        began = time.monotonic()
        self._end = began + self.trial.seconds
        self._sqs = self.rig.emulator.client("sqs")
        self._draw = Random(self.trial.seed)  # noqa: S311 - a trial, no secret
        usual = self._attribute("ArrivalsQueue", "VisibilityTimeout")
        self._configure(VisibilityTimeout=VISIBILITY_SECONDS)
        agents = [self._agent(number) for number in range(self.trial.clusters)]
        try:
            self.wire.begin(partial(self.rig.emulator.workers, "MetricsFunction"))
            self._together(agents, self._tell)
        finally:
            self.wire.heal()
            self._configure(DelaySeconds=0)
        self._together(agents, self._empty)
        while (waiting := self._waiting()) and time.monotonic() < self._end:
            time.sleep(POLL_SECONDS)
        self._configure(VisibilityTimeout=int(usual))
        return self._verdict(agents, waiting, time.monotonic() - began)

    def _agent(self, number: int) -> TrialAgent:
        tenant, name = f"trial-{number % 2}", f"c-{number}"
        root = self.rig.emulator.checkout.root
        cluster, service = self.rig.enrolled(
            tenant, name, Role.AGENT, url=self.rig.url_through(self.wire.url)
        )
        hours = (
            self.trial.minutes // 60 + 2
        )  # an hour ends in the middle, and the future is refused
        return TrialAgent(
            tenant=tenant,
            cluster=cluster,
            service=service,
            drill=read_drill(root / EXAMPLE),
            start=Span.HOUR.start(self.rig.clock.now()) - hours * HOUR + HOUR / 2,
            folder=self.folder / name,
        )

    def _together(self, agents: list[TrialAgent], do: Callable[[TrialAgent, int], None]) -> None:
        with ThreadPoolExecutor(len(agents)) as threads:
            for done in [threads.submit(do, agent, n) for n, agent in enumerate(agents)]:
                done.result()

    def _tell(self, agent: TrialAgent, number: int) -> None:
        """Tell minute after minute; in the third quarter the service is away."""
        away = range(self.trial.minutes // 2, self.trial.minutes * 3 // 4)
        middle = away[len(away) // 2]
        for minute in range(self.trial.minutes):
            if time.monotonic() > self._end:
                return
            agent.away = minute in away
            if minute == middle:
                agent.restart()
            agent.take()
            if minute == away[-1]:
                agent.lose_base()
            agent.send()
            if number == 0 and minute % 4 == 0:
                self._configure(DelaySeconds=self._draw.choice(HELD_SECONDS))

    def _empty(self, agent: TrialAgent, _: int) -> None:
        agent.away = False
        while agent.telling.spool.entries and time.monotonic() < self._end:
            agent.send()

    def _waiting(self) -> int:
        names = ("", "NotVisible", "Delayed")
        return sum(
            int(self._attribute("ArrivalsQueue", f"ApproximateNumberOfMessages{name}"))
            for name in names
        )

    def _verdict(self, agents: list[TrialAgent], waiting: int, seconds: float) -> Verdict:
        aside = dict(self._set_aside({agent.cluster: agent for agent in agents}))
        found, miscounted = set(aside), set[tuple[str, datetime]]()
        for agent in agents:
            last = agent.start + (self.trial.minutes + 1) * MINUTE
            data = self.rig.data(agent.tenant)
            minutes = rollups(data, agent.cluster, Span.MINUTE, agent.start, last)
            found |= {(agent.cluster, round((m.start - agent.start) / MINUTE)) for m in minutes}
            held = Counter(Span.HOUR.start(minute.start) for minute in minutes)
            hours = {
                hour.start: hour.samples
                for hour in rollups(data, agent.cluster, Span.HOUR, agent.start - HOUR, last)
            }
            closed = sorted(held)[:-1]
            miscounted |= {(agent.cluster, at) for at in closed if hours.get(at) != held[at]}
        return Verdict(
            queue=TotalQueue(
                {(agent.cluster, m) for agent in agents for m in agent.minutes.values()},
                {(agent.cluster, m) for agent in agents for m in agent.acknowledged},
                found,
            ),
            taken=self.trial.minutes * len(agents),
            given_up=sum((agent.counted.given_up for agent in agents), Counter[str]()),
            set_aside=aside,
            miscounted=miscounted,
            waiting=waiting,
            faults=dict(self.wire.faults),
            seconds=seconds,
        )

    def _set_aside(self, agents: Mapping[str, TrialAgent]) -> Mapping[Told, str]:
        """Return what lies in the dead-letter queue of these agents, and take it out."""
        found: dict[Told, str] = {}
        url = self.rig.emulator.outputs["ArrivalsDeadQueue"]
        while time.monotonic() < self._end:
            answer = self._sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            )
            for message in answer.get("Messages", ()):
                arrival = msgspec.json.decode(message["Body"], type=Arrival)
                agent = agents.get(arrival.cluster)
                if agent is not None:
                    minute = agent.minutes.get((arrival.epoch, arrival.sequence), -1)
                    why = message.get("MessageAttributes", {}).get("reason", {})
                    found[arrival.cluster, minute] = why.get("StringValue", "received too often")
                self._sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            if not answer.get("Messages"):
                break
        return found

    def _attribute(self, queue: str, name: str) -> str:
        url = self.rig.emulator.outputs[queue]
        found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        value: str = found["Attributes"][name]
        return value

    def _configure(self, **attributes: int) -> None:
        self._sqs.set_queue_attributes(
            QueueUrl=self.rig.emulator.outputs["ArrivalsQueue"],
            Attributes={name: str(value) for name, value in attributes.items()},
        )


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counted.items())
