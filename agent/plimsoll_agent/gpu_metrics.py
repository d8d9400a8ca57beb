"""Asks who tells of GPUs: the pods of dcgm-exporter, each of its own node alone, or a Prometheus.

Tenants may forge endpoints. So an address counts only if the kubelet says that a pod of a DaemonSet has it, a port
only if that pod names it, and an answer is bounded in bytes, seconds and series. No redirect is followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import IPv6Address, ip_address
from itertools import batched
from random import SystemRandom
from socket import SHUT_RDWR
from threading import Timer
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from plimsoll.domain.errors import BadInput, PlimsollError, Temporary
from plimsoll.domain.kubernetes import OwnerKind
from plimsoll.services.ports import Clock, Workers
from plimsoll_agent.exposition import series_of
from plimsoll_agent.gpu_samples import Known, Read, Series, gpu_samples, missing_from
from plimsoll_agent.objects import Endpoints, Exporter
from plimsoll_agent.workloads import Controller, Owning
from plimsoll_service.wire.gpu import COUNTERS, MOST_SAMPLES, GpuSample

CONNECTIONS: Final = 8
"""Exporters that are asked at once."""
BATCH_TARGETS: Final = 64
"""Nodes whose answers are in memory at once."""
SECONDS: Final = 3.0
"""For one answer of an exporter."""
ROUND: Final = timedelta(seconds=20)
"""For all of them. Who is not asked in time may be among the first the next time: the order is drawn."""
MOST_BYTES: Final = 2**20
"""Of an exporter's answer: eight GPUs of seven slices take 600 kB."""
LEAST_PIECE: Final = 64
"""Bytes that the pieces of an answer have on average. Each piece costs the agent a few microseconds."""
MOST_OF_NODE: Final = 256
PROMETHEUS_SECONDS: Final = 5.0
PROMETHEUS_BYTES: Final = 8 * 2**20
_KEPT: Final = "Hostname, node, instance, UUID, modelName, GPU_I_PROFILE, GPU_I_ID, namespace, pod, exported_namespace, exported_pod"
_METADATA: Final = ip_address("fd00:ec2::254")
"""https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html"""
_SERVICE: Final = re.compile(r"([a-z0-9-]{1,63})/([a-z0-9-]{1,63})")
_OK: Final = 200
_RANDOM: Final = SystemRandom()


@dataclass(frozen=True, slots=True)
class Target:
    """An exporter, and where it is asked."""

    node: str
    pod: str
    """Its name."""
    address: str
    port: int


@dataclass(slots=True)
class GpuReading:
    """What was told of a cluster's GPUs."""

    samples: list[GpuSample] = field(default_factory=list)
    left_out: int = 0
    """GPUs and instances that were too many."""


class GpuMeasures(Protocol):
    """What is counted for people."""

    def gpus_read(self, *, answered: int, asked: int, left_out: int) -> None:
        """So many exporters were asked, and so many answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMetrics:
    """Reads the use of GPUs from where the owner says."""

    source: str
    """NAMESPACE/SERVICE of dcgm-exporter, or the address of a Prometheus."""
    clock: Clock
    workers: Workers
    measures: GpuMeasures
    warn: Callable[[str], None]

    def __post_init__(self) -> None:
        """Check the source.

        Raises:
            BadInput: it is none.
        """
        if self.service is None:
            _prometheus(self.source)

    @property
    def service(self) -> tuple[str, str] | None:
        """Namespace and name of the exporter's Service; None: a Prometheus is asked."""
        found = _SERVICE.fullmatch(self.source)
        return (found[1], found[2]) if found else None

    def read(
        self,
        known: Known,
        endpoints: Sequence[Endpoints],
        exporters: Sequence[Exporter | None],
        controllers: Iterable[Controller],
    ) -> GpuReading:
        """Return what is told now; what fails is counted and said, and never raised."""
        if self.service is None:
            return self._joined([self._ask_prometheus(known)], asked=1)
        found = targets_of(self.service, endpoints, exporters, controllers)
        targets = [target for target in found if target.node in known.nodes]
        # The order is random: where the time does not suffice for all exporters, other ones are left out each time.
        _RANDOM.shuffle(targets)
        return self._joined(self._ask(targets, known), asked=len(targets))

    def _ask(self, targets: Sequence[Target], known: Known) -> Iterator[Read | Exception]:
        until = self.clock.now() + ROUND
        for batch in batched(targets, BATCH_TARGETS, strict=False):
            if self.clock.now() >= until:
                return
            yield from self.workers.run([self._asking(target, known) for target in batch])

    def _asking(self, target: Target, known: Known) -> Callable[[], Read]:
        def ask() -> Read:
            connection = HTTPConnection(target.address, target.port, timeout=SECONDS)
            body = fetched(connection, "/metrics", seconds=SECONDS, most=MOST_BYTES)
            own = known.names_of(target.node) | {target.pod: target.node}
            return gpu_samples(series_of(body), known, own, target.node)

        return ask

    def _ask_prometheus(self, known: Known) -> Read | Exception:
        # One metric after the other: all series of all of them would not fit into memory.
        found = (each for metric in COUNTERS for each in self._queried(metric))
        try:
            return gpu_samples(found, known, known.names, None)
        except PlimsollError as error:
            return error

    def _queried(self, metric: str) -> Iterator[Series]:
        connection, path = _prometheus(self.source)
        query = urlencode({"query": f"max by ({_KEPT}) ({metric})"})
        body = fetched(
            connection, f"{path}?{query}", seconds=PROMETHEUS_SECONDS, most=PROMETHEUS_BYTES
        )
        try:
            answer = msgspec.json.decode(body, type=_Answer)
            for each in answer.data.result:
                yield Series(metric=metric, labels=each.metric, value=float(each.value[1]))
        except (msgspec.DecodeError, UnicodeError, ValueError) as error:
            raise Temporary(f"Prometheus answers {metric} with no vector: {error}") from None

    def _joined(self, reads: Iterable[Read | Exception], *, asked: int) -> GpuReading:
        found, answered, foreign = GpuReading(), 0, 0
        for read in reads:
            if isinstance(read, Exception):
                self.warn(f"GPU metrics: {read}")
                continue
            answered += 1
            foreign += read.foreign
            most = MOST_OF_NODE if self.service else MOST_SAMPLES
            room = min(most, MOST_SAMPLES - len(found.samples))
            # Those that a pod has are told first.
            told = sorted(read.samples, key=lambda each: not each.pod)
            found.samples += told[:room]
            found.left_out += len(told[room:])
        self.measures.gpus_read(answered=answered, asked=asked, left_out=found.left_out)
        self.warn(
            f"GPU metrics: {answered} of {asked} {'nodes' if self.service else 'servers'} answered"
        )
        if foreign:
            self.warn("GPU metrics: series of other nodes, or without a UUID, are left out")
        for metric in missing_from(found.samples) if found.samples else ():
            self.warn(
                f"GPU metrics: {metric} is missing. In the counters file of dcgm-exporter this line turns it on: "
                f"{metric}, {COUNTERS[metric]}"
            )
        return found


class _Result(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Result]


class _Answer(msgspec.Struct):
    """What an instant query returns: https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries."""

    data: _Data


def targets_of(
    service: tuple[str, str],
    endpoints: Iterable[Endpoints],
    exporters: Iterable[Exporter | None],
    controllers: Iterable[Controller],
) -> list[Target]:
    """Return whom to ask: pods of a DaemonSet beside the Service, at an address and a port that are their own."""
    namespace, _ = service
    daemon_sets = {
        each.workload.uid
        for each in controllers
        if isinstance(each, Owning)
        and each.workload.kind == OwnerKind.DAEMON_SET
        and each.workload.namespace == namespace
    }
    pods = {each.uid: each for each in exporters if each and each.daemon_set in daemon_sets}
    found: dict[str, Target] = {}
    for each in endpoints:
        if (each.namespace, each.service) != service:
            continue
        for uid, address in each.addresses:
            pod = pods.get(uid)
            port = next((port for port in each.ports if pod and port in pod.ports), None)
            if pod and port and pod.node and address in pod.addresses and _may_be_asked(address):
                found.setdefault(uid, Target(pod.node, pod.name, address, port))
    return list(found.values())


def fetched(connection: HTTPConnection, path: str, *, seconds: float, most: int) -> bytes:
    """Return an answer of status 200, whole.

    Args:
        connection: Not open yet; it is closed afterwards.
        path: What is asked for.
        seconds: For connecting, and once more for all of the answer, however slowly it comes.
        most: Bytes.

    Raises:
        Temporary: there is none.
    """
    where = f"{connection.host}:{connection.port}"
    late: list[bool] = []
    try:
        connection.connect()
        open_ = connection.sock

        def cut() -> None:
            late.append(True)
            with suppress(OSError):  # it is over just now
                open_.shutdown(SHUT_RDWR)

        # A socket's timeout holds for each read: a server that sends
        # a byte now and then would keep the connection for ever.
        # https://docs.python.org/3/library/socket.html#socket.socket.settimeout
        timer = Timer(seconds, cut)
        timer.daemon = True
        timer.start()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = _whole(answer, most)
        finally:
            timer.cancel()
    except (OSError, HTTPException) as error:
        raise Temporary(f"{where} does not answer: {error!r}") from error
    finally:
        connection.close()
    if late or answer.status != _OK or answer.length or len(body) > most:
        raise Temporary(
            f"{where} answers {answer.status}, and not whole in {seconds:g} s and {most} bytes"
        )
    return body


def _whole(answer: HTTPResponse, most: int) -> bytes:
    """Return a body that is whole; of one that is too large, or comes in too many pieces, more than `most`."""
    body = bytearray()
    for _ in range(most // LEAST_PIECE):
        piece = answer.read1(most + 1 - len(body))
        body += piece
        if not piece or len(body) > most:
            return bytes(body)
    return bytes(most + 1)


def _may_be_asked(address: str) -> bool:
    """Whether an address may be a pod's: neither this machine nor the metadata of its instance."""
    try:
        at = ip_address(address)
    except ValueError:
        return False
    if isinstance(at, IPv6Address) and at.ipv4_mapped is not None:
        # Unwrapped first: an IPv4 address in IPv6 form is in none of the ranges below.
        at = at.ipv4_mapped
    special = at.is_loopback or at.is_link_local or at.is_multicast or at.is_unspecified
    return not special and at != _METADATA


def _prometheus(url: str) -> tuple[HTTPConnection, str]:
    """Return a connection to a Prometheus, and the path of its queries.

    Raises:
        BadInput: that is no address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    kind = {"http": HTTPConnection, "https": HTTPSConnection}.get(parts.scheme)
    if kind is None or host is None:
        raise BadInput(
            f"GPU metrics come from NAMESPACE/SERVICE or from http://PROMETHEUS:9090, and not from {url!r}"
        )
    path = f"{parts.path.rstrip('/')}/api/v1/query"
    return kind(host, port, timeout=PROMETHEUS_SECONDS), path
