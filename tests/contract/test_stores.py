"""What every store promises: in memory, in moto's DynamoDB, in those of the emulators."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.dynamodb import tables
from plimsoll.adapters.dynamodb.codec import (
    TTL,
    cluster_to_item,
    item_to_cluster,
    item_to_report,
    report_to_item,
)
from plimsoll.adapters.dynamodb.layouts import DynamoLayouts
from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.observed_times import DynamoObservedTimes
from plimsoll.adapters.dynamodb.pools import DynamoPools
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.adapters.dynamodb.tables import READ_BATCH_ITEMS, ROUNDS
from plimsoll.adapters.sqs import TRACEPARENT, SqsResyncs, SqsWakeUps
from plimsoll.domain.errors import Conflict, NotFound, Refused, Temporary, Throttled
from plimsoll.domain.interruptions import MaintenanceWindow, Policy, Response
from plimsoll.domain.kubernetes import Ref, Resources
from plimsoll.domain.observation import TIMES_KEPT, Count, Sample, Samples
from plimsoll.domain.placement import ChosenLayout, Layout, Promise
from plimsoll.domain.registry import (
    Cluster,
    ClusterKind,
    IndexEntry,
    Mode,
    ResyncRequest,
    resync_requests,
)
from plimsoll.domain.reports import Reason, Report, Score, WorkloadScore
from plimsoll.domain.spot import POOL_EVENTS_KEPT, CapacityPool, HeldPool, PoolEvent, PoolEventKind
from plimsoll.domain.spot.pool_history import MERGED
from plimsoll.domain.zones import LONGEST_SHIFT, ShiftEvent
from plimsoll.services.ports import LayoutStore, NodeIndex, Pools, Registry, Reports, Times, WakeUps
from plimsoll_simulation.fake_aws.stores import (
    MemoryLayouts,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryTimes,
    MemoryWakeUps,
)
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT
from tests.package.template import requests_for_tables, resources

from .conftest import Answers

T0 = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SHOP = Cluster(
    name="shop",
    kind=ClusterKind.EKS,
    region="eu-west-1",
    added=T0,
    policy=Policy(
        on=(("rebalance-recommendation", Response.CORDON),),
        nodes_per_hour=3,
        moves_per_hour=50,
        min_on_demand="30%",
        keep_ready="60%, 99.7%",
        obeys_budgets=True,
        return_to_spot=True,
        act_in=("lab", "web"),
        window=MaintenanceWindow.parse("sat,sun 22:00-04:00"),
    ),
)
BARE = Cluster(
    name="bare",
    kind=ClusterKind.ENDPOINT,
    mode=Mode.ACT,
    region="eu-west-1",
    endpoint="https://10.0.0.1:6443",
    ca="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n",
    secret="plimsoll/bare",
    agent="a-d12436e2cf24b1d86001dfd9",
    role="arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1",
    external_id="between-us-two",
    added=T0,
)
REPORT = Report(
    interruption="i-1@2026-03-01T00:00:00Z",
    cluster="shop",
    node="ip-10-0-0-1",
    kind="spot-interruption",
    noticed=T0,
    reasons=(Reason(why="moved web-1: its replacement is Ready"),),
)


INTERRUPTED = PoolEvent(
    pool=CapacityPool("m5.large", "eu-west-1a", "spot"), kind=PoolEventKind.INTERRUPTION, at=T0
)


WEB, DB = Ref("Deployment", "default", "web"), Ref("StatefulSet", "default", "db")
TIMES = Samples(stop=(Sample(uid="a", at=T0.replace(microsecond=0), seconds=8),))


@dataclass(frozen=True)
class Stores:
    registry: Registry
    index: NodeIndex
    reports: Reports
    pools: Pools
    times: Times
    layouts: LayoutStore
    wake_ups: WakeUps
    sent: Callable[[], Sequence[tuple[str, str | None]]]
    """Bodies and traceparents of the messages that a reader of the queue sees now."""


def in_memory() -> Stores:
    wake_ups = MemoryWakeUps()
    return Stores(
        MemoryRegistry(),
        MemoryNodeIndex(),
        MemoryReports(),
        MemoryPools(),
        MemoryTimes(),
        MemoryLayouts(),
        wake_ups,
        lambda: [
            (f'{{"cluster": "{cluster}"}}', trace)
            for (cluster, delay), trace in zip(wake_ups.sent, wake_ups.traceparents, strict=True)
            if delay == 0
        ],
    )


def in_aws(aws: Aws) -> Stores:
    run = uuid4().hex[:8]
    for name, request in requests_for_tables().items():
        aws.dynamodb.create_table(TableName=f"{name}-{run}", **request)
    queue = aws.sqs.create_queue(QueueName=f"wake-ups-{run}")["QueueUrl"]

    return Stores(
        DynamoRegistry(aws, f"ClustersTable-{run}"),
        DynamoNodeIndex(aws, f"NodesTable-{run}"),
        DynamoReports(aws, f"ReportsTable-{run}"),
        DynamoPools(aws, f"PoolsTable-{run}"),
        DynamoObservedTimes(aws, f"TimesTable-{run}"),
        DynamoLayouts(aws, f"TimesTable-{run}"),
        SqsWakeUps(aws, queue),
        partial(messages_of, aws, queue),
    )


def messages_of(aws: Aws, queue: str) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    while messages := aws.sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        for message in messages:
            attributes = message.get("MessageAttributes", {})
            said = attributes[TRACEPARENT]["StringValue"] if attributes else None
            found.append((message["Body"], said))
    return found


@pytest.fixture(
    params=[
        "memory",
        "moto",
        pytest.param("emulator", marks=pytest.mark.emulator),
        pytest.param("localstack", marks=pytest.mark.localstack),
    ],
)
def stores(request: pytest.FixtureRequest) -> Stores:
    match request.param:
        case "memory":
            return in_memory()
        case "moto":
            return in_aws(request.getfixturevalue("moto_aws"))
        case emulator:
            request.getfixturevalue("credentials")
            patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
            patch.setenv("AWS_ACCESS_KEY_ID", ACCOUNT)  # the emulator's root
            url = (
                request.getfixturevalue("localstack").url
                if emulator == "localstack"
                else request.getfixturevalue("emulator_endpoint")
            )
            return in_aws(Aws("eu-west-1", endpoints={"dynamodb": url, "sqs": url}))


def test_a_cluster_is_found_again_as_it_was_added(stores: Stores) -> None:
    stores.registry.add(SHOP)
    stores.registry.add(BARE)
    assert stores.registry.get("shop") == SHOP
    assert stores.registry.get("bare") == BARE
    assert list(stores.registry.list()) == [BARE, SHOP]
    assert list(stores.registry.names()) == ["bare", "shop"]


def test_a_cluster_is_found_by_its_agent_and_by_no_other(stores: Stores) -> None:
    stores.registry.add(replace(SHOP, agent="a-1"))
    stores.registry.add(replace(BARE, agent=None))
    assert stores.registry.agents() == {"a-1": "shop"}


def test_an_unknown_cluster_is_none(stores: Stores) -> None:
    assert stores.registry.get("shop") is None
    assert list(stores.registry.list()) == []


def test_a_name_is_taken_once(stores: Stores) -> None:
    stores.registry.add(SHOP)
    with pytest.raises(Conflict, match="shop"):
        stores.registry.add(replace(SHOP, mode=Mode.ACT))
    assert stores.registry.get("shop") == SHOP


def test_an_update_replaces_and_needs_the_cluster(stores: Stores) -> None:
    with pytest.raises(NotFound, match="shop"):
        stores.registry.update(SHOP)
    stores.registry.add(SHOP)
    stores.registry.update(replace(SHOP, mode=Mode.ACT))
    assert stores.registry.get("shop") == replace(SHOP, mode=Mode.ACT)


def test_a_removed_cluster_is_gone_and_cannot_be_removed_again(stores: Stores) -> None:
    stores.registry.add(SHOP)
    stores.registry.remove("shop")
    assert stores.registry.get("shop") is None
    with pytest.raises(NotFound, match="shop"):
        stores.registry.remove("shop")


def entry(instance: str, *, seen: datetime = T0, node: str = "ip-10-0-0-1") -> IndexEntry:
    return IndexEntry(
        instance=instance,
        cluster="shop",
        node=node,
        launched=T0 - timedelta(hours=1),
        zone="eu-west-1a",
        instance_type="m5.large",
        requests=Resources(cpu=1500, memory=2**31, pods=3, extended=(("nvidia.com/gpu", 1),)),
        seen=seen,
    )


def test_the_index_finds_what_it_knows_and_leaves_out_the_rest(stores: Stores) -> None:
    bare = IndexEntry(instance="i-2", cluster="bare", node="n2", seen=T0)
    stores.index.put([entry("i-1"), bare])
    assert stores.index.find(["i-1", "i-2", "i-3", "i-1"]) == {"i-1": entry("i-1"), "i-2": bare}


def test_the_index_takes_nothing_and_finds_nothing(stores: Stores) -> None:
    stores.index.put([])
    assert stores.index.find([]) == {}


def test_the_index_holds_more_than_one_batch(stores: Stores) -> None:
    entries = [entry(f"i-{i}") for i in range(130)]
    stores.index.put(entries)
    assert len(stores.index.find([e.instance for e in entries])) == 130


def test_the_newest_sight_of_a_node_wins_in_whatever_order_it_is_put(stores: Stores) -> None:
    old = entry("i-1", node="old")
    new = entry("i-1", node="new", seen=T0 + timedelta(minutes=1))
    stores.index.put([new])
    stores.index.put([old])
    assert stores.index.find(["i-1"]) == {"i-1": new}
    newer = entry("i-1", node="newer", seen=T0 + timedelta(minutes=2))
    stores.index.put([newer, new, old])
    assert stores.index.find(["i-1"]) == {"i-1": newer}


def test_reports_of_one_interruption_merge_into_one(stores: Stores) -> None:
    later = replace(
        REPORT,
        noticed=T0 + timedelta(seconds=3),
        cordoned=T0 + timedelta(seconds=4),
        lowest_ready={"Deployment shop/web": 3},
        fell={"Deployment shop/web": {4: T0 + timedelta(seconds=5), 3: T0 + timedelta(seconds=6)}},
        killed=("shop/job-1",),
        reasons=(
            Reason(why="moved web-1: its replacement is Ready"),
            Reason(why="asked for 1 node"),
        ),
    )
    assert stores.reports.merge(REPORT) == REPORT
    merged = stores.reports.merge(later)
    assert merged == REPORT.merged(later)
    assert list(stores.reports.list("shop")) == [merged]
    assert stores.reports.merge(later) == merged


def test_reports_are_listed_by_cluster_newest_first_and_no_more_than_asked(stores: Stores) -> None:
    made = [
        replace(REPORT, interruption=f"i-{i}@x", noticed=T0 + timedelta(seconds=i))
        for i in range(5)
    ]
    for report in (made[2], made[0], made[4], made[1], made[3]):
        stores.reports.merge(report)
    stores.reports.merge(replace(REPORT, interruption="i-9@x", cluster="bare"))
    assert list(stores.reports.list("shop", limit=3)) == [made[4], made[3], made[2]]
    assert list(stores.reports.list("nowhere")) == []


SCORE = Score(
    cluster="shop",
    month="2026-03",
    at=T0,
    judged=timedelta(days=2),
    workloads={
        "Deployment shop/web": WorkloadScore(
            judged=timedelta(days=2),
            predicted=timedelta(seconds=170.5),
            observed=timedelta(seconds=134),
            until=T0 - timedelta(hours=1),
            falling=True,
        )
    },
    left_out=3,
)


def test_a_score_is_written_only_over_what_was_read(stores: Stores) -> None:
    months = ["2026-04", "2026-03", "2026-02"]
    assert list(stores.reports.scores("shop", months)) == []
    stores.reports.put_score(SCORE)
    with pytest.raises(Conflict):
        stores.reports.put_score(SCORE)
    (read,) = stores.reports.scores("shop", months)
    assert read == replace(SCORE, version=1)
    stores.reports.put_score(replace(read, left_out=0))
    with pytest.raises(Conflict):
        stores.reports.put_score(read)
    assert list(stores.reports.scores("bare", months)) == []


def test_a_score_is_no_report(stores: Stores) -> None:
    stores.reports.put_score(SCORE)
    assert list(stores.reports.list("shop")) == []


def test_a_tick_for_each_delay_names_its_cluster(stores: Stores) -> None:
    stores.wake_ups.send("shop", [0] * 12)
    assert [*stores.sent()] == [('{"cluster": "shop"}', None)] * 12


def test_a_tick_carries_the_trace_of_who_sent_it(stores: Stores) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    stores.wake_ups.send("shop", [0, 0], trace)
    assert [*stores.sent()] == [('{"cluster": "shop"}', trace)] * 2


def test_no_delay_is_no_tick(stores: Stores) -> None:
    stores.wake_ups.send("shop", [])
    assert list(stores.sent()) == []


def test_each_resync_is_a_message_of_its_own(moto_aws: Aws) -> None:
    queue = moto_aws.sqs.create_queue(QueueName="resyncs")["QueueUrl"]
    asked = resync_requests([replace(SHOP, name=f"shop-{n:02}") for n in range(12)], T0)
    SqsResyncs(moto_aws, queue).send(asked)
    bodies = [body for body, _ in messages_of(moto_aws, queue)]
    assert {*map(ResyncRequest.read, bodies)} == {*asked}
    assert len(asked) == 12 + 1


def test_a_report_survives_a_newer_version_that_added_a_field() -> None:
    item: Any = report_to_item(REPORT)
    item["report"] = {"S": item["report"]["S"].replace("{", '{"mood":"calm",', 1)}
    assert item_to_report(item) == REPORT


def test_a_merge_after_a_rollback_keeps_the_fields_of_a_newer_version(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    names = moto_aws.dynamodb.list_tables()["TableNames"]
    table = next(name for name in names if name.startswith("ReportsTable"))
    key = {"interruption": {"S": REPORT.interruption}}
    item = rewritten(report_to_item(REPORT), "report", lambda report: report.update(mood="calm"))
    moto_aws.dynamodb.put_item(TableName=table, Item=item)
    gone = T0 + timedelta(minutes=2)
    assert stores.reports.merge(replace(REPORT, gone=gone)) == replace(REPORT, gone=gone)
    written = moto_aws.dynamodb.get_item(TableName=table, Key=key)["Item"]
    assert json.loads(written["report"]["S"])["mood"] == "calm"
    assert item_to_report(written).gone == gone


def rewritten(item: Any, attribute: str, change: Callable[[Any], object]) -> Any:
    document = json.loads(item[attribute]["S"])
    change(document)
    return item | {attribute: {"S": json.dumps(document)}}


def test_a_report_survives_reasons_of_a_newer_version() -> None:
    newer = {"kind": "priced", "cost": 3}
    item = rewritten(
        report_to_item(REPORT),
        "report",
        lambda report: report.update(reasons=[report["reasons"][0] | newer, newer]),
    )
    assert item_to_report(item) == replace(
        REPORT, reasons=(*REPORT.reasons, Reason(why='{"kind":"priced","cost":3}'))
    )


def test_a_cluster_survives_a_window_of_a_newer_version() -> None:
    item = rewritten(
        cluster_to_item(SHOP),
        "policy",
        lambda policy: policy["window"].update(zone="Europe/Berlin"),
    )
    assert item_to_cluster(item) == SHOP


def test_a_response_of_a_newer_version_writes_nothing() -> None:
    item = rewritten(
        cluster_to_item(SHOP),
        "policy",
        lambda policy: policy.update(on=[["spot-interruption", "hold"]]),
    )
    policy = replace(SHOP.policy, on=(("spot-interruption", Response.OBSERVE),))
    assert item_to_cluster(item) == replace(SHOP, policy=policy)


def test_what_is_merged_or_acted_on_is_read_as_it_was_written_last(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    reads = [Answers(moto_aws, "dynamodb", name, None) for name in ("GetItem", "Scan")]
    stores.reports.merge(REPORT)
    stores.registry.get("shop")
    stores.registry.list()
    asked = [each for read in reads for each in read.asked]
    assert [each["ConsistentRead"] for each in asked] == [True] * 3


def nodes_table(aws: Aws) -> str:
    names = aws.dynamodb.list_tables()["TableNames"]
    return next(name for name in names if name.startswith("NodesTable"))


def test_what_dynamodb_leaves_unprocessed_is_sent_again(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    stores.index.put([entry("i-1")])
    table = nodes_table(moto_aws)
    left = {
        "Responses": {table: []},
        "UnprocessedKeys": {table: {"Keys": [{"instance": {"S": "i-1"}}]}},
    }
    Answers(moto_aws, "dynamodb", "BatchGetItem", left, left, None)
    assert stores.index.find(["i-1"]) == {"i-1": entry("i-1")}


def test_a_table_that_leaves_everything_unprocessed_is_throttled(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    table = nodes_table(moto_aws)
    left = {"Responses": {}, "UnprocessedKeys": {table: {"Keys": [{"instance": {"S": "i-1"}}]}}}
    reads = Answers(moto_aws, "dynamodb", "BatchGetItem", left)
    with pytest.raises(Throttled, match="1 of 1"):
        stores.index.find(["i-1"])
    assert reads.calls == ROUNDS


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_what_dynamodb_leaves_unprocessed_is_sent_again_after_doubling_pauses(
    moto_aws: Aws, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(tables, "sleep", pauses.append)
    stores = in_aws(moto_aws)
    table = nodes_table(moto_aws)
    left = {
        "Responses": {},
        "UnprocessedKeys": {table: {"Keys": [{"instance": {"S": "i-1"}}]}},
        "UnprocessedItems": {table: [{"PutRequest": {"Item": {"instance": {"S": "i-1"}}}}]},
    }
    Answers(moto_aws, "dynamodb", operation, left)
    with pytest.raises(Throttled):
        stores.index.put([entry("i-1")])
    assert all(
        0 <= pause <= most for pause, most in zip(pauses, [0.05, 0.1, 0.2, 0.4], strict=True)
    )


def test_a_report_that_others_write_in_between_is_read_and_merged_again(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    other = replace(REPORT, cordoned=T0 + timedelta(seconds=1))
    pending = [other, replace(REPORT, emptied=T0 + timedelta(seconds=9))]

    def race(**_: object) -> None:
        if pending:
            stores.reports.merge(pending.pop())

    moto_aws.dynamodb.meta.events.register("before-call.dynamodb.PutItem", race)
    merged = stores.reports.merge(REPORT)
    assert merged.cordoned == T0 + timedelta(seconds=1)
    assert merged.emptied == T0 + timedelta(seconds=9)
    assert list(stores.reports.list("shop")) == [merged]


@pytest.mark.parametrize("merged_before", [1, 2, 3])
def test_a_report_that_others_update_in_between_keeps_what_they_wrote(
    moto_aws: Aws, merged_before: int
) -> None:
    stores = in_aws(moto_aws)
    for _ in range(merged_before):
        stores.reports.merge(REPORT)
    pending = [replace(REPORT, emptied=T0 + timedelta(seconds=9))]

    def race(**_: object) -> None:
        if pending:
            stores.reports.merge(pending.pop())

    moto_aws.dynamodb.meta.events.register("before-call.dynamodb.PutItem", race)
    stores.reports.merge(replace(REPORT, cordoned=T0 + timedelta(seconds=1)))
    (kept,) = stores.reports.list("shop")
    assert (kept.cordoned, kept.emptied) == (T0 + timedelta(seconds=1), T0 + timedelta(seconds=9))


@pytest.mark.parametrize(("times", "is_merged"), [(4, True), (5, False)])
def test_a_report_is_merged_though_others_write_four_times_in_between_and_not_five(
    moto_aws: Aws, times: int, *, is_merged: bool
) -> None:
    stores = in_aws(moto_aws)
    stores.reports.merge(REPORT)
    pending = [T0 + timedelta(seconds=n) for n in range(times)]
    writing: list[bool] = []

    def race(**_: object) -> None:
        if pending and not writing:
            writing.append(True)
            stores.reports.merge(replace(REPORT, gone=pending.pop()))
            writing.clear()

    moto_aws.dynamodb.meta.events.register("before-call.dynamodb.PutItem", race)
    ours = replace(REPORT, cordoned=T0)
    if is_merged:
        assert stores.reports.merge(ours).cordoned == T0
    else:
        with pytest.raises(Conflict):
            stores.reports.merge(ours)


def test_ticks_that_the_queue_did_not_take_are_temporary(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    failed = {"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}
    Answers(moto_aws, "sqs", "SendMessageBatch", failed)
    with pytest.raises(Temporary, match="1 of 2 wake-ups for cluster shop"):
        stores.wake_ups.send("shop", [0, 10])


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ProvisionedThroughputExceededException", 400, Throttled),
        ("AccessDeniedException", 400, Refused),
        ("InternalServerError", 500, Temporary),
        ("ResourceNotFoundException", 400, NotFound),
    ],
)
def test_errors_of_aws_are_named_for_what_comes_next(
    moto_aws: Aws, code: str, status: int, error: type[Exception]
) -> None:
    stores = in_aws(moto_aws)
    Answers(
        moto_aws, "dynamodb", "GetItem", {"status": status, "Error": {"Code": code, "Message": "…"}}
    )
    with pytest.raises(error, match=code):
        stores.registry.get("shop")


def test_an_aws_that_does_not_answer_is_temporary(credentials: None) -> None:
    registry = DynamoRegistry(
        Aws("eu-west-1", endpoints={"dynamodb": "http://127.0.0.1:9"}), "ClustersTable"
    )
    with pytest.raises(Temporary, match="read cluster shop"):
        registry.get("shop")


def test_what_happened_to_a_pool_is_kept_once_by_region(stores: Stores) -> None:
    again = replace(INTERRUPTED, at=T0 + timedelta(seconds=1))
    refused = replace(INTERRUPTED, kind=PoolEventKind.REFUSAL)
    later = replace(INTERRUPTED, at=T0 + MERGED)
    stores.pools.put("eu-west-1", [INTERRUPTED, refused, again])
    stores.pools.put("eu-west-1", [later])
    stores.pools.put("eu-west-1", [])
    found = stores.pools.read("eu-west-1", T0)
    assert sorted(event.at for event in found) == [T0, again.at, later.at]
    assert {event.pool for event in found} == {INTERRUPTED.pool}
    assert [event.kind for event in found].count(PoolEventKind.REFUSAL) == 1
    assert stores.pools.read("us-east-1", T0) == []


def test_an_hour_of_a_pool_is_counted_by_one_cluster_of_a_region_alone(stores: Stores) -> None:
    first = HeldPool(pool=INTERRUPTED.pool, since=T0, hours=1.0, at=T0)
    second = replace(first, hours=1.9958, at=T0 + timedelta(hours=1))
    assert stores.pools.held("eu-west-1") == []
    stores.pools.count("eu-west-1", None, first)
    with pytest.raises(Conflict):
        stores.pools.count("eu-west-1", None, first)
    assert [*stores.pools.held("eu-west-1")] == [first]
    stores.pools.count("eu-west-1", first, second)
    with pytest.raises(Conflict):
        stores.pools.count("eu-west-1", first, second)
    assert [*stores.pools.held("eu-west-1")] == [second]
    assert stores.pools.held("us-east-1") == []
    assert stores.pools.read("eu-west-1", T0) == []
    other = replace(first, pool=CapacityPool("r5.large", "eu-west-1b", "spot"))
    stores.pools.count("eu-west-1", None, other)
    assert {held.pool for held in stores.pools.held("eu-west-1")} == {first.pool, other.pool}
    stores.pools.put("eu-west-1", [INTERRUPTED])
    events, held = stores.pools.memory("eu-west-1", T0)
    assert [*events] == [INTERRUPTED]
    assert sorted(each.hours for each in held) == [1.0, second.hours]


def test_what_is_told_of_a_zonal_shift_is_kept_once_by_region_until_it_ends_by_itself(
    stores: Stores,
) -> None:
    began = ShiftEvent(zone="us-east-1a", cause="practice", cluster="harbor", active=True, at=T0)
    over = ShiftEvent(zone="us-east-1a", cause="autoshift", active=False, at=T0)
    for event in (began, over, began):
        stores.pools.put_shift("us-east-1", event)
    stores.pools.put_shift("eu-west-1", began)
    assert {*stores.pools.shifts("us-east-1", T0)} == {began, over}
    assert [*stores.pools.shifts("us-east-1", T0 + LONGEST_SHIFT["practice"])] == [over]
    assert stores.pools.read("us-east-1", T0) == []


def test_what_happened_to_a_pool_is_forgotten_in_time(stores: Stores) -> None:
    stores.pools.put("eu-west-1", [INTERRUPTED])
    assert stores.pools.read("eu-west-1", T0 + POOL_EVENTS_KEPT) == []


def test_times_are_merged_by_workload_and_told_twice_are_the_same(stores: Stores) -> None:
    at = T0.replace(microsecond=0)
    first = Samples(
        stop=(Sample(uid="a", at=at, seconds=8),), killed=(Sample(uid="b", at=at, seconds=60),)
    )
    later = Samples(start=(Sample(uid="c", at=at + timedelta(seconds=5), seconds=30),))
    for told in (first, later, first):
        stores.times.merge("shop", WEB, told)
    operated = Ref("Database", "shop", "db")
    counted = Samples(count=Count(at=at, pods=5))
    stores.times.merge("shop", operated, counted)
    stores.times.merge("shop", DB, later)
    stores.times.merge("bare", WEB, later)
    assert stores.times.read("shop", [WEB, DB, operated]) == {
        WEB: first.merged(later),
        DB: later,
        operated: counted,
    }
    assert stores.times.read("shop", [Ref("Deployment", "other", "web")]) == {}
    assert stores.times.read("shop", []) == {}


def test_times_of_more_workloads_are_read_than_one_call_may_name(stores: Stores) -> None:
    stores.times.merge("shop", WEB, TIMES)
    others = [Ref("Deployment", "default", f"web-{n}") for n in range(READ_BATCH_ITEMS)]
    assert stores.times.read("shop", [*others, WEB]) == {WEB: TIMES}


def test_times_that_another_writes_in_between_are_merged_with_its(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    table = next(t for t in moto_aws.dynamodb.list_tables()["TableNames"] if "Times" in t)
    stores.times.merge("shop", WEB, TIMES)
    other = Samples(stop=(Sample(uid="b", at=T0.replace(microsecond=0), seconds=9),))
    batch_get, met = moto_aws.dynamodb.batch_get_item, list[Any]()

    def raced(**asked: Any) -> Any:
        answer = batch_get(**asked)
        if not met:
            met.append(asked)
            DynamoObservedTimes(moto_aws, table).merge("shop", WEB, other)
        return answer

    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(moto_aws.dynamodb, "batch_get_item", raced)
        mine = Samples(start=(Sample(uid="c", at=T0.replace(microsecond=0), seconds=3),))
        stores.times.merge("shop", WEB, mine)
    assert stores.times.read("shop", [WEB]) == {WEB: TIMES.merged(other).merged(mine)}


def test_times_that_are_told_again_are_not_written_again(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    table = next(t for t in moto_aws.dynamodb.list_tables()["TableNames"] if "Times" in t)
    stores.times.merge("shop", WEB, TIMES)
    stores.times.merge("shop", WEB, TIMES)
    (item,) = moto_aws.dynamodb.scan(TableName=table)["Items"]
    assert item["version"] == {"N": "1"}
    assert int(item[TTL]["N"]) == int((T0 + TIMES_KEPT).timestamp())


def test_a_layout_is_chosen_by_the_run_that_comes_first_and_found_by_cluster(
    stores: Stores,
) -> None:
    first = ChosenLayout(promise=Promise.parse("60%"), layout=Layout(3, 3), at=T0)
    changed = ChosenLayout(
        promise=Promise(ready=6, percent=99.999999),
        layout=Layout(1, 0),
        changed=T0 + timedelta(days=9),
        above=T0,
        below=T0 + timedelta(days=3),
        at=T0 + timedelta(days=9),
    )
    stores.layouts.write("shop", WEB, None, first)
    with pytest.raises(Conflict):
        stores.layouts.write("shop", WEB, None, changed)
    stores.layouts.write("shop", WEB, first, changed)
    with pytest.raises(Conflict):
        stores.layouts.write("shop", WEB, first, first)
    stores.layouts.write("bare", DB, None, first)
    stores.times.merge("shop", WEB, TIMES)
    assert stores.layouts.read("shop") == {WEB: changed}
    assert stores.layouts.read("bare") == {DB: first}
    assert stores.layouts.read("other") == {}
    assert stores.times.read("shop", [WEB]) == {WEB: TIMES}


def test_items_expire_in_the_tables_where_the_template_says_so(moto_aws: Aws) -> None:
    stores = in_aws(moto_aws)
    stores.registry.add(SHOP)
    stores.index.put([entry("i-1")])
    stores.reports.merge(REPORT)
    stores.pools.put("eu-west-1", [INTERRUPTED])
    stores.times.merge("shop", WEB, TIMES)

    written = 0
    for name in moto_aws.dynamodb.list_tables()["TableNames"]:
        properties = resources("AWS::DynamoDB::Table")[name.partition("-")[0]]["Properties"]
        deletes = properties.get("TimeToLiveSpecification")
        for item in moto_aws.dynamodb.scan(TableName=name)["Items"]:
            written += 1
            assert deletes == ({"AttributeName": TTL, "Enabled": True} if TTL in item else None)
    assert written == 5
