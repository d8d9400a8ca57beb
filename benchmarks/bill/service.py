"""What the optimisation service costs in a month for clusters of 500 pods: counted requests, list prices.

    .venv/bin/python -m benchmarks.bill.service      # prints the table of docs/operate/cost.md

An hour of one cluster is played by the service's own code: over moto, where each request to AWS is counted
with the size of what it reads and writes; and over memory, where only our own processor time passes. A
month is 730 such hours. Prices are those of `prices.csv`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import ceil
from random import Random
from typing import Any, Final, override
from uuid import UUID

import boto3
from moto import mock_aws
from msgspec.structs import replace

from benchmarks.bill.cluster import a_cluster
from benchmarks.bill.tables import HOURS, POLL_SECONDS, POLLERS, SQS_CALLS, WHOLE_PROCESSOR, prices
from plimsoll_service.adapters.access_tokens import AccessTokens
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.adapters.signers import LocalSigner, is_signed
from plimsoll_service.adapters.tenants import AwsTenants
from plimsoll_service.domain.access import Role
from plimsoll_service.services.access import AccessService, digest_of
from plimsoll_service.services.advice_runs import AdviceSchedule, AdviceService
from plimsoll_service.services.ingest import IngestService, Intake
from plimsoll_service.services.instructions import pending
from plimsoll_service.services.reads import Reads
from plimsoll_service.wire.snapshot import (
    Container,
    ContainerUsage,
    LimitRanges,
    Snapshot,
    Usage,
    delta,
    encode,
)
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryAdviceQueue,
    MemoryMembers,
    MemoryQueue,
    MemoryTenants,
    MemoryTokenKeys,
)
from tests.package.template import requests_for_tables, template
from tests.support.enrolled import Key, invitation
from tests.support.snapshots import NOW

REGION: Final = "us-east-1"
MINUTE: Final = timedelta(minutes=1)
FULL_EVERY: Final = 60
"""Snapshots: an agent repeats a full one each hour."""
PODS: Final = 500
CLUSTERS: Final = (1, 10, 100)
WAITS: Final = {"dynamodb": 0.005, "s3": 0.025, "sqs": 0.010}
"""Seconds that a function waits for an answer of AWS: what is usual within a region."""
START_SECONDS: Final = 0.005
"""Of each invocation, besides."""
LOG_BYTES: Final = 1_200
"""Of an invocation: three lines of Lambda's and one of ours."""
TOKEN_MINUTES: Final = 9
"""How often an agent gets a new token."""
WARM_MINUTES: Final = 10
ADVICE_MINUTES: Final = 5
POLL_MINUTES: Final = 5
"""How often it asks for instructions, though nothing was said of any."""
FUNCTIONS: Final = {
    "authorizer": "AuthorizerFunction",
    "api": "ApiFunction",
    "metrics": "MetricsFunction",
    "advice": "AdviceFunction",
}
SNAPSHOT_DAYS: Final[int] = template("service.yaml")["Parameters"]["SnapshotDays"]["Default"]


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        """Return what it was set to."""
        return self.time


class CountedAws(ServiceAws):
    """AWS clients of moto that count, for the function at work, what is asked and how large it is."""

    def __init__(self) -> None:
        super().__init__(REGION)
        self.function = ""
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._hooked: set[str] = set()

    @override
    def _client(self, service: str) -> Any:
        client = super()._client(service)
        if service not in self._hooked:
            self._hooked.add(service)
            client.meta.events.register("provide-client-params", self._asked)
            client.meta.events.register("after-call", self._answered)
        return client

    def _asked(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        counts, name = self.counts[self.function], model.name
        counts[f"{model.service_model.service_name} requests"] += 1
        match name:
            case "PutItem":
                counts["write units"] += ceil(size(params["Item"]) / 1000)
            case "UpdateItem" | "DeleteItem":
                counts["write units"] += 1
            case "PutObject":
                counts["S3 put"] += 1
                counts["bytes put"] += len(params["Body"])
            case "GetObject" | "HeadObject":
                counts["S3 get"] += 1
            case _:
                pass  # a request that is counted above, and has no units

    def _answered(self, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        counts = self.counts[self.function]
        if model.name == "GetItem":
            counts["read units"] += max(1, ceil(size(parsed.get("Item", {})) / 4000))
        elif model.name in {"Query", "Scan"}:
            counts["read units"] += max(1, ceil(sum(map(size, parsed["Items"])) / 4000))


def size(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the size of an item about as DynamoDB counts it: names and values."""
    return sum(len(name) + len(value) for name, held in item.items() for value in held.values())


def a_cluster_as_told(pods: int, seed: int) -> Snapshot:
    """Return a cluster whose uids are as long, and compress as badly, as those of Kubernetes."""
    draw = Random(seed)
    seen = a_cluster(pods, seed)
    old = [
        *(node.uid for node in seen.nodes),
        *(workload.uid for workload in seen.workloads),
        *(pod.uid for pod in seen.pods),
    ]
    uids = {uid: str(UUID(int=draw.getrandbits(128), version=4)) for uid in old}
    return replace(
        seen,
        nodes=tuple(replace(node, uid=uids[node.uid]) for node in seen.nodes),
        workloads=tuple(
            replace(
                w,
                uid=uids[w.uid],
                template=(Container(name="main", requests=w.requests, limits=w.limits),),
                limit_ranges=LimitRanges(),
            )
            for w in seen.workloads
        ),
        pods=tuple(
            replace(pod, uid=uids[pod.uid], owner=replace(pod.owner, uid=uids[pod.owner.uid]))
            if pod.owner
            else pod
            for pod in seen.pods
        ),
    )


def told(seen: Snapshot, cluster: str, start: datetime, seed: int) -> Iterator[bytes]:
    """Yield what an agent sends of a cluster in which usage changes, a minute for each."""
    draw = Random(seed)
    base, sequence = seen, 0
    used = [*(pod.uid for pod in seen.pods), *(node.uid for node in seen.nodes)]
    while True:
        sequence += 1
        usage = [_used(uid, draw) for uid in used]
        full = replace(
            seen,
            cluster_id=cluster,
            sequence=sequence,
            taken_at=start + sequence * MINUTE,
            usage=tuple(usage),
        )
        if sequence % FULL_EVERY == 1:
            base = full
            yield encode(full)
        else:
            yield encode(delta(base, full))


def _used(uid: str, draw: Random) -> Usage:
    """Return what a pod with one container used; that a node has one too costs little."""
    cpu, memory = draw.randrange(2000), draw.randrange(2**32)
    main = ContainerUsage(name="main", cpu_m=cpu, memory=memory)
    return Usage(uid=uid, cpu_m=cpu, memory=memory, containers=(main,))


class Hour:
    """An hour of one cluster: what its agent sends, and what the functions make of it."""

    def __init__(
        self, tenants: Any, members: Any, clock: Clock, function: Callable[[str], Any]
    ) -> None:
        self._clock, self._function = clock, function
        self._members, self._tenants = members, tenants
        self._queue, self._requests = MemoryQueue(), MemoryAdviceQueue()
        self._access = AccessService(
            members=members,
            tenants=tenants,
            tokens=AccessTokens(MemoryTokenKeys([b"k" * 32])),
            verify=is_signed,
            instruction_keys=list,
        )
        self._reads = Reads(tenants=tenants, members=members, clock=clock)
        self._intake = Intake(
            tenants=tenants,
            members=members,
            queue=self._queue,
            clock=clock,
        )
        self._ingest = IngestService(tenants=tenants, advice=self._requests, clock=clock)
        self._schedule = AdviceSchedule(members=members, queue=self._requests, clock=clock)
        self._advice = AdviceService(
            tenants=tenants,
            prices=lambda _: price_table(),
            signer=lambda: LocalSigner.of("bill", bytes(32)),
            clock=clock,
        )
        self._key = Key()

    def play(self) -> None:
        """Play some minutes in which all is new or written once a day, and then the hour that is counted."""
        members, clock = self._members, self._clock
        members.invite(digest_of("join"), invitation(role=Role.AGENT, now=clock.now()))
        cluster = self._access.enrol(self._key.enrolment("join"), clock.now()).cluster_id
        agent = members.get(cluster)
        token = ""
        start = clock.now() - MINUTE
        bodies = told(a_cluster_as_told(PODS, 1), cluster, start, 1)
        for minute in range(-WARM_MINUTES, 60):
            if minute == 0:
                self._requests.sent.clear()
                self._function("begin")
            if minute % TOKEN_MINUTES == 0:
                asked = self._key.assertion(agent.subject, agent.kid, clock.now())
                with self._function("api"):
                    token = self._access.grant(asked, clock.now()).access_token
            with self._function("authorizer"):
                self._access.authorize(token, clock.now())
            body = next(bodies)
            with self._function("api"):
                self._intake.take(agent, body)
            if minute % POLL_MINUTES == 0:
                with self._function("authorizer"):
                    self._access.authorize(token, clock.now())
                with self._function("api"):
                    pending(self._reads.for_executor(agent), cluster)
            while self._queue.sent:
                with self._function("metrics"):
                    self._ingest.work(self._queue.sent.pop())
            if minute % ADVICE_MINUTES == 0:
                self._requests.sent.clear()
                self._schedule.run()
                clock.time += timedelta(seconds=2)
                with self._function("advice"):
                    self._advice.answer(self._requests.sent.pop())
            clock.time += MINUTE


def counted() -> Mapping[str, Counter[str]]:
    """Return what each function asks of AWS in an hour."""
    with mock_aws():
        for name, said in requests_for_tables("service.yaml").items():
            boto3.client("dynamodb", region_name=REGION).create_table(TableName=name, **said)
        boto3.client("s3", region_name=REGION).create_bucket(Bucket="snapshots")
        aws, clock = CountedAws(), Clock()
        tenants = AwsTenants(
            sessions=lambda _: aws,
            table="DocumentsTable",
            audit_table="AuditTable",
            bucket="snapshots",
            clock=clock,
        )

        @contextmanager
        def working() -> Iterator[None]:
            yield

        def function(name: str) -> Any:
            if name == "begin":
                aws.counts.clear()
            else:
                aws.function = name
                aws.counts[name]["invocations"] += 1
            return working()

        members = DynamoMembers(aws=aws, table="MembersTable")
        Hour(tenants, members, clock, function).play()
        return dict(aws.counts)


def processor() -> Mapping[str, float]:
    """Return the seconds of one processor that each function takes in an hour."""
    seconds: dict[str, float] = defaultdict(float)
    clock = Clock()

    @contextmanager
    def working(name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        seconds[name] += time.process_time() - began

    def function(name: str) -> Any:
        if name == "begin":
            seconds.clear()
        return working(name)

    tenants = MemoryTenants(clock)
    Hour(tenants, MemoryMembers(), clock, function).play()
    return seconds


def of_a_cluster(
    counts: Mapping[str, Counter[str]], busy: Mapping[str, float], *, advices: int
) -> Mapping[str, float]:
    """Return the dollars of a month for one cluster, by what they are for.

    Args:
        counts: what each function asked for in an hour.
        busy: seconds of a processor that each function took in it.
        advices: how often advice is made in an hour.
    """
    price = prices()
    total: Counter[str] = Counter()
    compute = invocations = messages = 0.0
    for name, resource in FUNCTIONS.items():
        times = advices / counts[name]["invocations"] if name == "advice" else 1.0
        found = Counter({key: value * times for key, value in counts[name].items()})
        memory = template("service.yaml")["Resources"][resource]["Properties"]["MemorySize"]
        waited = sum(found[f"{service} requests"] * wait for service, wait in WAITS.items())
        share = min(1.0, memory / WHOLE_PROCESSOR)
        runs = found["invocations"]
        seconds = busy[name] * times / share + waited + runs * START_SECONDS
        compute += seconds * memory / 1024 * price["Lambda time, arm64"]
        compute += runs * price["Lambda request"]
        invocations += runs
        messages += runs if name in {"metrics", "advice"} else 0.0
        total.update(found)
    kept = total["bytes put"] * 24 * SNAPSHOT_DAYS / 1e9 * price["S3 kept"] / HOURS
    hour = {
        "API Gateway": counts["api"]["invocations"] * price["API Gateway request"],
        "functions": compute,
        "queues": messages * SQS_CALLS * price["SQS request"],
        "tables": total["read units"] * price["DynamoDB read"]
        + total["write units"] * price["DynamoDB write"],
        "bucket": total["S3 put"] * price["S3 put"] + total["S3 get"] * price["S3 get"] + kept,
        "logs": invocations * LOG_BYTES * price["log taken in and kept"],
    }
    return {name: dollars * HOURS for name, dollars in hour.items()}


def of_the_stack() -> float:
    """Return the dollars of a month that it costs with no cluster at all."""
    price, resources = prices(), template("service.yaml")["Resources"]
    kinds = Counter(each["Type"] for each in resources.values())
    events = [
        event["Type"]
        for each in resources.values()
        if each["Type"] == "AWS::Serverless::Function"
        for event in each["Properties"].get("Events", {}).values()
    ]
    polls = HOURS * 3600 / POLL_SECONDS * POLLERS * events.count("SQS")
    return (
        kinds["AWS::CloudWatch::Alarm"] * price["alarm"]
        + price["KMS key"]  # one: the template's second exists only after a rotation
        + price["secret"]
        + polls * price["SQS request"]
    )


def main() -> None:
    """Print the table."""
    counts, seconds = counted(), processor()
    calm = of_a_cluster(counts, seconds, advices=60 // ADVICE_MINUTES)
    busy = of_a_cluster(counts, seconds, advices=60)
    stack = of_the_stack()
    print("| USD in a month for one cluster of 500 pods | calm | advised each minute |")
    print("|---|---:|---:|")
    for name in calm:
        print(f"| {name} | {calm[name]:.2f} | {busy[name]:.2f} |")
    print(f"| **together** | **{sum(calm.values()):.2f}** | **{sum(busy.values()):.2f}** |")
    heads = " | ".join(f"{n} cluster{'' if n == 1 else 's'}" for n in CLUSTERS)
    print("\n| in an hour | invocations | processor | requests to AWS | read units | write units |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, found in counts.items():
        requests = sum(value for key, value in found.items() if key.endswith(" requests"))
        print(
            f"| `{name}` | {found['invocations']} | {seconds[name]:.1f} s | {requests} "
            f"| {found['read units']} | {found['write units']} |"
        )
    print(f"\n| USD in a month, calm, with {stack:.2f} for the stack itself | {heads} |")
    print("|---|" + "---:|" * len(CLUSTERS))
    each = sum(calm.values())
    print("| | " + " | ".join(f"{stack + n * each:,.2f}" for n in CLUSTERS) + " |")


if __name__ == "__main__":
    main()
