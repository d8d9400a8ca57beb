"""What people are told once interruptions are over."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.sns import SnsAnnouncer
from plimsoll.domain.errors import Temporary, Throttled
from plimsoll.domain.registry import LABELLED_CLUSTERS, Cluster
from plimsoll.domain.registry.clusters import OTHERS
from plimsoll.domain.reports import Metric, Report, announcement
from plimsoll.domain.reports.announcements import LISTED_NAMES
from tests.support.workload_sets import WiredServices

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_report(node: str = "spot-1", **more: Any) -> Report:
    known: dict[str, Any] = {
        "interruption": f"i-{node}@1",
        "cluster": "harbor",
        "node": node,
        "kind": "spot-interruption",
        "noticed": NOON,
        "gone": NOON + timedelta(seconds=121),
    }
    return Report(**known | more)


def test_a_message_says_what_it_cost_who_was_killed_and_what_to_do():
    subject, text = announcement(
        "harbor",
        [
            a_report("quiet", emptied=NOON + timedelta(seconds=43)),
            a_report("loud", killed=("shop/web-1", "shop/web-2"), lowest_ready={"shop/web": 0}),
        ],
    )
    assert subject == "harbor: 2 nodes interrupted, 2 pods killed"
    assert text.splitlines() == [
        "loud (spot-interruption) was noticed 2026-03-01 12:00:00Z, gone after 121 s",
        "  killed: shop/web-1, shop/web-2",
        "  stood at zero: shop/web",
        "quiet (spot-interruption) was noticed 2026-03-01 12:00:00Z, empty after 43 s, gone after 121 s",
        "Why, step by step: plimsoll reports show i-loud@1",
        "Then see that the workloads are whole again: kubectl get pods --all-namespaces",
    ]


def test_when_nobody_was_hurt_nothing_is_left_to_do():
    subject, text = announcement("harbor", [a_report(lowest_ready={"shop/web": 2})])
    assert subject == "harbor: 1 node interrupted, 0 pods killed"
    assert text.endswith("\nNothing is left to do.")


def test_a_message_about_a_storm_stays_short():
    pods = tuple(f"shop/web-{n}" for n in range(500))
    subject, text = announcement("c" * 300, [a_report(f"n{n}", killed=pods) for n in range(500)])
    assert len(subject) < 100, "SNS takes no longer subject"
    assert len(text) < 256 * 1024
    assert f"and {500 - LISTED_NAMES} more" in text


def test_a_resync_tells_once_of_all_that_is_over_and_counts_it_by_cluster():
    world = WiredServices()
    world.join("od")
    for node in ("spot-1", "spot-2"):
        world.reports.merge(a_report(node, noticed=world.time, gone=None, killed=("shop/web-1",)))
    world.sleep(600)
    world.resync.run()
    world.resync.run()
    [(subject, _)] = world.announcer.told
    assert subject == "harbor: 2 nodes interrupted, 2 pods killed"
    assert world.telemetry.of_clusters[Metric.PODS_KILLED, "harbor"] == 2
    assert world.telemetry.metrics[Metric.PODS_KILLED] == 2


def test_what_was_closed_is_told_although_the_table_takes_no_more(
    monkeypatch: pytest.MonkeyPatch,
):
    world = WiredServices()
    world.join("od")
    for node in ("spot-1", "spot-2"):
        world.reports.merge(a_report(node, noticed=world.time, killed=("shop/web-1",)))
    world.sleep(600)
    merge, merged = world.reports.merge, list[Report]()

    def once(report: Report) -> Report:
        if merged:
            raise Throttled("the table is busy")
        merged.append(report)
        return merge(report)

    with monkeypatch.context() as busy:
        busy.setattr(world.reports, "merge", once)
        world.resync.run()
    world.sleep(600)
    world.resync.run()
    assert [subject for subject, _ in world.announcer.told] == [
        "harbor: 1 node interrupted, 1 pods killed"
    ] * 2
    assert world.telemetry.of_clusters[Metric.PODS_KILLED, "harbor"] == 2


def test_what_alarms_are_about_is_counted_by_cluster_once_it_is_over():
    world = WiredServices()
    world.join("od")
    report = a_report("spot", noticed=world.time, gone=None, killed=())
    late = world.time + timedelta(seconds=20)
    refused = {"shop/web-1": "the budget allows none"}
    world.reports.merge(replace(report, emptied=None, cordoned=late, overruled=refused))
    world.sleep(600)
    world.resync.run()
    counted = {m: n for (m, c), n in world.telemetry.of_clusters.items() if c == "harbor"}
    assert counted == {Metric.BUDGETS_OVERRULED: 1, Metric.NOTICE_AGE_AT_CORDON: 20}
    [(_, text)] = world.announcer.told
    assert "deleted past their budgets: shop/web-1" in text


def test_a_topic_that_does_not_answer_costs_no_report(monkeypatch: pytest.MonkeyPatch):
    world = WiredServices()

    def fail(*_: object) -> None:
        raise Temporary("SNS is away")

    monkeypatch.setattr(world.announcer, "tell", fail)
    world.reports.merge(a_report(noticed=world.time))
    world.sleep(600)
    world.resync.run()
    [report] = world.reports.list("harbor")
    assert report.closed == world.time
    assert "reports not announced" in world.telemetry.warned


def test_no_more_than_fifty_clusters_have_metrics_of_their_own():
    world = WiredServices()
    for number in range(LABELLED_CLUSTERS + 5):
        world.registry.add(a_cluster(world.cluster, f"m{number:03}"))

    def away(_: Cluster) -> Any:
        raise Temporary("no route")

    world.open = away  # type: ignore[method-assign,assignment] # every cluster is away
    world.resync.run()
    counted = {c: n for (m, c), n in world.telemetry.of_clusters.items()}
    assert len(counted) == LABELLED_CLUSTERS + 1
    assert counted[OTHERS] == 6
    assert world.telemetry.metrics[Metric.CLUSTERS_NOT_RESYNCED] == LABELLED_CLUSTERS + 6


def a_cluster(like: Cluster, name: str) -> Cluster:
    return Cluster(name=name, kind=like.kind, mode=like.mode, region=like.region, added=like.added)


def test_mail_gets_words_and_chat_its_own_form(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        topic = boto3.client("sns", region_name="us-east-1").create_topic(Name="t")["TopicArn"]
        aws = Aws("us-east-1")
        sent: list[dict[str, Any]] = []
        aws.sns.meta.events.register(
            "provide-client-params.sns.Publish", lambda params, **_: sent.append(params)
        )
        SnsAnnouncer(aws, topic).tell("subject", "text")
        SnsAnnouncer(aws, "").tell("nobody", "hears")
    [asked] = sent
    message = json.loads(asked["Message"])
    assert (asked["Subject"], message["default"]) == ("subject", "text")
    assert json.loads(message["https"])["content"]["title"] == "subject"
