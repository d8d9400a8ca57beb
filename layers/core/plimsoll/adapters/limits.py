"""What bounds the launches of an account in one region: its quota, its subnets, its images."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.capacity import QUOTA_CODE, VcpuQuota

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

_FAMILY: Final = re.compile(r"([a-z]+)\d")
_STANDARD: Final = frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"})
"""The letters before the generation; `im` and `is` count as I, `hpc` or `mac` as none of them."""


class AwsLimits:
    """Implements `plimsoll.services.ports.Limits`."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def quota(self) -> VcpuQuota:
        """Return the quota of on-demand vCPUs of the standard families, and what is in use.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits

        Raises:
            PlimsollError: Service Quotas or EC2 cannot be asked.
        """
        with translated("read the quota of on-demand vCPUs"):
            answer = self._aws.servicequotas.get_service_quota(
                ServiceCode="ec2", QuotaCode=QUOTA_CODE
            )
        filters: Any = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        with translated("count the vCPUs in use"):
            pages = self._aws.ec2.get_paginator("describe_instances").paginate(Filters=filters)
            used = sum(
                _vcpus(instance)
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            )
        return VcpuQuota(limit=int(answer["Quota"]["Value"]), used=used)

    def free_addresses(self, subnets: Sequence[str]) -> Mapping[str, int]:
        """Return how many addresses are free in these subnets; the unknown ones are left out.

        Raises:
            PlimsollError: EC2 cannot be asked.
        """
        if not subnets:
            return {}
        with translated("read the free addresses of subnets"):
            pages = self._aws.ec2.get_paginator("describe_subnets").paginate(
                Filters=[{"Name": "subnet-id", "Values": list(subnets)}]
            )
            return {
                subnet["SubnetId"]: subnet["AvailableIpAddressCount"]
                for page in pages
                for subnet in page["Subnets"]
            }

    def images(self, ids: Sequence[str]) -> Collection[str]:
        """Return which of these images exist and may be used.

        Raises:
            PlimsollError: EC2 cannot be asked.
        """
        if not ids:
            return ()
        with translated("read the images of launch templates"):
            pages = self._aws.ec2.get_paginator("describe_images").paginate(
                Filters=[{"Name": "image-id", "Values": list(ids)}]
            )
            return {image["ImageId"] for page in pages for image in page["Images"]}


def _vcpus(instance: Mapping[str, Any]) -> int:
    family = _FAMILY.match(str(instance.get("InstanceType", "")))
    # EC2 names a lifecycle only for spot, scheduled and capacity-block instances: on-demand instances have none.
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
    if instance.get("InstanceLifecycle") or family is None or family[1] not in _STANDARD:
        return 0
    options = instance.get("CpuOptions") or {}
    return int(options.get("CoreCount", 1)) * int(options.get("ThreadsPerCore", 1))
