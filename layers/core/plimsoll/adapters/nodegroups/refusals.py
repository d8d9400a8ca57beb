"""What AWS says of a launch that failed, as one of our refusals.

Auto Scaling gives a code and words where it launches through a fleet request ("Could not launch Spot
Instances. CODE - words"), and words alone elsewhere; EKS has codes of its own. Words are asked first,
since one code may stand for several reasons. Sources:
https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html,
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/eks/latest/APIReference/API_Issue.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from plimsoll.adapters.aws_errors import kind_of
from plimsoll.domain.errors import Throttled
from plimsoll.domain.node_groups import (
    LONGEST_WHY_CHARACTERS,
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NoFreeAddresses,
    OtherRefusal,
    Refusal,
    VcpuQuota,
)

_CODED: Final = re.compile(r"Could not launch [\w-]+ Instances\. (\w+) - ")
_TYPE: Final = re.compile(
    r"sufficient (\S+) capacity|instance type \((\S+?)\) is not supported", re.IGNORECASE
)
_ZONE: Final = re.compile(r"Availability Zone(?: you requested)? \((\S+?)\)", re.IGNORECASE)

_WORDS: Final[Mapping[type[Refusal], str]] = {
    NoFreeAddresses: r"not enough free addresses",
    VcpuQuota: r"vCPU (capacity|limit)|Max spot instance count exceeded|your quota allows for",
    InsufficientCapacity: (
        r"sufficient \S+ capacity|no (spot|on-demand) capacity available"
        r"|is not supported in your requested Availability Zone|unable to fulfill capacity"
    ),
    GroupMaximum: r"is above max value|greater than max",
    LaunchesThrottled: r"request limit exceeded|rate exceeded",
    LaunchTemplateBroken: (
        r"launch template|security group .* does not exist|key ?pair .* does not exist"
        r"|\bimages? id|\bAMI\b|instance profile|block device mapping|subnet ID .* does not exist"
    ),
}
"""What each is known by, in whatever case; the first that is found counts."""
_CODES: Final[Mapping[type[Refusal], str]] = {
    NoFreeAddresses: r"InsufficientFreeAddresses",
    InsufficientCapacity: (
        r"Insufficient\w*Capacity|UnfulfillableCapacity|Unsupported$|SpotMaxPriceTooLow"
    ),
    LaunchesThrottled: r"AutoScalingGroupRateLimitExceeded",
    VcpuQuota: r"(Vcpu|Instance|Resource)?LimitExceeded|MaxSpotInstanceCountExceeded",
    LaunchTemplateBroken: (
        r"Invalid(LaunchTemplate|AMIID|Group|KeyPair|SecurityGroup|IamInstanceProfile|SubnetID)"
        r"|Ec2(LaunchTemplate\w*(NotFound|Mismatch|Invalid)|SecurityGroupNotFound|Subnet)"
        r"|Ec2InstanceTypeDoesNotExist|IamInstanceProfileNotFound|AmiIdNotFound"
    ),
}
"""How their codes begin."""
_OF_LAUNCHES: Final = frozenset(
    {
        "AsgInstanceLaunchFailures",
        "AutoScalingGroupInvalidConfiguration",
        "AutoScalingGroupNotFound",
        "AutoScalingGroupOptInRequired",
        "IamNodeRoleNotFound",
        "NodeCreationFailure",
    }
)
"""Health issues of EKS that keep nodes from coming, besides those that a refusal of its own stands for."""


def refusal_of(
    code: str,
    words: str,
    at: datetime,
    *,
    zone: str | None = None,
    instance_type: str | None = None,
) -> Refusal:
    """Return what AWS said, by its words and then by its code.

    Args:
        code: as an API gives it; empty where there are words alone.
        words: in which a code may stand, too.
        at: when it was told.
        zone: where, if the answer says so beside its words.
        instance_type: of what, if the answer says so beside its words.
    """
    coded = _CODED.search(words)
    code = coded[1] if coded else code
    # Stronger evidence overrides weaker: the kind of error, then the code, then the words.
    kind: type[Refusal] = LaunchesThrottled if kind_of(code) is Throttled else OtherRefusal
    kind = next((k for k, codes in _CODES.items() if re.match(codes, code)), kind)
    kind = next((k for k, said in _WORDS.items() if re.search(said, words, re.IGNORECASE)), kind)
    said_type, said_zone = _TYPE.search(words), _ZONE.search(words)
    return kind(
        at=at,
        why=(f"{code}: {words}" if code and not coded else words)[:LONGEST_WHY_CHARACTERS],
        zone=zone or (said_zone[1] if said_zone else None),
        instance_type=instance_type
        or (next(filter(None, said_type.groups()), None) if said_type else None),
    )


def of_activity(activity: Mapping[str, Any]) -> Refusal:
    """Return the refusal that a failed scaling activity tells of."""
    return refusal_of(
        "",
        str(activity.get("StatusMessage") or activity.get("Description", "")),
        activity["StartTime"],
        zone=_zone_of(str(activity.get("Details") or "")),
    )


def of_health(issues: Sequence[Mapping[str, Any]], now: datetime) -> Sequence[Refusal]:
    """Return the health issues of an EKS node group that keep nodes from coming.

    EKS does not say since when. An issue may outlive its cause, so that it is worth reading only
    while nodes are missing and nothing else tells why.
    """
    found = [
        (str(i.get("code", "")), refusal_of(str(i.get("code", "")), str(i.get("message", "")), now))
        for i in issues
    ]
    return [r for code, r in found if not isinstance(r, OtherRefusal) or code in _OF_LAUNCHES]


def _zone_of(details: str) -> str | None:
    """Return the zone in the details of an activity, which are JSON in a string."""
    try:
        found = json.loads(details)
    except ValueError:
        return None
    zone = found.get("Availability Zone") if isinstance(found, dict) else None
    return zone if isinstance(zone, str) else None
