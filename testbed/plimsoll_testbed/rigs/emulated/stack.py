"""The deployed stack, as the emulated rig uses it: clusters registered, functions called, logs read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, override

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.domain.errors import Refused
from plimsoll.domain.registry import Cluster, ClusterKind, Mode, ResyncRequest
from plimsoll.domain.reports import Report
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.sentences import sentence
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.simulated.time import EPOCH
from plimsoll_testbed.rigs.emulated.awsfleet import FleetServer
from plimsoll_testbed.rigs.emulated.emulator import REGION, Emulator

SHOWN: Final = ("acted", "action not done")
"""Messages of the functions' logs that people want to see while a drill runs."""
_NEVER: Final = datetime.max.replace(tzinfo=UTC).isoformat()


class _EmulatedAws(Aws):
    """AWS clients that talk to the emulator."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__(REGION)
        self._emulator = emulator

    @override
    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._emulator.client(service)
            return self._clients[service]


def resync(emulator: Emulator, cluster: str) -> None:
    """Run the function `sweep` once, so that the node index is there before the first notice.

    Raises:
        Refused: it failed.
    """
    request = ResyncRequest(cluster=cluster, label=cluster, until=_NEVER)
    record = {"messageId": "first", "body": request.message()}
    said = _answer(emulator, "SweepFunction", {"Records": [record]})
    if json.loads(said)["batchItemFailures"]:
        raise Refused(f"the first resync failed: {said}")


def place(emulator: Emulator) -> None:
    """Run the function `placement` once, so that labels and guards are there at time 0.

    Raises:
        Refused: it failed.
    """
    _answer(emulator, "PlacementFunction", {})


def _answer(emulator: Emulator, function: str, event: Mapping[str, Any]) -> str:
    answer = emulator.client("lambda").invoke(
        FunctionName=emulator.outputs[function], Payload=json.dumps(event)
    )
    said: str = answer["Payload"].read().decode(errors="replace")
    if "FunctionError" in answer:
        raise Refused(f"{function} failed before time 0: {said}")
    return said


class Stack:
    """A stack that was deployed on the emulator."""

    def __init__(self, emulator: Emulator, aws: FleetServer) -> None:
        self._emulator = emulator
        self._fleet = aws
        self._aws = _EmulatedAws(emulator)
        self._read = 0

    def register(
        self,
        name: str,
        way: Access,
        mode: Mode = Mode.ACT,
        *,
        role: str | None = None,
        external_id: str | None = None,
    ) -> None:
        """Register a cluster as a user would: by endpoint and CA, with its token in a secret."""
        secret = f"plimsoll/{name}"
        self._emulator.client("secretsmanager").create_secret(
            Name=secret, SecretString=json.dumps({"token": way.token})
        )
        self._registry.add(
            Cluster(
                name=name,
                kind=ClusterKind.ENDPOINT,
                mode=mode,
                region=REGION,
                endpoint=way.url,
                ca=way.ca,
                secret=secret,
                role=role,
                external_id=external_id,
                added=EPOCH,
            )
        )

    def remove(self, name: str) -> None:
        """Take a cluster out of the registry, and its secret away: it may be registered again."""
        self._registry.remove(name)
        self._emulator.client("secretsmanager").delete_secret(
            SecretId=f"plimsoll/{name}", ForceDeleteWithoutRecovery=True
        )

    @property
    def _registry(self) -> DynamoRegistry:
        return DynamoRegistry(self._aws, self._emulator.outputs["ClustersTable"])

    def reports(self, cluster: str) -> Sequence[Report]:
        """Return what the functions reported of a cluster, newest first."""
        table = self._emulator.outputs["ReportsTable"]
        return DynamoReports(self._aws, table).list(cluster, limit=10_000)

    def hand_in(self, clusters: Sequence[str], measurement: Measurement) -> None:
        """Give in the reports that the functions wrote, and the calls that the fleet answered."""
        for cluster in clusters:
            for report in reversed(self.reports(cluster)):
                measurement.report(report.interruption, (one.timed for one in report.reasons))
        for operation, times in self._fleet.calls.items():
            for _ in range(times):
                measurement.aws_call(operation)

    @property
    def log(self) -> Path:
        """Where the emulator logs, with the output of every function in it."""
        return self._emulator.log

    @property
    def asked(self) -> int:
        """How often EC2, Auto Scaling and EKS were asked so far: while nothing is going, by resyncs."""
        return sum(self._fleet.calls.values())

    def complaints(self) -> Sequence[str]:
        """Return what the emulator's log says of functions that failed."""
        return self._emulator.complaints()

    def news(self) -> Iterator[tuple[datetime | None, str]]:
        """Yield what the functions logged since the last call: when, if it says so, and in words.

        A function's log can be read when the function ends, many seconds after its actions.
        """
        with self.log.open(errors="replace") as log:
            log.seek(self._read)
            text = log.read()
        whole, _, rest = text.rpartition("\n")
        self._read += len(text.encode()) - len(rest.encode())
        for line in whole.splitlines():
            yield from _told(line)


def _told(line: str) -> Iterator[tuple[datetime | None, str]]:
    start = line.find("{")
    if start < 0:
        return
    try:
        entry = json.loads(line[start:])
    except ValueError:
        return
    if not isinstance(entry, dict):
        return
    at = _logged(entry)
    if entry.get("level") == "ERROR":
        error = str(entry.get("exception", "")).rpartition("\n")[2]
        yield at, f"error: {entry.get('message')}: {error}"
    elif entry.get("message") in SHOWN:
        yield at, sentence(entry["message"], entry)


def _logged(entry: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp"))).astimezone()
    except ValueError:
        return None
