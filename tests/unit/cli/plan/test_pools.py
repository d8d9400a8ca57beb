"""`plimsoll reports pools`: what is remembered of capacity pools."""

from __future__ import annotations

import json
from datetime import timedelta

from plimsoll.domain.spot import CapacityPool, PoolEvent, PoolEventKind
from tests.support.cli_environment import MemoryEnvironment, run

M5 = CapacityPool("m5.xlarge", "us-east-1a", "spot")
R5 = CapacityPool("r5.xlarge", "us-east-1b", "on-demand")


def an_environment() -> MemoryEnvironment:
    environment = MemoryEnvironment()
    now = environment.clock.now()
    told = (
        (M5, PoolEventKind.INTERRUPTION, timedelta(minutes=1)),
        (M5, PoolEventKind.LAUNCH, timedelta(hours=5)),
        (R5, PoolEventKind.REFUSAL, timedelta(hours=1)),
        (R5, PoolEventKind.REFUSAL, timedelta(days=20)),
    )
    events = [PoolEvent(pool=pool, kind=kind, at=now - before) for pool, kind, before in told]
    environment.pools.put("us-east-1", events)
    return environment


def test_pools_are_shown_by_risk_with_what_happened_to_them():
    result = run(an_environment(), "reports", "pools")
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if ".xlarge" in line]
    first, second = (" ".join(row.split()) for row in rows)
    assert first.startswith("m5.xlarge us-east-1a spot 1 0 0 1 ")
    assert first.endswith("1.00 " + "█" * 20)
    assert second.startswith("r5.xlarge us-east-1b on-demand 0 0 1 0 ")


def test_the_same_as_json_and_what_is_older_than_two_weeks_is_forgotten():
    said = json.loads(run(an_environment(), "reports", "pools", "--output", "json").stdout)["pools"]
    assert [(p["instance_type"], p["risk"], p["refusals"]) for p in said] == [
        ("m5.xlarge", 1.0, 0),
        ("r5.xlarge", 0.047, 1),
    ]


def test_another_region_has_its_own_and_none_is_an_answer_too():
    result = run(an_environment(), "reports", "pools", "--region", "eu-west-1")
    assert result.exit_code == 0
    assert "No capacity pool had an event" in result.stdout
