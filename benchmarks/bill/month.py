"""Counts what a cluster asks of AWS and of its API server, calm and interrupted, in virtual time.

The simulated rig plays the deployed functions on their schedules for three hours: 50 nodes, 500 pods. In
the second hour, and then in the third, everything is counted by function. Calm hours are alike, so a
month is one of them many times; another play interrupts a spot node in the second hour, and what it
asks beyond a calm hour is the price of an interruption. Objects of a fake cluster say less than
those of EKS: lists of nodes and pods are filled up to their size there.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from math import ceil, isclose
from typing import Any, Final

from benchmarks.drills import drill, group, scaled, workload
from plimsoll.adapters.kubernetes import Response
from plimsoll_simulation.rigs.simulated.rig import FaultHooks, Simulation
from plimsoll_simulation.rigs.simulated.time import Invocation
from plimsoll_simulation.scenario.drill import Drill

ON_DEMAND: Final = 10
SPOT: Final = 40
PODS_OF_A_WORKLOAD: Final = 10
WORKLOADS: Final = 50
HOUR: Final = timedelta(hours=1)
COUNTED: Final = 2
"""Hours that are counted, one by one, after the first."""
FUNCTIONS: Final = ("notices", "drains", "sweep", "schedule", "placement")

GZIP_LEVEL: Final = 1
"""With which an API server compresses: https://github.com/kubernetes/kubernetes, responsewriters/writers.go"""
GZIP_FROM: Final = 128 * 1024
"""Smaller answers it leaves as they are."""
EKS_SIZES: Final = {"/api/v1/nodes": 12_000, "/api/v1/pods": 5_600}
"""Bytes of an object on EKS: a Node names fifty images, and managedFields repeat each field."""
HEADERS: Final = 1_000
"""Bytes of a request and an answer beside its body."""
INSTANCE: Final = 5_500
"""Bytes that EC2 says of an instance."""
UNIT_READ: Final = 4_000
UNIT_WRITE: Final = 1_000
ITEM: Final = 500
"""Bytes of an entry of the node index."""
ALIKE: Final = 0.001
"""How far counts of two calm hours may be apart: the hours of a pool are numbers of more or fewer digits."""

type Counts = Mapping[str, Mapping[str, float]]
"""Function -> what it asked for -> how much."""


def month(*, interrupted: bool) -> Drill:
    """Return the play: three hours that end with something, so that they do not end early."""
    timeline = [scaled("180m30s", 11)]
    if interrupted:
        node = {"names": ["spot-m5-1"]}
        timeline += [
            {"at": "70m", "notice": "rebalance-recommendation", "nodes": node},
            {"at": "72m", "notice": "spot-interruption", "nodes": node},
        ]
    return drill(
        horizon="181m",
        # What a function takes before its first call is in the bill by itself.
        latency={"function": "0s"},
        groups=[
            group("base", "on-demand", "m6i", ON_DEMAND, 60),
            group("spot-m5", "spot", "m5", SPOT, 60),
        ],
        objects=[workload(number, PODS_OF_A_WORKLOAD) for number in range(WORKLOADS)],
        timeline=timeline,
    )


class Counting:
    """Counts a play by hour and function."""

    def __init__(self, play: Drill) -> None:
        hooks = FaultHooks(on_call=self._called, on_answer=self._answered)
        self._simulation = Simulation(play, responder="plimsoll", seed=0, hooks=hooks)
        self._zero: datetime | None = None
        self._last: Mapping[str, float] = {}
        self._ends: dict[int, tuple[Invocation, datetime]] = {}
        self._found: dict[tuple[int, str], defaultdict[str, float]] = {}

    def run(self) -> list[Counts]:
        """Play it, and return the counts of its second and third hour."""
        with self._simulation as simulation:
            simulation.run()
        for invocation, end in self._ends.values():
            waited = (end - invocation.started).total_seconds()
            self._add(invocation, {"invocations": 1, "waited seconds": waited})
        return [
            {
                name: {key: round(value, 3) for key, value in sorted(found.items())}
                for name in FUNCTIONS
                if (found := self._found.get((hour, name)))
            }
            for hour in range(1, COUNTED + 1)
        ]

    def _add(self, invocation: Invocation, more: Mapping[str, float]) -> None:
        assert self._zero is not None
        hour = int((invocation.started - self._zero) / HOUR)
        counts = self._found.setdefault((hour, invocation.name), defaultdict(float))
        for name, count in more.items():
            counts[name] += count

    def _called(self, invocation: Invocation) -> None:
        now = self._simulation.clock.now()
        self._zero = self._zero or now.replace(second=0, microsecond=0)
        self._add(invocation, self._last)
        self._last = {}
        self._ends[id(invocation)] = (invocation, now)

    def _answered(self, call: str, act: Callable[[], object], answer: object) -> None:
        if isinstance(answer, Response):
            self._last = _kubernetes(call, answer)
        else:
            self._last = _aws(call, act, answer)


def _kubernetes(call: str, answer: Response) -> Mapping[str, float]:
    text = json.dumps(_as_on_eks(call.partition(" ")[2], answer.body)).encode()
    sent = len(gzip.compress(text, GZIP_LEVEL)) if len(text) >= GZIP_FROM else len(text)
    return {
        "requests to the API server": 1,
        "bytes of the API server": HEADERS + sent,
        "bytes without gzip": HEADERS + len(text),
        "bytes decoded": len(text),
    }


def _as_on_eks(path: str, body: Any) -> Any:
    """Fill objects up to their size: a quarter is their own, so that gzip leaves about a sixth of it."""
    size = EKS_SIZES.get(path)
    if size is None or not isinstance(body, Mapping) or "items" not in body:
        return body
    return {**body, "items": [{**item, "more": _more(item, size)} for item in body["items"]]}


def _more(item: Mapping[str, Any], size: int) -> str:
    missing = max(0, size - len(json.dumps(item)))
    uid = str(item["metadata"].get("uid"))
    own = "".join(sha256(f"{uid}/{n}".encode()).hexdigest() for n in range(missing // 256 + 1))
    return own[: missing // 4] + "f:status" * (missing * 3 // 32)


def _aws(call: str, act: Callable[[], object], answer: object) -> Mapping[str, float]:
    counts: dict[str, float] = {"requests to AWS": 1, "bytes of AWS": HEADERS}
    given = act.args if isinstance(act, partial) else ()
    match call:
        case "dynamodb:BatchGetItem":
            counts["reads"] = len(given[-1]) / 2
            counts["bytes of AWS"] += ITEM * len(given[-1])
        case "dynamodb:BatchWriteItem":
            counts |= {"reads": len(given[0]) / 2, "writes": len(given[0])}
            counts["bytes of AWS"] += 2 * ITEM * len(given[0])
        case "dynamodb:PutItem":
            size = _size(given[-1] if answer is None else answer)
            counts |= {"reads": ceil(size / UNIT_READ), "writes": 2 * ceil(size / UNIT_WRITE)}
            counts["bytes of AWS"] += 2 * size
        case "dynamodb:Query":
            size = _size(answer)
            counts["reads"] = max(0.5, size / UNIT_READ / 2)
            counts["bytes of AWS"] += size
        case "dynamodb:GetItem":
            counts["reads"] = 0.5
        case "sqs:SendMessageBatch":
            counts |= {"requests to SQS": 1, "messages": len(given[-1])}
        case "ec2:DescribeInstances" if isinstance(answer, Mapping):
            counts["bytes of AWS"] += INSTANCE * len(answer)
    return counts


def _size(answer: object) -> int:
    found = answer if isinstance(answer, list) else [answer]
    records = [o for o in found if is_dataclass(o) and not isinstance(o, type)]
    return sum(len(json.dumps(asdict(o), default=str)) for o in records)


def _alike(one: Counts, other: Counts) -> bool:
    return {name: [*found] for name, found in one.items()} == {
        name: [*found] for name, found in other.items()
    } and all(
        isclose(value, other[name][key], rel_tol=ALIKE)
        for name, found in one.items()
        for key, value in found.items()
    )


def calm_and_interrupted() -> Mapping[str, Counts]:
    """Return the counts of a calm hour, and what an interruption adds to them.

    Raises:
        ValueError: two calm hours differ.
    """
    second, third = Counting(month(interrupted=False)).run()
    if not _alike(second, third):
        raise ValueError(f"two calm hours differ: {second} and {third}")
    with_one, _ = Counting(month(interrupted=True)).run()
    more = {
        name: {
            key: round(value - second.get(name, {}).get(key, 0), 3) for key, value in found.items()
        }
        for name, found in with_one.items()
    }
    return {"calm hour": second, "interruption": more}
