"""What EC2 says of instances, in moto's words and in some that moto never says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.domain.errors import NotFound, Refused, Throttled
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.notices import HealthScheduledChange, SpotInterruption, StateChange

from .conftest import REGION, Answers, FakeClock, refused

UNKNOWN = "i-0123456789abcdef0"
NOW = datetime.now(UTC)


@pytest.fixture
def ec2(moto_aws: Aws) -> Ec2Instances:
    return Ec2Instances(moto_aws, FakeClock(NOW))


def run(aws: Aws, count: int = 1, **more: Any) -> list[str]:
    answer = aws.ec2.run_instances(
        ImageId="ami-12c6146b",
        MinCount=count,
        MaxCount=count,
        InstanceType="m5.large",
        Placement={"AvailabilityZone": f"{REGION}a"},
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "kubernetes.io/cluster/shop", "Value": "owned"}],
            }
        ],
        **more,
    )
    return [i["InstanceId"] for i in answer["Instances"]]


def test_an_instance_is_described_with_its_launch_time_and_cluster(
    moto_aws: Aws, ec2: Ec2Instances
) -> None:
    (id_,) = run(moto_aws)
    found = ec2.describe([id_])[id_]
    assert (found.id, found.state, found.zone) == (id_, "running", "eu-west-1a")
    assert found.instance_type == "m5.large"
    assert found.cluster_name() == "shop"
    assert found.launched is not None
    assert found.launched.tzinfo is not None


def test_an_instance_that_clusters_share_is_that_of_the_one_that_owns_it() -> None:
    tags = (("kubernetes.io/cluster/a", "shared"), ("kubernetes.io/cluster/b", "owned"))
    shared = Instance(id="i-1", state="running", launched=None, tags=tags)
    assert shared.cluster_name() == "b"
    assert shared.is_of_another("a")
    assert not shared.is_of_another("b")
    both = replace(shared, tags=tuple((key, "shared") for key, _ in tags))
    assert not both.is_of_another("a")
    assert not both.is_of_another("b")


def test_an_instance_that_was_terminated_by_a_call_was_ended_by_its_owner(
    moto_aws: Aws, ec2: Ec2Instances
) -> None:
    ended, running = run(moto_aws, 2)
    moto_aws.ec2.terminate_instances(InstanceIds=[ended])
    found = ec2.describe([ended, running])
    assert (found[ended].ended_by_owner, found[running].ended_by_owner) == (True, False)


def test_nothing_is_asked_for_nobody(moto_aws: Aws, ec2: Ec2Instances) -> None:
    asked = Answers(moto_aws, "ec2", "DescribeInstances", None)
    assert ec2.describe([]) == {}
    assert ec2.interrupted([]) == []
    assert asked.calls == 0


def test_instances_that_ec2_does_not_know_are_left_out_and_hide_no_other(
    moto_aws: Aws, ec2: Ec2Instances
) -> None:
    known = run(moto_aws, 2)
    found = ec2.describe([UNKNOWN, known[0], "i-0123456789abcdef1", known[1], "i-odd"])
    assert set(found) == set(known)


def test_many_instances_are_asked_for_a_hundred_at_a_time(moto_aws: Aws, ec2: Ec2Instances) -> None:
    ids = run(moto_aws, 150)
    asked = Answers(moto_aws, "ec2", "DescribeInstances", None)
    assert set(ec2.describe(ids)) == set(ids)
    assert [len(a["InstanceIds"]) for a in asked.asked] == [100, 50]


def test_an_instance_that_runs_is_not_going(moto_aws: Aws, ec2: Ec2Instances) -> None:
    assert ec2.interrupted([*run(moto_aws), UNKNOWN]) == []


@pytest.mark.parametrize(("verb", "state"), [("terminate", "terminated"), ("stop", "stopped")])
def test_an_instance_that_ends_is_told_as_its_change_of_state(
    moto_aws: Aws, ec2: Ec2Instances, verb: str, state: str
) -> None:
    (id_,) = run(moto_aws)
    getattr(moto_aws.ec2, f"{verb}_instances")(InstanceIds=[id_])
    (notice,) = ec2.interrupted([id_])
    assert isinstance(notice, StateChange)
    assert (notice.instance, notice.state, notice.region) == (id_, state, REGION)
    assert abs(notice.time - datetime.now(UTC)) < timedelta(minutes=1)
    assert ec2.interrupted([id_]) == [notice]


def test_a_change_of_state_without_a_time_is_now(moto_aws: Aws, ec2: Ec2Instances) -> None:
    instance = {
        "InstanceId": UNKNOWN,
        "State": {"Name": "shutting-down"},
        "LaunchTime": NOW - timedelta(hours=1),
        "StateTransitionReason": "Server.SpotInstanceTermination",
    }
    answer = {"Reservations": [{"OwnerId": "1", "Instances": [instance]}]}
    Answers(moto_aws, "ec2", "DescribeInstances", answer)
    Answers(moto_aws, "ec2", "DescribeInstanceStatus", {"InstanceStatuses": []})
    (notice,) = ec2.interrupted([UNKNOWN])
    assert isinstance(notice, StateChange)
    assert (notice.time, notice.state) == (NOW, "shutting-down")


def spot_instance(aws: Aws) -> str:
    (id_,) = run(aws, InstanceMarketOptions={"MarketType": "spot"})
    return id_


def request(id_: str, code: str, **more: Any) -> dict[str, Any]:
    return {
        "SpotInstanceRequests": [
            {
                "InstanceId": id_,
                "SpotInstanceRequestId": "sir-1",
                "Status": {"Code": code, "UpdateTime": NOW - timedelta(seconds=10)},
                **more,
            }
        ]
    }


@pytest.mark.parametrize(
    ("code", "behaviour", "action"),
    [
        ("marked-for-termination", "terminate", "terminate"),
        ("marked-for-stop", "stop", "stop"),
        ("marked-for-stop", "hibernate", "hibernate"),
        ("instance-terminated-by-price", "terminate", "terminate"),
        ("instance-terminated-no-capacity", "terminate", "terminate"),
        ("instance-stopped-no-capacity", "stop", "stop"),
        ("instance-terminated-capacity-oversubscribed", "terminate", "terminate"),
    ],
)
def test_a_spot_request_that_is_marked_is_an_interruption(
    moto_aws: Aws, ec2: Ec2Instances, code: str, behaviour: str, action: str
) -> None:
    id_ = spot_instance(moto_aws)
    Answers(
        moto_aws,
        "ec2",
        "DescribeSpotInstanceRequests",
        request(id_, code, InstanceInterruptionBehavior=behaviour),
    )
    (notice,) = ec2.interrupted([id_])
    assert isinstance(notice, SpotInterruption)
    assert (notice.instance, notice.action) == (id_, action)
    assert notice.time == NOW - timedelta(seconds=10)
    assert ec2.interrupted([id_]) == [notice]


@pytest.mark.parametrize(
    "code", ["fulfilled", "request-canceled-and-instance-running", "instance-terminated-by-user"]
)
def test_any_other_spot_request_is_none(moto_aws: Aws, ec2: Ec2Instances, code: str) -> None:
    id_ = spot_instance(moto_aws)
    Answers(moto_aws, "ec2", "DescribeSpotInstanceRequests", request(id_, code))
    assert ec2.interrupted([id_]) == []


def test_ec2_leaves_out_what_runs_on(moto_aws: Aws, ec2: Ec2Instances) -> None:
    asked = [
        Answers(moto_aws, "ec2", f"Describe{what}", None)
        for what in ("Instances", "SpotInstanceRequests")
    ]
    assert ec2.interrupted([*run(moto_aws), spot_instance(moto_aws)]) == []
    (state,), (_, code) = [a["Filters"] for answers in asked for a in answers.asked]
    assert (state["Name"], code["Name"]) == ("instance-state-name", "status-code")
    assert "running" not in state["Values"]
    assert "fulfilled" not in code["Values"]


def status(id_: str, **event: Any) -> dict[str, Any]:
    known = {
        "InstanceEventId": "instance-event-1",
        "Code": "instance-retirement",
        "Description": "The instance is running on degraded hardware",
        "NotBefore": NOW + timedelta(days=3),
    }
    return {"InstanceStatuses": [{"InstanceId": id_, "Events": [known | event]}]}


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("instance-retirement", "retirement"),
        ("instance-stop", "other"),
        ("instance-reboot", "maintenance"),
        ("system-reboot", "maintenance"),
        ("system-maintenance", "maintenance"),
    ],
)
def test_a_scheduled_event_is_a_scheduled_change(
    moto_aws: Aws, ec2: Ec2Instances, code: str, change: str
) -> None:
    (id_,) = run(moto_aws)
    Answers(moto_aws, "ec2", "DescribeInstanceStatus", status(id_, Code=code))
    (notice,) = ec2.interrupted([id_])
    assert isinstance(notice, HealthScheduledChange)
    assert (notice.instance, notice.change, notice.closed) == (id_, change, False)
    assert notice.ends == NOW + timedelta(days=3)
    launched = ec2.describe([id_])[id_].launched
    midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    assert notice.time == max(launched or midnight, midnight)
    assert ec2.interrupted([id_]) == [notice]


@pytest.mark.parametrize("said", ["[Completed] as planned", "[Canceled] after all"])
def test_a_scheduled_event_that_is_over_says_so_under_its_name(
    moto_aws: Aws, ec2: Ec2Instances, said: str
) -> None:
    (id_,) = run(moto_aws)
    Answers(moto_aws, "ec2", "DescribeInstanceStatus", status(id_, Description=said))
    (notice,) = ec2.interrupted([id_])
    assert isinstance(notice, HealthScheduledChange)
    assert (notice.closed, notice.arn, notice.ends) == (True, "instance-event-1", None)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("RequestLimitExceeded", Throttled),
        ("UnauthorizedOperation", Refused),
        ("InvalidInstanceID.NotFound", NotFound),  # and names none of those asked for
    ],
)
def test_a_refusal_is_named_for_what_comes_next(
    moto_aws: Aws, ec2: Ec2Instances, code: str, error: type[Exception]
) -> None:
    named = "i-0123456789abcdef1" if "Invalid" in code else UNKNOWN
    Answers(moto_aws, "ec2", "DescribeInstances", refused(code, f"no {named}"))
    with pytest.raises(error, match="describe instances"):
        ec2.describe([UNKNOWN])


def test_zones_are_told_by_their_ids(moto_aws: Aws) -> None:
    zones = Ec2Instances(moto_aws, FakeClock(NOW)).zones()
    assert zones["euw1-az1"].startswith("eu-west-1")
    assert len({*zones.values()}) == len(zones) > 1
