"""How EC2 refuses to launch instances, in its own codes and words.

Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html,
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec

LAUNCH_FAULTS: Final[Mapping[str, str]] = {
    "insufficient-capacity": (
        "InsufficientInstanceCapacity: We currently do not have sufficient {type} capacity in the "
        "Availability Zone you requested ({zone}). Our system will be working on provisioning "
        "additional capacity."
    ),
    "vcpu-quota": (
        "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 "
        "allows for the instance bucket that the specified instance type belongs to."
    ),
    "subnet-full": (
        "InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet "
        "'subnet-{zone}' to satisfy the requested number of instances."
    ),
    "launch-template-broken": (
        "InvalidAMIID.NotFound: The image id '[ami-0123456789abcdef0]' does not exist."
    ),
    "launches-throttled": "RequestLimitExceeded: Request limit exceeded.",
}
"""Fault -> code and words, in which the instance type and the zone are named."""


class LaunchRefused(Refused):
    """EC2 launches nothing for a group."""

    def __init__(self, fault: str, spec: NodeGroupSpec, zone: str) -> None:
        said = LAUNCH_FAULTS[fault].format(type=spec.instance_type, zone=zone)
        super().__init__(said)
        self.code, _, self.words = said.partition(": ")
        self.zone = zone
