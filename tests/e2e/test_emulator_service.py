"""The optimisation service, built and deployed: two tenants, their agents, and people who read."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from plimsoll.domain.errors import MissingRights, PlimsollError, Refused
from plimsoll_agent.service import Service
from plimsoll_cli.service_play import play
from plimsoll_service.domain.arrivals import Arrival
from plimsoll_service.domain.principals import Role
from plimsoll_service.domain.rollups import Span
from plimsoll_service.services.history import newest, rollups
from plimsoll_service.wire.snapshot import Snapshot, delta, encode
from plimsoll_service.wire.views import Clusters, Pools, Workloads
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from tests.support.snapshots import wire_node, wire_pods, wire_workload
from tests.support.total_queue import TotalQueue

pytestmark = pytest.mark.emulator
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def rig() -> Iterator[ServiceRig]:
    with ServiceRig() as deployed:
        yield deployed


def within[T](seconds: float, look: Callable[[], T | None]) -> T | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    return None


def a_snapshot(
    cluster: str, sequence: int = 1, *, at: datetime | None = None, nodes: int = 1
) -> Snapshot:
    web = wire_workload("web", replicas=2)
    return Snapshot(
        cluster_id=cluster,
        epoch="0a1b2c3d-epoch",
        sequence=sequence,
        taken_at=at or datetime.now(UTC),
        kubernetes="v1.36.3",
        nodes=tuple(wire_node(f"n-{i}") for i in range(nodes)),
        workloads=(web,),
        pods=wire_pods(web, "n-0", "n-0"),
    )


def of_cluster(cluster: str, what: str) -> str:
    return f"/v1/clusters/{cluster}/{what}"


def bare(rig: ServiceRig, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    """Ask without a client; return the status."""
    request = urllib.request.Request(
        rig.url + path,
        data=body or None,
        method=method,
        headers={"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status: int = answer.status
    except urllib.error.HTTPError as error:
        return error.code
    return status


def test_a_recommendation_is_accepted_carried_out_by_the_agent_and_measured(
    rig: ServiceRig, capsys: pytest.CaptureFixture[str]
):
    """What `plimsoll demo-service` shows."""
    said: list[str] = []
    done = play(rig, said.append)
    assert (done.kind, done.state) == ("consolidate-node", "done")
    assert done.measured == done.monthly > 0
    acted = [line for line in said if line.startswith("  agent: ")]
    (cordoned,) = (i for i, line in enumerate(acted) if "cordon Node" in line)
    (evicted,) = (i for i, line in enumerate(acted) if "evict Pod" in line)
    assert cordoned < evicted
    assert f"consolidate-node done: Node {done.about.name} is empty" in acted[-1]
    printed = capsys.readouterr().out
    assert f"{done.id} is accepted" in printed
    assert "done, measured" in printed


def test_what_an_agent_pushes_a_person_of_its_tenant_reads(rig: ServiceRig):
    cluster, agent = rig.enrolled("acme", "shop", Role.AGENT)
    _, ann = rig.enrolled("acme", "ann", Role.PERSON)
    assert [c.name for c in ann.call("GET", "/v1/clusters", Clusters).clusters] == ["shop"]
    base = a_snapshot(cluster, 1)
    change = delta(base, a_snapshot(cluster, 2, nodes=3))
    assert agent.push(encode(base)).accepted == 1
    answer = agent.push(encode(change))
    assert (answer.resync, answer.instructions_pending) == (False, False)

    def three_nodes() -> Pools | None:
        try:
            found = ann.call("GET", of_cluster(cluster, "pools"), Pools)
        except Refused:
            return None
        return found if sum(p.nodes for p in found.pools) == 3 else None

    found = within(30, three_nodes)
    assert found, rig.emulator.complaints()
    assert found.age_s < 60
    [web] = ann.call("GET", of_cluster(cluster, "workloads"), Workloads).workloads
    assert (web.name, web.replicas) == ("web", 2)
    assert not agent.instructions().instructions


def test_no_tenant_gets_to_the_cluster_of_another(rig: ServiceRig):
    cluster, mine = rig.enrolled("acme", "mine", Role.AGENT)
    other, theirs = rig.enrolled("globex", "theirs", Role.AGENT)
    _, eve = rig.enrolled("globex", "eve", Role.PERSON)
    assert mine.push(encode(a_snapshot(cluster))).accepted == 1
    for what in ("pools", "workloads", "interruptions", "savings", "recommendations"):
        with pytest.raises(Refused, match="404"):
            eve.call("GET", of_cluster(cluster, what), dict)
    with pytest.raises(MissingRights, match="403"):
        theirs.call("GET", of_cluster(cluster, "instructions"), dict)
    with pytest.raises(MissingRights, match="403"):
        theirs.push(encode(a_snapshot(cluster)))
    assert [c.id for c in eve.call("GET", "/v1/clusters", Clusters).clusters] == [other]


def test_the_session_of_a_tenant_is_refused_the_objects_of_another(rig: ServiceRig):
    """Under the rights that the deployed roles really have: the emulator enforces them."""
    cluster, agent = rig.enrolled("acme", "vault", Role.AGENT)
    agent.push(encode(a_snapshot(cluster)))
    assert rig.data("acme").has_snapshot(cluster, "0a1b2c3d-epoch", 1)
    session = rig.session("globex")
    bucket = rig.emulator.outputs["SnapshotsBucket"]
    key = f"acme/{cluster}/0a1b2c3d-epoch/1.json.gz"
    with pytest.raises(ClientError, match="AccessDenied"):
        session.s3.get_object(Bucket=bucket, Key=key)
    own = rig.session("acme").s3.get_object(Bucket=bucket, Key=key)
    assert own["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_whoever_is_revoked_is_out_within_a_minute(rig: ServiceRig):
    cluster, agent = rig.enrolled("acme", "leaving", Role.AGENT)
    assert not agent.instructions().instructions
    rig.members.revoke(cluster)

    def is_out() -> bool:
        try:
            agent.instructions()
        except MissingRights:
            return True
        return False

    start = time.monotonic()
    assert within(60, is_out)
    sys.stdout.write(f"out after {time.monotonic() - start:.0f} s\n")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/clusters", {}, 401),
        ("GET", "/v1/clusters", {"Authorization": "Bearer x"}, 401),
        ("GET", "/v1/clusters", {"Authorization": "Basic eDp5"}, 401),
        ("POST", "/v1/token", {}, 400),
        ("GET", "/v1/openapi.json", {}, 200),
    ],
)
def test_without_a_token_that_is_good_there_is_nothing_to_see(
    rig: ServiceRig, method: str, path: str, headers: dict[str, str], status: int
):
    assert bare(rig, method, path, b"{}" if method == "POST" else b"", **headers) == status


def test_malformed_requests_are_refused_and_never_a_fault_of_ours(rig: ServiceRig):
    """Bodies that were cut, flipped or are something else, with and without a token."""
    random = Random(16)
    cluster, agent = rig.enrolled("acme", "fuzzed", Role.AGENT)
    whole = encode(a_snapshot(cluster))
    seen: dict[int, int] = {}
    for i in range(150):
        body = bytearray(whole)
        for _ in range(random.randrange(1, 8)):
            body[random.randrange(len(body))] = random.randrange(256)
        cut = bytes(body[: random.randrange(len(body))]) if random.random() < 0.3 else bytes(body)
        if i % 3 == 0:
            status = status_of(partial(agent.push, cut))
        else:
            path = random.choice(["/v1/token", "/v1/enrolments"])
            status = bare(rig, "POST", path, random.choice([cut, b"[" * 5000, b"{}", b"null"]))
        seen[status] = seen.get(status, 0) + 1
    sys.stdout.write(f"150 requests, by status: {seen}\n")
    assert not [status for status in seen if status >= 500]


def status_of(ask: Callable[[], Any]) -> int:
    """The status that the agent's client was told."""
    try:
        ask()
    except PlimsollError as error:
        return int(str(error).partition("answers ")[2][:3] or 599)
    return 202


def test_every_snapshot_that_was_acknowledged_is_accounted_for(rig: ServiceRig):
    """Total queue: four agents, workers killed again and again, messages doubled and reordered."""
    random, count = Random(16), 30
    emulator = rig.emulator
    emulator.client("sqs").set_queue_attributes(  # what a killed worker held comes back sooner
        QueueUrl=emulator.outputs["ArrivalsQueue"], Attributes={"VisibilityTimeout": "31"}
    )
    start = datetime.now(UTC).replace(second=0, microsecond=0) - count * MINUTE
    agents: list[tuple[str, str, Service]] = []
    for tenant, name in (("acme", "q-1"), ("acme", "q-2"), ("globex", "q-3"), ("globex", "q-4")):
        cluster, agent = rig.enrolled(tenant, name, Role.AGENT)
        agents.append((tenant, cluster, agent))
    attempted: set[tuple[str, int]] = set()
    acknowledged: set[tuple[str, int]] = set()
    doubled: list[dict[str, Any]] = []
    order = [(a, n) for n in range(1, count + 1) for a in agents]
    order.sort(key=lambda each: each[1] + random.uniform(-3, 3))
    for i, ((tenant, cluster, agent), sequence) in enumerate(order):
        body = encode(a_snapshot(cluster, sequence, at=start + sequence * MINUTE))
        attempted.add((cluster, sequence))
        try:
            agent.push(body)
        except PlimsollError:
            continue
        acknowledged.add((cluster, sequence))
        if random.random() < 0.2:
            doubled.append(arrival(tenant, cluster, sequence, body))
        if i % 25 == 24:
            for worker in emulator.workers("MetricsFunction"):
                os.kill(worker, signal.SIGKILL)
    random.shuffle(doubled)
    for i in range(0, len(doubled), 10):
        event = {"Records": doubled[i : i + 10]}
        emulator.client("lambda").invoke(
            FunctionName=emulator.outputs["MetricsFunction"], Payload=json.dumps(event)
        )

    def checked() -> TotalQueue[tuple[str, int]]:
        found = {
            (cluster, round((minute.start - start) / MINUTE))
            for tenant, cluster, _ in agents
            for minute in rollups(
                rig.data(tenant), cluster, Span.MINUTE, start, start + (count + 1) * MINUTE
            )
        }
        return TotalQueue(attempted, acknowledged, found)

    within(120, lambda: not checked().lost)
    report = checked()
    sys.stdout.write(f"{report}\n")
    assert len(acknowledged) > 0.9 * len(attempted)
    assert not report.lost, f"{report}: {sorted(report.lost)[:5]}"
    assert not report.unexpected, report
    for tenant, cluster, _ in agents:
        known = newest(rig.data(tenant), cluster)
        last = max(n for c, n in acknowledged if c == cluster)
        assert known is not None
        assert known.snapshot.sequence == last


def arrival(tenant: str, cluster: str, sequence: int, body: bytes) -> dict[str, Any]:
    """The message of a snapshot, as SQS would deliver it once more."""
    told = Arrival(
        tenant=tenant,
        cluster=cluster,
        epoch="0a1b2c3d-epoch",
        sequence=sequence,
        base=0,
        received_at=datetime.now(UTC),
        digest=sha256(body).hexdigest(),
    )
    return {
        "messageId": f"{cluster}-{sequence}",
        "receiptHandle": "none",
        "body": msgspec.json.encode(told).decode(),
        "attributes": {"ApproximateReceiveCount": "2"},
    }
