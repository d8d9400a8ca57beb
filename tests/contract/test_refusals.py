"""What AWS says of a launch that failed, as the refusal that it stands for."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from plimsoll.adapters.nodegroups.refusals import of_activity, of_health, refusal_of
from plimsoll.domain.node_groups import LONGEST_WHY_CHARACTERS, refusal_advice
from plimsoll_simulation.fake_aws.launch_refusals import LAUNCH_FAULTS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

SPOT = "Could not launch Spot Instances. "


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        ("InsufficientInstanceCapacity", "none", "insufficient-capacity"),
        ("", f"{SPOT}UnfulfillableCapacity - Unable to fulfill it.", "insufficient-capacity"),
        ("", "There is no Spot capacity available that matches it.", "insufficient-capacity"),
        (
            "InvalidFleetConfiguration",
            "Your instance type (p3.8xlarge) is not supported in your requested Availability Zone",
            "insufficient-capacity",
        ),
        ("VcpuLimitExceeded", "You have requested more than your limit.", "vcpu-quota"),
        (
            "",
            f"{SPOT}MaxSpotInstanceCountExceeded - Max spot instance count exceeded",
            "vcpu-quota",
        ),
        ("ValidationError", "New SetDesiredCapacity value 6 is above max value 5", "group-maximum"),
        ("InsufficientFreeAddressesInSubnet", "", "no-free-addresses"),
        ("InsufficientFreeAddresses", "Amazon Autoscaling was unable to", "no-free-addresses"),
        ("Ec2LaunchTemplateNotFound", "", "launch-template-broken"),
        ("", "The key pair 'old' does not exist. Launching EC2", "launch-template-broken"),
        ("", "Invalid IAM Instance Profile name", "launch-template-broken"),
        ("RequestLimitExceeded", "", "launches-throttled"),
        ("Client.InternalError", "Client error on launch", "other"),
        ("", "", "other"),
    ],
)
def test_a_refusal_is_known_by_its_words_or_its_code(code: str, words: str, kind: str) -> None:
    assert refusal_of(code, words, NOON).kind == kind


def test_every_way_in_which_a_drill_refuses_launches_is_a_refusal_of_its_own() -> None:
    said = [words.partition(": ") for words in LAUNCH_FAULTS.values()]
    kinds = {refusal_of(code, words, NOON).kind for code, _, words in said}
    assert len(kinds) == len(LAUNCH_FAULTS)
    assert "other" not in kinds


def test_words_name_the_instance_type_and_the_zone() -> None:
    words = (
        "We currently do not have sufficient m5.large capacity in the Availability Zone you "
        "requested (us-east-1a). You can currently get it by choosing us-east-1b."
    )
    told = refusal_of("", words, NOON)
    assert (told.instance_type, told.zone) == ("m5.large", "us-east-1a")


def test_an_activity_names_its_zone_beside_its_words() -> None:
    activity = {
        "StartTime": NOON,
        "StatusMessage": "There are not enough free addresses in subnet 'subnet-1'.",
        "Details": json.dumps({"Subnet ID": "subnet-1", "Availability Zone": "us-east-2c"}),
    }
    assert of_activity(activity).zone == "us-east-2c"
    for details in ("", "no JSON", "[]", '{"Availability Zone": 7}'):
        assert of_activity({**activity, "Details": details}).zone is None


def test_health_issues_that_say_nothing_of_launches_refuse_nothing() -> None:
    issues = [
        {"code": "AsgInstanceLaunchFailures", "message": "not enough free addresses in subnet"},
        {"code": "NodeCreationFailure", "message": "Instances failed to join the cluster"},
        {"code": "PodEvictionFailure", "message": "Reached max retries"},
    ]
    assert [r.kind for r in of_health(issues, NOON)] == ["no-free-addresses", "other"]


def test_however_much_aws_says_little_of_it_is_kept() -> None:
    assert len(refusal_of("Code", "word " * 1000, NOON).why) == LONGEST_WHY_CHARACTERS


def test_a_cure_stands_beside_what_was_refused() -> None:
    told = refusal_of("VcpuLimitExceeded", "Your limit is 32.", NOON, zone="us-east-1a")
    assert refusal_advice("base", told) == (
        "base was refused in us-east-1a (vcpu-quota): VcpuLimitExceeded: Your limit is 32. "
        "Cure: ask Service Quotas for more vCPUs of this family, on-demand and spot each have "
        "their own quota"
    )
