from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.domain.notices import parse
from plimsoll_simulation.durations import parse_span
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.events import event_of

NOW = datetime(2026, 1, 1, 0, 3, 0, 250_000, tzinfo=UTC)
GOES = NOW + timedelta(seconds=120)
DOCUMENTED = Path(__file__).parents[3] / "events"


@pytest.fixture
def machine() -> Machine:
    spec = NodeGroupSpec(
        name="spot-a",
        kind="asg",
        capacity="spot",
        instance_type="m5.2xlarge",
        zones=("us-east-1b",),
        size=1,
        max=1,
        startup=parse_span("70s"),
        allocatable={"cpu": "4", "memory": "8Gi"},
    )
    return next(Fleet("harbor", [spec], seed=0, now=NOW).alive())


KINDS = {
    "spot-interruption": "spot-interruption.json",
    "rebalance-recommendation": "rebalance-recommendation.json",
    "lifecycle-terminate": "lifecycle-terminate.json",
    "health-scheduled-change": "health-scheduled-change.json",
    "capacity-reservation-interruption": "capacity-reservation-interruption.json",
    "state-change": "state-change-terminated.json",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_notice_of_a_drill_is_read_as_the_notice_it_plays(kind: str, machine: Machine):
    event = event_of(kind, machine, NOW, goes=GOES, state="terminated")
    (notice,) = parse(json.dumps(event), received=NOW, drills=True)
    assert notice.kind == kind
    assert getattr(notice, "instance") == machine.id  # noqa: B009 - not all notices are about one
    assert notice.time == NOW.replace(microsecond=0)


@pytest.mark.parametrize(("kind", "file"), KINDS.items())
def test_a_drill_event_has_the_fields_of_the_documented_one(kind: str, file: str, machine: Machine):
    real = json.loads((DOCUMENTED / file).read_text())
    event = event_of(kind, machine, NOW, goes=GOES, state="terminated")
    assert event is not None
    assert event["detail-type"] == real["detail-type"]
    assert event.keys() == real.keys()
    assert event["detail"].keys() >= real["detail"].keys() - {
        "azId",  # not played
        "actionability",
        "personas",
    }


def test_what_goes_without_a_word_has_no_event(machine: Machine):
    assert event_of("none", machine, NOW, goes=NOW) is None
