"""What the worst snapshots that the service takes cost to work in, with the hour or the day that they make.

    python -m benchmarks.worst_snapshot

Each is a delta of nearly 10 MiB to a full snapshot of the same size. It comes late, so that an hour of sixty
such minutes is made anew, or a day of 24 such hours. A fresh process works it in, over documents on disk.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import boto3
import msgspec

from benchmarks.output import machine
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import INSTANCE_TYPE
from plimsoll_agent.exposition import LONGEST_LINE, series_of
from plimsoll_agent.gpu_metrics import MOST_BYTES as MOST_TEXT
from plimsoll_agent.gpu_samples import Known, gpu_samples
from plimsoll_service.domain.gpu import ClassDaySum
from plimsoll_service.domain.gpu.minutes import MOST_CLASSES
from plimsoll_service.domain.snapshots import (
    Arrival,
    Newest,
    Span,
    combined_rollup,
    rollup_of,
)
from plimsoll_service.services.gpu_history import keep_class_days
from plimsoll_service.services.history import NEWEST
from plimsoll_service.services.ingest import IngestService
from plimsoll_service.services.ports import Document
from plimsoll_service.wire.audit import AuditEntry
from plimsoll_service.wire.documents import MOST_BYTES
from plimsoll_service.wire.documents import encode as document_of
from plimsoll_service.wire.gpu import GpuSample
from plimsoll_service.wire.snapshot import (
    MOST_OF_KIND,
    Amounts,
    Container,
    ContainerUsage,
    Node,
    Owner,
    Pod,
    Snapshot,
    Usage,
    Workload,
    encode,
)
from plimsoll_simulation.fake_aws.service_stores import MemoryAdviceQueue, MemoryAudit

NOW: Final = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
CLUSTER: Final = "a-1"
LATER: Final = NOW + Span.DAY.kept
EPOCH: Final = "e-1"
SHAPES: Final = {"as many workloads as fit": (20_000, 1), "as many containers as fit": (100, 20)}
"""Workloads, and the containers of each."""
HOSTILE: Final = ('\\"', "\\\\", '",a="', '",,', " ", '"}{"', "\\", '"', ",", "=", "1", "\n")
"""What a label of an exporter is made of."""
GPUS: Final = 12_000
"""Each with a pod: more do not fit."""
VARIETY: Final = 12
"""Of the minutes of an hour. With more of it, the hour leaves more out and keeps no more."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The data of a tenant on disk, packed as in AWS; also the tenants, and the clock."""

    root: Path
    audit: MemoryAudit = field(default_factory=MemoryAudit)

    def of(self, tenant: str) -> Folder:
        """Return the data of the only tenant."""
        del tenant
        return self

    def now(self) -> datetime:
        """Return the time."""
        return NOW + timedelta(days=1)

    def get(self, cluster: str, key: str) -> Document | None:
        """Return a document."""
        del cluster
        path = self.root / key
        if not path.exists():
            return None
        return Document(key=key, body=gzip.decompress(path.read_bytes()), version=1)

    def fault(self, cluster: str, key: str, why: str) -> None:
        """Fail: nothing here is unreadable."""
        raise AssertionError(f"{cluster} {key}: {why}")

    def put(  # noqa: PLR0913 - those of the port
        self,
        cluster: str,
        key: str,
        body: bytes,
        *,
        version: int = 0,
        expires: datetime,
        audit: AuditEntry | None = None,
    ) -> Document:
        """Write a document."""
        del cluster, expires, audit
        (self.root / key).write_bytes(gzip.compress(body, mtime=0))
        return Document(key=key, body=body, version=version + 1)

    def list(
        self, cluster: str, first: str, last: str, *, limit: int = 1000, descending: bool = False
    ) -> Iterator[Document]:
        """Yield documents in the order of their keys."""
        keys = sorted(
            (path.name for path in self.root.iterdir() if first <= path.name <= last),
            reverse=descending,
        )
        found = (self.get(cluster, key) for key in keys[:limit])
        return (document for document in found if document is not None)

    def delete(self, cluster: str, key: str) -> None:
        """Delete a document."""
        del cluster
        (self.root / key).unlink(missing_ok=True)

    def put_snapshot(self, cluster: str, epoch: str, sequence: int, body: bytes) -> None:
        """Keep a snapshot."""
        (self.root / f"{cluster}-{epoch}-{sequence}").write_bytes(body)

    def get_snapshot(self, cluster: str, epoch: str, sequence: int) -> bytes | None:
        """Return a snapshot."""
        return (self.root / f"{cluster}-{epoch}-{sequence}").read_bytes()

    def has_snapshot(self, cluster: str, epoch: str, sequence: int) -> bool:
        """Whether a snapshot is there."""
        return (self.root / f"{cluster}-{epoch}-{sequence}").exists()


of_cluster: Final = partial(
    Snapshot, cluster_id=CLUSTER, epoch=EPOCH, taken_at=NOW, kubernetes="v1.36.3"
)


def snapshot(sequence: int, workloads: int, containers: int, pods: int) -> Snapshot:
    """Return a snapshot, in which no two pods of a workload are of the same size."""
    names = [f"c{n}" for n in range(containers)]
    template = tuple(Container(name=name) for name in names)
    return of_cluster(
        sequence=sequence,
        workloads=tuple(
            Workload(
                uid=f"w{n}", kind="Job", namespace="a", name="a", template=template, created_at=NOW
            )
            for n in range(workloads)
        ),
        pods=tuple(
            Pod(
                uid=f"p{n}",
                namespace="a",
                name="a",
                owner=Owner(kind="Job", name="a", uid=f"w{n % workloads}"),
                created_at=NOW,
            )
            for n in range(pods)
        ),
        usage=tuple(
            Usage(
                uid=f"p{n}",
                cpu_m=(size := 1 + (n // workloads + sequence) ** 3 % 10**7),
                memory=size * 2**20,
                containers=tuple(
                    ContainerUsage(name=name, cpu_m=size, memory=size * 2**20) for name in names
                ),
            )
            for n in range(pods)
        ),
    )


def largest(sequence: int, workloads: int, containers: int) -> Snapshot:
    """Return a snapshot with as many pods as fit."""
    least, most = 0, MOST_OF_KIND["pods"]
    while most - least > 100:  # noqa: PLR2004 - near enough
        middle = (least + most + 1) // 2
        fits = len(document_of(snapshot(sequence, workloads, containers, middle))) <= MOST_BYTES
        least, most = (middle, most) if fits else (least, middle)
    return snapshot(sequence, workloads, containers, least)


def prepare(data: Folder, workloads: int, containers: int, span: Span) -> Arrival:
    """Write what is known before the snapshot comes, and the snapshot; return its arrival."""
    start = span.start(NOW)
    base = largest(1, workloads, containers)
    data.put_snapshot(CLUSTER, EPOCH, 1, encode(base))
    sequences = range(1, 60, 60 // VARIETY)
    minutes = [rollup_of(snapshot(n, workloads, containers, len(base.pods))) for n in sequences]
    at = [start + n * timedelta(minutes=1) for n in range(60)]
    parts, length = (
        [replace(minutes[n % VARIETY], start=t, last=t) for n, t in enumerate(at)],
        Span.MINUTE,
    )
    if span is Span.DAY:
        hour, length = combined_rollup(parts, Span.HOUR), Span.HOUR
        assert hour is not None
        at = [start + n * timedelta(hours=1) for n in range(24)]
        parts = [replace(hour, start=t, last=t) for t in at]
    for part in parts:
        data.put(CLUSTER, length.key(part.start), msgspec.json.encode(part), expires=LATER)
    before = replace(parts[0], start=start, samples=0)
    data.put(CLUSTER, span.key(start), msgspec.json.encode(before), expires=LATER)
    known = Newest(
        epoch=EPOCH,
        sequence=9,
        base=0,
        received_at=NOW,
        taken_at=NOW,
        owed=((span, start),),
    )
    data.put(CLUSTER, NEWEST, msgspec.json.encode(known), expires=LATER)
    return put(data, msgspec.structs.replace(largest(2, workloads, containers), base=1))


def put(data: Folder, late: Snapshot) -> Arrival:
    """Write the snapshot that is worked in, and return its arrival."""
    body = encode(late)
    data.put_snapshot(CLUSTER, EPOCH, 2, body)
    return Arrival(
        tenant="acme",
        cluster=CLUSTER,
        epoch=EPOCH,
        sequence=2,
        base=late.base,
        received_at=NOW,
        digest=sha256(body).hexdigest(),
    )


def of_gpus(sequence: int) -> Snapshot:
    """Return a snapshot with as many GPUs as fit and as many classes as count, each with a pod that no minute before had.

    The uids fall from minute to minute, so that each minute's pods displace those before them.
    """
    uids = [f"{2**32 - sequence:08x}-{n:027x}" for n in range(GPUS)]
    nodes = [f"{n:063}" for n in range(GPUS // 8)]
    return of_cluster(
        sequence=sequence,
        nodes=tuple(
            Node(
                uid=name,
                allocatable=Amounts(),
                name=name,
                ready=True,
                created_at=NOW,
                labels={INSTANCE_TYPE: "p5.48xlarge"},
            )
            for name in nodes
        ),
        pods=tuple(
            Pod(
                uid=uid,
                namespace="a" * 63,
                name=uid,
                node=nodes[n // 8],
                owner=Owner(kind="Job", name=f"{n % MOST_CLASSES:0253}", uid="w"),
                gpus={"nvidia.com/gpu": 1},
                created_at=NOW,
            )
            for n, uid in enumerate(uids)
        ),
        gpus=tuple(
            GpuSample(
                node=nodes[n // 8],
                gpu=f"GPU-{n}",
                model="H100-80GB-HBM3",
                pod=uid,
                duty=900 + (n + sequence) % 100,
                dram_active=900 + n % 100,
                memory_used_mib=2**25 + n + sequence,
                power_w=2**15 + n,
            )
            for n, uid in enumerate(uids)
        ),
    )


def prepare_gpus(data: Folder) -> Arrival:
    """Write an hour of sixty such minutes and the hours before it, and the snapshot that closes the hour."""
    start = Span.HOUR.start(NOW)
    minutes = [rollup_of(of_gpus(n)) for n in range(1, 61)]
    # The hours before have other classes and other pods, as many as a day keeps.
    for hour in range(start.hour):
        earlier = ClassDaySum()
        for n in range(60):
            gpus = minutes[n].gpus
            assert gpus is not None
            at = start.replace(hour=hour, minute=n)
            earlier.add(at, msgspec.structs.replace(gpus, classes=gpus.classes[hour % 2 :: 2]))
        keep_class_days(data, CLUSTER, earlier)
    for n, part in enumerate(minutes):
        at = start + n * timedelta(minutes=1)
        kept = replace(part, start=at, last=at)
        data.put(CLUSTER, Span.MINUTE.key(at), msgspec.json.encode(kept), expires=LATER)
    known = Newest(
        epoch=EPOCH, sequence=1, base=0, received_at=NOW, taken_at=start + timedelta(minutes=59)
    )
    data.put(CLUSTER, NEWEST, msgspec.json.encode(known), expires=LATER)
    late = msgspec.structs.replace(of_gpus(2), taken_at=start + timedelta(hours=1))
    return put(data, late)


def work(root: Path, arrival: Arrival) -> None:
    """Work a snapshot in, and print what it cost."""
    data = Folder(root)
    boto3.client("dynamodb", region_name="us-east-1")
    service = IngestService(tenants=data, advice=MemoryAdviceQueue(), clock=data)
    began = time.process_time()
    service.work(arrival)
    seconds = time.process_time() - began
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"{seconds:.2f} s, {int(peak) / 1000:.0f} MB")


def measure(what: str, prepared: Callable[[Folder], Arrival]) -> None:
    """Print what a fresh process takes for a snapshot."""
    with tempfile.TemporaryDirectory() as folder:
        said = msgspec.json.encode(prepared(Folder(Path(folder)))).decode()
        command = [sys.executable, "-m", "benchmarks.worst_snapshot", folder, said]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"{what}: {found.stdout.strip()}", flush=True)


def read_hostile_texts() -> None:
    """Print what the agent takes to read a text of 1 MiB, at most."""
    known = Known([], [])
    seconds = []
    for unit in HOSTILE:
        start = 'DCGM_FI_DEV_FB_USED{UUID="'
        one = f"{start}{unit * (MOST_TEXT // len(unit))}"[:MOST_TEXT].encode()
        line = f"{start}{unit * LONGEST_LINE}"[: LONGEST_LINE - 8]
        many = f'{line}"}} 1\n'.encode() * (MOST_TEXT // LONGEST_LINE)
        for text in (one, many):
            began = time.process_time()
            with suppress(Temporary):
                gpu_samples(series_of(text), known, {}, None)
            seconds.append(time.process_time() - began)
    print(f"a hostile exporter, {len(seconds)} texts: at most {max(seconds):.2f} s")


def main() -> None:
    print(machine("msgspec"))
    read_hostile_texts()
    measure("as many GPUs as fit, with their hour", prepare_gpus)
    for shape, (workloads, containers) in SHAPES.items():
        for span in (Span.HOUR, Span.DAY):
            prepared = partial(prepare, workloads=workloads, containers=containers, span=span)
            measure(f"{shape}, with its {span}", prepared)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Arrival))
    else:
        main()
