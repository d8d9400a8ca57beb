"""What the stores of the optimisation service promise: in memory, and in moto's DynamoDB and S3."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import batched, islice
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any
from uuid import UUID
from zipfile import ZipFile

import boto3
import pytest
from moto import mock_aws
from moto.dynamodb.models import DynamoDBBackend

from plimsoll.domain.errors import Conflict, Refused, Throttled
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.adapters.tenant_archive import TenantArchive
from plimsoll_service.adapters.tenants import MOST_ITEM_BYTES, AwsTenants
from plimsoll_service.domain.access import Binding, Grant, Identity, PersonRole, Principal, Role
from plimsoll_service.domain.snapshots import Arrival
from plimsoll_service.services import decisions
from plimsoll_service.services.cluster_rows import (
    CLUSTER,
    remember_cluster,
    tell_advised,
    tell_seen,
)
from plimsoll_service.services.clusters import CLUSTER_FILTERS, clusters
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.limits import count
from plimsoll_service.services.paging import page_request
from plimsoll_service.services.ports import Members, TenantData, Tenants
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.wire.advice import About, Recommendation, Recommendations
from plimsoll_service.wire.audit import Action, AuditEntry
from plimsoll_service.wire.clusters import AdvisedColumns, SeenColumns
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.snapshot import AgentState
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers, MemoryTenants
from tests.package.template import requests_for_tables
from tests.support.enrolled import KUBE_SYSTEM, Key, admitted, agent_of, invitation, person_of
from tests.support.properties import IN_TEST_LONG

from .conftest import FakeClock, kept_for_ever

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = NOW + 24 * HOUR
PAGES = 24 if IN_TEST_LONG else 2
"""How many pages of 50 are read of 1,200 clusters: the emulated table takes a second for each."""
ANN = Identity(issuer="https://id", subject="1", name="ann", groups=frozenset({"sre"}))


@dataclass
class Stores:
    tenants: Tenants
    members: Members
    clock: FakeClock


def service_aws() -> ServiceAws:
    """Return a way to moto with the tables of `service.yaml` and the bucket of snapshots."""
    aws = ServiceAws("us-east-1")
    for name, said in requests_for_tables("service.yaml").items():
        aws.dynamodb.create_table(TableName=name, **said)
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="snapshots")
    return aws


@pytest.fixture(params=["memory", "moto"])
def stores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    clock = FakeClock(NOW)
    if request.param == "memory":
        yield Stores(MemoryTenants(clock), MemoryMembers(), clock)
        return
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    # DynamoDB writes an item by one request after another; moto, in threads, by several at once.
    update, lock = DynamoDBBackend.update_item, Lock()

    def one_at_a_time(*args: Any, **more: Any) -> Any:
        with lock:
            return update(*args, **more)

    monkeypatch.setattr(DynamoDBBackend, "update_item", one_at_a_time)
    with mock_aws():
        aws = service_aws()
        tenants = AwsTenants(
            sessions=lambda _: aws,
            table="DocumentsTable",
            audit_table="AuditTable",
            bucket="snapshots",
            clock=clock,
        )
        yield Stores(tenants, DynamoMembers(aws=aws, table="MembersTable"), clock)
        kept = kept_for_ever(aws.dynamodb, ["DocumentsTable", "MembersTable", "AuditTable"])
        assert all("kid" in row for row in kept), "all but whom an operator let in expires"


def test_a_document_is_written_over_the_version_that_was_read(stores: Stores):
    data = stores.tenants.of("acme")
    first = data.put("c", "key", b"1", expires=LATER)
    assert data.get("c", "key") == first
    second = data.put("c", "key", b"2", version=first.version, expires=LATER)
    for stale in (0, first.version):
        with pytest.raises(Conflict):
            data.put("c", "key", b"3", version=stale, expires=LATER)
    assert data.get("c", "key") == second
    assert (second.body, second.version) == (b"2", 2)


def test_a_document_that_has_expired_is_absent_and_may_be_written_anew(stores: Stores):
    data = stores.tenants.of("acme")
    data.put("c", "key", b"1", expires=NOW + HOUR)
    stores.clock.sleep(3600)
    assert data.get("c", "key") is None
    assert not list(data.list("c", "a", "z"))
    assert data.put("c", "key", b"2", expires=LATER).version == 1


def test_documents_are_listed_in_the_order_of_their_keys_and_only_those_of_a_cluster(
    stores: Stores,
):
    data = stores.tenants.of("acme")
    for key in ("b#2", "b#1", "c#1", "a#1"):
        data.put("c", key, key.encode(), expires=LATER)
    data.put("other", "b#3", b"", expires=LATER)
    assert [d.key for d in data.list("c", "b#", "b#~")] == ["b#1", "b#2"]
    assert [d.key for d in data.list("c", "a", "z", limit=2)] == ["a#1", "b#1"]
    backwards = data.list("c", "a", "b#~", limit=2, descending=True)
    assert [d.key for d in backwards] == ["b#2", "b#1"]
    assert not list(data.list("c", "b#2", "b#1"))


def test_a_document_that_was_deleted_is_gone_and_again_is_once(stores: Stores):
    data = stores.tenants.of("acme")
    data.put("c", "key", b"1", expires=LATER)
    data.delete("c", "key")
    data.delete("c", "key")
    assert data.get("c", "key") is None


def test_a_document_too_large_for_an_item_is_kept_all_the_same(stores: Stores):
    data = stores.tenants.of("acme")
    data.put("c", "key", large(1), expires=LATER)
    found = data.get("c", "key")
    assert found is not None
    assert found.body == large(1)


def test_a_large_document_stays_what_it_is_where_another_was_written_too_late(stores: Stores):
    data = stores.tenants.of("acme")
    data.put("c", "key", large(1), expires=LATER)
    for stale in (0, 7):
        with pytest.raises(Conflict):
            data.put("c", "key", large(2), version=stale, expires=LATER)
    found = data.get("c", "key")
    assert found is not None
    assert found.body == large(1)


def large(seed: int) -> bytes:
    body = Random(seed).randbytes(MOST_ITEM_BYTES)
    assert len(gzip.compress(body)) > MOST_ITEM_BYTES
    return body


def test_snapshots_are_kept_as_they_came(stores: Stores):
    data = stores.tenants.of("acme")
    assert data.get_snapshot("c", "e", 1) is None
    assert not data.has_snapshot("c", "e", 1)
    data.put_snapshot("c", "e", 1, b"\x1f\x8b")
    data.put_snapshot("c", "e", 1, b"\x1f\x8b")
    with pytest.raises(Conflict):
        data.put_snapshot("c", "e", 1, b"\x1f\x8c")
    assert data.get_snapshot("c", "e", 1) == b"\x1f\x8b"
    assert data.has_snapshot("c", "e", 1)


def test_tenants_do_not_see_each_other(stores: Stores):
    stores.tenants.of("acme").put("c", "key", b"1", expires=LATER)
    stores.tenants.of("acme").put_snapshot("c", "e", 1, b"1")
    other = stores.tenants.of("globex")
    assert other.get("c", "key") is None
    assert not list(other.list("c", "a", "z"))
    assert not other.has_snapshot("c", "e", 1)


def entry(**changes: Any) -> AuditEntry:
    facts: dict[str, Any] = {
        "at": NOW,
        "who": "ann",
        "role": "person",
        "action": Action.ACCEPT,
        "object": "clusters/c/recommendations/r-1",
        "version": 7,
        "outcome": "done",
    }
    return AuditEntry(**facts | changes)


def rows(stores: Stores, tenant: str = "acme") -> list[AuditEntry]:
    """Return all audit rows of a tenant, newest first."""
    return [found for _, found in stores.tenants.of(tenant).audit.list()]


def test_audit_rows_are_listed_newest_first_and_each_once(stores: Stores):
    log = stores.tenants.of("acme").audit
    late = entry(at=NOW + HOUR, outcome="refused", reason="it has changed\n=1+1")
    second = entry(at=NOW + timedelta(microseconds=1), who="bob")
    for each in (second, late, entry(), late):
        log.append(each)
    assert rows(stores) == [late, second, entry()]
    assert rows(stores, "globex") == []
    keys = [key for key, _ in log.list()]
    assert [found for _, found in log.list(keys[0])] == [second, entry()]
    assert not list(log.list(keys[2]))


def test_a_document_and_its_audit_row_are_written_together_or_not_at_all(stores: Stores):
    data = stores.tenants.of("acme")
    data.put("c", "key", b"1", expires=LATER, audit=entry())
    with pytest.raises(Conflict):
        data.put("c", "key", b"2", expires=LATER, audit=entry(who="bob"))
    assert rows(stores) == [entry()]
    found = data.put("c", "key", b"3", version=1, expires=LATER, audit=entry(who="cid"))
    assert (data.get("c", "key"), {each.who for each in rows(stores)}) == (found, {"ann", "cid"})


def test_of_two_people_who_decide_in_the_tables_one_wins_and_a_repetition_adds_no_row(
    stores: Stores,
):
    data = stores.tenants.of("acme")
    found = Recommendation(
        id="r1",
        kind="consolidate-node",
        about=About(kind="Node", name="a", uid="u"),
        reason="its pods fit elsewhere",
        monthly=70.0,
        since=NOW,
        changed_at=NOW,
    )
    body = encode(Recommendations(recommendations=(found,)))
    data.put("c", RECOMMENDATIONS, body, expires=LATER)

    def accept(who: str, seen: int = 1) -> Recommendation:
        by, now = person_of(who, now=NOW), stores.clock.now()
        return decisions.accept(data, "c", "r1", by=by, seen=seen, now=now)

    first = accept("ann")
    stores.clock.sleep(1)
    assert accept("ann") == first
    with pytest.raises(Refused, match="ann accepted it"):
        accept("bob")
    assert [(row.who, row.at, row.outcome) for row in rows(stores)] == [
        ("bob", NOW + timedelta(seconds=1), "refused"),
        ("ann", NOW, "done"),
    ]


def test_an_invitation_lets_one_key_in_for_as_long_as_it_is_good(stores: Stores):
    key, other = Key(), Key(2)
    agent = agent_of(key, now=NOW)
    stores.members.invite("digest", invitation(now=NOW))
    assert stores.members.admit("unknown", key.public, KUBE_SYSTEM, NOW) is None
    assert stores.members.admit("digest", key.public, KUBE_SYSTEM, NOW + HOUR) is None
    assert stores.members.get(agent.subject) is None
    for _ in range(2):
        assert stores.members.admit("digest", key.public, KUBE_SYSTEM, NOW) == agent
    assert stores.members.admit("digest", other.public, KUBE_SYSTEM, NOW) is None
    assert stores.members.admit("digest", key.public, KUBE_SYSTEM, NOW + HOUR) is None
    assert stores.members.get(agent.subject) == agent


def test_an_invitation_replaces_only_what_stood_when_it_was_made(stores: Stores):
    first = admitted(stores.members, Key(1), invitation(now=NOW))
    for token in ("second", "third"):
        stores.members.invite(token, invitation(now=NOW))
    replaced = stores.members.admit("second", Key(2).public, KUBE_SYSTEM, NOW)
    assert replaced == stores.members.get(first.subject) == agent_of(Key(2), now=NOW)
    assert stores.members.admit("third", Key(3).public, KUBE_SYSTEM, NOW) is None
    assert stores.members.get(first.subject) == replaced


def test_a_member_is_as_it_was_admitted_until_it_is_revoked(stores: Stores):
    agent = admitted(stores.members, Key(), invitation(now=NOW))
    stores.members.invite("another", invitation(now=NOW))
    with pytest.raises(Conflict, match="revoke"):
        stores.members.admit("another", Key(2).public, "another", NOW)
    assert stores.members.get(agent.subject) == agent
    for _ in range(2):
        stores.members.revoke(agent.subject, NOW)
    assert stores.members.get(agent.subject) is None
    assert stores.members.agents() == []
    assert stores.members.admit("another", Key(2).public, "another", NOW) is None
    again = admitted(stores.members, Key(2), invitation(now=NOW), "another")
    assert stores.members.get(agent.subject) == again


def test_agents_are_listed_and_people_are_not(stores: Stores):
    agent = admitted(stores.members, Key(), invitation(now=NOW))
    admitted(stores.members, Key(2), invitation(role=Role.PERSON, now=NOW))
    stores.members.invite("digest", invitation(name="other", now=NOW))
    stores.members.once("word", NOW + HOUR)
    stores.members.count("word", NOW + HOUR, most=9)
    assert stores.members.agents() == [agent]


def test_members_of_a_tenant_are_listed_by_subject_and_nobody_elses(stores: Stores):
    agents = [
        admitted(stores.members, Key(n), invitation(name=f"shop-{n}", now=NOW), f"token-{n}")
        for n in range(3)
    ]
    person = admitted(stores.members, Key(3), invitation(role=Role.PERSON, now=NOW), "person")
    admitted(stores.members, Key(4), invitation("globex", now=NOW), "globex")
    stores.members.invite("digest", invitation(name="invited", now=NOW))
    in_order = [*sorted(agents, key=lambda each: each.subject), person]

    def listed(first: str, last: str = "~", limit: int = 9) -> list[Principal]:
        return list(islice(stores.members.of_tenant("acme", first, last, limit=limit), limit))

    assert listed("") == in_order
    assert listed("a", "a~") == in_order[:3]
    assert listed("p", "p~") == [person]
    assert listed(in_order[1].subject, limit=2) == in_order[1:3]
    stores.members.revoke(person.subject, NOW)
    assert listed("") == in_order[:3]


@pytest.mark.drawn
def test_of_1200_clusters_a_page_is_one_query_of_the_table(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        aws, clock, requests = service_aws(), FakeClock(NOW), list[str]()
        stores = AwsTenants(
            sessions=lambda _: aws,
            table="DocumentsTable",
            audit_table="AuditTable",
            bucket="snapshots",
            clock=clock,
        )
        data = stores.of("acme")
        remember_cluster(data, f"a-{0:024}", "cluster-of-a-long-name-0000", NOW)
        tell_all_of_a_row(data, f"a-{0:024}")
        multiply(aws, 1200)
        aws.dynamodb.meta.events.register(
            "before-call.dynamodb.*", lambda model, **_: requests.append(model.name)
        )
        query, names = {"limit": "50"}, set[str]()
        for _ in range(PAGES):
            page = clusters(data, page_request(query, prefix=CLUSTER, filters=CLUSTER_FILTERS), NOW)
            names |= {each.name for each in page.items}
            assert page.counts.clusters == 1200
            query["after"] = page.next or ""
        assert len(names) == 50 * PAGES
        assert (query["after"] == "") == IN_TEST_LONG
        assert requests == ["Query"] * PAGES


def multiply(aws: ServiceAws, count: int) -> None:
    """Make so many rows of the only one, each as long as it is."""
    [row] = aws.dynamodb.scan(TableName="DocumentsTable")["Items"]
    body = gzip.decompress(row["body"]["B"])
    rows: list[Any] = [
        {
            **row,
            "document_key": {"S": f"{CLUSTER}a-{n:024}"},
            "body": {"B": gzip.compress(body.replace(b"name-0000", f"name-{n:04}".encode()))},
        }
        for n in range(count)
    ]
    for some in batched(rows, 25, strict=True):
        puts: list[Any] = [{"PutRequest": {"Item": each}} for each in some]
        aws.dynamodb.batch_write_item(RequestItems={"DocumentsTable": puts})


def tell_all_of_a_row(data: TenantData, cluster: str) -> None:
    """Let each writer write its columns, as long as they get."""
    arrival = Arrival(
        tenant="acme",
        cluster=cluster,
        epoch=str(UUID(int=2**127)),
        sequence=2**40,
        base=0,
        received_at=NOW,
        digest="",
    )
    agent = AgentState(
        version="0.2.0",
        mode="read-only",
        policy="valid",
        kinds=("consolidate-node", "label-node"),
        spooled=1440,
        spool_bytes=64 * 2**20,
    )
    seen = SeenColumns(
        taken_at=NOW, received_at=NOW, nodes=5000, spot=2500, open_interruptions=1, agent=agent
    )
    tell_seen(data, arrival, seen, NOW)
    advised = AdvisedColumns(
        taken_at=NOW,
        floors=10**4,
        floors_missed=10**3,
        lines=10**4,
        lines_broken=10**3,
        decisions=300,
        monthly=123456.78,
        saveable=98765.43,
    )
    tell_advised(data, cluster, advised, NOW)


def test_a_tenant_is_handed_over_and_removed_and_its_neighbour_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        aws = service_aws()
        members = DynamoMembers(aws=aws, table="MembersTable")
        stores = AwsTenants(
            sessions=lambda _: aws,
            table="DocumentsTable",
            audit_table="AuditTable",
            bucket="snapshots",
            clock=FakeClock(NOW),
        )
        people = PeopleTable(aws=aws, table="PeopleTable")
        for tenant in ("acme", "acme-2"):
            data = stores.of(tenant)
            data.put("c", "key", b"1", expires=LATER)
            data.put("c", "large", large(1), expires=LATER)
            data.put_snapshot("c", "e", 1, b"2")
            admitted(members, Key(), invitation(tenant, now=NOW))
            members.invite(tenant, invitation(tenant, "other", now=NOW))
            people.bind(Binding(tenant=tenant, group="sre", grant=Grant(role=PersonRole.VIEWER)))
            Sessions(store=people).begin(ANN, tenant, NOW)
        archive = TenantArchive(
            aws=aws,
            members="MembersTable",
            people="PeopleTable",
            documents="DocumentsTable",
            audit="AuditTable",
            bucket="snapshots",
            tenant="acme",
        )
        with ZipFile(tmp_path / "acme.zip", "w") as to:
            files = archive.export(to)
        with ZipFile(tmp_path / "acme.zip") as found:
            names = found.namelist()
            assert (
                len(names) == files == 8
            )  # an agent, two invitations, a binding, a session, a row and two objects
            assert found.read("rows/acme#c/key.json") == b"1"
            assert found.read("snapshots/acme/c/e/1.json.gz") == b"2"
        assert not [name for name in names if "acme-2" in name]
        assert archive.remove(NOW) == 4
        assert archive.remove(NOW) == 0
        gone, stays = stores.of("acme"), stores.of("acme-2")
        assert not list(gone.list("c", "a", "z"))
        assert not gone.has_snapshot("c", "e", 1)
        assert [each.key for each in stays.list("c", "a", "z")] == ["key", "large"]
        assert stays.has_snapshot("c", "e", 1)
        assert [each.tenant for each in members.agents()] == ["acme-2"]
        assert [each.tenant for each in people.bindings(None)] == ["acme-2"]
        assert [list(people.sessions(each)) == [] for each in ("acme", "acme-2")] == [True, False]
        assert members.admit("acme", Key(2).public, KUBE_SYSTEM, NOW) is None
        assert members.admit("acme-2", Key(2).public, KUBE_SYSTEM, NOW) is not None


def test_a_word_is_said_once(stores: Stores):
    assert stores.members.once("word", NOW + HOUR)
    assert not stores.members.once("word", NOW + HOUR)
    assert stores.members.once("another", NOW + HOUR)


def test_of_requests_that_come_at_once_a_limit_lets_exactly_so_many_pass(stores: Stores):
    def passes(_: int) -> bool:
        try:
            count(stores.members, "acme", "snapshots", most=30, now=NOW)
        except Throttled:
            return False
        return True

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(passes, range(200))) == 30
    count(stores.members, "globex", "snapshots", most=30, now=NOW)
    count(stores.members, "acme", "reads", most=30, now=NOW)
    count(stores.members, "acme", "snapshots", most=30, now=NOW + timedelta(minutes=1))
