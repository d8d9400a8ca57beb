"""A storm on the cluster rig: a real control plane, watched until all is well again or time is up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, override

from benchmarks import bare
from benchmarks.drills import CLUSTER
from benchmarks.storms.cordon_times import CordonTimes
from benchmarks.storms.functionlog import actions, started
from benchmarks.storms.outcome import Outcome, emptied
from benchmarks.storms.scenario import HEADROOM, SPOT
from benchmarks.storms.watch import watching
from benchmarks.storms.workers import Processes, sized
from plimsoll.domain.errors import Refused
from plimsoll_simulation.measure.listening import Progress
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.snapshot import Snapshot
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.cluster.rig_cluster import COMMON_DRAIN, ControlPlaneRigCluster
from plimsoll_testbed.rigs.emulated.bus import Bus
from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.rig import Emulation

TELL_SECONDS: Final = 5.0
LAST_CHANGES: Final = 1.0
"""Until the watcher has heard what this process has."""
LAST_LINES: Final = 22.0
"""A function's lines reach the log when it has ended, and a reconcile of the drain may just have begun."""
OPENERS: Final = 16
THREADS: Final = 16
"""Of the client that evicts all."""
SYNCED: Final = 20.0
"""Until a controller manager that was started again has read everything."""
TOLD: Final = ("error", "not settled")
WIDTH: Final = 160
"""What is waited for is named workload by workload."""
_OK: Final = 200


class Telling:
    """Says on standard error how far a storm is."""

    storming = False
    """Whether functions are at work: of the thousands of things that they do only errors are told."""

    def say(self, seconds: float, what: str) -> None:
        """Say it."""
        if not self.storming or what.startswith(TOLD):
            print(f"  {seconds:6.1f} s  {what[:WIDTH]}", file=sys.stderr, flush=True)

    def progress(self, progress: Progress) -> None:
        """Pass it over."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Pass it over."""


class Counting:
    """Says from time to time how many nodes are cordoned and empty."""

    def __init__(self) -> None:
        self._told = 0.0

    def done(self, measurement: Measurement) -> bool:
        """Return whether every node that has its notice is cordoned and empty, and all pods are Ready."""
        noticed = [node for node in measurement.nodes.values() if node.noticed is not None]
        cordoned = sum(node.cordoned is not None for node in noticed)
        empty = sum(node.empty is not None for node in noticed)
        over = bool(noticed) and cordoned == empty == len(noticed) and not measurement.not_ready()
        now = time.monotonic()
        if noticed and (over or now - self._told >= TELL_SECONDS):
            self._told = now
            words = f"of {len(noticed)} nodes {cordoned} are cordoned, {empty} empty"
            print(f"            {words}", file=sys.stderr, flush=True)
        return over


class Storm(Emulation):
    """A drill that ends as soon as every node is empty and every pod Ready, and judges nothing."""

    responder = "plimsoll"

    def __init__(self, drill: Drill, *, size: str, default_rates: bool) -> None:
        self._telling = Telling()
        self._default_rates = default_rates
        super().__init__(
            drill,
            clusters=ControlPlanes,
            emulators=sized(size),
            rig="cluster",
            responder=self.responder,
            seed=0,
            listener=self._telling,
        )
        self._counting = Counting()

    def measure(self, log: Path | None) -> Outcome:
        """Play it to its end; `log` is where the functions' log is kept, if anywhere."""
        self.prepare()
        stack = self._stack
        open_headroom(self._rig_cluster, default_rates=self._default_rates)
        watch = self._exits.enter_context(
            watching(
                self._rig_cluster.plane,
                nodes=sum(1 for _ in self._rig_cluster.fleet.alive()),
                pods=sum(1 for _ in self._rig_cluster.all("pods")),
            )
        )
        processes = self._exits.enter_context(Processes(stack.log.parent))
        self._telling.storming = True
        self.begin()
        self.watch()
        time.sleep(LAST_CHANGES)
        seen, cores = watch.end(), processes.cores()
        assert self._zero is not None
        self._clusters.count_calls(self._zero)
        self._hand_in()
        text = stack.log.read_text(errors="replace")
        if log is not None:
            log.write_text(text)
        with self._time.lock:
            nodes = list(self.measurement.nodes.values())
        noticed = {node.name: node.noticed for node in nodes if node.noticed is not None}
        done, undone = actions(text)
        return Outcome(
            times=CordonTimes.split(noticed, seen.cordoned, started(text)),
            noticed=min(noticed.values()),
            emptied=emptied(noticed, seen),
            killed=watch.stops["killed"],
            seen=seen,
            calls=self.measurement.kubernetes_calls,
            aws_calls=self.measurement.aws_calls,
            done=done,
            undone=undone,
            memory=processes.peaks(),
            cores=cores,
            complaints=stack.complaints(),
        )

    @property
    def _rig_cluster(self) -> ControlPlaneRigCluster:
        rig_cluster = self.rig_clusters[CLUSTER]
        assert isinstance(rig_cluster, ControlPlaneRigCluster)
        return rig_cluster

    def _hand_in(self) -> None:
        self._stack.hand_in([CLUSTER], self.measurement)
        time.sleep(LAST_LINES)

    @override
    def _settled(self) -> bool:
        return self._counting.done(self.measurement)


class EvictAll(Storm):
    """The same storm with a client that cordons everything and then evicts everything; no function is deployed.

    The client is a user who may do everything and is served before all others, which Plimsoll is not.
    """

    responder = "none"

    @override
    def _deploy(self, emulator: Emulator) -> None:
        """Deploy nothing."""

    @override
    def _event_bus(self, emulator: Emulator) -> Bus:
        machines = self._rig_cluster.fleet.alive()
        nodes = [machine.node for machine in machines if machine.group.name == SPOT]
        way = self._clusters.open(CLUSTER, COMMON_DRAIN)
        return _Beginning(self._exits.enter_context(client(way, nodes)), self.clock)

    @override
    def _hand_in(self) -> None:
        """No function wrote anything."""


class _Beginning(Bus):
    """Lets a client begin at the first notice."""

    def __init__(self, started_by: IO[str], clock: VirtualClock) -> None:
        super().__init__(None, clock)
        self._started_by = started_by

    @override
    def _put(self, bodies: list[str]) -> None:
        self._started_by.close()


@contextmanager
def client(way: Access, nodes: Sequence[str]) -> Iterator[IO[str]]:
    """Start `benchmarks/bare.py`, which waits, loaded, until what this gives is closed."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as ca:
        ca.write(way.ca or "")
        ca.flush()
        process = subprocess.Popen(
            [sys.executable, bare.__file__, way.url, way.token, str(THREADS), ca.name, *nodes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdout.readline()
                yield process.stdin
            finally:
                process.kill()


def open_headroom(rig_cluster: ControlPlaneRigCluster, *, default_rates: bool) -> None:
    """Let the headroom take pods from now on, and the controllers be as fast as they shall be.

    Raises:
        Refused: a node's taint could not be removed.
    """
    api = rig_cluster.plane.transport(connections=OPENERS)

    def open_node(node: str) -> None:
        answer = api.call(
            "PATCH",
            f"/api/v1/nodes/{node}",
            body={"spec": {"taints": None}},
            content_type="application/merge-patch+json",
        )
        if answer.status != _OK:
            raise Refused(f"PATCH node {node}: {answer.status} {answer.body}")

    nodes = [
        machine.node for machine in rig_cluster.fleet.alive() if machine.group.name == HEADROOM
    ]
    with ThreadPoolExecutor(OPENERS) as threads:
        list(threads.map(open_node, nodes))
    if default_rates:
        rig_cluster.plane.take_default_rates()
        time.sleep(SYNCED)
