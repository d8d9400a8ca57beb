"""The schedule's message in, one resync."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from functions import resync, schedule
from plimsoll import bootstrap
from plimsoll.domain.errors import Temporary
from plimsoll.domain.registry import ResyncRequest
from tests.functions.conftest import Crash, FakeService, batch

SCHEDULED = {"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}
REQUESTS = [
    ResyncRequest(cluster=name, label=name, until="2026-01-01T00:01:00+00:00")
    for name in ("harbor", "pier")
]


def test_a_message_asks_for_the_resync_of_its_cluster(service, context):
    answer = resync.handler(batch(REQUESTS[0].message()), context)
    assert answer == {"batchItemFailures": []}
    assert service.asked == [REQUESTS[0]]


def test_a_message_of_the_hour_asks_for_the_preflight_of_its_cluster(service, context, monkeypatch):
    compared = FakeService()
    monkeypatch.setattr(bootstrap.services(), "preflight", compared)
    request = replace(REQUESTS[0], preflight=True)
    resync.handler(batch(request.message()), context)
    assert (service.asked, compared.asked) == ([], [request])


def test_a_message_about_an_account_and_region_asks_for_its_zonal_shifts(
    service, context, monkeypatch
):
    shifts = FakeService()
    monkeypatch.setattr(bootstrap.services(), "zonal_shifts", shifts)
    request = replace(REQUESTS[0], place="us-east-1")
    resync.handler(batch(request.message()), context)
    assert (service.asked, shifts.asked) == ([], [request])


@pytest.mark.parametrize("broken", [REQUESTS[0].message(), "no JSON"])
def test_a_bug_is_its_clusters_alone_and_no_error_that_slows_the_queue(
    service, context, log, broken
):
    service.answers = {REQUESTS[0]: Crash("a bug")}
    answer = resync.handler(batch(broken, REQUESTS[1].message()), context)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert service.asked[-1] == REQUESTS[1]
    assert "resync failed" in [line["message"] for line in log()]


def test_the_schedule_asks_once(service, context):
    schedule.handler(SCHEDULED, context)
    assert service.asked == ["run"]


def test_the_hourly_schedule_asks_for_preflights(service, context):
    schedule.handler({"ask": "preflight"}, context)
    assert service.asked == ["preflight"]


def test_the_schedule_of_canaries_sends_one_and_asks_for_nothing(service, context, monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(bootstrap, "canaries", lambda: SimpleNamespace(send=sent.append))
    schedule.handler({"ask": "canary"}, context)
    assert (sent, service.asked) == (["schedule"], [])


def test_a_schedule_that_fails_is_an_error_of_the_function(service, context):
    service.answers = {"run": Temporary("the registry is away")}
    with pytest.raises(Temporary):
        schedule.handler(SCHEDULED, context)
