"""How many vCPUs of on-demand instances an account may run, and runs.

The quota is about vCPUs of the standard families together, in one region.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.doctor.facts import Quota

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

CODE: Final = "L-1216C47A"
"""Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances."""
_FAMILY: Final = re.compile(r"([a-z]+)\d")
_STANDARD: Final = frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"})
"""The letters before the generation; `im` and `is` count as I, `hpc` or `mac` as none of them."""


class AwsQuotas:
    """Implements `plimsoll.services.doctor.Quotas`."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def on_demand(self) -> Quota:
        """Return the quota of on-demand vCPUs of the standard families, and what is in use.

        Raises:
            PlimsollError: Service Quotas or EC2 cannot be asked.
        """
        with translated("read the quota of on-demand vCPUs"):
            answer = self._aws.servicequotas.get_service_quota(ServiceCode="ec2", QuotaCode=CODE)
        filters: Any = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        with translated("count the vCPUs in use"):
            pages = self._aws.ec2.get_paginator("describe_instances").paginate(Filters=filters)
            used = sum(
                _vcpus(instance)
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            )
        return Quota(limit=int(answer["Quota"]["Value"]), used=used)


def _vcpus(instance: Mapping[str, Any]) -> int:
    family = _FAMILY.match(str(instance.get("InstanceType", "")))
    if instance.get("InstanceLifecycle") or family is None or family[1] not in _STANDARD:
        return 0
    options = instance.get("CpuOptions") or {}
    return int(options.get("CoreCount", 1)) * int(options.get("ThreadsPerCore", 1))
