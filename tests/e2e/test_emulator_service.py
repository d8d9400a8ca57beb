"""The optimisation service, built and deployed: two tenants, their agents, and people who read."""

from __future__ import annotations

import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
import requests
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plimsoll.domain.errors import MissingRights, PlimsollError, Refused, Throttled
from plimsoll_agent.service import Service
from plimsoll_cli.lab.service_play import play as play_demo
from plimsoll_service.domain.access.principals import Role
from plimsoll_service.domain.access.tenancy import snapshot_key
from plimsoll_service.domain.snapshots.arrivals import Arrival
from plimsoll_service.domain.snapshots.rollups import Span
from plimsoll_service.openapi import OPERATIONS, Operation
from plimsoll_service.services.history import newest_said, rollups
from plimsoll_service.wire.clusters import Clusters
from plimsoll_service.wire.documents import encode as encode_document
from plimsoll_service.wire.snapshot import Snapshot, delta, encode
from plimsoll_service.wire.views import Pools, Workloads
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from tests.support.described import (
    body_of,
    path_of,
    refuse_undescribed,
    requests_for,
    signed_headers,
    versions_of,
)
from tests.support.enrolled import Key
from tests.support.faulty_wire import Fault, FaultyWire
from tests.support.snapshots import wire_node, wire_pods, wire_workload
from tests.support.total_queue import TotalQueue

pytestmark = [pytest.mark.emulator, pytest.mark.cluster]


@pytest.fixture(scope="module")
def deployed() -> Iterator[tuple[ServiceRig, FaultyWire]]:
    with (
        FaultyWire(seed=16) as wire,
        ServiceRig(emulator=MiniStack(endpoints=wire.endpoints)) as rig,
    ):
        wire.connect(rig.emulator.url)
        yield rig, wire


@pytest.fixture(scope="module")
def rig(deployed: tuple[ServiceRig, FaultyWire]) -> ServiceRig:
    return deployed[0]


@pytest.fixture(scope="module")
def wire(deployed: tuple[ServiceRig, FaultyWire]) -> FaultyWire:
    return deployed[1]


@dataclass
class Asking:
    """An agent and a person of one tenant, and what each of their requests begins with."""

    keys: dict[Role, Key]
    tokens: dict[Role, str]
    cluster: str

    def headers(self, operation: Operation, path: str, body: bytes) -> dict[str, str]:
        role = operation.role or Role.AGENT
        now = datetime.now(UTC)
        return signed_headers(
            self.keys[role], self.tokens[role], operation.method, path, at=now, body=body
        )


@pytest.fixture(scope="module")
def asking(rig: ServiceRig) -> Asking:
    def posted(path: str, body: msgspec.Struct) -> dict[str, Any]:
        answer = requests.post(rig.url + path, data=encode_document(body), timeout=30)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    keys = {Role.AGENT: Key(1), Role.PERSON: Key(2)}
    ids, tokens = {}, {}
    for role, key in keys.items():
        found = posted("/v1/enrolments", key.enrolment(rig.invite("described", role.value, role)))
        ids[role] = found["cluster_id"]
        asked = key.assertion(ids[role], found["kid"], datetime.now(UTC))
        tokens[role] = posted("/v1/token", asked)["access_token"]
    return Asking(keys, tokens, ids[Role.AGENT])


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


def test_a_recommendation_is_accepted_carried_out_by_the_agent_and_seen(
    rig: ServiceRig, capsys: pytest.CaptureFixture[str]
):
    """What `plimsoll demo service` shows."""
    said: list[str] = []
    done = play_demo(rig, said.append)
    assert (done.kind, done.state) == ("consolidate-node", "done")
    assert done.seen_at is not None
    acted = [line for line in said if line.startswith("  agent: ")]
    (cordoned,) = (i for i, line in enumerate(acted) if "cordon Node" in line)
    (evicted,) = (i for i, line in enumerate(acted) if "evict Pod" in line)
    assert cordoned < evicted
    assert f"consolidate-node done: Node {done.about.name} is empty" in acted[-1]
    printed = capsys.readouterr().out
    assert f"{done.id} is accepted" in printed
    assert "done, seen" in printed
    assert "the cluster shows it; the days after it tell what it saves" in "\n".join(said)
    assert "(accepted by ann; done: " in " ".join(printed.split())
    (row,) = (line for line in said if line.startswith("the audit log: "))
    assert "ann (admin) accept clusters/" in row
    assert row.endswith(f"/recommendations/{done.id}, version 1: done")


def test_what_an_agent_pushes_a_person_of_its_tenant_reads(rig: ServiceRig):
    cluster, agent = rig.enrolled("acme", "shop", Role.AGENT)
    _, ann = rig.enrolled("acme", "ann", Role.PERSON)
    assert [c.name for c in ann.call("GET", "/v1/clusters", Clusters).items] == ["shop"]
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
    for what in (
        "pools",
        "workloads",
        "interruptions",
        "savings",
        "recommendations",
        "instruction-log",
        "instruction-log/1",
    ):
        with pytest.raises(Refused, match="404"):
            eve.call("GET", of_cluster(cluster, what), dict)
    with pytest.raises(MissingRights, match="403"):
        theirs.call("GET", of_cluster(cluster, "instructions"), dict)
    with pytest.raises(MissingRights, match="403"):
        theirs.push(encode(a_snapshot(cluster)))
    assert [c.id for c in eve.call("GET", "/v1/clusters", Clusters).items] == [other]


def test_the_session_of_a_tenant_is_refused_the_objects_of_another(rig: ServiceRig):
    """Under the rights that the deployed roles really have: the emulator enforces them."""
    cluster, agent = rig.enrolled("acme", "vault", Role.AGENT)
    agent.push(encode(a_snapshot(cluster)))
    assert rig.data("acme").has_snapshot(cluster, "0a1b2c3d-epoch", 1)
    session = rig.session("globex")
    bucket = rig.emulator.outputs["SnapshotsBucket"]
    key = snapshot_key("acme", cluster, "0a1b2c3d-epoch", 1)
    with pytest.raises(ClientError, match="AccessDenied"):
        session.s3.get_object(Bucket=bucket, Key=key)
    own = rig.session("acme").s3.get_object(Bucket=bucket, Key=key)
    assert own["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_whoever_is_revoked_is_out_within_a_minute(rig: ServiceRig):
    cluster, agent = rig.enrolled("acme", "leaving", Role.AGENT)
    assert not agent.instructions().instructions
    rig.members.revoke(cluster, rig.clock.now())

    def is_out() -> bool:
        try:
            agent.instructions()
        except MissingRights:
            return True
        except Throttled:  # it is still in, and asks too often
            return False
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
    for i in range(60):
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
    sys.stdout.write(f"60 requests, by status: {seen}\n")
    assert not [status for status in seen if status >= 500]


def status_of(ask: Callable[[], Any]) -> int:
    """The status that the agent's client was told."""
    try:
        ask()
    except PlimsollError as error:
        return int(str(error).partition("answers ")[2][:3] or 599)
    return 202


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@given(data=st.data())
@settings(
    max_examples=6,  # the same suite asks in process ten times as much
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_whatever_is_asked_is_answered_as_described(
    rig: ServiceRig, asking: Asking, operation: Operation, data: st.DataObject
):
    """Past a real gateway and authorizer, by somebody who may."""
    case = data.draw(requests_for(operation))
    path = path_of(case, asking.cluster)
    body = body_of(case, operation)
    answer = requests.request(
        operation.method,
        rig.url + path,
        data=body or None,
        headers=asking.headers(operation, path, body) | versions_of(case),
        timeout=30,
    )
    refuse_undescribed(case, answer)


MINUTE = timedelta(minutes=1)
MINUTES = 32
"""A snapshot each; the hour ends in the middle."""
FULL_EVERY = 4
"""The snapshots between are told as their difference to the last full one."""
UNSENT = 17
"""A full snapshot that its agent loses."""
SECONDS = 600.0
"""The most that it may take until all is worked off."""
VISIBILITY_SECONDS = 31
"""What a killed worker held comes back sooner than usual, and never while it works."""


@dataclass
class Telling:
    """An agent that tells of a cluster through the wire, minute after minute, each until it is acknowledged."""

    tenant: str
    cluster: str
    service: Service
    start: datetime
    attempted: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    def tell(self, until: float) -> None:
        base = self._whole(1)
        for minute in range(1, MINUTES + 1):
            whole = self._whole(minute)
            if minute % FULL_EVERY == 1:
                base = whole
            if minute != UNSENT:
                self.attempted.add(minute)
                self._push(minute, encode(whole if whole is base else delta(base, whole)), until)

    def _whole(self, minute: int) -> Snapshot:
        at = self.start + minute * MINUTE
        return a_snapshot(self.cluster, minute, at=at, nodes=1 + minute % 3)

    def _push(self, minute: int, body: bytes, until: float) -> None:
        while minute not in self.acknowledged and time.monotonic() < until:
            try:
                self.service.push(body)
            except PlimsollError:
                time.sleep(0.3)
            else:
                self.acknowledged.add(minute)


class Arrivals:
    """The queue of the snapshots, and the one for those that cannot be worked in."""

    def __init__(self, rig: ServiceRig) -> None:
        self.sqs = rig.emulator.client("sqs")
        self.url = rig.emulator.outputs["ArrivalsQueue"]
        self.dead = rig.emulator.outputs["ArrivalsDeadQueue"]

    def configure(self, **attributes: object) -> None:
        said = {name: str(value) for name, value in attributes.items()}
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes=said)

    def attribute(self, name: str) -> int:
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])
        return int(found["Attributes"][name])

    def waiting(self) -> int:
        names = ("", "NotVisible", "Delayed")
        return sum(self.attribute(f"ApproximateNumberOfMessages{name}") for name in names)

    def set_aside(self) -> dict[tuple[str, int], str]:
        """Cluster and minute of each snapshot that was set aside, with the reason."""
        found: dict[tuple[str, int], str] = {}
        asked = {"QueueUrl": self.dead, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        while messages := self.sqs.receive_message(**asked).get("Messages"):
            for message in messages:
                arrival = msgspec.json.decode(message["Body"], type=Arrival)
                why = message.get("MessageAttributes", {}).get("reason", {})
                key = (arrival.cluster, arrival.sequence)
                found[key] = why.get("StringValue", "received too often")
                self.sqs.delete_message(QueueUrl=self.dead, ReceiptHandle=message["ReceiptHandle"])
        return found


def test_every_snapshot_that_was_acknowledged_is_accounted_for(rig: ServiceRig, wire: FaultyWire):
    """Throttled and lost writes, doubled, late and overtaking messages, killed workers, and a base that never comes.

    A total queue: https://github.com/jepsen-io/jepsen/blob/main/jepsen/src/jepsen/checker.clj
    """
    start = Span.HOUR.start(datetime.now(UTC)) - timedelta(hours=1, minutes=30)
    agents = []
    for tenant in ("trial-0", "trial-1"):
        url = rig.url_through(wire.url)
        cluster, service = rig.enrolled(tenant, f"of-{tenant}", Role.AGENT, url=url)
        agents.append(Telling(tenant, cluster, service, start))
    arrivals, until = Arrivals(rig), time.monotonic() + SECONDS
    usual = arrivals.attribute("VisibilityTimeout")
    arrivals.configure(VisibilityTimeout=VISIBILITY_SECONDS)
    wire.begin(partial(rig.emulator.workers, "MetricsFunction"))
    with ThreadPoolExecutor(len(agents)) as threads:
        telling = [threads.submit(agent.tell, until) for agent in agents]
        while not all(each.done() for each in telling):
            arrivals.configure(DelaySeconds=3)
            time.sleep(1)
            arrivals.configure(DelaySeconds=0)
            time.sleep(2)
    wire.heal()
    while arrivals.waiting() and time.monotonic() < until:
        time.sleep(0.5)
    arrivals.configure(VisibilityTimeout=usual)
    assert not arrivals.waiting(), rig.emulator.complaints()
    aside, told = arrivals.set_aside(), rig.emulator.log.read_text()
    for agent in agents:
        data, end = rig.data(agent.tenant), start + (MINUTES + 1) * MINUTE
        minutes = [*rollups(data, agent.cluster, Span.MINUTE, start, end)]
        worked = {round((minute.start - start) / MINUTE) for minute in minutes}
        unbased = {
            int(minute)
            for minute in re.findall(rf"(\d+) of {agent.cluster}: its base \d+ never came", told)
        }
        report = TotalQueue(agent.attempted, agent.acknowledged, worked | unbased)
        sys.stdout.write(f"{agent.tenant}: {report}, {len(unbased)} refused\n")
        assert not report.lost, sorted(report.lost)
        assert not report.unexpected, sorted(report.unexpected)
        assert agent.acknowledged == agent.attempted
        assert unbased == set(range(UNSENT + 1, UNSENT + FULL_EVERY))
        hour = Span.HOUR.start(end) - timedelta(hours=1)
        [closed] = rollups(data, agent.cluster, Span.HOUR, hour, hour)
        counted = sum(minute.start < hour + timedelta(hours=1) for minute in minutes)
        said = newest_said(data, agent.cluster)
        # An hour that late snapshots belong to is made anew within ten minutes.
        assert closed.samples == counted or (said and (Span.HOUR, hour) in said.owed)
    mine = {agent.cluster for agent in agents}
    assert not mine & {cluster for cluster, _ in aside}, aside
    assert set(wire.faults) == set(Fault), "else it has shown nothing"
