"""`plimsoll reports pools`: what is remembered of capacity pools."""

from __future__ import annotations

import json
from datetime import timedelta

from plimsoll.domain.spot import CapacityPool, HeldPool, PoolEvent, PoolEventKind
from tests.support.cli_environment import MemoryEnvironment, run

M5 = CapacityPool("m5.xlarge", "us-east-1a", "spot")
C5 = CapacityPool("c5.xlarge", "us-east-1a", "spot")
R5 = CapacityPool("r5.xlarge", "us-east-1b", "on-demand")


def an_environment() -> MemoryEnvironment:
    environment = MemoryEnvironment()
    now = environment.clock.now()
    told = (
        (M5, PoolEventKind.INTERRUPTION, timedelta(minutes=1)),
        (M5, PoolEventKind.LAUNCH, timedelta(hours=5)),
        (R5, PoolEventKind.REFUSAL, timedelta(hours=1)),
        (R5, PoolEventKind.REFUSAL, timedelta(days=30)),
    )
    events = [PoolEvent(pool=pool, kind=kind, at=now - before) for pool, kind, before in told]
    environment.pools.put("us-east-1", events)
    since = now - timedelta(hours=72)
    row = HeldPool(pool=C5, since=since, hours=60.0, at=now)
    environment.pools.count("us-east-1", None, row)
    return environment


def test_pools_are_shown_by_rate_with_what_happened_to_them_and_first_those_set_aside():
    result = run(an_environment(), "reports", "pools")
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if ".xlarge" in line]
    first, second, third = (" ".join(row.split()) for row in rows)
    assert first.startswith("m5.xlarge us-east-1a spot 1 0 0 1 ")
    assert first.endswith("0 h 0.7095 set aside")
    assert second == "c5.xlarge us-east-1a spot 0 0 0 0 - 72 h 0.0139"
    assert third.startswith("r5.xlarge us-east-1b on-demand 0 0 1 0 ")
    assert third.endswith("- -")


def test_the_same_as_json_and_what_is_older_than_four_weeks_is_forgotten():
    said = json.loads(run(an_environment(), "reports", "pools", "--output", "json").stdout)["pools"]
    assert [(p["instance_type"], p["set_aside"], p["refusals"]) for p in said] == [
        ("m5.xlarge", True, 0),
        ("c5.xlarge", False, 0),
        ("r5.xlarge", False, 1),
    ]
    assert said[1]["rate"]["stood_hours"] == 72
    assert said[2]["rate"] is None


def test_another_region_has_its_own_and_none_is_an_answer_too():
    result = run(an_environment(), "reports", "pools", "--region", "eu-west-1")
    assert result.exit_code == 0
    assert "No capacity pool had an event or was held in 28 days" in result.stdout
